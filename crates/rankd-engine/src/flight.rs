//! A node in flight: how it is called, how its result comes back, and what becomes of one that comes too late.

use crate::clock::{self, Instant};
use crate::error::{ErrorKind, TaskError};
use crate::link::Linked;
use crate::pool::{Job, Worker};
use crate::request::Request;
use crate::stats::Stats;
use crate::store::Stores;
use crate::task::{ComputeContext, FetchContext, Fetching, Tally, Task};
use crate::trace::Where;
use futures_util::task::AtomicWaker;
use rankd_column::RowSet;
use rankd_column::expr::Scratch;
use rankd_plan::plan::NodeIx;
use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// A node that has come to its end.
pub(crate) struct Landed {
    pub(crate) node: NodeIx,
    pub(crate) result: Result<RowSet, TaskError>,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) on: Where,
    pub(crate) tally: Tally,
}

/// Where pool jobs leave their results for the run that sent them. Closed when the run has answered.
#[derive(Default)]
pub(crate) struct Mailbox {
    inbox: Mutex<Inbox>,
    pub(crate) waker: AtomicWaker,
    /// Set when nobody waits any more; running jobs look at it.
    pub(crate) stop: AtomicBool,
}

#[derive(Default)]
struct Inbox {
    landed: Vec<Landed>,
    closed: bool,
}

impl Mailbox {
    /// Leaves a result; false when the run is over.
    pub(crate) fn deliver(&self, landed: Landed) -> bool {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.closed {
            return false;
        }
        inbox.landed.push(landed);
        drop(inbox);
        self.waker.wake();
        true
    }

    pub(crate) fn collect(&self, into: &mut Vec<Landed>) {
        into.append(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner).landed);
    }

    /// Ends the delivery. What lay here uncollected came too late, too.
    pub(crate) fn close(&self, stats: &Stats) {
        self.stop.store(true, Ordering::Relaxed);
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.closed = true;
        for landed in inbox.landed.drain(..) {
            stats.count_late(clock::nanos_between(landed.started, landed.ended));
        }
    }
}

/// A computation as a job for the pool. It owns all it needs and reports to the mailbox, or as late.
pub(crate) fn job(
    plan: Arc<Linked>,
    node: NodeIx,
    inputs: Vec<RowSet>,
    request: Arc<Request>,
    mailbox: Arc<Mailbox>,
    stats: Arc<Stats>,
) -> Job {
    Box::new(move |worker: Worker| {
        let started = worker.started.unwrap_or_else(clock::now);
        let result = if mailbox.stop.load(Ordering::Relaxed) {
            Err(TaskError::stopped())
        } else {
            compute(&plan, node, &inputs, &request, &mailbox.stop, None, &stats)
        };
        drop(inputs);
        let ended = clock::now();
        let landed = Landed { node, result, started, ended, on: Where::Pool(worker.number), tally: Tally::default() };
        if !mailbox.deliver(landed) {
            stats.count_late(clock::nanos_between(started, ended));
        }
    })
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Calls a computation here and now. A panic is an error of this node and nothing else.
pub(crate) fn compute(
    plan: &Linked,
    node: NodeIx,
    inputs: &[RowSet],
    request: &Request,
    stop: &AtomicBool,
    deadline: Option<Instant>,
    stats: &Stats,
) -> Result<RowSet, TaskError> {
    let Task::Compute(task) = &plan.node(node).task else {
        return Err(bug("a task that waits was called like one that computes"));
    };
    let call = || {
        SCRATCH.with(|scratch| {
            let mut scratch = scratch.try_borrow_mut().map_err(|_| bug("a computation inside a computation"))?;
            let started = clock::now();
            let scratch = &mut *scratch;
            task.run(inputs, &mut ComputeContext { params: &request.params, scratch, stop, deadline, started })
        })
    };
    contain(stats, call).unwrap_or_else(|error| {
        // What a panic left in the buffers is nobody's any more.
        SCRATCH.with(|scratch| scratch.take());
        Err(error)
    })
}

/// Runs a fetch to its end, on the thread whose stores it uses. A panic is an error of this node and nothing else.
pub(crate) async fn fetch(
    plan: Arc<Linked>,
    node: NodeIx,
    inputs: Vec<RowSet>,
    request: Arc<Request>,
    stores: &Stores,
    stats: Arc<Stats>,
    on: Where,
) -> Landed {
    let (started, tally) = (clock::now(), Tally::default());
    let result = match &plan.node(node).task {
        Task::Fetch(task) => {
            let cx = FetchContext { request: &request, stores, tally: &tally, stats: &stats };
            match contain(&stats, || task.start(&inputs, &cx)) {
                Ok(inner) => Contained { inner: Some(inner), stats: &stats }.await,
                Err(error) => Err(error),
            }
        }
        Task::Compute(_) => Err(bug("a task that computes was called like one that waits")),
    };
    Landed { node, result, started, ended: clock::now(), on, tally }
}

/// A fetch under way, which may also be dropped before its end: the task's values are dropped with it, and that may panic, too.
struct Contained<'a> {
    inner: Option<Fetching<'a>>,
    stats: &'a Stats,
}

impl Future for Contained<'_> {
    type Output = Result<RowSet, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Contained { inner, stats } = &mut *self;
        let Some(inner) = inner else { return Poll::Ready(Err(bug("a fetch that is gone was waited for"))) };
        contain(stats, || inner.as_mut().poll(cx)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    }
}

impl Drop for Contained<'_> {
    fn drop(&mut self) {
        let inner = self.inner.take();
        // Nobody waits for it any more; that there was a panic has been counted.
        let _ = contain(self.stats, || drop(inner));
    }
}

/// Calls a task's code. A panic in it is counted and goes no further.
fn contain<T>(stats: &Stats, call: impl FnOnce() -> T) -> Result<T, TaskError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        stats.count_panic();
        panicked(&*panic)
    })
}

fn bug(message: &str) -> TaskError {
    TaskError { kind: ErrorKind::Bug, ..TaskError::failed("E901", message) }
}

fn panicked(panic: &(dyn Any + Send)) -> TaskError {
    let what = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    TaskError {
        kind: ErrorKind::Bug,
        ..TaskError::failed("E901", format!("the task panicked: {}", what.unwrap_or("?")))
    }
}
