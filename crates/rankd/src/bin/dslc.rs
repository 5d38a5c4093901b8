//! The program `dslc`: TypeScript plans to plan artifacts.

use std::process::ExitCode;

fn main() -> ExitCode {
    rankd::dslc()
}
