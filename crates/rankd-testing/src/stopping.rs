//! Stops tasks that compute, at any of the moments at which they look whether they should.
//!
//! The time limit of a computation is asked for at each look, so that looks can be counted and one of them can say that time is up. No
//! second thread is needed, and no luck.

use crate::given::GIVEN;
use crate::{TABLE, link, read_examples, table, table_data, tables};
use rankd_column::RowSet;
use rankd_column::stop::{ROWS_A_LOOK, Stop, Stopped, TimeLimit};
use rankd_engine::clock;
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::TableEndpoint;
use rankd_engine::store::table::{TableData, TableIds};
use rankd_engine::task::{Definition, Maker, Task};
use rankd_engine::{Request, Tasks};
use rankd_plan::Registry;
use rankd_plan::signature::{Cost, ParamKind};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

/// What takes less than this need not look.
const NO_TIME: Duration = Duration::from_millis(1);
/// No task works for this part of its time without a look, unless that is short: a coarse guard. Memory that is touched for the first time
/// takes a busy machine some milliseconds.
const PARTS_MIN: u32 = 4;
const SHORT: Duration = Duration::from_millis(4);
/// What a part costs differs from run to run; of several, the least time of each part counts.
const RUNS: usize = 5;

thread_local! {
    /// How long this thread had worked when the computation at hand began, and when it looked.
    static LOOKS: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
    /// The look that says that time is up.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// By the processor time of this thread: on a busy machine any part of a computation may be interrupted.
fn worked() -> Duration {
    Duration::from_nanos(clock::thread_cpu_ns().unwrap_or_default())
}

fn look(_: Instant) -> bool {
    LOOKS.with_borrow_mut(|looks| {
        looks.push(worked());
        looks.len() > LAST.get()
    })
}

/// Runs each task that computes on so many rows, made of those of the examples in its header, and stops it at several of its looks. The rows are
/// those of its inputs, or for a task that searches a table, those of the table.
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
            let searches = signature.contract.params.iter().any(|param| matches!(param.kind, ParamKind::TableKey(_)));
            let tables = tables(&example, signature.op, registry);
            if let (true, Some(at)) = (searches, registry.endpoints.named(TABLE)) {
                // Ids differ, as those of any table.
                let many = repeat(&table::read(&example.table, registry), rows);
                let data = TableData { ids: TableIds::Ints((0..rows as i64).collect()), ..table_data(&many) };
                tables.swap(TableEndpoint(at), data).unwrap_or_else(|fault| panic!("{}: {fault}", signature.op));
            }
            let request = linked.begin(Request { user_id: 1.into(), ..Request::new(registry) }, Some(&tables));
            // The plan of an example has its task last.
            let task = &linked.written.step(linked.nodes.len() as u32 - 1).task;
            if let Task::Compute(_) = task {
                let repeat = |given: &RowSet| if searches { given.clone() } else { repeat(given, rows) };
                let many: Vec<RowSet> = given.iter().map(repeat).collect();
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

/// Stops at this look, the first of which is 1.
fn stop_at(last: usize) -> Stop<'static> {
    LAST.set(last);
    LOOKS.set(vec![worked()]);
    Stop::default().or_at(Some(TimeLimit { at: Instant::now(), has_passed: look }))
}

/// How often the computation at hand has looked.
fn looks() -> usize {
    LOOKS.with_borrow(Vec::len) - 1
}

/// How long it has worked before each look, and after the last.
fn gaps() -> Vec<Duration> {
    let mut moments = LOOKS.take();
    moments.push(worked());
    moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn stop_one(op: &str, rows: usize, run: impl Fn(Stop<'static>) -> Option<Result<RowSet, TaskError>>) {
    let run = |stop| run(stop).unwrap_or_else(|| panic!("{op} computes"));
    let mut least: Vec<Duration> = Vec::new();
    for _ in 0..RUNS {
        let result = run(stop_at(usize::MAX));
        let gaps = gaps();
        assert!(result.is_ok(), "{op}: {result:?}");
        if gaps.iter().sum::<Duration>() < NO_TIME {
            return;
        }
        least = if least.is_empty() { gaps } else { least.into_iter().zip(gaps).map(|(a, b)| a.min(b)).collect() };
    }
    let all = least.len() - 1;
    assert!(all > rows / ROWS_A_LOOK, "{op} looks {all} times in {rows} rows");
    let (longest, took) = (least.iter().max().copied().unwrap_or_default(), least.iter().sum::<Duration>());
    assert!(longest < SHORT.max(took / PARTS_MIN), "{op} works for {longest:?} of {took:?} without a look");
    for last in [1, 2, all / 4, all / 2, all - 1] {
        match run(stop_at(last)) {
            Err(error) => assert_eq!((error.code, looks()), (codes::CANCELLED, last), "{op}: {error}"),
            Ok(_) => panic!("{op} goes on after look {last} of {all}"),
        }
    }
}
