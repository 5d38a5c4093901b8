//! A redis-server of the bench's own, filled with the shape, and the CPU time that it and we have used.

use crate::redis::{FANOUT, USERS};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct Server {
    pub port: u16,
    pub child: Child,
}

impl Server {
    pub fn start() -> Server {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let server = Server::start_at(free.expect("a free port").port());
        server.fill();
        server
    }

    /// Starts one on this port and waits until it answers.
    fn start_at(port: u16) -> Server {
        let server = Server { port, child: spawn(port, &file(port), &[]) };
        while !server.answers() {
            std::thread::sleep(Duration::from_millis(2));
        }
        server
    }

    /// Starts the process again on its port and does not wait for it: with what was saved, if anything was; `loading` makes
    /// that take about three seconds.
    pub fn start_again(&mut self, loading: bool) {
        // Microseconds a key.
        let delay = (3_000_000 / (4 * USERS)).to_string();
        self.child = match loading {
            true => {
                let slowly = ["--key-load-delay", &delay, "--loading-process-events-interval-bytes", "1024"];
                spawn(self.port, &file(self.port), &slowly)
            }
            false => spawn(self.port, &file(self.port), &[]),
        };
    }

    pub fn answers(&self) -> bool {
        self.command(&["PING"]).is_ok_and(|answer| answer.starts_with("+PONG"))
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a command and gives the start of its answer.
    pub fn command(&self, words: &[&str]) -> std::io::Result<String> {
        command_on(&mut self.connect()?, words)
    }

    pub fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port))
    }

    /// Users are followed by their neighbours; media have ids of their own, in which the owner can be seen.
    pub fn fill(&self) {
        let script = "local users, fanout = tonumber(ARGV[1]), tonumber(ARGV[2]) \
            for u = 1, users do \
              redis.call('HSET', 'user:' .. u, 'name', 'User ' .. u, 'country', 'DE', 'age', 20 + u % 50, 'verified', 'true') \
              for i = 1, fanout do \
                redis.call('RPUSH', 'follow:' .. u, (u * 7 + i * 13) % users + 1) \
                redis.call('RPUSH', 'recommendation:' .. u, (u * 11 + i * 17) % users + 1) \
                redis.call('RPUSH', 'media:' .. u, u * 1000 + i) \
              end \
            end return 1";
        let answer = self.command(&["EVAL", script, "0", &USERS.to_string(), &FANOUT.to_string()]);
        assert_eq!(answer.expect("it answers").trim_end(), ":1");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(std::env::temp_dir().join(file(self.port)));
    }
}

fn file(port: u16) -> String {
    format!("rankd-bench-{port}.rdb")
}

fn spawn(port: u16, file: &str, more: &[&str]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
    command.arg("--dir").arg(std::env::temp_dir()).args(["--dbfilename", file]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is installed")
}

/// Sends a command on a connection and gives the first bytes of its answer.
pub fn command_on(socket: &mut TcpStream, words: &[&str]) -> std::io::Result<String> {
    let mut out = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    socket.write_all(out.as_bytes())?;
    let mut answer = [0; 512];
    let count = socket.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}

/// CPU seconds of all threads of a process, those that have ended as well, in hundredths.
pub fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name comes before the last bracket and may have spaces; then the state, and the times as the 12th and 13th field.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
