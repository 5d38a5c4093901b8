//! How a task's code is called, on whichever thread: panics are contained and the result says when and where it ran.
//!
//! Knows nothing of runs: what becomes of a result is decided by the scheduler that asked for it and by [`crate::settle`].

use crate::clock::{self, Instant};
use crate::error::TaskError;
use crate::expand_passes::PassReport;
use crate::request::Request;
use crate::stats::Stats;
use crate::steps::Step;
use crate::store::Stores;
use crate::task::{
    self, AnyFetch, Compute, ComputeContext, DecodePool, FetchContext, Fetching, InputRows, RowCounts, Tally, Task,
};
use crate::trace::Where;
use rankd_column::RowSet;
use rankd_column::expr::Scratch;
use rankd_column::stop::Stop;
use rankd_plan::plan::NodeIx;
use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

/// A step that has ended, alone or as the last of a chain.
pub(crate) struct StepResult {
    pub(crate) step: NodeIx,
    pub(crate) result: Result<RowSet, TaskError>,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) on: Where,
    pub(crate) tally: Tally,
    pub(crate) counts: RowCounts,
    /// What the nodes of a fused step did, for the trace.
    pub(crate) report: Option<PassReport>,
    /// The steps of the chain that came before it, in order.
    pub(crate) before: Vec<ChainLink>,
}

/// A step of a chain that is done.
pub(crate) struct ChainLink {
    pub(crate) step: NodeIx,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    /// Only for the trace.
    pub(crate) rows: Option<RowSet>,
    pub(crate) counts: RowCounts,
    pub(crate) report: Option<PassReport>,
}

impl StepResult {
    /// How long the whole of it took.
    pub(crate) fn took_ns(&self) -> u64 {
        clock::nanos_between(self.before.first().map_or(self.started, |link| link.started), self.ended)
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// What the pass that this thread ran last did, for the trace. `failed` is the node that failed.
pub(crate) fn report_of_pass(failed: Option<NodeIx>) -> PassReport {
    SCRATCH.with_borrow(|scratch| PassReport::new(scratch, failed))
}

/// Calls `run` with this thread's scratch space, for any number of computations. A panic goes no further.
pub(crate) fn with_scratch<T>(stats: &Stats, run: impl FnOnce(&mut Scratch) -> T) -> Result<T, TaskError> {
    let call = || {
        SCRATCH.with(|scratch| {
            let mut scratch =
                scratch.try_borrow_mut().map_err(|_| TaskError::bug("a computation inside a computation"))?;
            Ok(run(&mut scratch))
        })
    };
    contain(stats, call).unwrap_or_else(|error| {
        // A panic may have left anything in the buffers.
        SCRATCH.with(|scratch| scratch.take());
        Err(error)
    })
}

/// Calls a step that computes, where its inputs lie.
#[inline(always)]
pub(crate) fn run(
    step: &Step,
    task: &dyn Compute,
    inputs: &mut InputRows<'_>,
    cx: &mut ComputeContext<'_>,
) -> Result<RowSet, TaskError> {
    if step.gathers && inputs[0].is_narrow() {
        return run_gathered(step, task, inputs, cx);
    }
    task.run(inputs, cx)
}

/// The same with the few rows that are looked at gathered first. Others may look at them, too, so they stay as they are.
#[cold]
#[inline(never)]
fn run_gathered(
    step: &Step,
    task: &dyn Compute,
    inputs: &InputRows<'_>,
    cx: &mut ComputeContext<'_>,
) -> Result<RowSet, TaskError> {
    let mut slots: Vec<Option<RowSet>> = inputs.iter().cloned().map(Some).collect();
    if let Some(gathered) = step.gather(&inputs[0], cx.stop())? {
        slots[0] = Some(gathered);
    }
    task.run(&mut InputRows::owned(&mut slots), cx)
}

/// Calls a computation here and now. A panic is an error of this node and nothing else. The limits are when it must be done and, where
/// it is anytime, when it hands over what it has.
pub(crate) fn compute(
    step: &Step,
    inputs: &mut InputRows<'_>,
    request: &Request,
    stop: &AtomicBool,
    (deadline, until): (Option<Instant>, Option<Instant>),
    stats: &Stats,
) -> (Result<RowSet, TaskError>, RowCounts) {
    let Task::Compute(task) = &step.task else {
        let error = TaskError::bug("a task that waits was called like one that computes");
        return (Err(error), RowCounts::default());
    };
    let called = with_scratch(stats, |scratch| {
        let picks_max = step.nodes.last().and_then(|node| request.recorded_picks(*node));
        let mut cx = ComputeContext::new(request, scratch, task::stop(stop, deadline)).with_end(until, picks_max);
        (run(step, &**task, inputs, &mut cx), cx.counts)
    });
    called.unwrap_or_else(|panic| (Err(panic), RowCounts::default()))
}

/// Gathers the rows that a read is for, where that is due.
pub(crate) fn gather(step: &Step, inputs: &mut [RowSet]) {
    // Nothing stops it.
    if let Some(Ok(Some(gathered))) = inputs.first().map(|rows| step.gather(rows, Stop::default())) {
        inputs[0] = gathered;
    }
}

/// Runs a fetch to its end, on the thread whose stores it uses. A panic is an error of this node and nothing else.
#[expect(clippy::too_many_arguments, reason = "a step and where it runs, spelled out")]
pub(crate) async fn fetch(
    task: Arc<dyn AnyFetch>,
    step: NodeIx,
    inputs: Vec<RowSet>,
    request: Arc<Request>,
    stores: &Stores,
    stats: Arc<Stats>,
    on: Where,
    decode_pool: Option<DecodePool<'_>>,
) -> StepResult {
    let (started, tally) = (clock::now(), Tally::default());
    let cx = FetchContext { request: &request, stores, tally: &tally, stats: &stats, decode_pool };
    let result = match contain(&stats, || task.start(&inputs, &cx)) {
        Ok(inner) => Contained { inner: Some(inner), stats: &stats }.await,
        Err(error) => Err(error),
    };
    let (ended, counts) = (clock::now(), RowCounts::default());
    StepResult { step, result, started, ended, on, tally, counts, report: None, before: Vec::new() }
}

/// A fetch in progress. It may be dropped before its end; the task's values are then dropped with it, which may panic as well.
struct Contained<'a> {
    inner: Option<Fetching<'a>>,
    stats: &'a Stats,
}

impl Future for Contained<'_> {
    type Output = Result<RowSet, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Contained { inner, stats } = &mut *self;
        let Some(inner) = inner else { return Poll::Ready(Err(TaskError::bug("a fetch was polled after its end"))) };
        contain(stats, || inner.as_mut().poll(cx)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    }
}

impl Drop for Contained<'_> {
    fn drop(&mut self) {
        let inner = self.inner.take();
        // Nothing waits for it any more; a panic has been counted.
        let _ = contain(self.stats, || drop(inner));
    }
}

/// Calls a task's code. A panic in it is counted and goes no further.
pub(crate) fn contain<T>(stats: &Stats, call: impl FnOnce() -> T) -> Result<T, TaskError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        stats.count_panic();
        panicked(&*panic)
    })
}

/// A panic in the code of a task, as an error.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> TaskError {
    let what = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    TaskError::bug(format!("the task panicked: {}", what.unwrap_or("?")))
}
