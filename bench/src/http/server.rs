//! The servers as processes of their own, so that their CPU time and memory are theirs alone.

use crate::http::floor::whole;
use crate::http::shape::BODY;
use crate::redis::server::cpu_seconds;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// What the program is told in order to be the floor.
pub const FLOOR_ITSELF: &str = "serve-floor";

pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    /// This program again, as the floor.
    pub fn floor() -> Server {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program).arg(FLOOR_ITSELF).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut address = String::new();
        let out = child.stdout.take().expect("its output is piped");
        BufReader::new(out).read_line(&mut address).expect("it says where it is");
        Server { child, address: address.trim_end().to_owned() }
    }

    /// `rankd serve` with the plans of a folder, once it says that it serves.
    pub fn rankd(plans: &Path, flags: &[&str]) -> Server {
        Server::rankd_under(&[], plans, flags)
    }

    /// The same, started by a command that becomes it, such as `taskset -c 0`.
    pub fn rankd_under(command: &[&str], plans: &Path, flags: &[&str]) -> Server {
        let program = repository().join("target/release/rankd");
        let mut start = match command.split_first() {
            Some((first, rest)) => {
                let mut start = Command::new(first);
                start.args(rest).arg(program);
                start
            }
            None => Command::new(program),
        };
        let mut child = start
            .current_dir(repository())
            .args(["serve", "--listen", "127.0.0.1:0", "--plan-dir"])
            .arg(plans)
            .args(flags)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("target/release/rankd is built: cargo build --release -p rankd");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            Some(line.split_once(" on http://")?.1.split(' ').next()?.to_owned())
        });
        // What it says later is read and dropped, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, address: address.expect("it serves") }
    }

    pub fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.child.id())
    }

    /// Mebibytes of memory that it has in use.
    pub fn resident(&self) -> f64 {
        self.mebibytes("VmRSS:")
    }

    /// The most that it has ever had in use.
    pub fn most_resident(&self) -> f64 {
        self.mebibytes("VmHWM:")
    }

    /// Lets the most that it has had in use count from here on.
    pub fn forget_most_resident(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").expect("the process is ours");
    }

    fn mebibytes(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kibibytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
        kibibytes.map_or(f64::NAN, |kibibytes| kibibytes / 1024.0)
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be asked for")
    }

    /// One request on a connection of its own; gives the whole answer.
    pub fn ask(&self, plan: &str) -> std::io::Result<String> {
        let length = BODY.len();
        let head = format!(
            "POST /rank/{plan} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}"
        );
        self.send(format!("{head}\r\n\r\n{BODY}").as_bytes())
    }

    /// The answer to some bytes on a connection of their own.
    pub fn send(&self, request: &[u8]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(request)?;
        let mut answer = Vec::new();
        let mut bytes = [0; 4096];
        while whole(&answer).is_none() {
            match stream.read(&mut bytes)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                count => answer.extend_from_slice(&bytes[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
