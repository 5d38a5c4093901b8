//! What a task is to the engine. Which of the two traits it implements decides where it runs.

use crate::clock::{self, Instant};
use crate::error::TaskError;
use crate::request::Request;
use crate::stats::Stats;
use crate::store::{ReadBatch, Replies, Stores};
use rankd_column::expr::pass::Part;
use rankd_column::expr::{Program, Scratch, Stop};
use rankd_column::{Key, RowSet, Type, Value};
use rankd_plan::plan::{Arg, ColumnData, Node, NodeIx};
use rankd_plan::registry::Status;
use rankd_plan::signature::Signature;
use rankd_plan::{Registry, limits};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Index;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Computes: a plain function of its inputs that cannot wait. Runs on the CPU pool, or on the loop where that is cheaper.
pub trait Compute: Send + Sync {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError>;

    /// The same as a step of a pass over the rows of its one input, if it is one: then it may be done together with its
    /// neighbours in the plan.
    fn as_part(&self) -> Option<Part> {
        None
    }
}

/// The rows that a computation works on, where they lie: nothing is copied to look at them.
pub struct InputRows<'a> {
    slots: &'a mut [Option<RowSet>],
    /// Where each input lies.
    of: &'a [NodeIx],
    /// A bit for each input that nobody else will look at.
    last: u64,
}

/// Where inputs lie that lie side by side.
static SIDE_BY_SIDE: [NodeIx; limits::INPUTS_MAX] = {
    let mut all = [0; limits::INPUTS_MAX];
    let mut at = 0;
    while at < all.len() {
        all[at] = at as NodeIx;
        at += 1;
    }
    all
};

static FIRST: [NodeIx; limits::INPUTS_MAX] = [0; limits::INPUTS_MAX];

impl<'a> InputRows<'a> {
    #[inline]
    pub(crate) fn new(slots: &'a mut [Option<RowSet>], of: &'a [NodeIx], last: u64) -> InputRows<'a> {
        InputRows { slots, of, last }
    }

    /// Inputs that are this reader's alone. The checks allow no more than there are places.
    pub(crate) fn owned(slots: &'a mut [Option<RowSet>]) -> InputRows<'a> {
        let of = &SIDE_BY_SIDE[..slots.len().min(SIDE_BY_SIDE.len())];
        InputRows { slots, of, last: u64::MAX }
    }

    /// The rows in the first slot, as so many inputs.
    pub(crate) fn same(slots: &'a mut [Option<RowSet>], count: usize) -> InputRows<'a> {
        InputRows { slots, of: &FIRST[..count.min(FIRST.len())], last: u64::from(count == 1) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &RowSet> {
        self.of.iter().filter_map(|at| self.slots[*at as usize].as_ref())
    }

    /// Gives an input away: moved when nobody else looks at it, else shared. It must not be looked at again.
    #[inline]
    pub fn take(&mut self, at: usize) -> RowSet {
        match self.last & (1 << at) {
            0 => self[at].clone(),
            _ => self.slots[self.of[at] as usize].take().unwrap_or_else(|| not_there(at)),
        }
    }
}

impl Index<usize> for InputRows<'_> {
    type Output = RowSet;

    #[inline]
    fn index(&self, at: usize) -> &RowSet {
        self.slots[self.of[at] as usize].as_ref().unwrap_or_else(|| not_there(at))
    }
}

#[cold]
#[expect(
    clippy::panic,
    reason = "a task that reads what it gave away, or has no such input, is caught by its first test"
)]
fn not_there(at: usize) -> ! {
    panic!("the rows of input {at} were read when they were not there")
}

/// Reads or waits: runs on the event loop and gives the loop back while it waits.
pub trait Fetch: Send + Sync {
    fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> impl Future<Output = Result<RowSet, TaskError>>;
}

/// The rows of a fetch that is under way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<RowSet, TaskError>> + 'a>>;

/// `Fetch` for tasks of unlike types.
pub trait AnyFetch: Send + Sync {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a>;
}

impl<T: Fetch> AnyFetch for T {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a> {
        Box::pin(self.run(inputs, cx))
    }
}

/// A task with its parameters, ready to run any number of times.
#[derive(Clone)]
pub enum Task {
    Compute(Arc<dyn Compute>),
    Fetch(Arc<dyn AnyFetch>),
}

/// A task's declaration and how to make it from a node's parameters.
#[derive(Clone, Copy)]
pub struct Definition {
    pub signature: Signature,
    pub make: fn(&Args<'_>) -> Task,
}

/// What a computation may use besides its inputs.
pub struct ComputeContext<'a> {
    /// By position in the parameter registry.
    pub params: &'a [Value],
    pub scratch: &'a mut Scratch,
    pub(crate) stop: &'a AtomicBool,
    /// When the node's time is up, where the thread that runs the node is the one that would watch the time.
    pub(crate) deadline: Option<Instant>,
}

impl<'a> ComputeContext<'a> {
    /// Whether nobody waits for the result any more. Look between chunks of work.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// The same, for evaluations, which look by themselves.
    pub fn stop(&self) -> Stop<'a> {
        Stop(Some(self.stop))
    }

    /// For tasks that are about time; others have no use for it.
    pub fn now(&self) -> Instant {
        clock::now()
    }
}

/// What a fetch may use besides its inputs.
pub struct FetchContext<'a> {
    pub request: &'a Request,
    pub(crate) stores: &'a Stores,
    pub(crate) tally: &'a Tally,
    pub(crate) stats: &'a Stats,
}

impl FetchContext<'_> {
    /// Reads one step from an endpoint.
    pub async fn read(&self, endpoint: u32, step: ReadBatch<'_>) -> Result<Replies, TaskError> {
        let Some((name, store)) = self.stores.get(endpoint) else {
            return Err(TaskError::bug("an endpoint without a store"));
        };
        self.tally.commands.set(self.tally.commands.get() + step.ids.len() as u64);
        self.stats.count_commands(endpoint, step.ids.len() as u64);
        let replies = store.read(step).await.map_err(|error| {
            let error = TaskError::store(name, &error);
            self.tally.detail.replace(error.detail.clone());
            error
        })?;
        self.tally.bytes.set(self.tally.bytes.get() + replies.byte_count() as u64);
        Ok(replies)
    }

    pub async fn sleep(&self, duration: Duration) {
        clock::sleep(duration).await;
    }

    /// Counts stored values that are not what their place takes.
    pub fn count_skipped(&self, count: u64) {
        self.tally.skipped.set(self.tally.skipped.get() + count);
    }
}

/// What a fetch has read.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub commands: Cell<u64>,
    pub bytes: Cell<u64>,
    pub skipped: Cell<u64>,
    /// What is known of a read that failed and is not for callers.
    pub detail: RefCell<Option<Box<str>>>,
}

/// A node's parameters, read once when the plan is linked.
///
/// The checks have seen every value, so asking for what the declaration says cannot fail; asking for anything else is a bug in
/// the task and panics.
pub struct Args<'a> {
    pub node: &'a Node,
    pub registry: &'a Registry,
}

#[expect(clippy::panic, reason = "a task that asks for what it did not declare is caught by its first test")]
fn undeclared(name: &str) -> ! {
    panic!("the task's declaration has no such parameter: {name}")
}

impl Args<'_> {
    pub fn int(&self, name: &str) -> i64 {
        match self.node.arg(name) {
            Arg::Int(value) => *value,
            _ => undeclared(name),
        }
    }

    /// An int whose declared range has no negative numbers.
    pub fn count(&self, name: &str) -> usize {
        usize::try_from(self.int(name)).unwrap_or(usize::MAX)
    }

    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.int(name).unsigned_abs())
    }

    pub fn flag(&self, name: &str) -> bool {
        match self.node.arg(name) {
            Arg::Bool(value) => *value,
            _ => undeclared(name),
        }
    }

    pub fn text(&self, name: &str) -> Arc<str> {
        match self.node.arg(name) {
            Arg::Text(value) => value.clone(),
            _ => undeclared(name),
        }
    }

    pub fn endpoint(&self, name: &str) -> u32 {
        match self.node.arg(name) {
            Arg::Endpoint(value) => *value,
            _ => undeclared(name),
        }
    }

    pub fn key(&self, name: &str) -> Key {
        match self.node.arg(name) {
            Arg::Key(value) => *value,
            _ => undeclared(name),
        }
    }

    pub fn keys(&self, name: &str) -> &[Key] {
        match self.node.arg(name) {
            Arg::Keys(value) => value,
            _ => undeclared(name),
        }
    }

    pub fn program(&self, name: &str) -> Arc<Program> {
        match self.node.arg(name) {
            Arg::Expr(value) | Arg::Pred(value) => value.clone(),
            _ => undeclared(name),
        }
    }

    pub fn columns(&self, name: &str) -> &[(Key, ColumnData)] {
        match self.node.arg(name) {
            Arg::Columns(value) => value,
            Arg::Absent => &[],
            _ => undeclared(name),
        }
    }

    /// The position among the inputs of a node-valued parameter.
    pub fn input(&self, name: &str) -> usize {
        match self.node.arg(name) {
            Arg::Node(value) => *value,
            _ => undeclared(name),
        }
    }

    /// What the registry calls a key, and its type.
    pub fn field(&self, key: Key) -> Field {
        let entry = self.registry.key(key);
        Field { key, name: entry.name.as_str().into(), type_of: entry.type_of }
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
