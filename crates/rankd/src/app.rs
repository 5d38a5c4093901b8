//! A program made of tasks: the one that ships, or a team's own.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     rankd::App::new().tasks(rankd_tasks::definitions()).run()
//! }
//! ```

use crate::cli::{self, WRONG, onnx_trial, say};
use dslc::Dslc;
use rankd_edge::library::Library;
use rankd_engine::Tasks;
use rankd_engine::task::Definition;
use rankd_plan::model::OpenOnnx;
use std::process::ExitCode;
use std::sync::Arc;

/// The programs `rankd` and `dslc` with the tasks that are handed in.
#[derive(Default)]
pub struct App {
    definitions: Vec<Definition>,
    open_onnx: Option<OpenOnnx>,
}

impl App {
    /// Without a task; no plan gets by without one.
    pub fn new() -> App {
        App::default()
    }

    /// Adds tasks. Each op must be there once, or the program says so and ends.
    pub fn tasks(mut self, definitions: impl IntoIterator<Item = Definition>) -> App {
        self.definitions.extend(definitions);
        self
    }

    /// Reads ONNX models, by `rankd_onnx::open`. Without this, a registry with such a model is refused.
    pub fn onnx(mut self, open: OpenOnnx) -> App {
        self.open_onnx = Some(open);
        self
    }

    /// The program `rankd`: reads the command line and does what it says.
    pub fn run(self) -> ExitCode {
        self.with_library(cli::main)
    }

    /// The program `dslc`; the same as the command `rankd dslc`.
    pub fn run_dslc(self) -> ExitCode {
        self.with_library(cli::dslc::main)
    }

    fn with_library(self, program: fn(&Library) -> ExitCode) -> ExitCode {
        report_panics();
        match Tasks::new(self.definitions) {
            Ok(tasks) => {
                let library = Library::new(tasks, Arc::new(Dslc)).with_onnx(self.open_onnx, Some(onnx_trial::command));
                program(&library.with_variables(Arc::new(|name| std::env::var_os(name))))
            }
            Err(duplicate) => {
                say::to_people(&format!("error: {duplicate}"));
                ExitCode::from(WRONG)
            }
        }
    }
}

/// Reports panics that nobody else does.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if !is_caught(std::thread::current().name()) {
            say::to_people(&format!("bug: {panic}"));
        }
    }));
}

/// Whether a panic on this thread is caught and reported where it is: tasks run on event loops and in the pools, and the answer and the
/// log say what became of them. All other threads, such as those of the log and of spans, end with it.
fn is_caught(thread: Option<&str>) -> bool {
    thread.is_some_and(|name| ["rankd-loop-", "rankd-cpu-", "rankd-io-"].iter().any(|kind| name.starts_with(kind)))
}

#[cfg(test)]
mod tests {
    use super::is_caught;

    #[test]
    fn only_threads_that_catch_panics_are_left_to_report_them() {
        for caught in ["rankd-loop-0", "rankd-cpu-13", "rankd-io-2"] {
            assert!(is_caught(Some(caught)), "{caught}");
        }
        for heard in
            [Some("rankd-log"), Some("rankd-spans"), Some("rankd-signals"), Some("rankd-reload"), Some("main"), None]
        {
            assert!(!is_caught(heard), "{heard:?}");
        }
    }
}
