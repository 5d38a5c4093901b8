//! The program `dslc`: TypeScript plans to plan artifacts.

use std::process::ExitCode;

fn main() -> ExitCode {
    rankd::App::new().tasks(rankd_tasks::definitions()).run_dslc()
}
