//! What a run computes on its loop: cheap steps, one after the other, on the loop's own thread.
//!
//! No allocation, no queue and no thread in between. The clock is read only now and then, by the work that was predicted since. A
//! turn is bounded: a run that has held the loop for long enough goes to the back of the queue. Costs are learned from one run in
//! thirty-two of a plan, whose steps are timed one by one. Where the clock shows that predictions were far off, the steps since the
//! last reading are timed by themselves the next time. Nothing here starts a step elsewhere or ends the run: the state machine
//! in `machine` does, with what it is given here.

use super::Run;
use super::buffers::RunBuffers;
use crate::call;
use crate::clock::{self, Instant, nanos_between};
use crate::cost::LearnedCost;
use crate::deadline::{Deadline, Limit};
use crate::error::TaskError;
use crate::expand_passes::PassReport;
use crate::link::Linked;
use crate::place::cheap;
use crate::settle::{NodeFailure, RunFailure, Settled, note_counts, settle};
use crate::steps::Step;
use crate::task::{self, ComputeContext, InputRows, Tally, Task};
use crate::trace::Where;
use rankd_column::RowSet;
use rankd_column::expr::Scratch;
use rankd_plan::plan::NodeIx;
use std::sync::atomic::Ordering;

/// How much predicted work may pass between two readings of the clock.
const LOOK_EVERY_NS: f32 = 2_000.0;
/// What a step costs besides its own work, and so a bound on the steps between two readings.
const STEP_NS: f32 = 64.0;
/// How long a run may hold the loop while others wait.
const TURN_NS: u64 = 200_000;

/// The time as far as steps on the loop need it, without reading the clock for each.
#[derive(Default)]
pub(crate) struct InlineClock {
    /// The last reading; nothing when too much may have happened since.
    seen: Option<Instant>,
    /// Predicted work since then, and the first of the steps that it was, as a place in the ready list.
    unseen_ns: f32,
    pub(super) unseen_from: usize,
    turn_began: Option<Instant>,
}

impl InlineClock {
    /// A turn begins with the next reading.
    pub(super) fn begin_turn(&mut self) {
        (self.seen, self.turn_began) = (None, None);
    }

    /// Something happened whose duration was not predicted.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// The last reading if it is recent, else a new one.
    pub(super) fn now(&mut self) -> Instant {
        *self.seen.get_or_insert_with(clock::now)
    }
}

/// Why steps are not called one after the other any more.
pub(super) enum Break {
    NothingIsReady,
    /// It is time to read the clock.
    Look,
    /// The next step, this one, is to be timed.
    Timed(NodeIx),
    /// There are steps to be started.
    Startable,
    /// Other nodes than the one that was called have rows now, or are needed.
    News,
    Failed(RunFailure),
}

/// What a reading of the clock has shown.
pub(super) enum Look {
    GoOn,
    TurnIsOver,
    /// The request's deadline has passed, and this step has not started.
    TooLate(NodeIx, Deadline),
    Cancelled,
}

impl Run<'_> {
    /// Calls ready steps one after the other, for as long as nothing else has to be done. The innermost loop of the engine.
    pub(super) fn call_ready(&mut self, scratch: &mut Scratch) -> Break {
        let (plan, steps, policy): (&Linked, _, _) = (self.plan, self.steps, &self.context.policy);
        let RunBuffers { progress, startable, ready, next_ready, inline_clock, depths, .. } = &mut *self.buffers;
        if self.timed {
            return ready.get(*next_ready).map_or(Break::NothingIsReady, |(ix, _)| Break::Timed(*ix));
        }
        let deadline = self.limits.request.map(|request| request.at);
        let params = &*self.request.params;
        let mut cx = ComputeContext::new(self.request, scratch, task::stop(&self.cancel.requested, deadline));
        // Where depth does not matter and nothing is recorded, a cheap reader goes straight to the end of the list.
        let straight = policy.inline && depths.is_empty();
        let mut unseen_ns = inline_clock.unseen_ns;
        let broke = loop {
            let Some(&(ix, predicted_ns)) = ready.get(*next_ready) else { break Break::NothingIsReady };
            let step = steps.step(ix);
            let Task::Compute(task) = &step.task else { break Break::Timed(ix) };
            if unseen_ns >= LOOK_EVERY_NS {
                break Break::Look;
            }
            if step.cost.is_suspect() {
                break Break::Timed(ix);
            }
            *next_ready += 1;
            unseen_ns += predicted_ns + STEP_NS;
            let last = progress.claim(step);
            let result = call::run(step, &**task, &mut progress.lend(step, last), &mut cx);
            progress.release(step, last);
            match settle(plan, steps, &self.limits, progress, &mut self.recorder, (ix, step), result) {
                Ok(Settled::Rows) => {}
                Ok(Settled::News) => break Break::News,
                Err(failure) => break Break::Failed(failure),
            }
            let mut all_straight = true;
            for &reader in &step.readers {
                if progress.count_down(reader) {
                    let next = steps.step(reader);
                    match cheap(next, policy, params, || progress.rows_in(next)) {
                        Some(predicted_ns) if straight => ready.push((reader, predicted_ns)),
                        _ => {
                            startable.push((reader, Some(ix)));
                            all_straight = false;
                        }
                    }
                }
            }
            if !all_straight {
                break Break::Startable;
            }
        };
        inline_clock.unseen_ns = unseen_ns;
        broke
    }

    /// Calls one step with the clock read before and after.
    pub(super) fn call_timed(&mut self, ix: NodeIx, scratch: &mut Scratch) -> Result<RowSet, NodeFailure> {
        let (step, started) = (self.steps.step(ix), self.buffers.inline_clock.now());
        let (limit, until) = self.limits_of(ix, step, started);
        let progress = &mut self.buffers.progress;
        if let Some(request) = self.limits.request.filter(|request| request.has_passed(started)) {
            return Err(NodeFailure::TooLate(request));
        }
        // What may be called again takes its rows along and leaves them there.
        let asks = !step.reserves().is_empty();
        if let Some(recorded) = self.request.recorded_failure(ix) {
            if !asks {
                progress.release_inputs(step);
            }
            return Err(recorded);
        }
        let mut asked = if asks { progress.inputs(ix, step)?.into_iter().map(Some).collect() } else { Vec::new() };
        let rows_in = if asks { asked.iter().flatten().map(RowSet::len).sum() } else { progress.rows_in(step) };
        let traced = self.recorder.is_on();
        if traced {
            match asks {
                true => self.recorder.started(ix, asked.iter().flatten(), Where::Loop, started),
                false => self.recorder.started(ix, progress.peek(step), Where::Loop, started),
            }
            self.recorder.inlined(ix, self.buffers.depths.get(ix as usize).copied().unwrap_or(0));
        }
        let stop = task::stop(&self.cancel.requested, limit.map(|limit| limit.at));
        let mut cx = ComputeContext::new(self.request, scratch, stop).with_end(until, self.request.recorded_picks(ix));
        let Task::Compute(task) = &step.task else {
            return Err(TaskError::bug("a read was placed among the steps that compute").into());
        };
        let last = if asks { 0 } else { progress.claim(step) };
        let threshold_ns = self.context.policy.inline_threshold_ns as f32;
        let stopwatch = step.cost.stopwatch(rows_in, threshold_ns);
        let mut inputs = if asks { InputRows::owned(&mut asked) } else { progress.lend(step, last) };
        let result = call::run(step, &**task, &mut inputs, &mut cx);
        let counts = cx.counts;
        progress.release(step, last);
        let ended = clock::now();
        note_counts(progress, ix, counts, ended);
        let took_ns = nanos_between(started, ended);
        let took = stopwatch.stop(took_ns, true);
        (self.buffers.inline_clock.seen, self.buffers.inline_clock.unseen_ns) =
            (Some(ended), self.buffers.inline_clock.unseen_ns + took_ns as f32);
        if result.is_ok() {
            step.cost.learn(rows_in, took, threshold_ns);
            self.steps.times.iter().for_each(|times| times.learn(ix, ended.saturating_duration_since(started)));
        }
        // The request's own deadline is looked at before the next step, if there is one.
        let timed_out = limit.filter(|limit| limit.limit != Limit::Request && limit.has_passed(ended));
        if traced {
            let rows = result.as_ref().ok().filter(|_| timed_out.is_none());
            self.recorder.ended(ix, rows, (started, ended), Where::Loop, &Tally::default(), counts);
            if step.pass.is_some() {
                let failed = result.as_ref().err().and_then(|error| error.node);
                self.recorder.pass_report(ix, PassReport::new(scratch, failed));
            }
        }
        match timed_out {
            Some(limit) => Err(NodeFailure::TimedOut(limit)),
            None => Ok(result?),
        }
    }

    /// When a step that starts now must be done and, where it is anytime, when it hands over what it has.
    #[inline]
    pub(super) fn limits_of(&self, ix: NodeIx, step: &Step, now: Instant) -> (Option<Deadline>, Option<Instant>) {
        // Most runs have a deadline of the request, and none for single nodes.
        match self.limits_nodes || step.is_anytime {
            true => self.own_limits_of(ix, step, now),
            false => (self.limits.request, None),
        }
    }

    #[inline(never)]
    fn own_limits_of(&self, ix: NodeIx, step: &Step, now: Instant) -> (Option<Deadline>, Option<Instant>) {
        let mut own = self.limits.of_node(now, step.timeout);
        // Without its fallback, a node that has one is like any other.
        let learns = step.is_anytime && !(step.has_fallback && self.request.strict);
        if let (true, Some(times), Some(request)) = (learns, &self.steps.times, &self.limits.request) {
            let learned = times.hand_over(ix, request, now);
            own = own.filter(|own| own.at < learned.at).or(Some(learned));
        }
        self.limits.split(own, (step.is_anytime && !self.request.strict, step.has_fallback))
    }

    /// Reads the clock: whether time is up, whether the turn is over, and whether the predictions hold.
    pub(super) fn look(&mut self) -> Look {
        let RunBuffers { inline_clock, ready, next_ready, .. } = &mut *self.buffers;
        let now = clock::now();
        if let Some(seen) = inline_clock.seen.replace(now) {
            let took_ns = nanos_between(seen, now) as f32;
            if LearnedCost::is_far_off(inline_clock.unseen_ns, took_ns, self.context.policy.inline_threshold_ns as f32)
            {
                let unseen = ready.get(inline_clock.unseen_from..*next_ready).unwrap_or_default();
                unseen.iter().for_each(|(ix, _)| self.steps.step(*ix).cost.suspect());
            }
        }
        (inline_clock.unseen_ns, inline_clock.unseen_from) = (0.0, *next_ready);
        let began = *inline_clock.turn_began.get_or_insert(now);
        if let Some(&(next, _)) = ready.get(*next_ready) {
            if let Some(request) = self.limits.request.filter(|request| request.has_passed(now)) {
                return Look::TooLate(next, request);
            }
            if self.cancel.requested.load(Ordering::Relaxed) {
                return Look::Cancelled;
            }
        }
        if nanos_between(began, now) >= TURN_NS { Look::TurnIsOver } else { Look::GoOn }
    }
}
