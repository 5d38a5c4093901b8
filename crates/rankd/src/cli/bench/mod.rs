//! `rankd bench`: a plan, or a server, under load, closed or open loop; a table for people and one JSON object for programs.
//!
//! Closed loop: so many requests are kept in flight. Open loop (`--rate`): requests start when they are due, whatever became of
//! those before, and their latency counts from then on, so that a slow answer cannot hide the ones that waited behind it.
//! Errors never stop a bench; they are counted by kind. Reading order: [`load`] (what is asked for), [`drive`] (a plan of this
//! process), [`url`] (a server), [`report`], `picture`, [`gates`] (what a bench is judged by).

mod drive;
mod gates;
mod load;
mod picture;
mod report;
mod url;

pub(crate) use load::{Ends, Load, Requests, users};
pub(crate) use report::Wanted;

use crate::cli::WRONG;
use crate::cli::command_error::CommandError;
use crate::cli::plan_engine::{PlanEngine, RunArgs};
use clap::Args;
use drive::PlanTarget;
use gates::{Figures, Gate};
use rankd_edge::library::Library;
use rankd_edge::process;
use rankd_engine::clock;
use report::{Counted, PlanReport};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// Name or file of the plan
    #[arg(value_name = "PLAN", required_unless_present_any = ["url", "plan_name", "plan"], conflicts_with_all = ["plan_name", "plan"])]
    target: Option<String>,
    /// Load-test a server instead: the URL of its plan, such as http://127.0.0.1:8080/rank/feed. The server has its own plans,
    /// registry and limits, so flags for those are refused
    #[arg(long, value_name = "URL", conflicts_with = "target", conflicts_with_all = flags_of_a_plan())]
    url: Option<String>,
    /// How many requests to send
    #[arg(short = 'n', long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    /// Send requests for this long instead, such as 10s or 500ms
    #[arg(long, value_name = "TIME", value_parser = load::duration, conflicts_with = "iterations")]
    duration: Option<Duration>,
    /// Warm up first with this many requests, or for this long, without counting them: 100 or 2s
    #[arg(long, value_name = "N|TIME", value_parser = Ends::parse)]
    warmup: Option<Ends>,
    /// How many requests to keep in flight; with --url, how many connections to open
    #[arg(short = 'c', long, value_name = "C", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    concurrency: u64,
    /// Start R requests a second, whether or not earlier ones have finished
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: Option<u64>,
    /// A file of requests, one JSON document per line, used in a cycle
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Cycle through these users: 1..1000 is 1 to 1000 [default: 1]
    #[arg(long, value_name = "FROM..TO", value_parser = load::users, conflicts_with = "request")]
    users: Option<(u64, u64)>,
    /// Compare with an earlier bench, given as the JSON that it printed
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Exit with code 1 if this holds: 'p99 > 5ms', 'throughput < 1000', 'errors > 1%', 'degraded > 5%', or 'p50 > 1.2x' of the baseline;
    /// can be repeated
    #[arg(long, value_name = "CONDITION", value_parser = Gate::parse)]
    fail_if: Vec<Gate>,
    /// Print only the JSON; by default the table is printed too, or only the table if stdout is a terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// Every flag that says which plan is run and how.
fn flags_of_a_plan() -> Vec<clap::Id> {
    RunArgs::augment_args(clap::Command::new("")).get_arguments().map(|arg| arg.get_id().clone()).collect()
}

pub(crate) fn run(args: &BenchArgs, library: &Library) -> u8 {
    let (load, wanted) = match args.asked() {
        Ok(asked) => asked,
        Err(error) => {
            error.report();
            return WRONG;
        }
    };
    match &args.url {
        Some(url) => url::run(url, &load, &wanted),
        None => bench(&args.run.with_plan(args.target.as_deref()), library, &load, &wanted),
    }
}

impl BenchArgs {
    /// Everything that is asked for, with the files that it names read.
    fn asked(&self) -> Result<(Load, Wanted), CommandError> {
        let baseline = self.baseline.as_deref().map(Figures::of_file).transpose()?;
        if baseline.is_none() && self.fail_if.iter().any(Gate::needs_baseline) {
            let message = "a condition with x compares with a baseline: give --baseline FILE";
            return Err(CommandError::Wrong(message.to_owned()));
        }
        let load = Load {
            ends: self.duration.map_or(Ends::Count(self.iterations), Ends::Time),
            warmup: self.warmup,
            concurrency: self.concurrency,
            rate: self.rate,
            requests: Requests::read(self.request.as_deref(), self.users)?,
        };
        Ok((load, Wanted { json: self.json, baseline, gates: self.fail_if.clone() }))
    }
}

/// Runs a bench of the plan that the flags name.
pub(crate) fn bench(args: &RunArgs, library: &Library, load: &Load, wanted: &Wanted) -> u8 {
    let Some(running) = PlanEngine::start(args, library) else { return WRONG };
    let PlanEngine { loaded, plan, engine, .. } = &running;
    let requests = match drive::read_requests(&load.requests, &running) {
        Ok(requests) => requests,
        Err(error) => {
            error.report();
            return WRONG;
        }
    };
    let target = PlanTarget { running: &running, requests: &requests };
    if let Some(warmup) = load.warmup {
        target.run(load, warmup, "warmup");
    }
    let (before, cpu_before, began) = (Counted::now(engine.stats()), process::cpu_seconds(), clock::now());
    let tally = target.run(load, load.ends, "bench");
    let wall = clock::now().saturating_duration_since(began);
    let cpu = process::cpu_seconds() - cpu_before;
    let counted = Counted::now(engine.stats()).since(&before);
    let report = PlanReport { plan, engine, load, loaded, tally: &tally, counted, wall, cpu };
    let code = wanted.tell(&report.table(), &report.json());
    engine.stop(Duration::from_secs(5));
    code
}
