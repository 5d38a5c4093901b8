//! A Redis server of the test's own: on a free loopback port, in a folder of its own, gone when the test is over.
//!
//! It is not a mock: `redis-server` must be installed, and a test without it fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How often, a few milliseconds apart, a server is asked whether it is there.
const TRIES: u32 = 2000;

pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    pub(crate) child: Child,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) fn start(extra: &[&str]) -> Server {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rankd-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        loop {
            // Somebody else may take the port before the server does; then another one is tried.
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let port = free.expect("there is a free port").port();
            let child = spawn(port, &folder, extra);
            let mut server = Server { port, folder: folder.clone(), child };
            if server.wait_until_it_answers() {
                return server;
            }
            assert!(!server.is_alive(), "redis-server runs but does not answer");
            // The folder stays for the next try.
            server.folder = PathBuf::new();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a command and gives the first line of its answer.
    pub(crate) fn command(&self, words: &[&str]) -> std::io::Result<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(Duration::from_secs(120)))?;
        socket.write_all(&encoded(words))?;
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Sends a command and gives the text that it answers with.
    pub(crate) fn text(&self, words: &[&str]) -> std::io::Result<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.write_all(&encoded(words))?;
        let mut reader = BufReader::new(socket);
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let length = header.trim_end().strip_prefix('$').and_then(|length| length.parse().ok());
        let mut text = vec![0; length.ok_or_else(|| std::io::Error::other(header.clone()))?];
        reader.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// A command that must succeed.
    pub(crate) fn must(&self, words: &[&str]) {
        let answer = self.command(words).expect("the server answers");
        assert!(!answer.is_empty() && !answer.starts_with('-'), "{words:?}: {answer}");
    }

    /// False when it ended instead.
    pub(crate) fn wait_until_it_answers(&mut self) -> bool {
        for _ in 0..TRIES {
            // With a password it says NOAUTH, which is an answer, too.
            if self.command(&["PING"]).is_ok_and(|line| line == "+PONG" || line.starts_with("-NOAUTH")) {
                return true;
            }
            if !self.is_alive() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL also ends a server that is stopped; one that is gone already needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn encoded(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    out.into_bytes()
}

/// Starts the process, without persistence of its own accord.
pub(crate) fn spawn(port: u16, folder: &Path, extra: &[&str]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no", "--port"]);
    command.arg(port.to_string()).arg("--dir").arg(folder).args(extra);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is installed (cargo xtask ready installs it)")
}
