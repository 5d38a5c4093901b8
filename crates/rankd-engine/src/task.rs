//! What a task is to the engine. Which of the two traits it implements decides where it runs.

use crate::clock::{self, Instant};
use crate::error::{ErrorKind, TaskError};
use crate::request::Request;
use crate::stats::Stats;
use crate::store::{Replies, Step, Stores};
use rankd_column::expr::{Program, Scratch, Stop};
use rankd_column::{Key, RowSet, Type, Value};
use rankd_plan::Registry;
use rankd_plan::plan::{Arg, ColumnData, Node};
use rankd_plan::registry::Status;
use rankd_plan::signature::Signature;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Computes: a plain function of its inputs that cannot wait. Runs on the CPU pool, or on the loop where that is cheaper.
pub trait Compute: Send + Sync {
    fn run(&self, inputs: &[RowSet], cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError>;
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
pub enum Task {
    Compute(Box<dyn Compute>),
    Fetch(Box<dyn AnyFetch>),
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
    /// When the node's time is up, for the scheduler whose caller's thread runs the node and so has no timer beside it.
    pub(crate) deadline: Option<Instant>,
    pub(crate) started: Instant,
}

impl<'a> ComputeContext<'a> {
    /// Whether nobody waits for the result any more. Look between chunks of work.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// The same, for evaluations, which look by themselves.
    pub fn stop(&self) -> Stop<'a> {
        Stop(Some(self.stop))
    }

    /// How long the node has been running.
    pub fn elapsed(&self) -> Duration {
        clock::now().saturating_duration_since(self.started)
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
    pub async fn read(&self, endpoint: u32, step: Step<'_>) -> Result<Replies, TaskError> {
        let Some(store) = self.stores.get(endpoint) else {
            return Err(TaskError { kind: ErrorKind::Bug, ..TaskError::failed("E901", "an endpoint without a store") });
        };
        self.tally.commands.set(self.tally.commands.get() + step.ids.len() as u64);
        self.stats.count_commands(endpoint, step.ids.len() as u64);
        let replies = store.read(step).await?;
        self.tally.bytes.set(self.tally.bytes.get() + replies.byte_count() as u64);
        Ok(replies)
    }

    pub async fn sleep(&self, duration: Duration) {
        clock::sleep(duration).await;
    }

    /// Counts stored values that are not what their place takes.
    pub fn skipped(&self, count: u64) {
        self.tally.skipped.set(self.tally.skipped.get() + count);
    }
}

/// What a fetch has read.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub commands: Cell<u64>,
    pub bytes: Cell<u64>,
    pub skipped: Cell<u64>,
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
