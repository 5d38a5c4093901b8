//! How an answer came about: a record for each node, as part of the result and not as a log beside it.

use crate::clock::{Instant, nanos_between};
use crate::expand_passes::{PassReport, expand_passes};
use crate::link::Linked;
use crate::run::BegunSteps;
use crate::steps::Steps;
use crate::task::{RowCounts, Tally};
use rankd_column::{Key, RowSet};
use rankd_plan::plan::NodeIx;
use std::collections::VecDeque;
use std::sync::Arc;

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
    /// Its condition did not hold, so it did not run.
    Skipped,
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            End::Done => "done",
            End::Failed => "failed",
            End::Abandoned => "abandoned",
            End::Skipped => "skipped",
        }
    }
}

/// How a node came to run on the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The node whose end made it ready.
    pub parent: Option<NodeIx>,
    /// How many nodes had followed each other on the loop, this one included.
    pub depth: u32,
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
    /// For a computation that ran on the loop at once.
    pub inlined: Option<Inlined>,
    /// For a computation that went on in the job of this one.
    pub chained_after: Option<NodeIx>,
    /// For a node that was done in one pass with others: the last of them. Their records follow each other in time.
    pub fused_into: Option<NodeIx>,
    /// In such a pass: the node before it.
    pub fused_after: Option<NodeIx>,
    pub end: End,
    pub rows_in: u64,
    pub rows_out: u64,
    pub commands: u64,
    pub bytes: u64,
    /// Stored values that were not what their place takes.
    pub skipped: u64,
    /// What its task said about its rows.
    pub counts: RowCounts,
    /// Why a read failed, with the store's address.
    pub detail: Option<Box<str>>,
    pub keys_in: Arc<[Key]>,
    pub keys_out: Arc<[Key]>,
    /// Whether the answer could not have come earlier without this node being faster.
    pub critical: bool,
}

/// What became of rows on their way through a node, as [`NodeTrace::row_counts`] counts them.
pub const ROW_COUNTS: [&str; 3] = ["dropped", "relaxed", "lacking"];

impl NodeTrace {
    /// By the names of [`ROW_COUNTS`]: how many rows went in and did not come out, were put where a rule is against it, and lack what the
    /// task works by.
    pub fn row_counts(&self) -> [u64; ROW_COUNTS.len()] {
        let passed_on = self.rows_out + self.counts.aside as u64;
        let dropped = if self.end == End::Done { self.rows_in.saturating_sub(passed_on) } else { 0 };
        [dropped, self.counts.relaxed as u64, self.counts.lacking as u64]
    }

    /// Those of them that are not 0, with their names.
    pub fn noted_rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ROW_COUNTS.into_iter().zip(self.row_counts()).filter(|(_, count)| *count > 0)
    }

    /// How long it waited for a thread of the pool; nothing for a node that never queued.
    pub fn queue_ns(&self) -> Option<u64> {
        let follows = self.chained_after.is_some() || self.fused_after.is_some();
        let queued = matches!(self.on, Where::Pool(_) | Where::Io(_)) && !follows;
        queued.then(|| self.start_ns - self.ready_ns)
    }
}

/// The record of a run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which they were started.
    pub nodes: Vec<NodeTrace>,
    /// Each failure of a node that was settled, in that order. Also of a node that never started because it was too late.
    pub failures: Vec<NodeIx>,
    pub total_ns: u64,
}

/// Writes the trace of a run. Off, it costs a test of a pointer.
pub(crate) struct Recorder {
    on: Option<Box<Recording>>,
}

struct Recording {
    began: Instant,
    trace: Trace,
    /// By node: when it became ready and after which other, and where its record is.
    ready: Vec<(u64, Option<NodeIx>)>,
    at: Vec<Option<usize>>,
    /// The nodes that may be called again with more inputs: the record is that of the last call.
    asking: Vec<NodeIx>,
    /// By fused step: what its nodes did.
    reports: Vec<(NodeIx, PassReport)>,
    keys: KnownKeys,
}

/// The keys of the last few batches: many nodes hand on the batch that they were given.
#[derive(Default)]
struct KnownKeys {
    none: Arc<[Key]>,
    /// The rows are kept so that no other batch can get the same address.
    known: VecDeque<(RowSet, Arc<[Key]>)>,
}

impl KnownKeys {
    const KNOWN_MAX: usize = 4;

    fn of(&mut self, rows: &RowSet) -> Arc<[Key]> {
        let known = self.known.iter().find(|(known, _)| std::ptr::eq(known.batch(), rows.batch()));
        if let Some((_, keys)) = known {
            return keys.clone();
        }
        let columns = rows.batch().columns().iter().map(|(key, _)| *key);
        let keys: Arc<[Key]> = std::iter::once(Key::ID).chain(columns).collect();
        self.known.truncate(KnownKeys::KNOWN_MAX - 1);
        self.known.push_front((rows.clone(), keys.clone()));
        keys
    }

    /// The keys of all inputs together.
    fn of_all<'a>(&mut self, inputs: impl Iterator<Item = &'a RowSet>) -> Arc<[Key]> {
        let mut all = self.none.clone();
        for rows in inputs {
            let keys = self.of(rows);
            if all.is_empty() || all == keys {
                all = keys;
            } else {
                let mut both: Vec<Key> = all.iter().chain(keys.iter()).copied().collect();
                both.sort_unstable();
                both.dedup();
                all = both.into();
            }
        }
        all
    }
}

impl Recorder {
    pub(crate) fn new(plan: &Linked, on: bool, began: Instant) -> Recorder {
        let nodes = plan.nodes.len();
        let recording = || {
            let (ready, at) = (vec![(0, None); nodes], vec![None; nodes]);
            let trace = Trace { nodes: Vec::with_capacity(nodes), ..Trace::default() };
            let asking = (0..).zip(&plan.nodes).filter(|(_, node)| node.reserves > 0).map(|(at, _)| at).collect();
            Box::new(Recording { began, trace, ready, at, asking, reports: Vec::new(), keys: KnownKeys::default() })
        };
        Recorder { on: on.then(recording) }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    pub(crate) fn ready(&mut self, node: NodeIx, after: Option<NodeIx>, now: Instant) {
        if let Some(on) = &mut self.on {
            on.ready[node as usize] = (nanos_between(on.began, now), after);
        }
    }

    /// What a fused step knows of its nodes.
    pub(crate) fn pass_report(&mut self, step: NodeIx, report: PassReport) {
        if let Some(on) = &mut self.on {
            on.reports.push((step, report));
        }
    }

    /// A node that ran on the loop, `depth` nodes deep.
    pub(crate) fn inlined(&mut self, node: NodeIx, depth: u32) {
        let parent = self.on.as_ref().and_then(|on| on.ready[node as usize].1);
        self.note(node, |record| record.inlined = Some(Inlined { parent, depth }));
    }

    /// A node that went on where `after` ended, with its rows, as one input or several.
    pub(crate) fn chained<'a>(
        &mut self,
        node: NodeIx,
        after: NodeIx,
        inputs: impl IntoIterator<Item = &'a RowSet>,
        on_thread: Where,
        now: Instant,
    ) {
        self.ready(node, Some(after), now);
        self.started(node, inputs, on_thread, now);
        self.note(node, |record| record.chained_after = Some(after));
    }

    /// A chain that is running and will not be waited for: all steps that it has begun are done, except the last.
    pub(crate) fn abandoned(&mut self, begun: &BegunSteps) {
        let Some(began) = self.on.as_ref().map(|on| on.began) else { return };
        let on_thread = Where::Pool(begun.worker);
        for pair in begun.steps.windows(2) {
            let [(node, started), (next, ended)] = *pair else { continue };
            self.note(node, |record| {
                record.start_ns = nanos_between(began, started).max(record.ready_ns);
                record.end_ns = nanos_between(began, ended).max(record.start_ns);
                (record.on, record.end) = (on_thread, End::Done);
            });
            self.chained(next, node, [], on_thread, ended);
        }
    }

    fn note(&mut self, node: NodeIx, note: impl FnOnce(&mut NodeTrace)) {
        let Some(on) = &mut self.on else { return };
        if let Some(at) = on.at[node as usize] {
            note(&mut on.trace.nodes[at]);
        }
    }

    pub(crate) fn started<'a>(
        &mut self,
        node: NodeIx,
        inputs: impl IntoIterator<Item = &'a RowSet>,
        on_thread: Where,
        now: Instant,
    ) {
        let Some(on) = &mut self.on else { return };
        let start_ns = nanos_between(on.began, now);
        let mut rows_in = 0;
        let keys_in = on.keys.of_all(inputs.into_iter().inspect(|rows| rows_in += rows.len() as u64));
        let record = NodeTrace {
            node,
            ready_ns: on.ready[node as usize].0,
            start_ns,
            end_ns: start_ns,
            on: on_thread,
            inlined: None,
            chained_after: None,
            fused_into: None,
            fused_after: None,
            end: End::Abandoned,
            rows_in,
            rows_out: 0,
            commands: 0,
            bytes: 0,
            skipped: 0,
            counts: RowCounts::default(),
            detail: None,
            keys_in,
            keys_out: on.keys.none.clone(),
            critical: false,
        };
        match on.at[node as usize].filter(|_| on.asking.contains(&node)) {
            Some(at) => on.trace.nodes[at] = record,
            None => {
                on.at[node as usize] = Some(on.trace.nodes.len());
                on.trace.nodes.push(record);
            }
        }
    }

    pub(crate) fn ended(
        &mut self,
        node: NodeIx,
        rows: Option<&RowSet>,
        (started, ended): (Instant, Instant),
        on_thread: Where,
        tally: &Tally,
        counts: RowCounts,
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
        // A computation counts by itself, a read by its tally.
        record.counts = RowCounts { lacking: counts.lacking.max(tally.lacking.get()), ..counts };
        record.detail = tally.detail.borrow().clone();
        if let Some(rows) = rows {
            record.keys_out = on.keys.of(rows);
        }
    }

    /// A node whose condition does not hold.
    pub(crate) fn skipped(&mut self, node: NodeIx, now: Instant) {
        self.started(node, [], Where::Caller, now);
        self.note(node, |record| record.end = End::Skipped);
    }

    /// A failure that was settled.
    pub(crate) fn failure(&mut self, node: NodeIx) {
        if let Some(on) = &mut self.on {
            on.trace.failures.push(node);
        }
    }

    /// A node panicked where it is not known when it began.
    pub(crate) fn ended_now(&mut self, node: NodeIx, now: Instant) {
        let Some(now_ns) = self.on.as_ref().map(|on| nanos_between(on.began, now)) else { return };
        self.note(node, |record| {
            record.end_ns = now_ns.max(record.start_ns);
            record.end = End::Failed;
        });
    }

    /// The trace of a run that is over.
    pub(crate) fn take(&mut self, plan: &Linked, steps: &Steps, now: Instant) -> Option<Trace> {
        let Recording { began, mut trace, mut at, reports, .. } = *self.on.take()?;
        trace.total_ns = nanos_between(began, now);
        for record in trace.nodes.iter_mut().filter(|record| record.end == End::Abandoned) {
            record.end_ns = trace.total_ns;
        }
        trace.nodes = expand_passes(trace.nodes, steps, &reports);
        trace.nodes.iter().enumerate().for_each(|(record, node)| at[node.node as usize] = Some(record));
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
