//! Tables on every scheduler: what a run over a large one holds, counted; and that nothing is copied that need not be.
#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]
#![expect(
    unsafe_code,
    reason = "a global allocator that counts cannot be written without; it hands every call on as it is"
)]

use rankd_column::{Cells, Column, Key, RowSet, Value};
use rankd_engine::store::table::{OpenTable, TableData, TableIds};
use rankd_engine::store::{Open, TableEndpoint, Tables};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::{Registry, check};
use rankd_tasks::tasks;
use rankd_testing::registry_in;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that are allocated, and the most that were since somebody asked.
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// One test at a time: the counters are of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

fn add(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// Safety: every call goes on to the system's allocator unchanged; counting touches only atomic numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most bytes that were held at once by what is done here, besides those that were there before.
fn held_by<R>(act: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let result = act();
    (result, MOST.load(Ordering::Relaxed).saturating_sub(before))
}

const EVERY: [Scheduler; 3] = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential];
const ROWS: usize = 1_000_000;

struct Rig {
    registry: Registry,
    tables: Arc<Tables>,
}

impl Rig {
    /// A table with so many rows: `likes` is the row's number, `quality` a part of it, `title` one of three.
    fn new(rows: usize) -> Rig {
        let registry = registry_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../registry"));
        let rig = Rig { registry, tables: Arc::default() };
        let titles = {
            let mut titles = rankd_column::column::ColumnBuilder::new(rankd_column::Type::Str, rows);
            for row in 0..rows {
                assert!(titles.push_str(["Alpha", "Beta", "Gamma"][row % 3]));
            }
            titles.finish()
        };
        let columns = [
            ("likes", Column::Int(Cells::full((0..rows as i64).collect()))),
            ("quality", Column::Float(Cells::full((0..rows).map(|row| row as f64 / 7.0).collect()))),
            ("title", titles),
        ];
        let columns = columns.into_iter().map(|(name, column)| (rig.key(name), Arc::new(column))).collect();
        let ids = TableIds::Ints((1..=rows as i64).collect());
        rig.tables.swap(rig.endpoint(), TableData { ids, columns, sha256: None }).unwrap();
        rig
    }

    fn key(&self, name: &str) -> Key {
        Key(self.registry.keys.named(name).unwrap())
    }

    fn endpoint(&self) -> TableEndpoint {
        TableEndpoint(self.registry.endpoints.named("example_table").unwrap())
    }

    fn engine(&self, scheduler: Scheduler, run_bytes_max: usize) -> Engine {
        let endpoints = self.registry.endpoints.list().iter();
        let open = |endpoint: &rankd_plan::registry::Endpoint| -> Arc<dyn Open> {
            Arc::new(OpenTable::new(&endpoint.name, self.tables.clone()))
        };
        let settings = Settings { scheduler, cpu_threads: 2, run_bytes_max, ..Settings::default() };
        Engine::start(settings, endpoints.map(open).collect()).unwrap()
    }

    fn plan(&self, nodes: &[&str], last: &str, pred: &str) -> Arc<Linked> {
        let expr = r#"{"op":"mul","a":{"op":"key_ref","key":"quality"},"b":{"op":"const_number","value":2}}"#;
        let text = format!(
            r#"{{"schema_version":1,"plan_name":"t","nodes":[{}],"outputs":["{last}"],"expr_table":{{"e":{expr}}},"pred_table":{{"p":{pred}}}}}"#,
            nodes.join(",")
        );
        let checked = check(text.as_bytes(), &self.registry, tasks().signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
        Arc::new(Linked::link(&plan, &tasks(), &self.registry).unwrap())
    }

    fn run(&self, engine: &Engine, plan: &Arc<Linked>) -> RowSet {
        let request = Request { user_id: 1.into(), ..Request::new(&self.registry) };
        engine.run(plan, request).result.unwrap_or_else(|error| panic!("{error}")).remove(0)
    }
}

const SCAN: &str = r#"{"node_id":"n0","op":"scan","params":{"endpoint":"example_table"}}"#;
const FILTER: &str = r#"{"node_id":"n1","op":"filter","inputs":["n0"],"params":{"pred":"p"}}"#;
const VM: &str = r#"{"node_id":"n2","op":"vm","inputs":["n1"],"params":{"out_key":"score","expr":"e"}}"#;
const SORT: &str = r#"{"node_id":"n3","op":"sort","inputs":["n2"],"params":{"key":"score","order":"desc"}}"#;
const HYDRATE: &str = r#"{"node_id":"n4","op":"hydrate","inputs":["n2"],"params":{"endpoint":"example_table","fields":{"likes":"views"}}}"#;
const SORT_HYDRATED: &str = r#"{"node_id":"n5","op":"sort","inputs":["n4"],"params":{"key":"score","order":"desc"}}"#;
/// A hundred of all rows, scored, with another column of the table, in order.
const FEW: [&str; 5] = [SCAN, FILTER, VM, HYDRATE, SORT_HYDRATED];

fn more_likes_than(likes: usize) -> String {
    format!(
        r#"{{"op":"cmp","cmp":">=","a":{{"op":"key_ref","key":"likes"}},"b":{{"op":"const_number","value":{likes}}}}}"#
    )
}

#[test]
fn a_scan_gives_the_columns_of_the_table_itself() {
    let _alone = ALONE.lock().unwrap();
    let rig = Rig::new(1000);
    let plan = rig.plan(&[SCAN], "n0", r#"{"op":"const_bool","value":true}"#);
    for scheduler in EVERY {
        let rows = rig.run(&rig.engine(scheduler, usize::MAX), &plan);
        let versions = rig.tables.versions();
        let table = versions.get(rig.endpoint()).unwrap();
        for (key, column) in table.batch().columns() {
            assert!(Arc::ptr_eq(rows.batch().column(*key).unwrap(), column), "{scheduler:?}");
        }
        assert_eq!((rows.len(), rows.batch().made_bytes()), (1000, 0));
    }
}

#[test]
fn a_hundred_of_a_million_rows_hold_little() {
    let _alone = ALONE.lock().unwrap();
    let rig = Rig::new(ROWS);
    let plan = rig.plan(&FEW, "n5", &more_likes_than(ROWS - 100));
    for scheduler in EVERY {
        let engine = rig.engine(scheduler, usize::MAX);
        let first = rig.run(&engine, &plan);
        assert_eq!((first.len(), first.value(rig.key("likes"), 0)), (100, Value::Int(ROWS as i64 - 1)));
        assert_eq!(first.value(rig.key("title"), 0), Value::str("Alpha"));
        assert_eq!(first.value(rig.key("views"), 99), Value::Int(ROWS as i64 - 100));
        let (rows, held) = held_by(|| rig.run(&engine, &plan));
        assert!(held <= 1 << 20, "{scheduler:?}: {held} bytes for {} rows", rows.len());
    }
}

#[test]
fn sixty_four_at_once_hold_little_more() {
    let _alone = ALONE.lock().unwrap();
    let rig = Rig::new(ROWS);
    let plan = rig.plan(&FEW, "n5", &more_likes_than(ROWS - 100));
    let engine = rig.engine(Scheduler::Async, usize::MAX);
    rig.run(&engine, &plan);
    let ((), held) = held_by(|| {
        let request = || Request { user_id: 1.into(), ..Request::new(&rig.registry) };
        let running: Vec<_> = (0..64).map(|_| engine.start_run(&plan, request())).collect();
        running.into_iter().for_each(|run| assert_eq!(run.wait().result.unwrap()[0].len(), 100));
    });
    assert!(held <= 64 << 20, "{held} bytes");
}

#[test]
fn a_run_that_makes_too_much_ends_as_overloaded_on_every_scheduler() {
    let _alone = ALONE.lock().unwrap();
    let rig = Rig::new(10_000);
    let all = r#"{"op":"const_bool","value":true}"#;
    let on_all = VM.replace("n1", "n0");
    let vm = rig.plan(&[SCAN, &on_all], "n2", all);
    // The same column goes through several nodes and counts once.
    let chain = [SCAN, &on_all, SORT, r#"{"node_id":"n4","op":"take","inputs":["n3"],"params":{"count":9000}}"#];
    let long = rig.plan(&chain, "n4", all);
    for scheduler in EVERY {
        let request = || Request { user_id: 1.into(), ..Request::new(&rig.registry) };
        for plan in [&vm, &long] {
            assert!(rig.engine(scheduler, 80_000).run(plan, request()).result.is_ok(), "{scheduler:?}");
            let failed = rig.engine(scheduler, 79_999).run(plan, request()).result.unwrap_err();
            assert_eq!((failed.code.id, failed.code.kind.name()), ("E608", "overloaded"), "{scheduler:?}");
            assert!(failed.node.is_some());
        }
    }
}

#[test]
fn a_run_keeps_the_version_that_it_started_with() {
    let _alone = ALONE.lock().unwrap();
    let rig = Rig::new(10);
    let sleep = r#"{"node_id":"n1","op":"sleep","inputs":["n0"],"params":{"duration_ms":30}}"#;
    let again = r#"{"node_id":"n2","op":"scan","params":{"endpoint":"example_table"}}"#;
    let both = r#"{"node_id":"n3","op":"concat","inputs":["n1"],"params":{"rhs":"n2"}}"#;
    let plan = rig.plan(&[SCAN, sleep, again, both], "n3", r#"{"op":"const_bool","value":true}"#);
    let engine = rig.engine(Scheduler::Async, usize::MAX);
    let request = Request { user_id: 1.into(), ..Request::new(&rig.registry) };
    let running = engine.start_run(&plan, request);
    rig.tables
        .swap(rig.endpoint(), TableData { ids: TableIds::Ints(vec![77]), columns: Vec::new(), sha256: None })
        .unwrap();
    let rows = running.wait().result.unwrap().remove(0);
    assert!(rows.len() == 20 || rows.len() == 2, "{} rows are of two versions", rows.len());
    assert_eq!(rig.run(&engine, &plan).ids().collect::<Vec<_>>(), [77, 77]);
}
