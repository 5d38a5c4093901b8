//! What the faults have in common: a folder with plans, a server that may be pinned or limited, and lines of a table.

use crate::http::server::{Server, repository};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The core of a server that is pinned to one, and that of the load beside it.
const SERVER_CORE: &str = "0";
const LOAD_CORE: usize = 1;

/// Runs a server on one core; what else there is runs on the other.
pub const PINNED: [&str; 3] = ["taskset", "-c", SERVER_CORE];

/// Keeps this thread, and those that it starts, to the core that no pinned server is on.
pub fn pin_load() {
    let mut cores = CpuSet::new();
    cores.set(LOAD_CORE);
    sched_setaffinity(None, &cores).expect("the machine has two cores");
}

/// Lets this thread run anywhere again.
pub fn unpin_load() {
    let mut cores = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|core| cores.set(core));
    sched_setaffinity(None, &cores).expect("any core will do");
}

/// A folder for one fault, gone at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("rankd-bench-faults-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    /// Writes a plan in one step, so that nobody sees half of it.
    pub fn plan(&self, name: &str, text: &str) {
        let aside = self.0.join(format!("{name}.aside"));
        std::fs::write(&aside, text).expect("a plan can be written");
        std::fs::rename(aside, self.file(name)).expect("a file can be renamed");
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.plan.json"))
    }

    /// The plan of ten nodes that the repository has.
    pub fn ten_nodes(&self) {
        let plan = std::fs::read_to_string(repository().join("plans/complex_dag.plan.json"));
        self.plan(TEN, &plan.expect("the plan is there"));
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Ten nodes, five of which read, from the embedded store; fifty rows.
pub const TEN: &str = "complex_dag";
pub const BODY: &str = r#"{"user_id":1}"#;

pub fn is_ten(_: usize, answer: &str) -> bool {
    answer.matches("{\"id\":").count() == 50
}

pub fn node(id: &str, op: &str, inputs: &[&str], params: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":{inputs:?},"params":{{{params}}}}}"#)
}

pub fn plan(name: &str, nodes: &[String], output: &str) -> String {
    let nodes = nodes.join(",");
    format!(r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{nodes}],"outputs":["{output}"]}}"#)
}

/// A page of a server, on a connection of its own; nothing where it does not answer.
pub fn page(server: &Server, path: &str) -> Option<String> {
    server.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).ok()
}

/// The value of a metric, written as its name and labels are.
pub fn metric(server: &Server, name: &str) -> f64 {
    let page = page(server, "/metrics").unwrap_or_default();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    line.unwrap_or(f64::NAN)
}

pub fn table() {
    println!("| what | figure | goal | met |\n|---|---|---|---|");
}

/// Whether a goal was reached, for a cell of a table.
pub fn met(met: bool) -> &'static str {
    if met { "yes" } else { "**no**" }
}

/// A line of the table.
pub fn told(what: &str, figure: &str, goal: &str, reached: bool) {
    println!("| {what} | {figure} | {goal} | {} |", met(reached));
}

/// A line without a goal.
pub fn noted(what: &str, figure: &str) {
    println!("| {what} | {figure} | | |");
}
