//! One request on its event loop: what is ready is started, what happens next is awaited, until there is a verdict.
//!
//! All state of a run is touched by the loop's thread only. The walk is a loop over a closed set of events; nothing here
//! recurses and nothing here waits except for the next event. Invariants: a node starts once, after all its inputs; nothing
//! starts after the verdict; when time wins, the answer goes out now and what still finishes is counted as late. What runs on
//! the loop itself, and for how long, is in [`crate::run::turn`].

pub(crate) mod job;
pub(crate) mod timeouts;
pub(crate) mod turn;
mod usage;

use crate::clock::{self, Instant};
use crate::codes::ErrorKind;
use crate::deadline::{Deadline, Limits};
use crate::error::{RunError, TaskError};
use crate::link::Linked;
use crate::loop_context::{BorrowedBuffers, LoopContext, RunBuffers};
use crate::place::{Place, place};
use crate::request::Request;
use crate::run::job::{JobProgress, JobSpec, Results, StepResult};
use crate::run::turn::Paused;
use crate::steps::{Step, Steps};
use crate::task::Task;
use crate::trace::{Recorder, Trace, Where};
use futures_util::stream::StreamExt;
use futures_util::task::AtomicWaker;
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
pub use usage::Cpu;
use usage::Usage;

/// What came of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The rows of each output, in the plan's order.
    pub result: Result<Vec<RowSet>, Box<RunError>>,
    pub trace: Option<Trace>,
    pub took: Duration,
    pub cpu: Cpu,
}

/// Ends a run from outside: the caller has gone, or the process stops.
#[derive(Default)]
pub struct Cancel {
    pub(crate) requested: AtomicBool,
    waker: AtomicWaker,
}

impl Cancel {
    pub fn cancel(&self) {
        self.requested.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// Runs a plan for a request. Dropping the future is a cancel, too.
pub async fn run(
    plan: Arc<Linked>,
    request: Arc<Request>,
    context: Rc<LoopContext>,
    limits: Limits,
    cancel: Arc<Cancel>,
) -> Outcome {
    let began = clock::now();
    let mut borrowed = BorrowedBuffers::new(&context);
    let mut run = Run::new(&plan, &request, &context, limits, &cancel, began, borrowed.take());
    let verdict = poll_fn(|cx| run.poll(cx)).await;
    run.close();
    let now = clock::now();
    let trace = run.recorder.take(&plan, run.steps, now);
    let cpu = run.usage.cpu(run.results.as_deref(), now);
    Outcome { result: verdict.map_err(Box::new), trace, took: now.saturating_duration_since(began), cpu }
}

enum Event {
    StepFinished,
    /// The time of this node, or of the whole request while it was in flight.
    TimeIsUp(NodeIx, Deadline),
    Cancelled,
}

pub(crate) struct Run<'r> {
    pub(crate) plan: &'r Arc<Linked>,
    pub(crate) steps: &'r Steps,
    pub(crate) request: &'r Arc<Request>,
    pub(crate) context: &'r Rc<LoopContext>,
    pub(crate) limits: Limits,
    pub(crate) cancel: &'r Cancel,
    pub(crate) buffers: &'r mut RunBuffers,
    pub(crate) recorder: Recorder,
    results: Option<Arc<Results>>,
    begun: bool,
    open: bool,
    usage: Usage,
}

impl<'r> Run<'r> {
    fn new(
        plan: &'r Arc<Linked>,
        request: &'r Arc<Request>,
        context: &'r Rc<LoopContext>,
        limits: Limits,
        cancel: &'r Cancel,
        began: Instant,
        buffers: &'r mut RunBuffers,
    ) -> Run<'r> {
        // Where each node has a limit of its own, each runs by itself.
        let steps = plan.steps(context.policy.chaining && limits.node_timeout.is_none());
        let recorder = Recorder::new(plan, request.trace, began);
        buffers.progress.begin(steps);
        buffers.timeouts.begin(plan.nodes.len());
        buffers.inline_clock.begin(plan, steps, &limits, &context.policy, recorder.is_on());
        let usage = Usage::new(began);
        Run {
            plan,
            steps,
            request,
            context,
            limits,
            cancel,
            buffers,
            recorder,
            results: None,
            begun: false,
            open: true,
            usage,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<RowSet>, RunError>> {
        self.usage.resume();
        if !std::mem::replace(&mut self.begun, true) {
            self.plan.accept(self.request)?;
            for &step in &self.steps.starts {
                self.make_ready(step, None)?;
            }
        }
        loop {
            // All that is there before anything new: a failure among it ends the run.
            while let Some(finished) = self.buffers.finished.pop_front() {
                self.take_in(finished)?;
            }
            self.start_reads(cx)?;
            match self.turn()? {
                // To the back of the line: others are waiting for the loop.
                Paused::TurnIsOver => {
                    self.usage.give_way(self.buffers.inline_clock.now());
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Paused::ReadsAreReady => continue,
                Paused::NothingIsReady => {}
            }
            if self.buffers.progress.is_done() {
                return Poll::Ready(self.buffers.progress.outputs(&self.plan.outputs));
            }
            match self.poll_event(cx) {
                Poll::Ready(Event::StepFinished) => {}
                Poll::Ready(Event::TimeIsUp(step, deadline)) => {
                    return Poll::Ready(Err(self.plan.at_node(step, RunError::timeout(&deadline))));
                }
                Poll::Ready(Event::Cancelled) => return Poll::Ready(Err(RunError::cancelled())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// A step whose inputs are all there goes where it belongs. What leaves the loop leaves now, before anything runs here.
    pub(crate) fn make_ready(&mut self, ix: NodeIx, after: Option<NodeIx>) -> Result<(), RunError> {
        let (step, buffers) = (self.steps.step(ix), &mut *self.buffers);
        let depth = buffers.inline_clock.depth_after(after);
        if self.recorder.is_on() {
            self.recorder.ready(ix, after, buffers.inline_clock.now());
        }
        let rows_in = || buffers.progress.rows_in(step);
        match place(step, &self.context.policy, &self.request.params, depth, buffers.inline_clock.sample, rows_in) {
            Place::Inline(predicted_ns) => {
                buffers.inline_clock.set_depth(ix, depth);
                buffers.ready.push((ix, predicted_ns));
                Ok(())
            }
            Place::Loop => self.read(ix, step),
            Place::Pool => self.offload(ix, step),
        }
    }

    fn read(&mut self, ix: NodeIx, step: &Step) -> Result<(), RunError> {
        let Task::Fetch(task) = &step.task else { return Err(RunError::bug("a computation is not a read")) };
        let inputs = self.take_inputs(ix, step, Where::Loop, None)?;
        let (task, request, context) = (task.clone(), self.request.clone(), self.context.clone());
        self.buffers.fresh.push(Box::pin(async move {
            let stats = context.stats.clone();
            job::fetch(task, ix, inputs, request, &context.stores, stats, Where::Loop).await
        }));
        Ok(())
    }

    fn offload(&mut self, ix: NodeIx, step: &Step) -> Result<(), RunError> {
        let policy = &self.context.policy;
        let chain = policy.chaining && step.next.is_some();
        let traced = self.recorder.is_on();
        let watched = traced || self.limits.request.is_some() || self.buffers.inline_clock.has_node_limits();
        let job_progress = (chain && watched).then(Arc::<JobProgress>::default);
        if traced {
            self.buffers.chains.extend(job_progress.clone().map(|job_progress| (ix, job_progress)));
        }
        let inputs = self.take_inputs(ix, step, Where::Pool(0), job_progress.clone())?;
        let submitted = clock::now();
        self.usage.note_submit(submitted);
        let job = JobSpec {
            plan: self.plan.clone(),
            first: ix,
            inputs,
            submitted,
            policy: *policy,
            deadline: self.limits.request.map(|request| request.at),
            fused: policy.chaining && self.limits.node_timeout.is_none(),
            request: self.request.clone(),
            results: self.results.get_or_insert_default().clone(),
            stats: self.context.stats.clone(),
            job_progress,
        };
        self.context.stats.count_offloads(1);
        self.context.pool.submit(job.into_job());
        Ok(())
    }

    /// Takes a step's rows along, unless it is too late to start, and sets its limit.
    fn take_inputs(
        &mut self,
        ix: NodeIx,
        step: &Step,
        to: Where,
        job_progress: Option<Arc<JobProgress>>,
    ) -> Result<Vec<RowSet>, RunError> {
        let now =
            (self.limits.is_timed(step.timeout) || self.recorder.is_on() || job_progress.is_some()).then(clock::now);
        if let (Some(now), Some(request)) = (now, self.limits.request)
            && request.has_passed(now)
        {
            return Err(self.plan.at_node(ix, RunError::too_late_to_start(&request)));
        }
        let inputs = self.buffers.progress.inputs(step).map_err(|error| self.plan.at_node(ix, error))?;
        if let Some(now) = now {
            self.buffers.timeouts.add(ix, step, self.steps, &self.limits, now, job_progress);
            self.recorder.started(ix, &inputs, to, now);
        }
        Ok(inputs)
    }

    /// Polls new reads once: what is there already need not be waited for. After a failure no other is started.
    fn start_reads(&mut self, cx: &mut Context<'_>) -> Result<(), RunError> {
        let mut fresh = std::mem::take(&mut self.buffers.fresh);
        for mut read in fresh.drain(..) {
            match read.as_mut().poll(cx) {
                Poll::Ready(finished) if finished.result.is_err() => return self.take_in(finished),
                Poll::Ready(finished) => self.buffers.finished.push_back(finished),
                Poll::Pending => self.buffers.fetches.push(read),
            }
        }
        self.buffers.fresh = fresh;
        Ok(())
    }

    /// Takes in what has come back to the loop: its rows are kept and its readers may become ready.
    fn take_in(&mut self, finished: StepResult) -> Result<(), RunError> {
        if matches!(finished.on, Where::Pool(_)) {
            self.usage.count_job(&finished);
        }
        let StepResult { step, result, started, ended, on, tally, report, before } = finished;
        self.buffers.inline_clock.forget();
        let first = before.first().map_or(step, |link| link.step);
        self.buffers.timeouts.remove(first);
        self.buffers.chains.retain(|(of, _)| *of != first);
        self.buffers.inline_clock.chained += before.len() as u64;
        let mut previous: Option<(NodeIx, RowSet)> = None;
        for link in before {
            self.buffers.progress.pass();
            self.chained(link.step, previous.as_ref(), on, link.started);
            self.recorder.ended(link.step, link.rows.as_ref(), (link.started, link.ended), on, &tally);
            link.report.into_iter().for_each(|report| self.recorder.pass_report(link.step, report));
            previous = link.rows.map(|rows| (link.step, rows));
        }
        self.chained(step, previous.as_ref(), on, started);
        self.recorder.ended(step, result.as_ref().ok(), (started, ended), on, &tally);
        report.into_iter().for_each(|report| self.recorder.pass_report(step, report));
        let rows = result.map_err(|error| self.blame(step, error))?;
        self.finish(step, rows)
    }

    /// A step's failure as the run's. One that stopped because its time was up has no other reason.
    pub(crate) fn blame(&self, ix: NodeIx, error: TaskError) -> RunError {
        match self.limits.request.filter(|_| error.code.kind == ErrorKind::Cancelled) {
            Some(request) if request.has_passed(clock::now()) => self.plan.at_node(ix, RunError::timeout(&request)),
            _ => self.plan.blame(ix, error),
        }
    }

    /// Tells the trace of a step that went on in the job of another.
    fn chained(&mut self, step: NodeIx, previous: Option<&(NodeIx, RowSet)>, on: Where, started: Instant) {
        if let Some((after, rows)) = previous {
            let times = self.steps.step(step).inputs.len();
            self.recorder.chained(step, *after, std::iter::repeat_n(rows, times), on, started);
        }
    }

    /// Keeps a step's rows; those that waited only for it become ready.
    pub(crate) fn finish(&mut self, ix: NodeIx, rows: RowSet) -> Result<(), RunError> {
        self.buffers.progress.finish(ix, rows);
        for &reader in &self.steps.step(ix).readers {
            if self.buffers.progress.count_down(reader) {
                self.make_ready(reader, Some(ix))?;
            }
        }
        Ok(())
    }

    /// A result that is there wins over a limit that passed in the same moment: the loser is not acted on.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let buffers = &mut *self.buffers;
        if !buffers.finished.is_empty() {
            return Poll::Ready(Event::StepFinished);
        }
        if let Some(results) = &self.results {
            results.waker.register(cx.waker());
            results.collect(&mut buffers.finished);
            if !buffers.finished.is_empty() {
                return Poll::Ready(Event::StepFinished);
            }
        }
        if !buffers.fetches.is_empty()
            && let Poll::Ready(Some(finished)) = buffers.fetches.poll_next_unpin(cx)
        {
            buffers.finished.push_back(finished);
            return Poll::Ready(Event::StepFinished);
        }
        self.cancel.waker.register(cx.waker());
        if self.cancel.requested.load(Ordering::Acquire) {
            return Poll::Ready(Event::Cancelled);
        }
        buffers.timeouts.poll(cx, self.steps, &self.limits).map(|(step, deadline)| Event::TimeIsUp(step, deadline))
    }

    /// Nobody waits any more: reads in flight are dropped, jobs are asked to stop, what they still bring is late.
    fn close(&mut self) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let (stats, buffers) = (&self.context.stats, &mut *self.buffers);
        for (_, chain) in buffers.chains.drain(..) {
            self.recorder.abandoned(&chain.snapshot());
        }
        if let Some(results) = &self.results {
            results.close(stats);
        }
        // Clearing makes it anew, which most runs need not pay for.
        if !buffers.fetches.is_empty() {
            buffers.fetches.clear();
        }
        buffers.fresh.clear();
        // A read that was there and not taken has cost nothing.
        for job in buffers.finished.drain(..).filter(|finished| matches!(finished.on, Where::Pool(_))) {
            stats.count_late(job.took_ns());
        }
        stats.count_steps(buffers.inline_clock.inlined + buffers.next_ready as u64, buffers.inline_clock.chained);
        if !buffers.progress.is_done() {
            buffers.progress.clear();
        }
        buffers.ready.clear();
        buffers.next_ready = 0;
        buffers.timeouts.end();
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
