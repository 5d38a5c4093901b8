//! The command line of `dslc`.

use crate::cli::{DONE, WRONG, compile, exit_code, with_dashes};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "dslc",
    version,
    about = "Compiles TypeScript plans",
    after_help = "Example: dslc build plans\nFlags may be written with - or _."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile plans and write their artifacts
    #[command(after_help = "Example: dslc build plans/for_you.plan.ts --out build")]
    Build(compile::BuildArgs),
    /// Report every problem in plans, and write nothing
    #[command(after_help = "Example: dslc check plans --json")]
    Check(compile::CheckArgs),
    /// Build, and rebuild whenever something changes
    #[command(after_help = "Example: dslc watch plans")]
    Watch(compile::BuildArgs),
    /// Write the declarations and the tsconfig.json that let an editor check plans
    #[command(after_help = "Example: dslc types --out plans")]
    Types(compile::TypesArgs),
}

pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(std::env::args_os().map(with_dashes)) {
        Ok(cli) => cli,
        Err(error) => {
            // clap decides whether this is an error or an answer to --help; a closed pipe is nobody's problem here.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { WRONG } else { DONE });
        }
    };
    exit_code(match cli.command {
        Command::Build(args) => compile::build(&args),
        Command::Check(args) => compile::check(&args),
        Command::Watch(args) => compile::watch(&args),
        Command::Types(args) => compile::types(&args),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
