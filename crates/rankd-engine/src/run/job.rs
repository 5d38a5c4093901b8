//! A node in flight: how it is called, how its result comes back, and what becomes of one that comes too late.

use crate::clock::{self, Instant};
use crate::cost::Stopwatch;
use crate::error::TaskError;
use crate::expand_passes::PassReport;
use crate::link::Linked;
use crate::place::Policy;
use crate::pool::{Job, Worker};
use crate::request::Request;
use crate::stats::Stats;
use crate::store::Stores;
use crate::task::{AnyFetch, ComputeContext, FetchContext, Fetching, InputRows, Tally, Task};
use crate::trace::Where;
use futures_util::task::AtomicWaker;
use rankd_column::RowSet;
use rankd_column::expr::Scratch;
use rankd_plan::plan::NodeIx;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// A step that has come to its end, alone or as the last of a chain.
pub(crate) struct StepResult {
    pub(crate) step: NodeIx,
    pub(crate) result: Result<RowSet, TaskError>,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) on: Where,
    pub(crate) tally: Tally,
    /// What a fused step did, for the trace.
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
    pub(crate) report: Option<PassReport>,
}

impl StepResult {
    /// How long the whole of it took.
    pub(crate) fn took_ns(&self) -> u64 {
        clock::nanos_between(self.before.first().map_or(self.started, |link| link.started), self.ended)
    }
}

/// Where pool jobs leave their results for the run that sent them. Closed when the run has answered.
pub(crate) struct Results {
    inbox: Mutex<Inbox>,
    pub(crate) waker: AtomicWaker,
    /// Set when nobody waits any more; running jobs look at it.
    pub(crate) stop: AtomicBool,
    /// How long the job waited for a thread that waited least, of those that have begun; the largest number before the first.
    least_wait_ns: AtomicU64,
}

impl Default for Results {
    fn default() -> Results {
        Results {
            inbox: Mutex::default(),
            waker: AtomicWaker::new(),
            stop: AtomicBool::new(false),
            least_wait_ns: AtomicU64::new(u64::MAX),
        }
    }
}

#[derive(Default)]
struct Inbox {
    finished: Vec<StepResult>,
    closed: bool,
}

impl Results {
    /// Leaves a result; false when the run is over.
    pub(crate) fn deliver(&self, finished: StepResult) -> bool {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.closed {
            return false;
        }
        inbox.finished.push(finished);
        drop(inbox);
        self.waker.wake();
        true
    }

    /// A job has begun after so long.
    fn note_wait(&self, wait_ns: u64) {
        self.least_wait_ns.fetch_min(wait_ns, Ordering::Relaxed);
    }

    /// How long the job waited that waited least; nothing while none has begun.
    pub(crate) fn least_wait_ns(&self) -> Option<u64> {
        Some(self.least_wait_ns.load(Ordering::Relaxed)).filter(|wait_ns| *wait_ns != u64::MAX)
    }

    /// Takes what is there, in order of arrival.
    pub(crate) fn collect(&self, into: &mut VecDeque<StepResult>) {
        into.extend(self.inbox.lock().unwrap_or_else(PoisonError::into_inner).finished.drain(..));
    }

    /// Ends the delivery. What lay here uncollected came too late, too.
    pub(crate) fn close(&self, stats: &Stats) {
        self.stop.store(true, Ordering::Relaxed);
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.closed = true;
        for finished in inbox.finished.drain(..) {
            stats.count_late(finished.took_ns());
        }
    }
}

/// How far the job of a chain has come, for the loop that watches the time.
#[derive(Default)]
pub(crate) struct JobProgress(Mutex<BegunSteps>);

/// What a job has begun so far.
#[derive(Clone, Default)]
pub(crate) struct BegunSteps {
    pub(crate) worker: u16,
    /// Each step with its beginning.
    pub(crate) steps: Vec<(NodeIx, Instant)>,
}

impl JobProgress {
    fn begin(&self, worker: u16, step: NodeIx, since: Instant) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.worker = worker;
        begun.steps.push((step, since));
    }

    /// The step that it is at, and since when; nothing while the job has not begun.
    pub(crate) fn current(&self) -> Option<(NodeIx, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).steps.last().copied()
    }

    pub(crate) fn snapshot(&self) -> BegunSteps {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Computations for the pool: a step, or a chain of steps from it on. Owns all it needs and delivers to the results, or counts as late.
pub(crate) struct JobSpec {
    pub(crate) plan: Arc<Linked>,
    pub(crate) first: NodeIx,
    pub(crate) inputs: Vec<RowSet>,
    pub(crate) submitted: Instant,
    pub(crate) policy: Policy,
    /// Whether the run walks the plan with nodes fused.
    pub(crate) fused: bool,
    /// The request's: no step of a chain begins after it, whether the loop has noticed it or not.
    pub(crate) deadline: Option<Instant>,
    pub(crate) request: Arc<Request>,
    pub(crate) results: Arc<Results>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) job_progress: Option<Arc<JobProgress>>,
}

impl JobSpec {
    pub(crate) fn into_job(self) -> Job {
        Box::new(move |worker: Worker| {
            let (results, stats) = (self.results.clone(), self.stats.clone());
            let finished = self.run(worker);
            let took_ns = finished.took_ns();
            if !results.deliver(finished) {
                stats.count_late(took_ns);
            }
        })
    }

    fn run(self, worker: Worker) -> StepResult {
        let steps = self.plan.steps(self.fused);
        let threshold_ns = self.policy.inline_threshold_ns as f32;
        let (mut at, mut before) = (self.first, Vec::new());
        let mut slots: Vec<Option<RowSet>> = self.inputs.into_iter().map(Some).collect();
        let mut started = worker.started.unwrap_or_else(clock::now);
        self.results.note_wait(clock::nanos_between(self.submitted, started));
        loop {
            if let Some(job_progress) = &self.job_progress {
                job_progress.begin(worker.number, at, started);
            }
            let step = steps.step(at);
            let rows_in = slots.iter().flatten().map(RowSet::len).sum();
            let stopwatch = match worker.started {
                None => step.cost.stopwatch(rows_in, threshold_ns),
                // In virtual time nobody is interrupted.
                Some(_) => Stopwatch::of_exact_clock(),
            };
            let too_late = self.deadline.is_some_and(|deadline| started > deadline);
            let result = match too_late || self.results.stop.load(Ordering::Relaxed) {
                true => Err(TaskError::stopped()),
                false => {
                    // Later steps of a chain read one slot, perhaps more than once.
                    let count = step.inputs.len();
                    let mut inputs = match slots.len() == count {
                        true => InputRows::owned(&mut slots),
                        false => InputRows::same(&mut slots, count),
                    };
                    compute(&step.task, &mut inputs, &self.request, &self.results.stop, None, &self.stats)
                }
            };
            let ended = clock::now();
            let took = stopwatch.stop(clock::nanos_between(started, ended), false);
            let report = (self.request.trace && step.pass.is_some()).then(|| PassReport {
                rows_out: SCRATCH.with_borrow(|scratch| scratch.rows_out().to_vec()),
                failed: result.as_ref().err().and_then(|error| error.node),
            });
            let next = step.next.filter(|_| self.policy.chaining);
            match (result, next) {
                (Ok(rows), Some(next)) => {
                    step.cost.learn(rows_in, took, threshold_ns);
                    let kept = self.request.trace.then(|| rows.clone());
                    before.push(ChainLink { step: at, started, ended, rows: kept, report });
                    slots.clear();
                    slots.push(Some(rows));
                    (at, started) = (next, ended);
                }
                (result, _) => {
                    if result.is_ok() {
                        step.cost.learn(rows_in, took, threshold_ns);
                    }
                    let on = Where::Pool(worker.number);
                    return StepResult {
                        step: at,
                        result,
                        started,
                        ended,
                        on,
                        tally: Tally::default(),
                        report,
                        before,
                    };
                }
            }
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Calls `run` with this thread's working space, for as many computations as it likes. A panic goes no further.
pub(crate) fn with_scratch<T>(stats: &Stats, run: impl FnOnce(&mut Scratch) -> T) -> Result<T, TaskError> {
    let call = || {
        SCRATCH.with(|scratch| {
            let mut scratch = scratch.try_borrow_mut().map_err(|_| bug("a computation inside a computation"))?;
            Ok(run(&mut scratch))
        })
    };
    contain(stats, call).unwrap_or_else(|error| {
        // What a panic left in the buffers is nobody's any more.
        SCRATCH.with(|scratch| scratch.take());
        Err(error)
    })
}

/// Calls a computation here and now. A panic is an error of this node and nothing else.
pub(crate) fn compute(
    task: &Task,
    inputs: &mut InputRows<'_>,
    request: &Request,
    stop: &AtomicBool,
    deadline: Option<Instant>,
    stats: &Stats,
) -> Result<RowSet, TaskError> {
    let Task::Compute(task) = task else {
        return Err(bug("a task that waits was called like one that computes"));
    };
    with_scratch(stats, |scratch| {
        task.run(inputs, &mut ComputeContext { params: &request.params, scratch, stop, deadline })
    })?
}

/// Runs a fetch to its end, on the thread whose stores it uses. A panic is an error of this node and nothing else.
pub(crate) async fn fetch(
    task: Arc<dyn AnyFetch>,
    step: NodeIx,
    inputs: Vec<RowSet>,
    request: Arc<Request>,
    stores: &Stores,
    stats: Arc<Stats>,
    on: Where,
) -> StepResult {
    let (started, tally) = (clock::now(), Tally::default());
    let cx = FetchContext { request: &request, stores, tally: &tally, stats: &stats };
    let result = match contain(&stats, || task.start(&inputs, &cx)) {
        Ok(inner) => Contained { inner: Some(inner), stats: &stats }.await,
        Err(error) => Err(error),
    };
    StepResult { step, result, started, ended: clock::now(), on, tally, report: None, before: Vec::new() }
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

pub(crate) fn bug(message: &str) -> TaskError {
    TaskError::bug(message)
}

/// A panic in a task's code, as an error.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> TaskError {
    let what = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    TaskError::bug(format!("the task panicked: {}", what.unwrap_or("?")))
}
