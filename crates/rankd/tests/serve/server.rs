//! The server as a process, in a folder of its own with plans that a test writes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything on any machine; what hangs ends its test after this time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder of a test's own, gone when the test is over.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rankd-serve-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a plan of these nodes, in one step, so that nobody sees half of it.
    pub(crate) fn plan(&self, name: &str, nodes: &[String], output: &str) {
        self.write(&format!("{name}.plan.json"), &plan_text(name, nodes, output));
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let aside = self.0.join(format!("{name}.aside"));
        std::fs::write(&aside, text).unwrap();
        std::fs::rename(&aside, self.0.join(name)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn plan_text(name: &str, nodes: &[String], output: &str) -> String {
    let nodes = nodes.join(",");
    format!(
        r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{nodes}],"outputs":["{output}"],"expr_table":{{}},"pred_table":{{}}}}"#
    )
}

pub(crate) fn node(id: &str, op: &str, inputs: &[&str], params: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":{inputs:?},"params":{{{params}}}}}"#)
}

/// A plan that gives so many rows.
pub(crate) fn rows(name: &str, count: usize) -> (String, Vec<String>) {
    (name.to_owned(), vec![node("n0", "fixed_source", &[], &format!("\"row_count\":{count}"))])
}

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    stderr: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server on a free port and waits until it says that it serves.
    pub(crate) fn start(plans: &Path, flags: &[&str]) -> Server {
        Server::start_by(Command::new(env!("CARGO_BIN_EXE_rankd")), plans, flags)
    }

    /// The same with a limit of the system's, in the words of `prlimit`.
    pub(crate) fn start_limited(limit: &str, plans: &Path, flags: &[&str]) -> Server {
        let mut command = Command::new("prlimit");
        command.args([limit, env!("CARGO_BIN_EXE_rankd")]);
        Server::start_by(command, plans, flags)
    }

    pub(crate) fn start_by(command: Command, plans: &Path, flags: &[&str]) -> Server {
        let (mut server, told) = Server::spawn(command, "127.0.0.1:0", plans, flags);
        server.address = told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{}", server.said()));
        server
    }

    /// Starts a server on this address and does not wait for its plans to be loaded.
    pub(crate) fn start_at(address: &str, plans: &Path, flags: &[&str]) -> Server {
        let (mut server, _) = Server::spawn(Command::new(env!("CARGO_BIN_EXE_rankd")), address, plans, flags);
        server.address = address.to_owned();
        server
    }

    fn spawn(mut command: Command, listen: &str, plans: &Path, flags: &[&str]) -> (Server, Receiver<String>) {
        let mut child = command
            .current_dir(repository())
            .args(["serve", "--listen", listen, "--plan-dir"])
            .arg(plans)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let (kept, lines) = (stderr.clone(), BufReader::new(child.stderr.take().unwrap()).lines());
        let (sender, told) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(address) = line.split("http://").nth(1).filter(|_| line.starts_with("rankd ")) {
                    let _ = sender.send(address.split(' ').next().unwrap().to_owned());
                }
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        (Server { child, address: String::new(), stderr }, told)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }

    /// Waits until it has said this.
    pub(crate) fn says(&self, what: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.said().contains(what) {
            assert!(Instant::now() < until, "it does not say {what:?}: {}", self.said());
            thread::yield_now();
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The address of the listener for operators, of a server that was started with one.
    pub(crate) fn admin(&self) -> String {
        self.said_address("plans, tasks, explain and metrics: http://")
    }

    /// The address of the console, of a server that was started with one.
    pub(crate) fn console(&self) -> String {
        let said = self.said_address("console: http://");
        said.split('/').next().unwrap().to_owned()
    }

    /// What follows these words in a line that it says.
    fn said_address(&self, words: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.said();
            // It says so in the line after the one that its own address is in.
            let mut lines = said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            if let Some(address) = lines.find_map(|line| line.strip_prefix(words)) {
                return address.to_owned();
            }
            assert!(Instant::now() < until, "{said}");
            thread::yield_now();
        }
    }

    pub(crate) fn said(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Waits until it has ended, which must not take longer than this.
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it has not ended within {within:?}: {}", self.said());
            thread::yield_now();
        }
    }

    /// What the system says about a field of `/proc/PID/status`, in kilobytes.
    pub(crate) fn kilobytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for word in ["panicked", "RUST_BACKTRACE", "bug:"] {
            assert!(thread::panicking() || !self.said().contains(word), "{word:?}: {}", self.said());
        }
    }
}
