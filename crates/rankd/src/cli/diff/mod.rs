//! `rankd diff`: two plans run for the same requests, and what their answers have in common.
//!
//! Each request is answered by both plans with the same time and the same seed, and the second plan is given what the first one read where it reads
//! the same, so that what differs is the plans' doing. What a plan costs is taken from the first requests, which each plan answers once more by itself,
//! with reads of its own. Requests that were captured are run by both plans on what was read then (`captured`).

mod captured;
mod compare;
mod keys;

use crate::cli::bench::{self, Requests};
use crate::cli::command_error::CommandError;
use crate::cli::condition::{Condition, FigureSeen, Unit};
use crate::cli::plan_engine::{PlanEngine, ReadsFrom, RunArgs};
use crate::cli::{DONE, FAILED, WRONG, say};
use clap::Args;
use compare::{COSTED, ComparedPlan, Comparing, DiffRequest, GROUP};
use keys::CompareKeys;
use rankd_edge::diff::labels::Labels;
use rankd_edge::diff::{Asked, Figure, FigureUnit, PlanDiff};
use rankd_edge::files;
use rankd_edge::input;
use rankd_edge::library::{Library, PlanFile};
use rankd_engine::{Linked, clock};
use rankd_plan::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
    #[arg(long, value_name = "FILE", required_unless_present_any = ["users", "capture"])]
    requests: Option<PathBuf>,
    /// One request for each of these users: 1..1000 is 1 to 1000
    #[arg(long, value_name = "FROM..TO", value_parser = bench::users, conflicts_with = "requests")]
    users: Option<(u64, u64)>,
    /// Captured requests: files, or folders with them. Both plans read what was captured, and nothing from stores
    #[arg(long, value_name = "FILES", num_args = 1.., conflicts_with_all = ["requests", "users"])]
    capture: Vec<PathBuf>,
    /// Take the requests that were captured for this plan [default: for either of the two]
    #[arg(long, value_name = "NAME", requires = "capture")]
    captured_plan: Option<String>,
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
    let reads = if args.capture.is_empty() { ReadsFrom::Stores } else { ReadsFrom::Records };
    let first = args.run.with_plan(Some(&args.first));
    let Some(running) = PlanEngine::start_on(&first, library, reads) else { return WRONG };
    let Some(second) = running.also(&args.run.with_plan(Some(&args.second)), library) else { return WRONG };
    let code = match compare(args, library, &running, &second) {
        Ok(code) => code,
        Err(error) => {
            error.report();
            WRONG
        }
    };
    running.engine.stop(Duration::from_secs(5));
    code
}

fn compare(
    args: &DiffArgs,
    library: &Library,
    running: &PlanEngine,
    (second, file): &(Arc<Linked>, PlanFile),
) -> Result<u8, CommandError> {
    let registry = &running.loaded.registry;
    let checked = [&running.file, file].map(|file| file.checked.plan.as_ref());
    // They are there, or they could not have been linked.
    let [Some(plan_a), Some(plan_b)] = checked else { return Ok(WRONG) };
    let plans = [ComparedPlan { plan: plan_a, linked: &running.plan }, ComparedPlan { plan: plan_b, linked: second }];
    let keys = CompareKeys::find(args, registry)?;
    let labels = args.labels.as_ref().map(|path| {
        let text = files::read_named_text(path, LABELS_BYTES_MAX).map_err(CommandError::with(path.display()))?;
        Labels::read(&text, registry.has_text_ids()).map_err(CommandError::with(path.display()))
    });
    let captures = args.capture.iter().map(|path| path.display().to_string()).collect();
    let diff = PlanDiff::new(Asked {
        plans: [args.first.clone(), args.second.clone()],
        k: args.k as usize,
        outputs: output_names([&running.plan, second]),
        score: keys.score.map(|key| registry.key(key).name.clone()),
        group: args.by.clone(),
        labels: labels.transpose()?,
        captures: (!args.capture.is_empty()).then_some(captures),
    });
    let conditions = conditions(&args.fail_if, &diff.figures())?;
    let mut comparing =
        Comparing { engine: &running.engine, registry, tasks: library.tasks(), plans, keys, diff, costed: 0 };
    match (&args.captured_plan, args.capture.is_empty()) {
        (_, true) => compare_requests(&mut comparing, &Requests::read(args.requests.as_deref(), args.users)?)?,
        (Some(name), false) => captured::compare(&mut comparing, &args.capture, &[name.as_str()])?,
        (None, false) => {
            let mut names = vec![&*running.plan.name, &*second.name];
            names.dedup();
            captured::compare(&mut comparing, &args.capture, &names)?;
        }
    }
    let diff = comparing.diff;
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

/// Compares the plans for requests that are answered now.
fn compare_requests(comparing: &mut Comparing<'_>, requests: &Requests) -> Result<(), CommandError> {
    let (count, registry) = (requests.count(), comparing.registry);
    let group = |from: u64, to: u64| {
        (from..to.min(from + GROUP as u64))
            .map(|at| read(&requests.text(at), at, registry))
            .collect::<Result<Vec<_>, _>>()
    };
    let costed = count.min(COSTED);
    for from in (0..costed).step_by(GROUP) {
        comparing.cost(&group(from, costed)?);
    }
    let mut bar = say::Progress::new("diff", count as usize);
    for from in (0..count).step_by(GROUP) {
        comparing.compare(&group(from, count)?);
        bar.at((from as usize + GROUP).min(count as usize));
    }
    Ok(())
}

/// A request for either plan. Where it says neither its time nor its seed, both plans get the same.
fn read(text: &str, at: u64, registry: &Registry) -> Result<DiffRequest, CommandError> {
    let read = input::read(text.as_bytes(), registry);
    let read = read.map_err(|refused| CommandError::Wrong(format!("request {}: {}", at + 1, refused.error.message)))?;
    let mut request = read.request;
    request.now_ms.get_or_insert_with(clock::since_1970_ms);
    Ok(DiffRequest { request, text: text.to_owned(), captured: None })
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
