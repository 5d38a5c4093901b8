//! The program: the tasks that ship with rankd, and those of this crate.

use std::process::ExitCode;

/// A request makes and drops many small things on one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rankd::App::new().tasks(rankd_tasks::definitions()).tasks(own_task::definitions()).run()
}
