//! The program `rankd`: the tasks that ship with it, and nothing else of its own.

use std::process::ExitCode;

/// A request makes and drops many small things on one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rankd::App::new().tasks(rankd_tasks::definitions()).run()
}
