//! The scripted tasks: what each does and when is in its parameters, and each tells a witness what became of it.
//!
//! A request whose user is [`REHEARSAL`] meets no latency and no fault: that is how the rows to expect are made.

use crate::quiet::SCRIPTED;
use rankd_column::{Cells, Column, Key, RowSet, Value};
use rankd_engine::clock::{self, Instant};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::{Answer, Open, ReadBatch, Replies, Store, StoreError, Verb};
use rankd_engine::task::{Args, Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, Task};
use rankd_plan::plan::Arg;
use rankd_plan::signature::*;
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
    Panics,
    /// Before anything was awaited.
    PanicsAtOnce,
    /// Ends well, but a read that is dropped before its end panics.
    Brittle,
}

impl Fate {
    pub(crate) const NAMES: &'static [&'static str] =
        &["well", "fails", "upstream", "panics", "panics_at_once", "brittle"];
    const ALL: [Fate; 6] = [Fate::Well, Fate::Fails, Fate::Upstream, Fate::Panics, Fate::PanicsAtOnce, Fate::Brittle];

    pub(crate) fn name(self) -> &'static str {
        Fate::NAMES[self as usize]
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
    fn make(args: &Args<'_>) -> Script {
        let name = args.text("fate");
        let at = Fate::NAMES.iter().position(|known| **known == *name).unwrap();
        Script { node: args.count("number"), fate: Fate::ALL[at] }
    }

    fn fate(&self, run: i64) -> Fate {
        if run == REHEARSAL { Fate::Well } else { self.fate }
    }

    fn end(&self, run: i64, inputs: &[RowSet]) -> Result<RowSet, TaskError> {
        match self.fate(run) {
            Fate::Well | Fate::Brittle => {
                see(run, self.node, What::Done);
                Ok(rows(self.node, inputs))
            }
            Fate::Fails | Fate::Upstream => {
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
    let all = rest.iter().fold(first.clone(), |rows, more| rows.concat(more));
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

struct Read {
    script: Script,
    latency_ms: i64,
    /// How often it gives the loop back without having to.
    yields: usize,
}

impl Fetch for Read {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let (run, script) = (cx.request.user_id, &self.script);
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
        let prefix = if fate == Fate::Upstream { DOWN } else { "up" };
        if let Err(error) = cx.read(0, ReadBatch { verb: Verb::HashAll, prefix, ids: &[latency_ms] }).await {
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

impl Compute for Work {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let Some(Value::Int(run)) = cx.params.first() else { panic!("a request without its number") };
        see(*run, self.script.node, What::Called);
        let inputs: Vec<RowSet> = inputs.iter().cloned().collect();
        self.script.end(*run, &inputs)
    }
}

const DOWN: &str = "down";

/// A store that takes as long as the id it is asked for says.
pub(crate) struct ScriptedStore;

impl Open for ScriptedStore {
    fn open(&self) -> Box<dyn Store> {
        Box::new(ScriptedStore)
    }
}

impl Store for ScriptedStore {
    fn read<'a>(&'a self, step: ReadBatch<'a>) -> Answer<'a> {
        Box::pin(async move {
            let latency_ms = step.ids[0].unsigned_abs();
            if latency_ms > 0 {
                clock::sleep(Duration::from_millis(latency_ms)).await;
            }
            if step.prefix == DOWN {
                return Err(StoreError::Unavailable("as the script says".into()));
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

const fn int(name: &'static str) -> Param {
    Param { name, kind: ParamKind::Int { min: 0, max: 1 << 40 }, need: Need::Default(Literal::Int(0)), doc: "" }
}

const fn node(name: &'static str) -> Param {
    Param { name, kind: ParamKind::Node, need: Need::Optional, doc: "" }
}

const FATE: Param =
    Param { name: "fate", kind: ParamKind::Choice(Fate::NAMES), need: Need::Default(Literal::Text("well")), doc: "" };

const READ: &[Param] = &[int("number"), int("latency_ms"), int("yields"), FATE, node("b"), node("c"), node("d")];
const WORK: &[Param] = &[int("number"), FATE, node("b"), node("c"), node("d")];

/// The node-valued parameters, in order.
pub(crate) const MORE_INPUTS: [&str; 3] = ["b", "c", "d"];

const fn contract(inputs: Inputs, params: &'static [Param], runs: Runs) -> Contract {
    let rows = match inputs {
        Inputs::None => RowEffect::Source,
        Inputs::One => RowEffect::Appended,
    };
    Contract { inputs, rows, reads: &[], writes: Writes::Named(&["x"]), params, runs, cost: Cost::Unknown }
}

static READ_FIRST: Contract = contract(Inputs::None, READ, Runs::Loop);
static READ_NEXT: Contract = contract(Inputs::One, READ, Runs::Loop);
static WORK_FIRST: Contract = contract(Inputs::None, WORK, Runs::Cpu);
static WORK_NEXT: Contract = contract(Inputs::One, WORK, Runs::Cpu);

fn make_read(args: &Args<'_>) -> Task {
    let latency_ms = args.int("latency_ms");
    Task::Fetch(Arc::new(Read { script: Script::make(args), latency_ms, yields: args.count("yields") }))
}

fn make_work(args: &Args<'_>) -> Task {
    // An argument that was not given is absent, and one that was is where it was put.
    for name in MORE_INPUTS {
        assert!(matches!(args.node.arg(name), Arg::Absent | Arg::Node(1..=3)));
    }
    Task::Compute(Arc::new(Work { script: Script::make(args) }))
}

const fn definition(op: &'static str, contract: &'static Contract, make: fn(&Args<'_>) -> Task) -> Definition {
    Definition { signature: Signature { op, summary: "", contract }, make }
}

/// The op of a node, by whether it reads and whether it has inputs.
pub(crate) fn op(reads: bool, inputs: usize) -> &'static str {
    match (reads, inputs) {
        (true, 0) => "read_first",
        (true, _) => "read_next",
        (false, 0) => "work_first",
        (false, _) => "work_next",
    }
}

pub(crate) static DEFINITIONS: [Definition; 4] = [
    definition("read_first", &READ_FIRST, make_read),
    definition("read_next", &READ_NEXT, make_read),
    definition("work_first", &WORK_FIRST, make_work),
    definition("work_next", &WORK_NEXT, make_work),
];
