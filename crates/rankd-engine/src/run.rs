//! One request on its event loop: what is ready is started, what happens next is awaited, until there is a verdict.
//!
//! All state of a run is touched by the loop's thread only. The walk is a loop over a closed set of events; nothing here
//! recurses and nothing here waits except for the next event. Invariants: a node starts once, after all its inputs; nothing
//! starts after the verdict; when time wins, the answer goes out now and what still finishes is counted as late. What runs on
//! the loop itself, and for how long at a stretch, is in [`crate::turn`].

use crate::clock::{self, Instant};
use crate::deadline::{Deadline, Limits};
use crate::error::{ErrorKind, RunError, TaskError};
use crate::job::{self, Landed, Mailbox, Sending, Whereabouts};
use crate::link::Linked;
use crate::loop_context::{Host, Lease, State};
use crate::place::{Place, place};
use crate::request::Request;
use crate::steps::{Step, Steps};
use crate::task::Task;
use crate::trace::{Recorder, Trace, Where};
use crate::turn::Paused;
pub use crate::usage::Cpu;
use crate::usage::Usage;
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
    host: Rc<Host>,
    limits: Limits,
    cancel: Arc<Cancel>,
) -> Outcome {
    let began = clock::now();
    let mut lease = Lease::new(&host);
    let mut run = Run::new(&plan, &request, &host, limits, &cancel, began, lease.take());
    let verdict = poll_fn(|cx| run.poll(cx)).await;
    run.close();
    let now = clock::now();
    let trace = run.recorder.take(&plan, run.steps, now);
    let cpu = run.usage.cpu(run.mailbox.as_deref(), now);
    Outcome { result: verdict.map_err(Box::new), trace, took: now.saturating_duration_since(began), cpu }
}

enum Event {
    Landed,
    /// The time of this node, or of the whole request while it was in flight.
    TimeIsUp(NodeIx, Deadline),
    Cancelled,
}

pub(crate) struct Run<'r> {
    pub(crate) plan: &'r Arc<Linked>,
    pub(crate) steps: &'r Steps,
    pub(crate) request: &'r Arc<Request>,
    pub(crate) host: &'r Rc<Host>,
    pub(crate) limits: Limits,
    pub(crate) cancel: &'r Cancel,
    pub(crate) state: &'r mut State,
    pub(crate) recorder: Recorder,
    mailbox: Option<Arc<Mailbox>>,
    begun: bool,
    open: bool,
    usage: Usage,
}

impl<'r> Run<'r> {
    fn new(
        plan: &'r Arc<Linked>,
        request: &'r Arc<Request>,
        host: &'r Rc<Host>,
        limits: Limits,
        cancel: &'r Cancel,
        began: Instant,
        state: &'r mut State,
    ) -> Run<'r> {
        // Where each node has a limit of its own, each runs by itself.
        let steps = plan.steps(host.policy.chaining && limits.node_timeout.is_none());
        let recorder = Recorder::new(plan, request.trace, began);
        state.progress.begin(steps);
        state.watch.begin(plan.nodes.len());
        state.pace.begin(plan, steps, &limits, &host.policy, recorder.is_on());
        let usage = Usage::new(began);
        Run {
            plan,
            steps,
            request,
            host,
            limits,
            cancel,
            state,
            recorder,
            mailbox: None,
            begun: false,
            open: true,
            usage,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<RowSet>, RunError>> {
        self.usage.is_back();
        if !std::mem::replace(&mut self.begun, true) {
            self.plan.accept(self.request)?;
            for &step in &self.steps.starts {
                self.becomes_ready(step, None)?;
            }
        }
        loop {
            // All that is there before anything new: a failure among it ends the run.
            while let Some(landed) = self.state.landed.pop_front() {
                self.land(landed)?;
            }
            self.start_reads(cx)?;
            match self.turn()? {
                // To the back of the line: others are waiting for the loop.
                Paused::TurnIsOver => {
                    self.usage.gives_way(self.state.pace.now());
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Paused::ReadsAreReady => continue,
                Paused::NothingIsReady => {}
            }
            if self.state.progress.is_done() {
                return Poll::Ready(self.state.progress.outputs(&self.plan.outputs));
            }
            match self.poll_event(cx) {
                Poll::Ready(Event::Landed) => {}
                Poll::Ready(Event::TimeIsUp(step, deadline)) => {
                    return Poll::Ready(Err(self.plan.at_node(step, RunError::timeout(&deadline))));
                }
                Poll::Ready(Event::Cancelled) => return Poll::Ready(Err(RunError::cancelled())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// A step whose inputs are all there goes where it belongs. What leaves the loop leaves now, before anything runs here.
    pub(crate) fn becomes_ready(&mut self, ix: NodeIx, after: Option<NodeIx>) -> Result<(), RunError> {
        let (step, state) = (self.steps.step(ix), &mut *self.state);
        let depth = state.pace.depth_after(after);
        if self.recorder.is_on() {
            self.recorder.ready(ix, after, state.pace.now());
        }
        let rows_in = || state.progress.rows_in(step);
        match place(step, &self.host.policy, &self.request.params, depth, state.pace.sample, rows_in) {
            Place::Inline(predicted_ns) => {
                state.pace.goes_to(ix, depth);
                state.ready.push((ix, predicted_ns));
                Ok(())
            }
            Place::Loop => self.read(ix, step),
            Place::Pool => self.offload(ix, step),
        }
    }

    fn read(&mut self, ix: NodeIx, step: &Step) -> Result<(), RunError> {
        let Task::Fetch(task) = &step.task else { return Err(RunError::bug("a computation is not a read")) };
        let inputs = self.leaves_the_loop(ix, step, Where::Loop, None)?;
        let (task, request, host) = (task.clone(), self.request.clone(), self.host.clone());
        self.state.fresh.push(Box::pin(async move {
            let stats = host.stats.clone();
            job::fetch(task, ix, inputs, request, &host.stores, stats, Where::Loop).await
        }));
        Ok(())
    }

    fn offload(&mut self, ix: NodeIx, step: &Step) -> Result<(), RunError> {
        let policy = &self.host.policy;
        let stretch = policy.chaining && step.next.is_some();
        let traced = self.recorder.is_on();
        let watched = traced || self.limits.request.is_some() || self.state.pace.watches_nodes();
        let whereabouts = (stretch && watched).then(Arc::<Whereabouts>::default);
        if traced {
            self.state.stretches.extend(whereabouts.clone().map(|whereabouts| (ix, whereabouts)));
        }
        let inputs = self.leaves_the_loop(ix, step, Where::Pool(0), whereabouts.clone())?;
        let submitted = clock::now();
        self.usage.submits(submitted);
        let sending = Sending {
            plan: self.plan.clone(),
            first: ix,
            inputs,
            submitted,
            policy: *policy,
            deadline: self.limits.request.map(|request| request.at),
            fused: policy.chaining && self.limits.node_timeout.is_none(),
            request: self.request.clone(),
            mailbox: self.mailbox.get_or_insert_default().clone(),
            stats: self.host.stats.clone(),
            whereabouts,
        };
        self.host.stats.count_offloads(1);
        self.host.pool.submit(sending.job());
        Ok(())
    }

    /// Takes a step's rows along, unless it is too late to start, and sets its limit.
    fn leaves_the_loop(
        &mut self,
        ix: NodeIx,
        step: &Step,
        to: Where,
        whereabouts: Option<Arc<Whereabouts>>,
    ) -> Result<Vec<RowSet>, RunError> {
        let now = (self.limits.timed(step.timeout) || self.recorder.is_on() || whereabouts.is_some()).then(clock::now);
        if let (Some(now), Some(request)) = (now, self.limits.request)
            && request.passed(now)
        {
            return Err(self.plan.at_node(ix, RunError::too_late_to_start(&request)));
        }
        let inputs = self.state.progress.inputs(step).map_err(|error| self.plan.at_node(ix, error))?;
        if let Some(now) = now {
            self.state.watch.set(ix, step, self.steps, &self.limits, now, whereabouts);
            self.recorder.started(ix, &inputs, to, now);
        }
        Ok(inputs)
    }

    /// Polls new reads once: what is there already need not be waited for. After a failure no other is started.
    fn start_reads(&mut self, cx: &mut Context<'_>) -> Result<(), RunError> {
        let mut fresh = std::mem::take(&mut self.state.fresh);
        for mut read in fresh.drain(..) {
            match read.as_mut().poll(cx) {
                Poll::Ready(landed) if landed.result.is_err() => return self.land(landed),
                Poll::Ready(landed) => self.state.landed.push_back(landed),
                Poll::Pending => self.state.fetches.push(read),
            }
        }
        self.state.fresh = fresh;
        Ok(())
    }

    /// Takes in what has come back to the loop: its rows are kept and its readers may become ready.
    fn land(&mut self, landed: Landed) -> Result<(), RunError> {
        if matches!(landed.on, Where::Pool(_)) {
            self.usage.takes_in(&landed);
        }
        let Landed { step, result, started, ended, on, tally, told, before } = landed;
        self.state.pace.is_stale();
        let first = before.first().map_or(step, |leg| leg.step);
        self.state.watch.unset(first);
        self.state.stretches.retain(|(of, _)| *of != first);
        self.state.pace.chained += before.len() as u64;
        let mut previous: Option<(NodeIx, RowSet)> = None;
        for leg in before {
            self.state.progress.pass();
            self.chained(leg.step, previous.as_ref(), on, leg.started);
            self.recorder.ended(leg.step, leg.rows.as_ref(), (leg.started, leg.ended), on, &tally);
            leg.told.into_iter().for_each(|told| self.recorder.told(leg.step, told));
            previous = leg.rows.map(|rows| (leg.step, rows));
        }
        self.chained(step, previous.as_ref(), on, started);
        self.recorder.ended(step, result.as_ref().ok(), (started, ended), on, &tally);
        told.into_iter().for_each(|told| self.recorder.told(step, told));
        let rows = result.map_err(|error| self.blame(step, error))?;
        self.finish(step, rows)
    }

    /// A step's failure as the run's. One that stopped because its time was up has no other reason.
    pub(crate) fn blame(&self, ix: NodeIx, error: TaskError) -> RunError {
        match self.limits.request.filter(|_| error.kind == ErrorKind::Cancelled) {
            Some(request) if request.passed(clock::now()) => self.plan.at_node(ix, RunError::timeout(&request)),
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
        self.state.progress.finish(ix, rows);
        for &reader in &self.steps.step(ix).readers {
            if self.state.progress.arrived(reader) {
                self.becomes_ready(reader, Some(ix))?;
            }
        }
        Ok(())
    }

    /// A result that is there wins over a limit that passed in the same moment: the loser is not acted on.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let state = &mut *self.state;
        if !state.landed.is_empty() {
            return Poll::Ready(Event::Landed);
        }
        if let Some(mailbox) = &self.mailbox {
            mailbox.waker.register(cx.waker());
            mailbox.collect(&mut state.landed);
            if !state.landed.is_empty() {
                return Poll::Ready(Event::Landed);
            }
        }
        if !state.fetches.is_empty()
            && let Poll::Ready(Some(landed)) = state.fetches.poll_next_unpin(cx)
        {
            state.landed.push_back(landed);
            return Poll::Ready(Event::Landed);
        }
        self.cancel.waker.register(cx.waker());
        if self.cancel.requested.load(Ordering::Acquire) {
            return Poll::Ready(Event::Cancelled);
        }
        state.watch.poll(cx, self.steps, &self.limits).map(|(step, deadline)| Event::TimeIsUp(step, deadline))
    }

    /// Nobody waits any more: reads in flight are dropped, jobs are told to stop, what they still bring is late.
    fn close(&mut self) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let (stats, state) = (&self.host.stats, &mut *self.state);
        for (_, stretch) in state.stretches.drain(..) {
            self.recorder.abandoned(&stretch.so_far());
        }
        if let Some(mailbox) = &self.mailbox {
            mailbox.close(stats);
        }
        // Clearing makes it anew, which most runs need not pay for.
        if !state.fetches.is_empty() {
            state.fetches.clear();
        }
        state.fresh.clear();
        // A read that was there and not taken has cost nothing.
        for job in state.landed.drain(..).filter(|landed| matches!(landed.on, Where::Pool(_))) {
            stats.count_late(job.took_ns());
        }
        stats.count_steps(state.pace.inlined + state.next_ready as u64, state.pace.chained);
        if !state.progress.is_done() {
            state.progress.clear();
        }
        state.ready.clear();
        state.next_ready = 0;
        state.watch.end();
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
