//! Stops tasks that compute, at any of the moments at which they look whether they should.
//!
//! The time limit of a computation is asked for at each look, so that looks can be counted and one of them can say that time is up. No
//! second thread is needed, and no luck.

use crate::given::GIVEN;
use crate::{link, read_examples, table, tables};
use rankd_column::RowSet;
use rankd_column::stop::{ROWS_A_LOOK, Stop, Stopped, TimeLimit};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Definition, Maker, Task};
use rankd_engine::{Request, Tasks};
use rankd_plan::Registry;
use rankd_plan::signature::Cost;
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

/// What takes less than this need not look.
const NO_TIME: Duration = Duration::from_millis(1);
/// No task works for this part of its time without a look.
const LONGEST_SHARE: f64 = 0.25;

#[derive(Clone, Copy)]
struct Looks {
    seen: usize,
    /// The one that says that time is up.
    last: usize,
    at: Option<Instant>,
    longest: Duration,
}

thread_local! {
    static LOOKS: Cell<Looks> = const { Cell::new(Looks { seen: 0, last: 0, at: None, longest: Duration::ZERO }) };
}

fn look(_: Instant) -> bool {
    let (mut looks, now) = (LOOKS.get(), Instant::now());
    looks.seen += 1;
    looks.longest = looks.longest.max(looks.at.map_or(Duration::ZERO, |at| now - at));
    looks.at = Some(now);
    LOOKS.set(looks);
    looks.seen >= looks.last
}

/// Runs each task that computes on so many rows, made of those of the examples in its header, and stops it at several of its looks.
/// Fails for one that looks too rarely, goes on after it was stopped, or has no example in which it computes.
pub fn stop_computations(
    definitions: impl IntoIterator<Item = Definition>,
    folder: impl AsRef<Path>,
    registry: &Registry,
    rows: usize,
) {
    let definitions: Vec<Definition> = definitions.into_iter().collect();
    let tasks =
        Tasks::new(definitions.iter().copied().chain([GIVEN])).unwrap_or_else(|duplicate| panic!("{duplicate}"));
    let mut stopped = 0;
    for Definition { signature, maker } in definitions {
        // What costs the same for any rows has nothing to stop.
        if matches!(maker, Maker::Fetch(_)) || signature.contract.cost == Cost::Trivial {
            continue;
        }
        let mut computes = false;
        for example in read_examples(signature, folder.as_ref()) {
            let given: Vec<RowSet> = example.given.iter().map(|lines| table::read(lines, registry)).collect();
            let linked = link(&example, signature, &tasks, registry, &given);
            let tables = tables(&example, signature.op, registry);
            let request = linked.begin(Request { user_id: 1.into(), ..Request::new(registry) }, Some(&tables));
            // The plan of an example has its task last.
            let task = &linked.written.step(linked.nodes.len() as u32 - 1).task;
            if let Task::Compute(_) = task {
                let many: Vec<RowSet> = given.iter().map(|given| repeat(given, rows)).collect();
                stop_one(signature.op, rows, |stop| task.compute(many.clone(), &request, stop));
                computes = true;
            }
        }
        assert!(computes, "{}: no example computes", signature.op);
        stopped += 1;
    }
    assert!(stopped > 0, "there are no tasks that compute");
}

/// The rows again and again, until there are so many.
fn repeat(rows: &RowSet, count: usize) -> RowSet {
    let again = (0..count).map(|at| (at % rows.len()) as u32).collect();
    let gathered = rows.looking_at(again).gathered(|_| true, Stop::default());
    gathered.unwrap_or_else(|Stopped| panic!("nothing stops it"))
}

/// Stops at this look.
fn stop_at(last: usize) -> Stop<'static> {
    LOOKS.set(Looks { seen: 0, last, at: Some(Instant::now()), longest: Duration::ZERO });
    Stop::default().or_at(Some(TimeLimit { at: Instant::now(), has_passed: look }))
}

/// What was seen, up to now.
fn seen() -> Looks {
    let looks = LOOKS.get();
    let longest = looks.longest.max(looks.at.map_or(Duration::ZERO, |at| at.elapsed()));
    Looks { longest, ..looks }
}

fn stop_one(op: &str, rows: usize, run: impl Fn(Stop<'static>) -> Option<Result<RowSet, TaskError>>) {
    let run = |stop| run(stop).unwrap_or_else(|| panic!("{op} computes"));
    let (mut looks, mut longest_share) = (0, f64::INFINITY);
    // The longest time without a look is measured: on a busy machine, the least of several.
    for _ in 0..5 {
        let began = Instant::now();
        let result = run(stop_at(usize::MAX));
        let (took, seen) = (began.elapsed(), seen());
        assert!(result.is_ok(), "{op}: {result:?}");
        if took < NO_TIME {
            return;
        }
        looks = seen.seen;
        longest_share = f64::min(longest_share, seen.longest.as_secs_f64() / took.as_secs_f64());
        if longest_share < LONGEST_SHARE {
            break;
        }
    }
    assert!(looks > rows / ROWS_A_LOOK, "{op} looks {looks} times in {rows} rows");
    assert!(longest_share < LONGEST_SHARE, "{op} does not look for {:.0} % of its time", longest_share * 100.0);
    for last in [1, 2, looks / 4, looks / 2, looks - 1] {
        let result = run(stop_at(last));
        let seen = LOOKS.get().seen;
        match result {
            Err(error) => assert_eq!((error.code, seen), (codes::CANCELLED, last), "{op}: {error}"),
            Ok(_) => panic!("{op} goes on after look {last} of {looks}"),
        }
    }
}
