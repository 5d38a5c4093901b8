//! The program `rankd`; all of it is in the library, which `dslc` shares.

use std::process::ExitCode;

/// A request makes and drops many small things on one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rankd::rankd()
}
