//! The program `rankd`; all of it is in the library, which `dslc` shares.

use std::process::ExitCode;

fn main() -> ExitCode {
    rankd::rankd()
}
