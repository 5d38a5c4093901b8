//! A run's turn on its loop: cheap computations, one after the other, here and now.
//!
//! No allocation, no queue and no thread in between; the clock is looked at only now and then, by the work that was predicted
//! since. A turn is bounded: a run that has had its time goes to the back of the line. Costs are learned from one run in thirty-two
//! of a plan, whose steps are timed one by one; where a look shows that the predictions were far off, those steps are timed
//! by themselves the next time.

use crate::clock::{self, Instant, nanos_between};
use crate::cost::LearnedCost;
use crate::deadline::{Limit, Limits};
use crate::error::{RunError, TaskError};
use crate::expand_passes::PassReport;
use crate::link::Linked;
use crate::loop_context::RunBuffers;
use crate::place::{Policy, cheap};
use crate::run::Run;
use crate::run::job;
use crate::steps::Steps;
use crate::task::{ComputeContext, Tally, Task};
use crate::trace::Where;
use rankd_column::RowSet;
use rankd_column::expr::Scratch;
use rankd_plan::plan::NodeIx;
use std::sync::atomic::Ordering;

/// How much predicted work may go by between two looks at the clock.
const LOOK_EVERY_NS: f32 = 2_000.0;
/// What a step costs besides its own work, and so a bound on the steps between two looks.
const STEP_NS: f32 = 64.0;
/// How long a run may hold the loop while others wait.
const TURN_NS: u64 = 200_000;

/// Why a turn ended.
pub(crate) enum Paused {
    NothingIsReady,
    /// Reads became ready: they should leave before more is computed.
    ReadsAreReady,
    TurnIsOver,
}

/// How a run goes about its turns.
#[derive(Default)]
pub(crate) struct InlineClock {
    /// Every step is timed: for the trace, because this run is a sample, or because nodes have time-outs.
    timed: bool,
    /// This run is one of those that measure.
    pub(crate) sample: bool,
    node_limits: bool,
    /// When the clock was last looked at; nothing when too much may have happened since.
    seen: Option<Instant>,
    /// Predicted work since then, and the first of the steps that it was, as a place in the ready list.
    unseen_ns: f32,
    unseen_from: usize,
    turn_began: Option<Instant>,
    /// By node: how many have followed each other on the loop, 0 for those that ran elsewhere. Kept only where it matters.
    depths: Vec<u32>,
    /// Steps that ran here, without those that are still in the ready list.
    pub(crate) inlined: u64,
    pub(crate) chained: u64,
    /// Readers that became ready and may belong elsewhere.
    undecided: Vec<NodeIx>,
}

/// Why steps were not called one after the other any more.
enum Break {
    NothingIsReady,
    /// It is time to look at the clock.
    Look,
    /// The next step is to be timed.
    Timed,
    /// After this step there are readers to decide on.
    Undecided(NodeIx),
    Failed(NodeIx, TaskError),
}

impl InlineClock {
    pub(crate) fn begin(&mut self, plan: &Linked, steps: &Steps, limits: &Limits, policy: &Policy, traced: bool) {
        self.node_limits = limits.node_timeout.is_some() || steps.has_timeouts;
        self.sample = plan.is_sample();
        self.timed = self.sample || traced || self.node_limits;
        self.depths.clear();
        if traced || (policy.max_inline_depth as usize) < steps.order.len() {
            self.depths.resize(plan.nodes.len(), 0);
        }
        self.forget();
        (self.unseen_ns, self.unseen_from, self.inlined, self.chained) = (0.0, 0, 0, 0);
    }

    /// Whether single nodes have limits.
    pub(crate) fn has_node_limits(&self) -> bool {
        self.node_limits
    }

    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// The time, as of the last look if that was just now.
    pub(crate) fn now(&mut self) -> Instant {
        *self.seen.get_or_insert_with(clock::now)
    }

    /// How deep a node would be that ran on the loop after this one.
    pub(crate) fn depth_after(&self, parent: Option<NodeIx>) -> u32 {
        1 + parent.and_then(|parent| self.depths.get(parent as usize)).copied().unwrap_or(0)
    }

    pub(crate) fn set_depth(&mut self, ix: NodeIx, depth: u32) {
        if let Some(at) = self.depths.get_mut(ix as usize) {
            *at = depth;
        }
    }
}

impl Run<'_> {
    /// Runs what is ready for the loop, as long as it is this run's turn.
    pub(crate) fn turn(&mut self) -> Result<Paused, RunError> {
        if self.buffers.next_ready == self.buffers.ready.len() {
            return Ok(match self.buffers.fresh.is_empty() {
                true => Paused::NothingIsReady,
                false => Paused::ReadsAreReady,
            });
        }
        let context = self.context;
        self.buffers.inline_clock.forget();
        self.buffers.inline_clock.turn_began = None;
        let walked = job::with_scratch(&context.stats, |scratch| self.walk(scratch));
        walked.unwrap_or_else(|panic| {
            let at = self.buffers.ready.get(self.buffers.next_ready.saturating_sub(1)).map_or(0, |(at, _)| *at);
            Err(self.fail(at, panic))
        })
    }

    fn walk(&mut self, scratch: &mut Scratch) -> Result<Paused, RunError> {
        self.look()?;
        while self.buffers.fresh.is_empty() {
            match self.call_ready(scratch) {
                Break::NothingIsReady => {
                    self.look()?;
                    let buffers = &mut *self.buffers;
                    buffers.inline_clock.inlined += buffers.ready.len() as u64;
                    buffers.ready.clear();
                    (buffers.next_ready, buffers.inline_clock.unseen_from) = (0, 0);
                    return Ok(Paused::NothingIsReady);
                }
                Break::Look if self.look()? => return Ok(Paused::TurnIsOver),
                Break::Look => {}
                Break::Timed => {
                    let Some(&(ix, _)) = self.buffers.ready.get(self.buffers.next_ready) else { continue };
                    self.buffers.next_ready += 1;
                    let rows = self.run_timed(ix, scratch)?;
                    self.finish(ix, rows)?;
                }
                Break::Undecided(after) => {
                    let mut undecided = std::mem::take(&mut self.buffers.inline_clock.undecided);
                    for reader in undecided.drain(..) {
                        self.make_ready(reader, Some(after))?;
                    }
                    self.buffers.inline_clock.undecided = undecided;
                }
                Break::Failed(ix, error) => return Err(self.fail(ix, error)),
            }
        }
        Ok(Paused::ReadsAreReady)
    }

    /// Calls ready steps one after the other, for as long as nothing else has to be done. The innermost loop of the engine.
    fn call_ready(&mut self, scratch: &mut Scratch) -> Break {
        let (steps, policy) = (self.steps, &self.context.policy);
        let RunBuffers { progress, ready, next_ready, inline_clock, .. } = &mut *self.buffers;
        if inline_clock.timed {
            return if *next_ready == ready.len() { Break::NothingIsReady } else { Break::Timed };
        }
        let deadline = self.limits.request.map(|request| request.at);
        let (params, stop) = (&*self.request.params, &self.cancel.requested);
        let mut cx = ComputeContext { params, scratch, stop, deadline };
        // Where depth does not matter and nothing is recorded, a cheap reader goes straight to the end of the list.
        let straight = policy.inline && inline_clock.depths.is_empty();
        let mut unseen_ns = inline_clock.unseen_ns;
        let broke = loop {
            let Some(&(ix, predicted_ns)) = ready.get(*next_ready) else { break Break::NothingIsReady };
            let step = steps.step(ix);
            let Task::Compute(task) = &step.task else { break Break::Timed };
            if unseen_ns >= LOOK_EVERY_NS {
                break Break::Look;
            }
            if step.cost.is_suspect() {
                break Break::Timed;
            }
            *next_ready += 1;
            unseen_ns += predicted_ns + STEP_NS;
            let last = progress.claim(step);
            let result = task.run(&mut progress.lend(step, last), &mut cx);
            progress.release(step, last);
            match result {
                Ok(rows) => progress.finish(ix, rows),
                Err(error) => break Break::Failed(ix, error),
            }
            let mut decided = true;
            for &reader in &step.readers {
                if progress.count_down(reader) {
                    let next = steps.step(reader);
                    match cheap(next, policy, params, || progress.rows_in(next)) {
                        Some(predicted_ns) if straight => ready.push((reader, predicted_ns)),
                        _ => {
                            inline_clock.undecided.push(reader);
                            decided = false;
                        }
                    }
                }
            }
            if !decided {
                break Break::Undecided(ix);
            }
        };
        inline_clock.unseen_ns = unseen_ns;
        broke
    }

    /// Calls one step with the clock read before and after.
    fn run_timed(&mut self, ix: NodeIx, scratch: &mut Scratch) -> Result<RowSet, RunError> {
        let step = self.steps.step(ix);
        let started = self.buffers.inline_clock.now();
        if let Some(request) = self.limits.request.filter(|request| request.has_passed(started)) {
            return Err(self.plan.at_node(ix, RunError::too_late_to_start(&request)));
        }
        let rows_in = self.buffers.progress.rows_in(step);
        if self.recorder.is_on() {
            self.recorder.started(ix, self.buffers.progress.peek(step), Where::Loop, started);
            self.recorder.inlined(ix, self.buffers.inline_clock.depths.get(ix as usize).copied().unwrap_or(0));
        }
        let Task::Compute(task) = &step.task else { return Err(RunError::bug("a read does not run in a turn")) };
        let limit = self.limits.of_node(started, step.timeout);
        let (params, stop) = (&*self.request.params, &self.cancel.requested);
        let mut cx = ComputeContext { params, scratch, stop, deadline: limit.map(|limit| limit.at) };
        let last = self.buffers.progress.claim(step);
        let threshold_ns = self.context.policy.inline_threshold_ns as f32;
        let stopwatch = step.cost.stopwatch(rows_in, threshold_ns);
        let result = task.run(&mut self.buffers.progress.lend(step, last), &mut cx);
        self.buffers.progress.release(step, last);
        let ended = clock::now();
        let took = stopwatch.stop(nanos_between(started, ended), true);
        if self.recorder.is_on() && step.pass.is_some() {
            let failed = result.as_ref().err().and_then(|error| error.node);
            self.recorder.pass_report(ix, PassReport { rows_out: scratch.rows_out().to_vec(), failed });
        }
        self.buffers.inline_clock.seen = Some(ended);
        self.buffers.inline_clock.unseen_ns += nanos_between(started, ended) as f32;
        if result.is_ok() {
            step.cost.learn(rows_in, took, threshold_ns);
        }
        // The request's own limit is looked at before the next step, if there is one.
        if let Some(limit) = limit.filter(|limit| limit.limit == Limit::Node && limit.has_passed(ended)) {
            self.recorder.ended(ix, None, (started, ended), Where::Loop, &Tally::default());
            return Err(self.plan.at_node(ix, RunError::timeout(&limit)));
        }
        let rows = result.map_err(|error| self.fail(ix, error))?;
        self.recorder.ended(ix, Some(&rows), (started, ended), Where::Loop, &Tally::default());
        Ok(rows)
    }

    /// Looks at the clock, whether time is up and whether the predictions hold; true when the turn is over.
    fn look(&mut self) -> Result<bool, RunError> {
        let inline_clock = &mut self.buffers.inline_clock;
        let now = clock::now();
        if let Some(seen) = inline_clock.seen.replace(now) {
            let took_ns = nanos_between(seen, now) as f32;
            if LearnedCost::is_far_off(inline_clock.unseen_ns, took_ns, self.context.policy.inline_threshold_ns as f32)
            {
                let unseen =
                    self.buffers.ready.get(inline_clock.unseen_from..self.buffers.next_ready).unwrap_or_default();
                unseen.iter().for_each(|(ix, _)| self.steps.step(*ix).cost.suspect());
            }
        }
        (inline_clock.unseen_ns, inline_clock.unseen_from) = (0.0, self.buffers.next_ready);
        let began = *inline_clock.turn_began.get_or_insert(now);
        if let Some(&(next, _)) = self.buffers.ready.get(self.buffers.next_ready) {
            if let Some(request) = self.limits.request.filter(|request| request.has_passed(now)) {
                return Err(self.plan.at_node(next, RunError::too_late_to_start(&request)));
            }
            if self.cancel.requested.load(Ordering::Relaxed) {
                return Err(RunError::cancelled());
            }
        }
        Ok(nanos_between(began, now) >= TURN_NS)
    }

    /// A step that failed here.
    fn fail(&mut self, ix: NodeIx, error: TaskError) -> RunError {
        self.recorder.ended_now(ix, clock::now());
        self.blame(ix, error)
    }
}
