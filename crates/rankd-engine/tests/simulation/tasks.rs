//! The scripted tasks: what each does and when is in its parameters, and each tells a witness what became of it.
//!
//! A request whose user is [`REHEARSAL`] meets no latency and no fault: that is how the rows to expect are made.

use crate::quiet::SCRIPTED;
use rankd_column::{Cells, Column, Key, RowSet, Stop, Value};
use rankd_engine::clock::{self, Instant};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::{Answer, Keyed, KeyedEndpoint, Keys, Open, Opened, ReadBatch, Replies, StoreError};
use rankd_engine::task::{Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, LinkContext, Make};
use rankd_plan::signature::typed::{Count, Input, Reserves};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The user for whom all goes well and at once.
pub(crate) const REHEARSAL: i64 = -1;

const X: Key = Key(1);

/// What a task saw of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Called,
    Done,
    Failed,
    Panicked,
    /// Its values panicked when they were dropped before its end.
    Broke,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) run: i64,
    pub(crate) node: usize,
    pub(crate) what: What,
    pub(crate) at: Instant,
}

thread_local! {
    static WITNESS: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

/// All that was seen on this thread since the last time.
pub(crate) fn take_witness() -> Vec<Seen> {
    WITNESS.with(|witness| witness.take())
}

fn see(run: i64, node: usize, what: What) {
    if run != REHEARSAL {
        WITNESS.with(|witness| witness.borrow_mut().push(Seen { run, node, what, at: clock::now() }));
    }
}

/// How a node comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Well,
    Fails,
    /// The store says no; a computation has no store and fails by itself.
    Upstream,
    /// What the store has is of another type than expected, which is a mistake although a store tells it. A computation fails by itself.
    WrongType,
    Panics,
    /// Before anything was awaited.
    PanicsAtOnce,
    /// Ends well, but a read that is dropped before its end panics.
    Brittle,
}

choices! {
    enum Fates -> Fate {
        "well" => Fate::Well,
        "fails" => Fate::Fails,
        "upstream" => Fate::Upstream,
        "wrong_type" => Fate::WrongType,
        "panics" => Fate::Panics,
        "panics_at_once" => Fate::PanicsAtOnce,
        "brittle" => Fate::Brittle,
    }
}

impl Fate {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fate::Well => "well",
            Fate::Fails => "fails",
            Fate::Upstream => "upstream",
            Fate::WrongType => "wrong_type",
            Fate::Panics => "panics",
            Fate::PanicsAtOnce => "panics_at_once",
            Fate::Brittle => "brittle",
        }
    }

    pub(crate) fn ends_well(self) -> bool {
        matches!(self, Fate::Well | Fate::Brittle)
    }
}

/// What both kinds of task are made of.
struct Script {
    node: usize,
    fate: Fate,
}

impl Script {
    fn fate(&self, run: i64) -> Fate {
        if run == REHEARSAL { Fate::Well } else { self.fate }
    }

    fn end(&self, run: i64, inputs: &[RowSet]) -> Result<RowSet, TaskError> {
        match self.fate(run) {
            Fate::Well | Fate::Brittle => {
                see(run, self.node, What::Done);
                Ok(rows(self.node, inputs))
            }
            Fate::Fails | Fate::Upstream | Fate::WrongType => {
                see(run, self.node, What::Failed);
                Err(TaskError::new(codes::INJECTED_FAILURE, "as the script says"))
            }
            Fate::Panics | Fate::PanicsAtOnce => self.panic(run),
        }
    }

    fn panic(&self, run: i64) -> ! {
        see(run, self.node, What::Panicked);
        panic!("{SCRIPTED} node {}", self.node)
    }
}

/// Rows that differ when a node was given other rows than it should have been, or in another order.
pub(crate) fn rows(node: usize, inputs: &[RowSet]) -> RowSet {
    let number = node as i64;
    let Some((first, rest)) = inputs.split_first() else {
        return RowSet::new(rankd_column::Batch::new((0..1 + number % 4).map(|at| number * 10 + at).collect()));
    };
    let all = rest.iter().fold(first.clone(), |rows, more| rows.concat(more, Stop::default()).unwrap());
    let cell = |row| match all.batch().value(X, row) {
        Value::Int(x) => x.wrapping_mul(31).wrapping_add(number),
        _ => number,
    };
    let column = Column::Int(Cells::full((0..all.batch().len()).map(cell).collect()));
    all.with(X, Arc::new(column)).take(6)
}

/// A value that must not be dropped before the end.
struct Brittle {
    run: i64,
    node: usize,
    whole: bool,
}

impl Drop for Brittle {
    fn drop(&mut self) {
        if !self.whole {
            see(self.run, self.node, What::Broke);
            panic!("{SCRIPTED} node {} was dropped", self.node);
        }
    }
}

params! {
    struct ReadParams {
        /// Its position in the plan
        number: Count = 0,
        /// How long the store takes
        #[range(0..)]
        latency_ms: i64 = 0,
        /// How often it gives the loop back without having to
        yields: Count = 0,
        /// How it ends
        fate: Fates = "well",
        /// More rows
        b: Option<Input>,
        /// More rows
        c: Option<Input>,
        /// More rows
        d: Option<Input>,
    }
}

params! {
    struct WorkParams {
        /// Its position in the plan
        number: Count = 0,
        /// How it ends
        fate: Fates = "well",
        /// More rows
        b: Option<Input>,
        /// More rows
        c: Option<Input>,
        /// More rows
        d: Option<Input>,
    }
}

struct Read {
    script: Script,
    latency_ms: i64,
    /// How often it gives the loop back without having to.
    yields: usize,
}

impl Make for Read {
    type Params = ReadParams;

    fn make(params: ReadParams, _: &LinkContext<'_>) -> Read {
        let ReadParams { number: node, latency_ms, yields, fate, b, c, d } = params;
        look_at_inputs([b, c, d]);
        Read { script: Script { node, fate }, latency_ms, yields }
    }
}

/// A parameter that was not given is absent, and one that was is where it was put.
fn look_at_inputs(given: [Option<usize>; 3]) {
    assert!(given.into_iter().flatten().all(|at| at <= 3), "{given:?}");
}

impl Fetch for Read {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let (run, script) = (cx.user_id()?, &self.script);
        see(run, script.node, What::Called);
        let fate = script.fate(run);
        if fate == Fate::PanicsAtOnce {
            script.panic(run);
        }
        let mut value = Brittle { run, node: script.node, whole: fate != Fate::Brittle };
        for _ in 0..self.yields {
            tokio::task::yield_now().await;
        }
        let latency_ms = if run == REHEARSAL { 0 } else { self.latency_ms };
        let prefix = match fate {
            Fate::Upstream => DOWN,
            Fate::WrongType => OF_ANOTHER_TYPE,
            Fate::Well | Fate::Fails | Fate::Panics | Fate::PanicsAtOnce | Fate::Brittle => "up",
        };
        if let Err(error) = cx.keyed(KeyedEndpoint(0)).hash_all(Keys::Numbered { prefix, ids: &[latency_ms] }).await {
            see(run, script.node, What::Failed);
            return Err(error);
        }
        value.whole = true;
        script.end(run, inputs)
    }
}

struct Work {
    script: Script,
}

impl Make for Work {
    type Params = WorkParams;

    fn make(params: WorkParams, _: &LinkContext<'_>) -> Work {
        let WorkParams { number: node, fate, b, c, d } = params;
        look_at_inputs([b, c, d]);
        Work { script: Script { node, fate } }
    }
}

impl Compute for Work {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let Some(Value::Int(run)) = cx.values.params.first() else { panic!("a request without its number") };
        see(*run, self.script.node, What::Called);
        let inputs: Vec<RowSet> = inputs.iter().cloned().collect();
        self.script.end(*run, &inputs)
    }
}

params! {
    struct AskParams {
        /// Its position in the plan
        number: Count = 0,
        /// How it ends
        fate: Fates = "well",
        /// How many rows it wants
        count: Count,
        /// Which nodes it asks for more
        from: Reserves,
    }
}

/// Works on the rows that it has, and asks for more while there are too few.
struct Ask {
    script: Script,
    count: usize,
    reserves: usize,
}

impl Make for Ask {
    type Params = AskParams;

    fn make(params: AskParams, _: &LinkContext<'_>) -> Ask {
        let AskParams { number: node, fate, count, from } = params;
        Ask { script: Script { node, fate }, count, reserves: from }
    }
}

impl Compute for Ask {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let Some(Value::Int(run)) = cx.values.params.first() else { panic!("a request without its number") };
        see(*run, self.script.node, What::Called);
        let inputs: Vec<RowSet> = inputs.iter().cloned().collect();
        assert!(inputs.len() <= 1 + self.reserves, "{} inputs", inputs.len());
        let rows = self.script.end(*run, &inputs)?;
        if rows.len() < self.count {
            cx.wants(self.count);
        }
        Ok(rows)
    }
}

const DOWN: &str = "down";
const OF_ANOTHER_TYPE: &str = "other";

/// A store that takes as long as the id it is asked for says.
pub(crate) struct ScriptedStore;

impl Open for ScriptedStore {
    fn open(&self) -> Opened {
        Opened::keyed(ScriptedStore)
    }

    fn name(&self) -> &str {
        "store"
    }
}

impl Keyed for ScriptedStore {
    fn read<'a>(&'a self, step: ReadBatch<'a>) -> Answer<'a> {
        Box::pin(async move {
            let Keys::Numbered { prefix, ids } = step.keys else { unreachable!("the script has numbered keys") };
            let latency_ms = ids[0].unsigned_abs();
            if latency_ms > 0 {
                clock::sleep(Duration::from_millis(latency_ms)).await;
            }
            if prefix == DOWN {
                return Err(StoreError::Unavailable("as the script says".into()));
            }
            if prefix == OF_ANOTHER_TYPE {
                return Err(StoreError::WrongType { key: "as the script says".into() });
            }
            let mut replies = Replies::default();
            replies.push_item(Some(b"12345"));
            replies.end_reply();
            Ok(replies)
        })
    }
}

/// What a reply of the store weighs.
pub(crate) const REPLY_BYTES: u64 = 5;

/// The node-valued parameters, in order.
pub(crate) const MORE_INPUTS: [&str; 3] = ["b", "c", "d"];

const fn contract(inputs: Inputs, params: &'static [Param]) -> Contract {
    let rows = match inputs {
        Inputs::None => RowEffect::Source,
        Inputs::One | Inputs::Optional | Inputs::Several => RowEffect::Appended,
    };
    Contract { inputs, rows, reads: &[], writes: Writes::Named(&["x"], &[]), params, cost: Cost::Unknown }
}

static READ_FIRST: Contract = contract(Inputs::None, ReadParams::PARAMS);
static READ_NEXT: Contract = contract(Inputs::One, ReadParams::PARAMS);
static WORK_FIRST: Contract = contract(Inputs::None, WorkParams::PARAMS);
static WORK_NEXT: Contract = contract(Inputs::One, WorkParams::PARAMS);
static ASK: Contract = contract(Inputs::One, AskParams::PARAMS);

/// The op of a node, by whether it reads and whether it has inputs.
pub(crate) fn op(reads: bool, inputs: usize) -> &'static str {
    match (reads, inputs) {
        (true, 0) => "read_first",
        (true, _) => "read_next",
        (false, 0) => "work_first",
        (false, _) => "work_next",
    }
}

pub(crate) static DEFINITIONS: [Definition; 5] = [
    Definition::of::<Ask, _>("ask", "", &ASK),
    Definition::of::<Read, _>("read_first", "", &READ_FIRST),
    Definition::of::<Read, _>("read_next", "", &READ_NEXT),
    Definition::of::<Work, _>("work_first", "", &WORK_FIRST),
    Definition::of::<Work, _>("work_next", "", &WORK_NEXT),
];
