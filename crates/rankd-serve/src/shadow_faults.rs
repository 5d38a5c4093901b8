//! Tests of the engine of shadows with tasks that no release has: one panics, one does not give its thread back, one makes too much.

use crate::shadow_engine::{ShadowEngine, ShadowJob, engine_settings};
use crate::shadow_pair::{DropReason, ShadowPair, ShadowResult, ShadowSettings};
use rankd_column::{Batch, Cells, Column, Id, Key, RowSet};
use rankd_engine::clock;
use rankd_engine::error::TaskError;
use rankd_engine::recorded::RunRecord;
use rankd_engine::task::{Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, Maker};
use rankd_engine::{Engine, ErrorKind, Policy, Request, Tasks};
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Plan, Registry, check};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Long enough for anything on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

const SCRIPTED: &str = "as the test wants it:";

/// What the user is, the shadow does.
const PANICS_READING: i64 = 2;
const PANICS_COMPUTING: i64 = 3;
const HOGS: i64 = 4;
const TOO_MANY_ROWS: i64 = 5;
const TOO_MANY_BYTES: i64 = 6;

/// Lets whoever hogs a thread go.
static RELEASED: AtomicBool = AtomicBool::new(false);

struct ReadUser;

impl Fetch for ReadUser {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let user = cx.user_id()?;
        assert!(user != PANICS_READING, "{SCRIPTED} while it reads");
        Ok(RowSet::new(Batch::new(vec![user])))
    }
}

struct Misbehave;

impl Compute for Misbehave {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        match inputs[0].batch().ids()[0] {
            PANICS_COMPUTING => panic!("{SCRIPTED} in the pool"),
            // Looks at no stop flag.
            HOGS => {
                while !RELEASED.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                Ok(inputs[0].take(1))
            }
            TOO_MANY_ROWS => Ok(RowSet::new(Batch::new((0..100_001).collect()))),
            TOO_MANY_BYTES => {
                let column = || Arc::new(Column::Int(Cells::full(vec![7; 100_000])));
                let wide = (1..=90).fold(Batch::new((0..100_000).collect()), |wide, key| wide.with(Key(key), column()));
                Ok(RowSet::new(wide))
            }
            _ => Ok(inputs[0].take(1)),
        }
    }
}

const fn contract(inputs: Inputs, rows: RowEffect) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: &[], cost: Cost::Unknown }
}

static READ: Contract = contract(Inputs::None, RowEffect::Source);
static WORK: Contract = contract(Inputs::One, RowEffect::FanOut);

fn tasks() -> Tasks {
    let signature = |op, contract| Signature { op, summary: "", contract };
    let definitions = [
        Definition { signature: signature("read_user", &READ), maker: Maker::Fetch(|_| Arc::new(ReadUser)) },
        Definition { signature: signature("misbehave", &WORK), maker: Maker::Compute(|_| Arc::new(Misbehave)) },
    ];
    Tasks::new(definitions).unwrap()
}

fn plan(tasks: &Tasks) -> (Arc<Registry>, Arc<Plan>) {
    const KEYS: &str =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n";
    let text = |file, text| Text { file, text };
    let (registry, problems) = Registry::parse(text("keys", KEYS), text("params", ""), text("endpoints", ""));
    assert!(problems.is_empty(), "{}", problems.len());
    let plan = r#"{"schema_version":1,"plan_name":"next","nodes":[
        {"node_id":"r","op":"read_user","inputs":[],"params":{}},
        {"node_id":"w","op":"misbehave","inputs":["r"],"params":{},"scheduling":{"inline":false}}],
        "outputs":["w"],"expr_table":{},"pred_table":{}}"#;
    let checked = check(plan.as_bytes(), &registry, tasks.signatures());
    (Arc::new(registry), Arc::new(checked.plan.expect("the plan is good")))
}

struct Stage {
    shadows: ShadowEngine,
    pair: Arc<ShadowPair>,
    registry: Arc<Registry>,
    plan: Arc<Plan>,
}

impl Stage {
    fn new() -> Stage {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.payload_as_str().is_some_and(|text| text.starts_with(SCRIPTED)) {
                usual(panic);
            }
        }));
        let tasks = tasks();
        let (registry, plan) = plan(&tasks);
        let engine = Engine::start(engine_settings(Policy::default()), Vec::new()).unwrap();
        let settings = ShadowSettings { plan: "now".to_owned(), shadow: "next".to_owned(), share: 1.0 };
        Stage { shadows: ShadowEngine::start(engine, tasks), pair: Arc::new(ShadowPair::new(settings)), registry, plan }
    }

    fn submit(&self, user: i64, record: RunRecord) {
        let (pair, plan, registry) = (self.pair.clone(), self.plan.clone(), self.registry.clone());
        let request = Request { user_id: Id::Int(user), ..Request::new(&self.registry) };
        let answer = vec![RowSet::new(Batch::new(vec![user]))];
        self.shadows.submit(ShadowJob { pair, plan, registry, request, record, answer });
    }

    /// Runs one and waits until it is counted as this.
    fn run(&self, user: i64, what: impl Fn(&ShadowPair) -> u64, until: u64) {
        self.submit(user, RunRecord::default());
        self.wait(what, until);
    }

    fn wait(&self, what: impl Fn(&ShadowPair) -> u64, until: u64) {
        let patience = clock::now() + PATIENCE;
        while what(&self.pair) < until {
            assert!(clock::now() < patience, "{:?}", self.pair.counts);
            std::thread::yield_now();
        }
        assert_eq!(what(&self.pair), until, "{:?}", self.pair.counts);
    }
}

fn failed(kind: ErrorKind) -> impl Fn(&ShadowPair) -> u64 {
    move |pair| pair.counts.failed(kind)
}

fn same(pair: &ShadowPair) -> u64 {
    pair.counts.result(ShadowResult::Same)
}

#[test]
fn what_a_shadow_does_wrong_is_counted_and_the_next_one_runs() {
    let stage = Stage::new();
    stage.run(1, same, 1);
    stage.run(PANICS_READING, failed(ErrorKind::Bug), 1);
    stage.run(PANICS_COMPUTING, failed(ErrorKind::Bug), 2);
    stage.run(TOO_MANY_ROWS, failed(ErrorKind::Overloaded), 1);
    assert!(stage.pair.counts.last_failure().is_some_and(|told| told.contains("100001 rows")));
    stage.run(TOO_MANY_BYTES, failed(ErrorKind::Overloaded), 2);
    assert!(stage.pair.counts.last_failure().is_some_and(|told| told.contains("67108864 bytes")));
    stage.run(1, same, 2);
    // It has the only thread for longer than its time: it is given up, and what would need the thread is not begun.
    stage.run(HOGS, failed(ErrorKind::Timeout), 1);
    let stuck = |pair: &ShadowPair| pair.counts.dropped(DropReason::Stuck);
    stage.run(1, stuck, 1);
    stage.run(1, stuck, 2);
    // No more than 64 wait, and those that follow are dropped.
    let queue = |pair: &ShadowPair| pair.counts.dropped(DropReason::Queue);
    while queue(&stage.pair) == 0 {
        stage.submit(1, RunRecord::default());
        assert!(stage.shadows.waiting() <= 64);
    }
    RELEASED.store(true, Ordering::Relaxed);
    let before = same(&stage.pair);
    stage.wait(|pair| u64::from(same(pair) > before), 1);
    stage.shadows.stop();
}

#[test]
fn what_waits_is_bounded_by_bytes() {
    let stage = Stage::new();
    let memory = |pair: &ShadowPair| pair.counts.dropped(DropReason::Memory);
    stage.run(1, memory, 0);
    stage.wait(same, 1);
    // A run that has read more than is kept has no record.
    let mut cut = RunRecord::default();
    cut.is_cut = true;
    stage.submit(1, cut);
    stage.wait(memory, 1);
    let wide = || {
        let column = Arc::new(Column::Int(Cells::full(vec![7; 9 << 20])));
        RowSet::new(Batch::new((0..9 << 20).collect()).with(Key(1), column))
    };
    let (pair, plan, registry) = (stage.pair.clone(), stage.plan.clone(), stage.registry.clone());
    let request = Request { user_id: Id::Int(1), ..Request::new(&stage.registry) };
    let record = RunRecord::default();
    stage.shadows.submit(ShadowJob { pair, plan, registry, request, record, answer: vec![wide()] });
    stage.wait(memory, 2);
    // What was dropped does not count any more.
    stage.run(1, same, 2);
}

/// The threads of all engines for shadows, with their priorities.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the system tells about threads in files")]
fn background_threads() -> Vec<(String, i64)> {
    let mut seen = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let Ok(stat) = std::fs::read_to_string(task.unwrap().path().join("stat")) else { continue };
        let (head, rest) = stat.rsplit_once(')').unwrap();
        let (_, name) = head.split_once('(').unwrap();
        if name.starts_with("rankd-bg-") {
            // The nineteenth field is the nice value, and the name is the second.
            seen.push((name.to_owned(), rest.split_whitespace().nth(16).unwrap().parse().unwrap()));
        }
    }
    seen.sort();
    // Other tests may have theirs at the same time.
    seen.dedup();
    seen
}

#[cfg(target_os = "linux")]
#[test]
fn a_shadow_has_a_loop_and_a_thread_of_the_lowest_priority() {
    let engine = Engine::start(engine_settings(Policy::default()), Vec::new()).unwrap();
    let expected = [("rankd-bg-cpu-0".to_owned(), 19), ("rankd-bg-loop-0".to_owned(), 19)];
    let patience = clock::now() + PATIENCE;
    // A thread sets it when it starts.
    while background_threads() != expected {
        assert!(clock::now() < patience, "{:?}", background_threads());
        std::thread::yield_now();
    }
    drop(engine);
}
