//! The program. The only room that knows arguments, the environment, files and terminals.
//!
//! Reading order: [`cli`] (what the user typed), [`library`] (plans and registries on disk), [`files`] (bounded reads).

mod cli;
mod files;
mod library;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
