//! `rankd diff`: two plans run for the same requests, and what their answers have in common.
//!
//! Each request is answered by both plans with the same time and the same seed, and the second plan is given what the first one read where it reads
//! the same, so that what differs is the plans' doing. What a plan costs is taken from the first requests, which each plan answers once more by itself,
//! with reads of its own.

use crate::cli::bench::{self, Requests};
use crate::cli::command_error::CommandError;
use crate::cli::condition::{Condition, FigureSeen, Unit};
use crate::cli::plan_engine::{PlanEngine, RunArgs};
use crate::cli::{DONE, FAILED, WRONG, say};
use clap::Args;
use rankd_column::{Id, Key, Type};
use rankd_edge::diff::labels::Labels;
use rankd_edge::diff::lists::ranked_rows;
use rankd_edge::diff::{Answered, Asked, Cost, Figure, FigureUnit, PlanDiff};
use rankd_edge::files;
use rankd_edge::input;
use rankd_edge::library::Library;
use rankd_edge::process;
use rankd_engine::recorded::{Reads, Replay, RunRecorder};
use rankd_engine::{Engine, Linked, Outcome, Request, clock};
use rankd_plan::Registry;
use rankd_plan::diagnostic::nearest;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How many requests are in flight at a time, all of one plan.
const GROUP: u64 = 32;
/// How many requests tell what a plan costs.
const COSTED: u64 = 256;
/// The largest file of labels.
const LABELS_BYTES_MAX: usize = 256 << 20;

#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// Name or file of the first plan: what is there now
    #[arg(value_name = "PLAN_A", conflicts_with_all = ["plan_name", "plan"])]
    first: String,
    /// Name or file of the second plan: what would come
    #[arg(value_name = "PLAN_B")]
    second: String,
    /// A file of requests, one JSON document per line
    #[arg(long, value_name = "FILE", required_unless_present = "users")]
    requests: Option<PathBuf>,
    /// One request for each of these users: 1..1000 is 1 to 1000
    #[arg(long, value_name = "FROM..TO", value_parser = bench::users, conflicts_with = "requests")]
    users: Option<(u64, u64)>,
    /// How many rows from the top are compared
    #[arg(short, long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    k: u64,
    /// The key whose values are compared for rows that both plans give [default: score, where there is such a key]
    #[arg(long, value_name = "KEY")]
    score: Option<String>,
    /// Count the rows that enter and leave by the values of this key
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// What items are worth to users, for NDCG, MAP and recall: CSV or NDJSON with user_id, id and gain
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Exit with code 1 if this holds: 'overlap@20 < 0.9', 'errors > 1%', or 'cpu > 1.2x' of the first plan; can be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Write the report as one HTML file, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

pub(crate) fn run(args: &DiffArgs, library: &Library) -> u8 {
    let Some(running) = PlanEngine::start(&args.run.with_plan(Some(&args.first)), library) else { return WRONG };
    let Some(second) = running.also(&args.run.with_plan(Some(&args.second)), library) else { return WRONG };
    let code = match compare(args, &running, &second) {
        Ok(code) => code,
        Err(error) => {
            error.report();
            WRONG
        }
    };
    running.engine.stop(Duration::from_secs(5));
    code
}

fn compare(args: &DiffArgs, running: &PlanEngine, second: &Arc<Linked>) -> Result<u8, CommandError> {
    let registry = &running.loaded.registry;
    let plans = [&running.plan, second];
    let requests = Requests::read(args.requests.as_deref(), args.users)?;
    let keys = CompareKeys::find(args, registry)?;
    let labels = args.labels.as_ref().map(|path| {
        let text = files::read_named_text(path, LABELS_BYTES_MAX).map_err(CommandError::with(path.display()))?;
        Labels::read(&text, registry.has_text_ids()).map_err(CommandError::with(path.display()))
    });
    let mut diff = PlanDiff::new(Asked {
        plans: [args.first.clone(), args.second.clone()],
        k: args.k as usize,
        outputs: output_names(plans),
        score: keys.score.map(|key| registry.key(key).name.clone()),
        group: args.by.clone(),
        labels: labels.transpose()?,
    });
    let conditions = conditions(&args.fail_if, &diff.figures())?;
    let count = requests.count();
    let group = |from: u64, to: u64| {
        (from..to.min(from + GROUP)).map(|at| read(&requests.text(at), at, registry)).collect::<Result<Vec<_>, _>>()
    };
    let costed = count.min(COSTED);
    for from in (0..costed).step_by(GROUP as usize) {
        let group = group(from, costed)?;
        for (side, plan) in plans.into_iter().enumerate() {
            let (cpu, commands) = (process::cpu_seconds(), commands(&running.engine));
            answer(&running.engine, plan, group.clone());
            diff.add_cost(side, cost_since(&running.engine, cpu, commands, group.len()));
        }
    }
    let mut bar = say::Progress::new("diff", count as usize);
    for from in (0..count).step_by(GROUP as usize) {
        let group = group(from, count)?;
        let users: Vec<Id> = group.iter().map(|request| request.user_id.clone()).collect();
        let recorders: Vec<Arc<RunRecorder>> = group.iter().map(|_| Arc::default()).collect();
        let with_reads = |reads: &dyn Fn(&Arc<RunRecorder>) -> Reads| -> Vec<Request> {
            let requests = group.iter().zip(&recorders);
            requests.map(|(request, recorder)| Request { reads: reads(recorder), ..request.clone() }).collect()
        };
        let first = answer(&running.engine, plans[0], with_reads(&|recorder| Reads::Recorded(recorder.clone())));
        let second = answer(&running.engine, plans[1], with_reads(&|recorder| same_reads(recorder)));
        for (at, (a, b)) in first.iter().zip(&second).enumerate() {
            let answers = [a, b].map(|outcome| keys.answered(outcome));
            let text = requests.text(from + at as u64);
            diff.add(&users[at], &text, [&answers[0], &answers[1]]);
        }
        bar.at((from as usize + users.len()).min(count as usize));
    }
    if let Some(path) = &args.html {
        files::write(path, &diff.to_html()).map_err(CommandError::with(path.display()))?;
    }
    match args.json {
        true => say::to_programs(&diff.to_json()),
        false => say::to_programs(diff.to_text().trim_end()),
    }
    let figures = diff.figures();
    let failures: Vec<String> = conditions.iter().filter_map(|condition| failure(condition, &figures)).collect();
    failures.iter().for_each(|failure| say::to_people(failure));
    Ok(if failures.is_empty() { DONE } else { FAILED })
}

/// A request for either plan. Where it says neither its time nor its seed, both plans get the same.
fn read(text: &str, at: u64, registry: &Registry) -> Result<Request, CommandError> {
    let read = input::read(text.as_bytes(), registry);
    let read = read.map_err(|refused| CommandError::Wrong(format!("request {}: {}", at + 1, refused.error.message)))?;
    let mut request = read.request;
    request.now_ms.get_or_insert_with(clock::since_1970_ms);
    Ok(request)
}

/// What the first plan's run has read, and the stores for everything else.
fn same_reads(recorder: &RunRecorder) -> Reads {
    let record = recorder.take();
    match record.is_cut {
        true => Reads::Live,
        false => Reads::Replayed(Arc::new(Replay::of(record.reads, record.calls).or_live())),
    }
}

/// Runs a plan for all of them at once.
fn answer(engine: &Engine, plan: &Arc<Linked>, requests: Vec<Request>) -> Vec<Outcome> {
    let tickets: Vec<_> = requests.into_iter().map(|request| engine.start_run(plan, request)).collect();
    tickets.into_iter().map(|ticket| ticket.wait()).collect()
}

fn commands(engine: &Engine) -> u64 {
    engine.stats().commands().sum()
}

fn cost_since(engine: &Engine, cpu: f64, before: u64, requests: usize) -> Cost {
    let commands = commands(engine).saturating_sub(before);
    Cost { requests: requests as u64, cpu_seconds: process::cpu_seconds() - cpu, commands }
}

/// What outputs are called, of whichever plan has more.
fn output_names(plans: [&Arc<Linked>; 2]) -> Vec<String> {
    let [a, b] = plans;
    let longer = if a.outputs.len() >= b.outputs.len() { a } else { b };
    match &longer.output_names {
        Some(names) => names.to_vec(),
        None => (0..longer.outputs.len()).map(|at| at.to_string()).collect(),
    }
}

/// The keys that rows are compared by.
struct CompareKeys {
    score: Option<Key>,
    group: Option<Key>,
}

impl CompareKeys {
    fn find(args: &DiffArgs, registry: &Registry) -> Result<CompareKeys, CommandError> {
        let find = |name: &str| match registry.keys.named(name) {
            Some(at) => Ok(Key(at)),
            None => {
                let near = nearest(name, registry.keys.list().iter().map(|entry| &*entry.name));
                let hint = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                Err(CommandError::Wrong(format!("there is no key {name:?}{hint}")))
            }
        };
        let is_number = |key: &Key| matches!(registry.key(*key).type_of, Type::Int | Type::Float);
        let score = match &args.score {
            Some(name) => {
                let key = find(name)?;
                if !is_number(&key) {
                    return Err(CommandError::Wrong(format!(
                        "--score takes a key that is a number, which {name} is not"
                    )));
                }
                Some(key)
            }
            None => registry.keys.named("score").map(Key).filter(is_number),
        };
        Ok(CompareKeys { score, group: args.by.as_deref().map(find).transpose()? })
    }

    fn answered(&self, outcome: &Outcome) -> Answered {
        let outputs = match &outcome.result {
            Ok(outputs) => Ok(outputs.iter().map(|rows| ranked_rows(rows, self.score, self.group)).collect()),
            Err(error) => Err(error.code.id),
        };
        Answered { outputs, is_degraded: !outcome.degraded.is_empty() }
    }
}

fn conditions(texts: &[String], figures: &[Figure]) -> Result<Vec<Condition>, CommandError> {
    let unit = |figure: &Figure| match figure.unit {
        FigureUnit::Share => Unit::Share,
        FigureUnit::Micros => Unit::Micros,
        FigureUnit::Number => Unit::Number,
    };
    let known: Vec<(&str, Unit)> = figures.iter().map(|figure| (&*figure.name, unit(figure))).collect();
    let parse = |text: &String| Condition::parse(text, "overlap@20 < 0.9", known.iter().copied());
    Ok(texts.iter().map(parse).collect::<Result<_, _>>()?)
}

fn failure(condition: &Condition, figures: &[Figure]) -> Option<String> {
    let figure = figures.iter().find(|figure| figure.name == condition.figure);
    condition.failure(&FigureSeen {
        now: figure.and_then(|figure| figure.value),
        before: figure.and_then(|figure| figure.of_first),
        called: ["the second plan", "the first plan"],
    })
}
