//! How an answer came about: a record for each node, part of the result rather than a log beside it.

use crate::clock::{Instant, nanos_between};
use crate::link::Linked;
use crate::task::Tally;
use rankd_column::{Key, RowSet};
use rankd_plan::plan::NodeIx;

/// The thread that a node ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// The event loop.
    Loop,
    /// A thread of the CPU pool.
    Pool(u16),
    /// A thread of the two-pool scheduler's IO pool.
    Io(u16),
    /// The caller's own thread.
    Caller,
}

impl Where {
    pub fn name(self) -> String {
        match self {
            Where::Loop => "loop".into(),
            Where::Pool(number) => format!("cpu-{number}"),
            Where::Io(number) => format!("io-{number}"),
            Where::Caller => "caller".into(),
        }
    }
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Failed,
    /// The run answered before the node did.
    Abandoned,
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            End::Done => "done",
            End::Failed => "failed",
            End::Abandoned => "abandoned",
        }
    }
}

/// One node's record. Times are nanoseconds from the start of the run.
#[derive(Clone, Debug)]
pub struct NodeTrace {
    pub node: NodeIx,
    /// When the last of what it waited for was there.
    pub ready_ns: u64,
    /// When it began; for an abandoned node, when it was sent off.
    pub start_ns: u64,
    pub end_ns: u64,
    pub on: Where,
    pub end: End,
    pub rows_in: u64,
    pub rows_out: u64,
    pub commands: u64,
    pub bytes: u64,
    /// Stored values that were not what their place takes.
    pub skipped: u64,
    pub keys_in: Vec<Key>,
    pub keys_out: Vec<Key>,
    /// Whether the answer could not have come earlier without this node being faster.
    pub critical: bool,
}

impl NodeTrace {
    /// How long it waited for a thread of the pool; nothing for a node that never queued.
    pub fn queue_ns(&self) -> Option<u64> {
        matches!(self.on, Where::Pool(_) | Where::Io(_)).then(|| self.start_ns - self.ready_ns)
    }
}

/// The record of a run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which they were started.
    pub nodes: Vec<NodeTrace>,
    pub total_ns: u64,
}

/// Writes a trace while a run goes on. Off, it costs a test of a pointer.
pub(crate) struct Recorder {
    on: Option<Box<Recording>>,
}

struct Recording {
    began: Instant,
    trace: Trace,
    /// By node: when it became ready, and where its record is.
    ready: Vec<u64>,
    at: Vec<Option<usize>>,
}

impl Recorder {
    pub(crate) fn new(plan: &Linked, on: bool, began: Instant) -> Recorder {
        let nodes = plan.nodes.len();
        let recording = || Recording { began, trace: Trace::default(), ready: vec![0; nodes], at: vec![None; nodes] };
        Recorder { on: on.then(|| Box::new(recording())) }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    pub(crate) fn ready(&mut self, node: NodeIx, now: Instant) {
        if let Some(on) = &mut self.on {
            on.ready[node as usize] = nanos_between(on.began, now);
        }
    }

    pub(crate) fn started(&mut self, node: NodeIx, inputs: &[RowSet], on_thread: Where, now: Instant) {
        let Some(on) = &mut self.on else { return };
        let start_ns = nanos_between(on.began, now);
        on.at[node as usize] = Some(on.trace.nodes.len());
        on.trace.nodes.push(NodeTrace {
            node,
            ready_ns: on.ready[node as usize],
            start_ns,
            end_ns: start_ns,
            on: on_thread,
            end: End::Abandoned,
            rows_in: inputs.iter().map(|rows| rows.len() as u64).sum(),
            rows_out: 0,
            commands: 0,
            bytes: 0,
            skipped: 0,
            keys_in: keys(inputs),
            keys_out: Vec::new(),
            critical: false,
        });
    }

    pub(crate) fn ended(
        &mut self,
        node: NodeIx,
        rows: Option<&RowSet>,
        (started, ended): (Instant, Instant),
        on_thread: Where,
        tally: &Tally,
    ) {
        let Some(on) = &mut self.on else { return };
        let Some(record) = on.at[node as usize].map(|at| &mut on.trace.nodes[at]) else { return };
        record.start_ns = nanos_between(on.began, started).max(record.ready_ns);
        record.end_ns = nanos_between(on.began, ended).max(record.start_ns);
        record.on = on_thread;
        record.end = if rows.is_some() { End::Done } else { End::Failed };
        record.rows_out = rows.map_or(0, |rows| rows.len() as u64);
        record.commands = tally.commands.get();
        record.bytes = tally.bytes.get();
        record.skipped = tally.skipped.get();
        record.keys_out = rows.map(|rows| keys(std::slice::from_ref(rows))).unwrap_or_default();
    }

    pub(crate) fn finish(self, plan: &Linked, now: Instant) -> Option<Trace> {
        let Recording { began, mut trace, at, .. } = *self.on?;
        trace.total_ns = nanos_between(began, now);
        for record in trace.nodes.iter_mut().filter(|record| record.end == End::Abandoned) {
            record.end_ns = trace.total_ns;
        }
        mark_critical(plan, &mut trace, &at);
        Some(trace)
    }
}

/// From the node that ended last, back along the input that each node had to wait for longest.
fn mark_critical(plan: &Linked, trace: &mut Trace, at: &[Option<usize>]) {
    let mut next = (0..trace.nodes.len()).max_by_key(|record| trace.nodes[*record].end_ns);
    while let Some(record) = next {
        trace.nodes[record].critical = true;
        let inputs = &plan.node(trace.nodes[record].node).inputs;
        next = inputs.iter().filter_map(|input| at[*input as usize]).max_by_key(|record| trace.nodes[*record].end_ns);
    }
}

fn keys(inputs: &[RowSet]) -> Vec<Key> {
    let mut keys: Vec<Key> = inputs.iter().flat_map(|rows| rows.batch().columns()).map(|(key, _)| *key).collect();
    if !inputs.is_empty() {
        keys.push(Key::ID);
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
