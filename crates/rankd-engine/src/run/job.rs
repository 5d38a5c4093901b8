//! A step on the CPU pool, or a chain of steps: what a job needs, how far it has come, and how its result gets back to the run.

use crate::call::{self, ChainLink, StepResult};
use crate::clock::{self, Instant};
use crate::cost::Stopwatch;
use crate::error::TaskError;
use crate::link::Linked;
use crate::place::{Policy, Way, chains_into};
use crate::pool::{Job, Worker};
use crate::request::Request;
use crate::stats::Stats;
use crate::task::{InputRows, RowCounts, Tally};
use crate::trace::Where;
use futures_util::task::AtomicWaker;
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where pool jobs leave their results for the run that sent them. Closed when the run has answered.
pub(crate) struct Results {
    inbox: Mutex<Inbox>,
    pub(crate) waker: AtomicWaker,
    /// Set when nothing waits any more; running jobs look at it.
    pub(crate) stop: AtomicBool,
    /// The shortest time that a job has waited for a thread, of those that have begun; the largest number before the first.
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

    /// A job has begun after waiting this long.
    fn note_wait(&self, wait_ns: u64) {
        self.least_wait_ns.fetch_min(wait_ns, Ordering::Relaxed);
    }

    /// The shortest time that a job has waited for a thread; nothing while none has begun.
    pub(crate) fn least_wait_ns(&self) -> Option<u64> {
        Some(self.least_wait_ns.load(Ordering::Relaxed)).filter(|wait_ns| *wait_ns != u64::MAX)
    }

    /// Takes what is there, in order of arrival.
    pub(crate) fn collect(&self, into: &mut VecDeque<StepResult>) {
        into.extend(self.inbox.lock().unwrap_or_else(PoisonError::into_inner).finished.drain(..));
    }

    /// Takes no more. What was not collected came too late as well.
    pub(crate) fn close(&self, plan: &Linked, stats: &Stats) {
        self.stop.store(true, Ordering::Relaxed);
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.closed = true;
        for finished in inbox.finished.drain(..) {
            stats.count_late(&plan.name, finished.took_ns());
        }
    }
}

/// How far the job of a chain has come, for the loop that keeps the time.
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

    /// The current step and when it began; nothing while the job has not begun.
    pub(crate) fn current(&self) -> Option<(NodeIx, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).steps.last().copied()
    }

    pub(crate) fn snapshot(&self) -> BegunSteps {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A step for the pool, or a chain of steps that begins with it. Owns all it needs. A chain stops at the first failure and brings it
/// back: what it means is for the run to decide.
pub(crate) struct JobSpec {
    pub(crate) plan: Arc<Linked>,
    pub(crate) first: NodeIx,
    pub(crate) inputs: Vec<RowSet>,
    pub(crate) submitted: Instant,
    pub(crate) policy: Policy,
    pub(crate) way: Way,
    /// The request's: no step of a chain begins after it, whether the loop has noticed it or not.
    pub(crate) deadline: Option<Instant>,
    /// When the step hands over what it has, where it is anytime.
    pub(crate) until: Option<Instant>,
    /// How many bytes the rows of the run may take. What is between the steps of a chain is looked at here, and nowhere else.
    pub(crate) bytes_max: usize,
    pub(crate) request: Arc<Request>,
    pub(crate) results: Arc<Results>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) job_progress: Option<Arc<JobProgress>>,
    /// Stops this job alone, where it has a fallback; it is set as well when the run is over.
    pub(crate) stop: Option<Arc<AtomicBool>>,
}

impl JobSpec {
    pub(crate) fn into_job(self) -> Job {
        Box::new(move |worker: Worker| {
            let (plan, results, stats) = (self.plan.clone(), self.results.clone(), self.stats.clone());
            let finished = self.run(worker);
            let took_ns = finished.took_ns();
            if !results.deliver(finished) {
                stats.count_late(&plan.name, took_ns);
            }
        })
    }

    fn run(self, worker: Worker) -> StepResult {
        let steps = self.plan.steps(self.way);
        let threshold_ns = self.policy.inline_threshold_ns as f32;
        let (mut at, mut before) = (self.first, Vec::new());
        let mut slots: Vec<Option<RowSet>> = self.inputs.into_iter().map(Some).collect();
        let stop = self.stop.as_deref().unwrap_or(&self.results.stop);
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
                // In virtual time nothing is interrupted.
                Some(_) => Stopwatch::of_exact_clock(),
            };
            let too_late = self.deadline.is_some_and(|deadline| started > deadline);
            let (result, counts) = match too_late || stop.load(Ordering::Relaxed) {
                true => (Err(TaskError::stopped()), RowCounts::default()),
                false => {
                    // Later steps of a chain read one slot, perhaps more than once.
                    let mut inputs = match before.is_empty() {
                        true => InputRows::owned(&mut slots),
                        false => InputRows::same(&mut slots, step.inputs.len()),
                    };
                    call::compute(step, &mut inputs, &self.request, stop, (None, self.until), &self.stats)
                }
            };
            let result = match result {
                Ok(rows) if takes_more_than(&rows, self.bytes_max) => Err(TaskError::too_large(self.bytes_max)),
                result => result,
            };
            let ended = clock::now();
            let took = stopwatch.stop(clock::nanos_between(started, ended), false);
            let report = (self.request.trace && step.pass.is_some())
                .then(|| call::report_of_pass(result.as_ref().err().and_then(|error| error.node)));
            // A step that gets its recorded end is not called.
            let next = chains_into(step, &self.policy).filter(|next| self.request.recorded_failure(*next).is_none());
            match (result, next) {
                (Ok(rows), Some(next)) => {
                    step.cost.learn(rows_in, took, threshold_ns);
                    let kept = self.request.trace.then(|| rows.clone());
                    before.push(ChainLink { step: at, started, ended, rows: kept, counts, report });
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
                        counts,
                        report,
                        before,
                    };
                }
            }
        }
    }
}

/// Whether rows take more than so many bytes. Most of them can be seen not to without looking at their columns.
fn takes_more_than(rows: &RowSet, bytes_max: usize) -> bool {
    let batch = rows.batch();
    batch.made_bytes() > bytes_max && batch.made_parts().map(|(_, bytes)| bytes).sum::<usize>() > bytes_max
}
