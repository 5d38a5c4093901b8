//! What a task may use besides its inputs: when it is made, when it computes, and when it reads.

use crate::clock::{self, Instant};
use crate::cursor::Served;
use crate::degraded::StandIn;
use crate::recorded::Reads;
use crate::request::Request;
use crate::seed::Seed;
use crate::stats::Stats;
use crate::store::table::TableNeed;
use crate::store::{Stores, TableVersions};
use crate::task::{DecodePool, PoolTrip};
use rankd_column::expr::{RunValues, Scratch};
use rankd_column::stop::{Picking, Stop, TimeLimit};
use rankd_column::{IdTexts, Key, Type};
use rankd_plan::Registry;
use rankd_plan::model::ModelVersions;
use rankd_plan::plan::{Node, Substitute};
use rankd_plan::registry::Status;
use rankd_plan::signature::typed::Params;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a task may use when a plan is linked, besides its own parameters.
pub struct LinkContext<'a> {
    pub(crate) node: &'a Node,
    /// All nodes of the plan.
    pub(crate) nodes: &'a [Node],
    pub registry: &'a Registry,
    /// What tasks say they need of tables.
    pub(crate) table_needs: &'a RefCell<Vec<TableNeed>>,
    /// Set for a node whose task draws random numbers.
    pub(crate) draws: &'a Cell<bool>,
    /// The keys that are needed of its rows; `None` for all.
    pub(crate) needed: Option<Arc<[Key]>>,
    /// Whether the run's rows are followed.
    pub(crate) follows_rows: bool,
}

impl LinkContext<'_> {
    /// The node's own parameters, which must be those that its task's contract declares.
    pub fn params<P: Params>(&self) -> P {
        P::read(&self.node.args)
    }

    /// What people call the nodes that give the rows of its inputs: their labels, or else their ids.
    pub fn input_labels(&self) -> Vec<&str> {
        let inputs = self.node.inputs.iter().filter_map(|input| self.nodes.get(*input as usize));
        inputs.map(|node| node.label.as_deref().unwrap_or(&node.id)).collect()
    }

    /// The keys of an input row that a task which makes several rows of one puts into each of them: those that its plan names and, where rows are
    /// followed, the one that says where each came from.
    pub fn carried(&self, keys: Option<Vec<Key>>) -> Option<Vec<Key>> {
        let mut keys = keys;
        if self.follows_rows {
            keys.get_or_insert_default().push(Key::ORIGIN);
        }
        keys
    }

    /// Whether the rows of its input stand in for its own where it fails.
    pub fn falls_back_on_input(&self) -> bool {
        self.node.fallback == Some(Substitute::FirstInput)
    }

    /// The key of this name, if the registry has it.
    pub fn key(&self, name: &str) -> Option<Key> {
        self.registry.keys.named(name).map(Key)
    }

    /// What the registry calls a key, and its type.
    pub fn field(&self, key: Key) -> Field {
        let entry = self.registry.key(key);
        Field { key, name: entry.name.as_str().into(), type_of: entry.type_of }
    }

    /// The kind of an endpoint, by its position in the registry.
    pub fn endpoint_kind(&self, endpoint: u32) -> &str {
        &self.registry.endpoints.get(endpoint).kind
    }

    /// Every key that a stored row can bring along: all that may be written and are not blocked.
    pub fn stored_fields(&self) -> Vec<Field> {
        let usable = |key: &Key| {
            let entry = self.registry.key(*key);
            entry.allow_write && entry.status != Status::Blocked
        };
        (0..self.registry.keys.list().len() as u32).map(Key).filter(usable).map(|key| self.field(key)).collect()
    }
}

/// A key as stores know it.
#[derive(Clone, Debug)]
pub struct Field {
    pub key: Key,
    pub name: Arc<str>,
    pub type_of: Type,
}

/// What a computation may use besides its inputs.
pub struct ComputeContext<'a> {
    /// What is the same on all rows of the run.
    pub values: RunValues<'a>,
    pub scratch: &'a mut Scratch,
    pub(crate) id_texts: Option<&'a Arc<IdTexts>>,
    pub(crate) tables: Option<&'a Arc<TableVersions>>,
    pub(crate) models: Option<&'a Arc<ModelVersions>>,
    pub(crate) seed: Option<&'a Seed>,
    served: Option<&'a Served>,
    pub(crate) stop: Stop<'a>,
    /// For a task that can hand over what it has: when it must, and after how many picks.
    until: Stop<'a>,
    picks_max: Option<usize>,
    /// Where the plan's dials stand.
    pub(crate) dials: &'a [i64],
    /// Whether anybody wants to know what is counted.
    pub(crate) is_traced: bool,
    pub(crate) counts: RowCounts,
}

/// What a computation says about its rows, besides how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that were put where a rule is against it.
    pub relaxed: usize,
    /// Rows that lack what the task works by, such as a score, a group or a vector.
    pub lacking: usize,
    /// Rows of inputs that are only looked at: they come in, and are not meant to come out.
    pub aside: usize,
    /// How many rows it wants, where it has fewer.
    pub wanted: Option<usize>,
    /// Whether there are rows for another page.
    pub has_more: bool,
    /// What an anytime task had when it had to hand that over; nothing where it came to its end.
    pub handed_over: Option<StandIn>,
}

/// When a computation stops: once a flag is set, and when the node's time is up, where the thread that runs the node is the one that
/// would watch the time.
pub(crate) fn stop(flag: &AtomicBool, deadline: Option<Instant>) -> Stop<'_> {
    Stop::when(flag).or_at(deadline.map(time_limit))
}

fn time_limit(at: Instant) -> TimeLimit {
    TimeLimit { at: at.into_std(), has_passed: |at| clock::now().into_std() >= at }
}

impl<'a> ComputeContext<'a> {
    pub(crate) fn new(request: &'a Request, scratch: &'a mut Scratch, stop: Stop<'a>) -> ComputeContext<'a> {
        ComputeContext {
            values: request.values(),
            scratch,
            id_texts: request.id_texts.as_ref(),
            tables: request.tables.as_ref(),
            models: request.models.as_ref(),
            seed: request.seed.as_ref(),
            served: request.cursor.as_ref().and_then(|cursor| cursor.as_deref().ok()),
            stop,
            until: Stop::default(),
            picks_max: None,
            dials: &request.dials,
            is_traced: request.trace,
            counts: RowCounts::default(),
        }
    }

    /// The same, for a step that hands over what it has at this moment, if there is one, or after so many picks.
    pub(crate) fn with_end(self, until: Option<Instant>, picks_max: Option<usize>) -> ComputeContext<'a> {
        let until = until.map_or_else(Stop::default, |until| Stop::default().or_at(Some(time_limit(until))));
        ComputeContext { until, picks_max, ..self }
    }

    /// For a task that is [anytime](super::Compute::is_anytime): says also when it must hand over what it has picked so far. It then calls
    /// [`ComputeContext::has_picked`].
    pub fn picking(&self) -> Picking<'a> {
        Picking { stop: self.stop, until: self.until, picks_max: self.picks_max }
    }

    /// Says how many rows of those that it wanted an anytime task has picked. Where they are fewer, its time was up, and what follows
    /// them is as it came in.
    pub fn has_picked(&mut self, picked: usize, wanted: usize) {
        self.counts.handed_over = (picked < wanted).then_some(StandIn::Prefix(picked));
    }

    /// The same for an anytime task that works its rows off one after the other, and whose fallback is its input
    /// ([`LinkContext::falls_back_on_input`]): says how many of them are finished. The others are as they came in.
    pub fn has_finished(&mut self, finished: usize, rows: usize) {
        self.counts.handed_over = (finished < rows).then_some(StandIn::Finished(finished));
    }

    /// Says that it wants so many rows and has fewer. Where it has inputs that it may ask for and that are not there yet, it is called again with the
    /// next of them; otherwise its rows stand, and the answer says that they are short.
    pub fn wants(&mut self, rows: usize) {
        self.counts.wanted = Some(rows);
    }

    /// What the user was served on earlier pages, where the plan pages.
    pub fn served(&self) -> Option<&'a Served> {
        self.served
    }

    /// Says that there are rows for another page, for the task that pages: the answer has a cursor then.
    pub fn has_more(&mut self) {
        self.counts.has_more = true;
    }

    /// Says how many rows were put against a rule, and how many lack what the task works by. Counted only where somebody wants to
    /// know.
    pub fn count(&mut self, relaxed_and_lacking: impl FnOnce() -> (usize, usize)) {
        if self.is_traced {
            (self.counts.relaxed, self.counts.lacking) = relaxed_and_lacking();
        }
    }

    /// Says how many rows of its inputs the task only looks at, so that they do not count as dropped.
    pub fn count_aside(&mut self, rows: usize) {
        self.counts.aside = rows;
    }

    /// Says whether nobody waits for the result any more. Kernels take it and look by themselves; a loop of a task's own looks between
    /// chunks of work.
    pub fn stop(&self) -> Stop<'a> {
        self.stop
    }

    /// Where the plan's dials stand, for the parameters that are some.
    pub fn dials(&self) -> &'a [i64] {
        self.dials
    }

    /// For tasks that are about time; others have no use for it.
    pub fn now(&self) -> Instant {
        clock::now()
    }
}

/// What a fetch may use besides its inputs. What it can ask of an endpoint is in the files of the
/// protocols.
pub struct FetchContext<'a> {
    pub request: &'a Request,
    pub(crate) stores: &'a Stores,
    pub(crate) tally: &'a Tally,
    pub(crate) stats: &'a Arc<Stats>,
    /// Where what is not cheap may be decoded; nothing where the thread has nothing else to do.
    pub(crate) decode_pool: Option<DecodePool<'a>>,
}

impl FetchContext<'_> {
    /// Where the plan's dials stand, for the parameters that are some.
    pub fn dials(&self) -> &[i64] {
        &self.request.dials
    }

    /// Says how many rows lack what the task works by. Counted only where somebody wants to know.
    pub fn count_lacking(&self, lacking: impl FnOnce() -> usize) {
        if self.request.trace {
            self.tally.lacking.set(lacking());
        }
    }

    /// Waits, unless the run is a replay: nothing that it reads comes later.
    pub async fn sleep(&self, duration: Duration) {
        if !matches!(self.request.reads, Reads::Replayed(_)) {
            clock::sleep(duration).await;
        }
    }
}

/// What a fetch has read.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub commands: Cell<u64>,
    pub bytes: Cell<u64>,
    pub skipped: Cell<u64>,
    /// Rows that lack what the task works by.
    pub lacking: Cell<usize>,
    /// When something that it read was decoded on the pool.
    pub pool_trip: Cell<Option<PoolTrip>>,
    /// What is known of a read that failed and is not for callers.
    pub detail: RefCell<Option<Box<str>>>,
}
