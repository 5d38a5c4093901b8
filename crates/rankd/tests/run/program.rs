//! The real program as a process, in the repository's root: run to its end, or talked to line by line.
//!
//! Whatever it is given, no panic text may come out of it; each way of running it checks that.

use crate::json::Json;
use rankd_engine::clock;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Long enough for any answer on any machine; a program that hangs ends its test after this time.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

#[expect(clippy::disallowed_methods, reason = "a test reads what the program wrote and what the repository has")]
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the file can be read")
}

/// A folder of a test's own, gone when the test is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rankd-run-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and gives its path as an argument.
    #[expect(clippy::disallowed_methods, reason = "a test writes its own plans")]
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a temporary file can be written");
        self.path(name).display().to_string()
    }

    /// Writes a plan of these nodes and gives its path as an argument.
    pub(crate) fn plan(&self, name: &str, nodes: &[String], outputs: &[&str]) -> String {
        self.plan_with(name, nodes, outputs, "")
    }

    /// The same with expressions.
    pub(crate) fn plan_with(&self, name: &str, nodes: &[String], outputs: &[&str], exprs: &str) -> String {
        let text = format!(
            r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{}],"outputs":{outputs:?},"expr_table":{{{exprs}}},"pred_table":{{}}}}"#,
            nodes.join(",")
        );
        self.write(&format!("{name}.plan.json"), &text)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
    command.current_dir(repository()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn no_panic_in(text: &str) {
    for word in ["panicked", "RUST_BACKTRACE", "stack backtrace", "bug:", "\"kind\":\"bug\""] {
        assert!(!text.contains(word), "{word:?} reached the user: {text}");
    }
}

/// What the program did with an input.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn answers(&self) -> Vec<Json> {
        self.stdout.lines().map(Json::read).collect()
    }
}

/// Gives the program an input and waits for its end.
pub(crate) fn run(args: &[&str], input: &[u8]) -> Ran {
    let mut child = command(args).spawn().expect("rankd can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let output = thread::scope(|scope| {
        // A program that does not read on closes the pipe; what it says is the test's business.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("rankd comes to an end")
    });
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it is UTF-8"));
    no_panic_in(&stdout);
    no_panic_in(&stderr);
    Ran { code: output.status.code().expect("no signal ended it"), stdout, stderr }
}

/// The program while it runs, asked line by line.
pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Session {
    pub(crate) fn start(args: &[&str]) -> Session {
        let mut child = command(args).spawn().expect("rankd can be started");
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, lines) = channel();
        let stdout = BufReader::new(stdout.expect("stdout is a pipe"));
        let reader = move || stdout.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        thread::Builder::new().spawn(reader).expect("a thread can be started");
        let gather = move || {
            let mut text = String::new();
            stderr.expect("stderr is a pipe").read_to_string(&mut text).expect("it is UTF-8");
            text
        };
        let stderr = Some(thread::Builder::new().spawn(gather).expect("a thread can be started"));
        Session { child, stdin, lines, stderr }
    }

    /// Sends a request and waits for its answer; also says how long that took.
    pub(crate) fn ask(&mut self, request: &str) -> (Json, Duration) {
        let asked = clock::now();
        let stdin = self.stdin.as_mut().expect("the session is open");
        writeln!(stdin, "{request}").and_then(|()| stdin.flush()).expect("rankd takes requests");
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer comes before the input ends");
        let waited = clock::now().saturating_duration_since(asked);
        no_panic_in(&line);
        (Json::read(&line), waited)
    }

    /// Sends text without waiting for anything.
    pub(crate) fn send(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("the session is open");
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).expect("rankd takes requests");
    }

    pub(crate) fn next_answer(&mut self) -> Json {
        Json::read(&self.lines.recv_timeout(PATIENCE).expect("an answer comes"))
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Waits for its end while the input stays open.
    pub(crate) fn ended(mut self) -> i32 {
        let until = clock::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code().expect("no signal ended it");
            }
            assert!(clock::now() < until, "it does not end");
            thread::yield_now();
        }
    }

    /// Ends the input and gives the exit code.
    pub(crate) fn end(mut self) -> i32 {
        self.stdin = None;
        assert!(self.lines.recv_timeout(PATIENCE).is_err(), "nothing comes that was not asked for");
        let status = self.child.wait().expect("rankd comes to an end");
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).expect("stderr was read");
        no_panic_in(&stderr);
        status.code().expect("no signal ended it")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stdin = None;
        // It is over already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn node(id: &str, op: &str, inputs: &[&str], params: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":{inputs:?},"params":{{{params}}}}}"#)
}
