//! `rankd replay`: captured requests once more, on what their runs read, and whether the answers are the same.

use crate::cli::check::print_registry_problems;
use crate::cli::command_error::CommandError;
use crate::cli::engine::EngineArgs;
use crate::cli::plan_engine::SchedulerName;
use crate::cli::{DONE, FAILED, WRONG, say};
use clap::Args;
use rankd_edge::capture::{CaptureFiles, CaptureSeen, Comparison, LiveStores, Replayed, Replays};
use rankd_edge::library::Library;
use rankd_plan::json::Writer;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// So much is shown of an answer around the first difference.
const SHOWN: usize = 60;

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Captures: files, or folders with them
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// Run this plan instead of the captured ones
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Read what was not captured from the endpoints of --registry and --env, and count it
    #[arg(long)]
    live: bool,
    /// Folder with the registry that --plan is compiled with, where it is TypeScript, and whose endpoints --live asks
    #[arg(long, value_name = "DIR", default_value = "registry")]
    registry: PathBuf,
    /// Which endpoints.NAME.toml of it to use
    #[arg(long, value_name = "NAME", default_value = "local")]
    env: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// Which scheduler runs the nodes
    #[arg(long, help_heading = "Scheduler tuning", value_name = "S", value_enum, default_value = "async")]
    scheduler: SchedulerName,
}

pub(crate) fn run(args: &ReplayArgs, library: &Library) -> u8 {
    match replay(args, library) {
        Ok(code) => code,
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

/// What came of all requests.
#[derive(Default)]
struct ReplayTally {
    same: u64,
    different: u64,
    missing: u64,
    /// How many reads were not captured and came from stores, and in how many requests.
    live_reads: u64,
    live_requests: u64,
    /// By the reason.
    not_comparable: BTreeMap<String, u64>,
    /// The first request that differs.
    first: Option<(String, Replayed)>,
}

impl ReplayTally {
    fn add(&mut self, request_id: String, replayed: Replayed, is_live: bool) {
        if is_live && replayed.missing > 0 {
            self.live_reads += replayed.missing;
            self.live_requests += 1;
        }
        match &replayed.comparison {
            Comparison::Same => self.same += 1,
            Comparison::Different { .. } => {
                self.different += 1;
                self.first.get_or_insert((request_id, replayed));
            }
            Comparison::Missing => self.missing += 1,
            Comparison::Not(why) => *self.not_comparable.entry(why.to_string()).or_default() += 1,
        }
    }

    fn requests(&self) -> u64 {
        self.same + self.different + self.missing + self.not_comparable.values().sum::<u64>()
    }
}

fn replay(args: &ReplayArgs, library: &Library) -> Result<u8, CommandError> {
    let files = CaptureFiles::find(&args.files).map_err(|error| CommandError::Caused(Box::new(error)))?;
    let mut replays = Replays::new(library, args.engine.settings(args.scheduler.scheduler()));
    if let Some(path) = &args.plan {
        replays = replays.with_plan(artifact(args, path, library)?);
    }
    if args.live {
        let loaded = library.load_registry(&args.registry, &args.env);
        print_registry_problems(&loaded);
        if loaded.has_errors() {
            return Err(CommandError::Reported);
        }
        replays = replays.with_live(LiveStores::open(&loaded.registry, &mut say::note)?);
    }
    let mut tally = ReplayTally::default();
    let seen = files.each(|folder, captured| {
        let request_id = captured.request_id.clone();
        tally.add(request_id, replays.replay(folder, captured), args.live);
    });
    let seen = seen.map_err(|error| CommandError::Caused(Box::new(error)))?;
    say::to_programs(if args.json { in_json(&tally, seen) } else { in_words(&tally, seen) }.trim_end());
    Ok(if tally.same == tally.requests() { DONE } else { FAILED })
}

/// The artifact of the plan in a file.
fn artifact(args: &ReplayArgs, path: &std::path::Path, library: &Library) -> Result<String, CommandError> {
    let loaded = library.load_registry(&args.registry, &args.env);
    let file = library.load_plan(path, &loaded.registry);
    let words = file.report(|report| report.for_people(say::in_colour(), &|span| file.source_text(span)));
    if !words.is_empty() {
        say::to_people(&words);
    }
    let text = file.artifact.or(file.text).filter(|_| file.checked.plan.is_some());
    text.ok_or_else(|| match words.is_empty() {
        true => CommandError::Wrong(format!("{} is no plan that can run", path.display())),
        false => CommandError::Reported,
    })
}

fn in_words(tally: &ReplayTally, seen: CaptureSeen) -> String {
    let ReplayTally { same, different, missing, .. } = tally;
    let not: u64 = tally.not_comparable.values().sum();
    let mut out = format!(
        "{} requests in {} files: {same} same, {different} different, {missing} missing reads, {not} not comparable\n",
        tally.requests(),
        seen.files
    );
    if seen.cut > 0 {
        out += &format!("note: {} files end in the middle of a batch, which was passed over\n", seen.cut);
    }
    if tally.live_reads > 0 {
        let (reads, requests) = (tally.live_reads, tally.live_requests);
        out += &format!("live: {reads} reads of {requests} requests were not captured and came from stores\n");
    }
    for (why, count) in &tally.not_comparable {
        out += &format!("not comparable: {count}: {why}\n");
    }
    if let Some((request_id, replayed)) = &tally.first
        && let Comparison::Different { at } = replayed.comparison
    {
        out += &format!("the first difference is in request {request_id:?}, at byte {at}:\n");
        out +=
            &format!("  captured: {}\n  replayed: {}\n", around(&replayed.captured, at), around(&replayed.again, at));
    }
    out
}

/// The part of an answer around a byte.
fn around(answer: &[u8], at: usize) -> String {
    let part = &answer[at.saturating_sub(SHOWN).min(answer.len())..answer.len().min(at + SHOWN)];
    String::from_utf8_lossy(part).escape_debug().to_string()
}

fn in_json(tally: &ReplayTally, seen: CaptureSeen) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("requests").int(tally.requests() as i64).field("files").int(seen.files as i64);
        w.field("cut_files").int(seen.cut as i64);
        w.field("same").int(tally.same as i64).field("different").int(tally.different as i64);
        w.field("missing").int(tally.missing as i64);
        w.field("live_reads").int(tally.live_reads as i64).field("live_requests").int(tally.live_requests as i64);
        w.field("not_comparable").object(|w| {
            for (why, count) in &tally.not_comparable {
                w.field(why).int(*count as i64);
            }
        });
        if let Some((request_id, replayed)) = &tally.first
            && let Comparison::Different { at } = replayed.comparison
        {
            w.field("first_difference").object(|w| {
                w.field("request_id").string(request_id).field("byte").int(at as i64);
                w.field("captured").string(&String::from_utf8_lossy(&replayed.captured));
                w.field("replayed").string(&String::from_utf8_lossy(&replayed.again));
            });
        }
    });
    writer.finish()
}
