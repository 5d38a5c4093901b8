//! What the user typed, and which part of the program answers it.

mod ask_server;
mod bench;
mod capture_args;
mod check;
mod code;
mod command_error;
mod compile;
mod completions;
mod condition;
mod confined;
mod diff;
pub(crate) mod dslc;
mod engine;
mod experiments;
mod explain;
mod feature_log_args;
mod healthcheck;
mod import;
mod init;
mod models;
pub(crate) mod onnx_trial;
mod pii_args;
mod plan_engine;
mod plan_versions;
mod plans;
mod registry;
mod replay;
mod run;
pub(crate) mod say;
mod seed;
mod serve;
mod settings;
pub(crate) mod tasks;
mod why;

use clap::{Args, Parser, Subcommand};
use rankd_edge::library::Library;
use rankd_edge::models::ModelFiles;
use rankd_plan::Registry;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Done.
pub(crate) const DONE: u8 = 0;
/// A request failed.
pub(crate) const FAILED: u8 = 1;
/// The command line, the registry or the plan is wrong.
pub(crate) const WRONG: u8 = 2;

#[derive(Parser)]
#[command(
    name = "rankd",
    version,
    about = "Runs and checks ranking plans; without a command, runs a plan",
    after_help = "Example: echo '{\"user_id\": 1}' | rankd --plan_name complex_dag\nFlags may be written with - or _.",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::RunCommand,
}

#[derive(Subcommand)]
enum Command {
    /// Answer requests from stdin, one JSON document per line
    #[command(
        after_help = "Examples: echo '{\"user_id\": 1}' | rankd run --plan_name complex_dag\n          rankd run --plan_name complex_dag --user 1 --format table"
    )]
    Run(run::RunCommand),
    /// Answer requests over HTTP
    #[command(after_help = "Example: rankd serve --listen 127.0.0.1:8080 --loops 2 --deadline_ms 100")]
    Serve(Box<serve::ServeArgs>),
    /// Check whether a server is ready for requests
    #[command(after_help = "Example: rankd healthcheck --listen 127.0.0.1:8080")]
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Compile one plan under limits; used by the server
    #[command(hide = true)]
    CompileConfined(confined::ConfinedArgs),
    /// Load a shared library of ONNX Runtime and end; used before a process loads it for good
    #[command(hide = true)]
    TryOnnxruntime(onnx_trial::OnnxTrialArgs),
    /// Check plans and registries, and report every problem
    #[command(
        after_help = "Examples: rankd check complex_dag plans/other.plan.json\n          rankd check --connect --sample 100 --env prod"
    )]
    Check(check::CheckArgs),
    /// Compile TypeScript plans; the same as dslc build
    #[command(after_help = "Example: rankd compile plans/for_you.plan.ts --out build")]
    Compile(compile::BuildArgs),
    /// Compile, check and watch TypeScript plans, and write types for editors; the same as the program dslc
    #[command(after_help = "Example: rankd dslc types --out plans")]
    Dslc(dslc::DslcArgs),
    /// List the tasks that plans are made of
    #[command(after_help = "Example: rankd tasks sort")]
    Tasks(tasks::TasksArgs),
    /// List the models that rows are scored with
    #[command(after_help = "Example: rankd models --json")]
    Models(models::ModelsArgs),
    /// List the experiments, check them, or show which arms a user is in
    #[command(
        after_help = "Examples: rankd experiments check --against old.toml\n          rankd experiments assign --user 7"
    )]
    Experiments(experiments::ExperimentsArgs),
    /// List the plans in the plan folder, or switch the version of one that a server serves
    #[command(
        after_help = "Examples: rankd plans --json\n          rankd plans rollback feed --url http://127.0.0.1:9090\n          rankd plans pin feed 3f2a9c01 --url http://127.0.0.1:9090",
        args_conflicts_with_subcommands = true
    )]
    Plans(plans::PlansArgs),
    /// Create a project: a folder with data, a registry and a plan that runs as it is
    #[command(after_help = "Example: rankd init movies && cd movies && rankd run --plan_name top_movies --user 7")]
    Init(init::InitArgs),
    /// Add a table file to the project: keys for its columns, an endpoint and a first plan
    #[command(after_help = "Example: rankd import downloads/movies.csv --name movies")]
    Import(import::ImportArgs),
    /// Mend a registry
    #[command(after_help = "Example: rankd registry fix")]
    Registry(registry::RegistryArgs),
    /// Show every setting, its value, and where the value comes from
    #[command(
        after_help = "A setting is what a flag sets. A flag beats a variable, a variable beats rankd.toml, and that beats the default.\nExample: rankd config deadline_ms"
    )]
    Config(settings::list::ConfigArgs),
    /// Explain a code of an error or a diagnostic, with an example
    #[command(after_help = "Examples: rankd code E401\n          rankd code p701 --json")]
    Code(code::CodeArgs),
    /// Show a plan as written and as it runs
    #[command(after_help = "Example: echo '{\"user_id\": 1}' | rankd explain complex_dag --analyze")]
    Explain(explain::ExplainArgs),
    /// Tell what became of an item in a run, and why
    #[command(
        after_help = "Examples: rankd why complex_dag --user 1 --item 44\n          echo '{\"user_id\": 1}' | rankd why complex_dag --item 44 --item 99999 --json\n          rankd why --capture captures --request_id 0192f3a1 --item 44"
    )]
    Why(why::WhyArgs),
    /// Run captured requests again, on what they read then, and compare the answers
    #[command(
        after_help = "Examples: rankd replay captures\n          rankd replay captures/capture-1700000000000-000.arrows --plan plans/feed.plan.ts --json"
    )]
    Replay(replay::ReplayArgs),
    /// Run two plans for the same requests and compare their answers
    #[command(
        after_help = "Examples: rankd diff feed feed_next --users 1..1000\n          rankd diff feed feed_next --requests requests.ndjson --labels clicks.csv --html diff.html --fail_if 'overlap@20 < 0.9'\n          rankd diff feed feed_next --capture captures"
    )]
    Diff(diff::DiffArgs),
    /// Load-test a plan or a server and report latencies
    #[command(
        after_help = "Examples: rankd bench complex_dag -n 10000 -c 16\n          rankd bench complex_dag --duration 10s --warmup 1s --users 1..100 --fail_if 'p99 > 5ms'\n          rankd bench --url http://127.0.0.1:8080/rank/complex_dag -n 10000 -c 64 --rate 2000"
    )]
    Bench(bench::BenchArgs),
    /// Generate demo data for the embedded store
    #[command(after_help = "Example: rankd seed --users 1000 --out data/big.ndjson")]
    Seed(seed::SeedArgs),
    /// Write shell completions to stdout
    #[command(after_help = "Example: rankd completions bash > /etc/bash_completion.d/rankd")]
    Completions(completions::CompletionsArgs),
}

/// Where plans and registries are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Places {
    /// Folder with the plans
    #[arg(long, value_name = "DIR", default_value = "plans")]
    pub(crate) plan_dir: PathBuf,
    /// Folder with the registry files
    #[arg(long, value_name = "DIR", default_value = "registry")]
    pub(crate) registry: PathBuf,
    /// Which endpoints.NAME.toml to use
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(crate) env: String,
}

/// What models need beside their files.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// Shared library of ONNX Runtime, for ONNX models; needs a program that was built with the feature onnx
    #[arg(long, value_name = "FILE")]
    onnxruntime: Option<PathBuf>,
}

impl ModelArgs {
    /// The models of a registry; `None` where it has none.
    fn files(&self, library: &Library, registry: &Registry) -> Option<ModelFiles> {
        library.model_files(registry, self.onnxruntime.as_deref())
    }
}

pub(crate) fn main(library: &Library) -> ExitCode {
    let cli: Cli = match settings::parse("run") {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    let command = cli.command.unwrap_or(Command::Run(cli.run));
    exit_code(match command {
        Command::Run(args) => run::run(&args, library),
        Command::Serve(args) => serve::run(&args, library),
        Command::Healthcheck(args) => healthcheck::run(&args),
        Command::CompileConfined(args) => confined::run(&args, library),
        Command::TryOnnxruntime(args) => onnx_trial::run(&args, library),
        Command::Bench(args) => bench::run(&args, library),
        Command::Explain(args) => explain::run(&args, library),
        Command::Why(args) => why::run(&args, library),
        Command::Replay(args) => replay::run(&args, library),
        Command::Diff(args) => diff::run(&args, library),
        Command::Seed(args) => seed::run(&args, library),
        Command::Check(args) => check::run(&args, library),
        Command::Compile(args) => compile::build(&args, library),
        Command::Dslc(args) => dslc::run(args, library),
        Command::Tasks(args) => tasks::run(&args, library),
        Command::Config(args) => settings::list::run(&args),
        Command::Code(args) => code::run(&args),
        Command::Models(args) => models::run(&args, library),
        Command::Experiments(args) => experiments::run(&args, library),
        Command::Plans(args) => plans::run(&args, library),
        Command::Completions(args) => completions::run(&args),
        Command::Registry(args) => registry::run(&args),
        Command::Init(args) => init::run(&args, library),
        Command::Import(args) => import::run(&args, library),
    })
}

/// What the program ends with. What could not be written was not done.
fn exit_code(code: u8) -> ExitCode {
    ExitCode::from(if say::all_written() { code } else { code.max(FAILED) })
}

/// Every flag may be written with `-` or `_`: `--plan_dir` is `--plan-dir`.
fn with_dashes(arg: OsString) -> OsString {
    match arg.to_str() {
        Some(text) if text.starts_with("--") && text.len() > 2 => {
            let (flag, value) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
            let flag = flag.replace('_', "-");
            value.map_or(flag.clone(), |value| format!("{flag}={value}")).into()
        }
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn only_flags_lose_their_underscores() {
        let dashed = |arg: &str| with_dashes(arg.into()).into_string().unwrap();
        assert_eq!(dashed("--plan_dir=my_plans"), "--plan-dir=my_plans");
        assert_eq!(dashed("my_plan"), "my_plan");
        assert_eq!(dashed("--"), "--");
    }
}
