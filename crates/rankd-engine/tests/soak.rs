//! A hundred thousand runs of every sort through a real engine leave nothing behind: no memory, no thread, no open ticket.
//!
//! One test in a program of its own, because it looks at the whole process.
#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "scripted/plan.rs"]
mod plan;
#[path = "scripted/quiet.rs"]
mod quiet;
#[path = "scripted/rng.rs"]
mod rng;
#[path = "soak/tasks.rs"]
mod tasks;

use plan::Tasks;
use rankd_engine::engine::Ticket;
use rankd_engine::{Engine, ErrorKind, Linked, Outcome, Request, Scheduler, Settings, clock};
use rng::Rng;
use std::sync::Arc;
use std::time::Duration;

const RUNS: usize = 100_000;
/// By then every buffer and every arena of the allocator has been used.
const WARM: usize = 20_000;
/// How many runs are under way at once.
const WAVE: usize = 500;

/// The allocator keeps an arena a thread and gives pages back when it likes, and by chance the largest wave comes late. A leak
/// of 64 bytes a run is 5 MB over the runs that are measured.
const SLACK_KB: usize = 4 << 10;

struct Plans {
    small: Arc<Linked>,
    wide: Arc<Linked>,
    fails: [Arc<Linked>; 2],
    panics: [Arc<Linked>; 2],
    endless_read: Arc<Linked>,
    endless_work: Arc<Linked>,
}

impl Plans {
    fn new(tasks: &Tasks) -> Plans {
        let two = |read: &str, work: &str| {
            let nodes = [
                format!(r#"{{"node_id":"r","op":"read","inputs":[],"params":{{"fate":"{read}"}}}}"#),
                r#"{"node_id":"q","op":"read","inputs":[],"params":{}}"#.into(),
                format!(r#"{{"node_id":"w","op":"work","inputs":["q"],"params":{{"fate":"{work}"}}}}"#),
                r#"{"node_id":"o","op":"work","inputs":["w"],"params":{"rhs":"r"}}"#.into(),
            ];
            tasks.link(&nodes, &["o".into()])
        };
        let mut wide = vec![r#"{"node_id":"r","op":"read","inputs":[],"params":{}}"#.to_owned()];
        wide.extend((0..8).map(|at| format!(r#"{{"node_id":"w{at}","op":"work","inputs":["r"],"params":{{}}}}"#)));
        let ends: Vec<String> = (0..8).map(|at| format!("w{at}")).collect();
        Plans {
            small: two("well", "well"),
            wide: tasks.link(&wide, &ends),
            fails: [two("fails", "well"), two("well", "fails")],
            panics: [two("panics", "well"), two("well", "panics")],
            endless_read: two("endless", "well"),
            endless_work: two("well", "endless"),
        }
    }
}

/// One run of some sort, and the kind of its error, if there is to be one.
fn start(engine: &Engine, plans: &Plans, rng: &mut Rng) -> (Ticket, Option<ErrorKind>) {
    let soon = Some(Duration::from_millis(1 + rng.below(2) as u64));
    let request = Request { trace: rng.percent(20), ..Request::default() };
    let (plan, request, kind) = match rng.below(100) {
        0..60 => (&plans.small, request, None),
        60..65 => (&plans.wide, request, None),
        65..72 => (&plans.fails[rng.below(2)], request, Some(ErrorKind::Task)),
        72..79 => (&plans.panics[rng.below(2)], request, Some(ErrorKind::Bug)),
        79..85 => (&plans.endless_read, Request { deadline: soon, ..request }, Some(ErrorKind::Timeout)),
        85..90 => (&plans.endless_read, Request { node_timeout: soon, ..request }, Some(ErrorKind::Timeout)),
        90..91 => (&plans.endless_work, Request { deadline: soon, ..request }, Some(ErrorKind::Timeout)),
        91..92 => (&plans.endless_work, request, Some(ErrorKind::Cancelled)),
        _ => (&plans.endless_read, request, Some(ErrorKind::Cancelled)),
    };
    (engine.start_run(plan, request), kind)
}

fn check(outcome: &Outcome, expected: Option<ErrorKind>) {
    let kind = outcome.result.as_ref().err().map(|error| error.code.kind);
    assert_eq!(kind, expected, "{:?}", outcome.result);
    let scripted = |message: &str| message.contains(quiet::SCRIPTED);
    let bug = outcome.result.as_ref().err().filter(|error| error.code.kind == ErrorKind::Bug);
    assert!(bug.is_none_or(|error| scripted(&error.message)), "a bug of the engine: {bug:?}");
}

/// A number that the system keeps of this process; nothing where it keeps none.
#[expect(clippy::disallowed_methods, reason = "how large the process is stands in a file")]
fn status(field: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_hundred_thousand_runs_leave_nothing_behind() {
    quiet::scripted_panics();
    let threads_before = status("Threads");
    let settings = Settings { scheduler: Scheduler::Async, loops: 2, cpu_threads: 2, ..Settings::default() };
    let engine = Engine::start(settings, Vec::new()).unwrap();
    let plans = Plans::new(&Tasks::new(&tasks::DEFINITIONS));
    let rng = &mut Rng::new(1);
    let (mut warm, mut panics) = (None, 0);
    for wave in 0..RUNS / WAVE {
        if wave == WARM / WAVE {
            warm = status("VmRSS").zip(status("Threads"));
        }
        let under_way: Vec<_> = (0..WAVE).map(|_| start(&engine, &plans, rng)).collect();
        for (ticket, expected) in &under_way {
            if *expected == Some(ErrorKind::Cancelled) {
                ticket.cancel();
            }
        }
        for (ticket, expected) in under_way {
            check(&ticket.wait(), expected);
            panics += u64::from(expected == Some(ErrorKind::Bug));
        }
    }
    // A run with a panic has failed by it, so nobody else's panic was caught.
    assert_eq!(engine.stats().panics(), panics);
    if let (Some((rss_warm, threads_warm)), Some(rss)) = (warm, status("VmRSS")) {
        assert!(rss <= rss_warm + rss_warm / 20 + SLACK_KB, "{rss_warm} kB after {WARM} runs, {rss} kB after {RUNS}");
        assert_eq!(Some(threads_warm), status("Threads"), "a thread was left behind");
    }
    stop(engine, &plans);
    // A thread that was joined may be seen for a moment longer.
    for _ in 0..1_000_000 {
        if status("Threads") == threads_before {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{threads_before:?} threads before, {:?} after", status("Threads"));
}

/// Stops while runs are under way that never end by themselves: those are cancelled when the time to drain is over.
fn stop(engine: Engine, plans: &Plans) {
    let drain = Duration::from_millis(200);
    let start = |plan: &Arc<Linked>| engine.start_run(plan, Request::default());
    let finishing: Vec<Ticket> = (0..100).map(|_| start(&plans.small)).collect();
    let endless: Vec<Ticket> =
        (0..100).map(|at| start(if at == 50 { &plans.endless_work } else { &plans.endless_read })).collect();
    let began = clock::now();
    engine.stop(drain);
    let took = clock::now().saturating_duration_since(began);
    // What does not end is an hour long; a busy machine may take its time to schedule the threads once more.
    assert!(took >= drain && took < drain + Duration::from_secs(10), "stopping took {took:?}");
    finishing.into_iter().for_each(|ticket| check(&ticket.wait(), None));
    endless.into_iter().for_each(|ticket| check(&ticket.wait(), Some(ErrorKind::Cancelled)));
}
