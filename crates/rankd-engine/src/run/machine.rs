//! The state machine of a run: what can start is started, the next event is awaited, until there are rows or a failure.
//!
//! [`Run::poll`] has the states in order, and the transitions follow it in the order in which a step passes through them. Nothing here
//! recurses, and nothing waits except for the next event. Invariants: a node starts once, after all its inputs; nothing starts once
//! the run is over; when time is up, the answer leaves at once and whatever still finishes is counted as late. A step that has
//! ended, wherever and however, goes to [`crate::settle`].

use super::Run;
use super::buffers::{PendingRead, RunBuffers};
use super::job::{JobProgress, JobSpec};
use super::turn::{Break, Look};
use crate::call::{self, StepResult};
use crate::clock::{self, Instant};
use crate::deadline::Deadline;
use crate::learned_times::Start;
use crate::place::{self, Place};
use crate::progress::NodeNews;
use crate::settle::{NodeFailure, RunFailure, Settled, begin_substitution, note_counts, settle, started_by};
use crate::steps::Step;
use crate::task::{AnyFetch, DecodePool};
use crate::trace::Where;
use futures_util::FutureExt;
use futures_util::stream::StreamExt;
use rankd_column::RowSet;
use rankd_column::expr::Scratch;
use rankd_plan::plan::NodeIx;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// Why a run does not compute on the loop any more.
enum Paused {
    NothingIsReady,
    /// Reads became ready: they should leave before more is computed.
    ReadsAreReady,
    TurnIsOver,
}

enum Event {
    StepsFinished,
    /// The limit of this node passed, or that of the whole request while the node was in flight.
    TimedOut(NodeIx, Deadline),
    Cancelled,
}

impl Run<'_> {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<RowSet>, RunFailure>> {
        self.usage.resume();
        if !std::mem::replace(&mut self.begun, true) {
            self.plan.accept(self.request, self.context.stores.id()).map_err(RunFailure::refused)?;
            self.begin_substitution()?;
        }
        loop {
            // What is there is taken in before anything new is started: a failure among it ends the run.
            while let Some(finished) = self.buffers.finished.pop_front() {
                self.take_in(finished)?;
            }
            self.start_steps()?;
            // New reads are polled once: what is there already need not be waited for. After a failure no other is started.
            if !self.buffers.new_reads.is_empty() {
                self.poll_new_reads(cx)?;
            }
            // A read that failed at once may have had a fallback.
            if !self.buffers.startable.is_empty() {
                continue;
            }
            match self.take_turn()? {
                // To the back of the queue: others are waiting for the loop.
                Paused::TurnIsOver => {
                    self.usage.give_way(self.buffers.inline_clock.now());
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Paused::ReadsAreReady => continue,
                Paused::NothingIsReady => {}
            }
            if self.buffers.progress.is_done() {
                return Poll::Ready(self.buffers.progress.outputs(self.plan));
            }
            match self.poll_event(cx) {
                Poll::Ready(Event::StepsFinished) => {}
                Poll::Ready(Event::TimedOut(step, limit)) => self.cut(step, limit)?,
                Poll::Ready(Event::Cancelled) => return Poll::Ready(Err(RunFailure::cancelled())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_new_reads(&mut self, cx: &mut Context<'_>) -> Result<(), RunFailure> {
        let mut new_reads = std::mem::take(&mut self.buffers.new_reads);
        for mut read in new_reads.drain(..) {
            match read.poll_unpin(cx) {
                Poll::Ready(finished) if finished.result.is_err() => self.take_in(finished)?,
                Poll::Ready(finished) => self.buffers.finished.push_back(finished),
                Poll::Pending => self.buffers.reads.push(read),
            }
        }
        self.buffers.new_reads = new_reads;
        Ok(())
    }

    /// Finds out which nodes do not run, where the plan has conditions.
    fn begin_substitution(&mut self) -> Result<(), RunFailure> {
        if self.steps.substitutes.is_none() && self.steps.times.is_none() && self.request.struck.is_none() {
            return Ok(());
        }
        let (progress, recorder) = (&mut self.buffers.progress, &mut self.recorder);
        begin_substitution(self.plan, self.steps, self.request, progress, recorder, &self.context.stats)?;
        let RunBuffers { progress, startable, .. } = &mut *self.buffers;
        startable.retain(|(ix, _)| progress.is_ready(*ix));
        if let Some(times) = self.steps.times.as_ref().filter(|_| self.sample) {
            times.find_paths(self.steps);
        }
        self.take_news();
        Ok(())
    }

    /// Of what leaves the loop, that which has the longest way to the answer leaves first.
    fn order_by_slack(&mut self) {
        let steps = self.steps;
        if let Some(times) = steps.times.as_ref().filter(|_| self.limits.request.is_some()) {
            let computes_here = |ix: NodeIx| steps.step(ix).may_inline;
            let path = |ix: NodeIx| if computes_here(ix) { Duration::ZERO } else { times.path(ix) };
            self.buffers.startable.sort_by_key(|(ix, _)| Reverse(path(*ix)));
        }
    }

    /// Sends each step whose inputs are all there where it belongs. What leaves the loop leaves now, before anything is computed here.
    fn start_steps(&mut self) -> Result<(), RunFailure> {
        if self.buffers.startable.len() > 1 {
            self.order_by_slack();
        }
        let mut next = 0;
        while let Some(&(ix, after)) = self.buffers.startable.get(next) {
            next += 1;
            let (step, buffers) = (self.steps.step(ix), &mut *self.buffers);
            let depth = buffers.depth_after(after);
            if self.recorder.is_on() {
                self.recorder.ready(ix, after, buffers.inline_clock.now());
            }
            let rows_in = || buffers.progress.rows_in(step);
            match place::place(step, &self.context.policy, &self.request.params, depth, self.sample, rows_in) {
                Place::Inline(predicted_ns) => {
                    if let Some(at) = buffers.depths.get_mut(ix as usize) {
                        *at = depth;
                    }
                    buffers.ready.push((ix, predicted_ns));
                }
                Place::Loop(read) => self.send_off(ix, step, Some(read))?,
                Place::Pool => self.send_off(ix, step, None)?,
            }
        }
        self.buffers.startable.clear();
        Ok(())
    }

    /// Takes a step's rows along, unless it is too late to start, and makes it a read or else a job.
    fn send_off(&mut self, ix: NodeIx, step: &Step, read: Option<&Arc<dyn AnyFetch>>) -> Result<(), RunFailure> {
        let (policy, traced) = (&self.context.policy, self.recorder.is_on());
        let watched = traced || self.limits.request.is_some() || self.limits_nodes;
        let is_chain = read.is_none() && place::chains_into(step, policy).is_some();
        let job_progress = (is_chain && watched).then(Arc::<JobProgress>::default);
        let now = (self.limits.is_timed(step.timeout) || traced || job_progress.is_some()).then(clock::now);
        let (mut deadline, until) = now.map_or((None, None), |now| self.limits_of(ix, step, now));
        if let (Some(now), Some(request)) = (now, self.limits.request) {
            if request.has_passed(now) {
                return self.settle(ix, Err(NodeFailure::TooLate(request)));
            }
            // One that asks may have been called before, and what it has done by then is not given up.
            let may_learn = step.has_fallback && until.is_none() && !self.request.strict && step.reserves().is_empty();
            if let Some(times) = self.steps.times.as_ref().filter(|_| may_learn) {
                match times.start(ix, &request, now) {
                    Start::Until(learned) => deadline = deadline.filter(|own| own.at < learned.at).or(Some(learned)),
                    Start::NoTime { left, usual } => {
                        self.buffers.progress.release_inputs(step);
                        return self.settle(ix, Err(NodeFailure::NoTime { left, usual }));
                    }
                }
            }
        }
        let mut inputs = match self.buffers.progress.inputs(ix, step) {
            Ok(inputs) => inputs,
            Err(missing) => return self.settle(ix, Err(missing)),
        };
        if let Some(recorded) = self.request.recorded_failure(ix) {
            return self.settle(ix, Err(recorded));
        }
        if read.is_some() {
            call::gather(step, &mut inputs);
        }
        if let Some(now) = now {
            self.buffers.timeouts.add(ix, self.steps, &self.limits, (now, deadline), job_progress.clone());
            let to = if read.is_some() { Where::Loop } else { Where::Pool(0) };
            self.recorder.started(ix, &inputs, to, now);
        }
        let (request, context) = (self.request.clone(), self.context.clone());
        if let Some(task) = read.cloned() {
            let plan = self.plan.clone();
            let reading = Box::pin(async move {
                let stats = context.stats.clone();
                let pool = DecodePool { pool: &*context.pool, policy: &context.policy, plan: &plan };
                call::fetch(task, ix, inputs, request, &context.stores, stats, Where::Loop, Some(pool)).await
            });
            self.buffers.new_reads.push(PendingRead { step: ix, reading: Some(reading) });
            return Ok(());
        }
        if traced {
            self.buffers.chains.extend(job_progress.clone().map(|job_progress| (ix, job_progress)));
        }
        let submitted = clock::now();
        self.usage.note_submit(submitted);
        context.stats.count_offloads(1);
        let stop = step.has_fallback.then(Arc::<AtomicBool>::default);
        self.buffers.job_stops.extend(stop.clone().map(|stop| (ix, stop)));
        let job = JobSpec {
            plan: self.plan.clone(),
            way: self.way,
            first: ix,
            inputs,
            submitted,
            policy: *policy,
            deadline: self.limits.request.map(|request| request.at),
            until,
            bytes_max: self.limits.run_bytes_max,
            request,
            results: self.results.get_or_insert_default().clone(),
            stats: context.stats.clone(),
            job_progress,
            stop,
        };
        context.pool.submit(job.into_job());
        Ok(())
    }

    /// Computes what is ready for the loop, for as long as it is this run's turn.
    fn take_turn(&mut self) -> Result<Paused, RunFailure> {
        if self.buffers.next_ready == self.buffers.ready.len() {
            return Ok(match self.buffers.new_reads.is_empty() {
                true => Paused::NothingIsReady,
                false => Paused::ReadsAreReady,
            });
        }
        self.buffers.inline_clock.begin_turn();
        let context = self.context;
        let paused = call::with_scratch(&context.stats, |scratch| self.compute_ready(scratch));
        paused.unwrap_or_else(|panic| {
            let called = self.buffers.ready.get(self.buffers.next_ready.saturating_sub(1)).map_or(0, |(ix, _)| *ix);
            self.recorder.ended_now(called, clock::now());
            self.settle(called, Err(NodeFailure::Task(panic)))?;
            Ok(Paused::ReadsAreReady)
        })
    }

    /// Not a part of its caller: the innermost loop of the engine has the registers for itself.
    #[inline(never)]
    fn compute_ready(&mut self, scratch: &mut Scratch) -> Result<Paused, RunFailure> {
        let mut looked = self.look();
        while self.buffers.new_reads.is_empty() {
            match looked {
                Look::GoOn => {}
                Look::TurnIsOver => return Ok(Paused::TurnIsOver),
                Look::TooLate(step, deadline) => self.settle(step, Err(NodeFailure::TooLate(deadline)))?,
                Look::Cancelled => return Err(RunFailure::cancelled()),
            }
            looked = Look::GoOn;
            match self.call_ready(scratch) {
                Break::NothingIsReady => {
                    // For the predictions: nothing is left that could be too late.
                    self.look();
                    let buffers = &mut *self.buffers;
                    self.inlined += buffers.ready.len() as u64;
                    buffers.ready.clear();
                    (buffers.next_ready, buffers.inline_clock.unseen_from) = (0, 0);
                    return Ok(Paused::NothingIsReady);
                }
                Break::Look => looked = self.look(),
                Break::Timed(step) => {
                    self.buffers.next_ready += 1;
                    let result = self.call_timed(step, scratch);
                    self.settle(step, result)?;
                    self.start_steps()?;
                }
                Break::News => {
                    self.take_news();
                    self.start_steps()?;
                }
                Break::Startable => self.start_steps()?,
                Break::Failed(failure) => return Err(failure),
            }
        }
        Ok(Paused::ReadsAreReady)
    }

    /// The next thing that happens. A result that is there wins over a limit that passed in the same moment.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let buffers = &mut *self.buffers;
        if !buffers.finished.is_empty() {
            return Poll::Ready(Event::StepsFinished);
        }
        if let Some(results) = &self.results {
            results.waker.register(cx.waker());
            results.collect(&mut buffers.finished);
            if !buffers.finished.is_empty() {
                return Poll::Ready(Event::StepsFinished);
            }
        }
        if !buffers.reads.is_empty()
            && let Poll::Ready(Some(finished)) = buffers.reads.poll_next_unpin(cx)
        {
            buffers.finished.push_back(finished);
            return Poll::Ready(Event::StepsFinished);
        }
        self.cancel.waker.register(cx.waker());
        if self.cancel.requested.load(Ordering::Acquire) {
            return Poll::Ready(Event::Cancelled);
        }
        buffers.timeouts.poll(cx, self.steps, &self.limits).map(|(step, limit)| Event::TimedOut(step, limit))
    }

    /// Takes in a step that has ended elsewhere, with those that its chain has done before it.
    fn take_in(&mut self, finished: StepResult) -> Result<(), RunFailure> {
        if matches!(finished.on, Where::Pool(_)) {
            self.usage.count_job(&finished);
        }
        if let Some(trip) = finished.tally.pool_trip.get() {
            self.usage.count_trip(&trip);
        }
        if self.buffers.progress.has_given_up(finished.step) {
            // Its fallback was taken, and nothing waits for it any more.
            self.context.stats.count_late(&self.plan.name, finished.took_ns());
            return Ok(());
        }
        if let Some(times) = &self.steps.times {
            finished
                .before
                .iter()
                .for_each(|link| times.learn(link.step, link.ended.saturating_duration_since(link.started)));
            times.learn(finished.step, finished.ended.saturating_duration_since(finished.started));
        }
        let StepResult { step, result, started, ended, on, tally, counts, report, before } = finished;
        let buffers = &mut *self.buffers;
        buffers.inline_clock.forget();
        let first = before.first().map_or(step, |link| link.step);
        buffers.timeouts.remove(first);
        buffers.chains.retain(|(of, _)| *of != first);
        self.chained += before.len() as u64;
        let mut previous: Option<(NodeIx, RowSet)> = None;
        for link in before {
            self.buffers.progress.pass();
            self.record_chained(link.step, previous.as_ref(), on, link.started);
            self.recorder.ended(link.step, link.rows.as_ref(), (link.started, link.ended), on, &tally, link.counts);
            link.report.into_iter().for_each(|report| self.recorder.pass_report(link.step, report));
            previous = link.rows.map(|rows| (link.step, rows));
        }
        self.record_chained(step, previous.as_ref(), on, started);
        self.recorder.ended(step, result.as_ref().ok(), (started, ended), on, &tally, counts);
        note_counts(&mut self.buffers.progress, step, counts, ended);
        report.into_iter().for_each(|report| self.recorder.pass_report(step, report));
        self.settle(step, result.map_err(NodeFailure::Task))
    }

    /// Records a step that went on in the job of another.
    fn record_chained(&mut self, step: NodeIx, previous: Option<&(NodeIx, RowSet)>, on: Where, started: Instant) {
        if let Some((after, rows)) = previous {
            let times = self.steps.step(step).inputs.len();
            self.recorder.chained(step, *after, std::iter::repeat_n(rows, times), on, started);
        }
    }

    /// The limit of a step in flight has passed. Where its fallback is taken, the step is stopped: nothing waits for it any more.
    fn cut(&mut self, ix: NodeIx, limit: Deadline) -> Result<(), RunFailure> {
        self.settle(ix, Err(NodeFailure::TimedOut(limit)))?;
        let now = clock::now();
        self.recorder.ended_now(ix, now);
        let buffers = &mut *self.buffers;
        buffers.timeouts.remove(ix);
        if let Some(read) = buffers.reads.iter_mut().find(|read| read.step == ix) {
            read.reading = None;
        }
        for (_, stop) in buffers.job_stops.iter().filter(|(step, _)| *step == ix) {
            stop.store(true, Ordering::Relaxed);
        }
        if let Some(times) = &self.steps.times {
            times.learn_cut(ix, &limit, now);
        }
        Ok(())
    }

    /// Settles a step. Those that waited only for it can be started.
    fn settle(&mut self, ix: NodeIx, result: Result<RowSet, NodeFailure>) -> Result<(), RunFailure> {
        let RunBuffers { progress, startable, .. } = &mut *self.buffers;
        let step = self.steps.step(ix);
        match settle(self.plan, self.steps, &self.limits, progress, &mut self.recorder, (ix, step), result)? {
            Settled::News => self.take_news(),
            Settled::Rows => {
                let readers = step.readers.iter().copied();
                startable
                    .extend(readers.filter(|reader| progress.count_down(*reader)).map(|reader| (reader, Some(ix))));
            }
        }
        Ok(())
    }

    /// Other nodes than the one that was settled have rows now, or are needed.
    fn take_news(&mut self) {
        let RunBuffers { progress, startable, .. } = &mut *self.buffers;
        while let Some(news) = progress.next_news() {
            let after = match news {
                NodeNews::HasRows(node) => Some(node),
                NodeNews::Woken(_) => None,
            };
            startable.extend(started_by(news, self.steps, progress).into_iter().map(|ix| (ix, after)));
        }
    }

    /// Nothing waits any more: pending reads are dropped, jobs are asked to stop, and what they still bring is late.
    pub(super) fn close(&mut self) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let (stats, buffers) = (&self.context.stats, &mut *self.buffers);
        // Most runs have none of these, and need not pay for an empty drain.
        if !buffers.chains.is_empty() {
            buffers.chains.drain(..).for_each(|(_, chain)| self.recorder.abandoned(&chain.snapshot()));
        }
        if let Some(results) = &self.results {
            results.close(self.plan, stats);
        }
        if !buffers.job_stops.is_empty() {
            buffers.job_stops.drain(..).for_each(|(_, stop)| stop.store(true, Ordering::Relaxed));
        }
        // Clearing builds it afresh, which most runs need not pay for.
        if !buffers.reads.is_empty() {
            buffers.reads.clear();
        }
        buffers.new_reads.clear();
        // A read that was there and not taken in has cost nothing.
        while let Some(finished) = buffers.finished.pop_front() {
            if matches!(finished.on, Where::Pool(_)) {
                stats.count_late(&self.plan.name, finished.took_ns());
            }
        }
        stats.count_steps(self.inlined + buffers.next_ready as u64, self.chained);
        if !buffers.progress.is_done() {
            buffers.progress.clear();
        }
        buffers.startable.clear();
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
