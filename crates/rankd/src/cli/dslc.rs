//! The command line of `dslc`.

use crate::cli::{compile, exit_code, settings};
use clap::{Args, Parser, Subcommand};
use rankd_edge::library::Library;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "dslc",
    version,
    about = "Compiles TypeScript plans",
    after_help = "Example: dslc build plans\nFlags may be written with - or _."
)]
struct DslcCli {
    #[command(flatten)]
    args: DslcArgs,
}

#[derive(Args)]
pub(crate) struct DslcArgs {
    #[command(subcommand)]
    command: DslcCommand,
}

#[derive(Subcommand)]
enum DslcCommand {
    /// Compile plans and write their artifacts
    #[command(after_help = "Example: dslc build plans/for_you.plan.ts --out build")]
    Build(compile::BuildArgs),
    /// Report every problem in plans, and write nothing
    #[command(after_help = "Example: dslc check plans --json")]
    Check(compile::DslcCheckArgs),
    /// Build, and rebuild whenever something changes
    #[command(after_help = "Example: dslc watch plans")]
    Watch(compile::BuildArgs),
    /// Write the declarations and the tsconfig.json that let an editor check plans
    #[command(after_help = "Example: dslc types --out plans")]
    Types(compile::TypesArgs),
}

pub(crate) fn main(library: &Library) -> ExitCode {
    let cli: DslcCli = match settings::parse("dslc") {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    exit_code(run(cli.args, library))
}

pub(crate) fn run(args: DslcArgs, library: &Library) -> u8 {
    match args.command {
        DslcCommand::Build(args) => compile::build(&args, library),
        DslcCommand::Check(args) => compile::check(&args, library),
        DslcCommand::Watch(args) => compile::watch(&args, library),
        DslcCommand::Types(args) => compile::types(&args, library),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        DslcCli::command().debug_assert();
    }
}
