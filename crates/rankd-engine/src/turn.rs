//! A run's turn on its loop: cheap computations, one after the other, here and now.
//!
//! No allocation, no queue and no thread in between; the clock is looked at only now and then, by the work that was predicted
//! since. A turn is bounded: a run that has had its time goes to the back of the line. Costs are learned from every sixteenth
//! run of a plan, whose steps are measured one by one, and from every look that shows the predictions to be far off.

use crate::clock::{self, Instant, nanos_between};
use crate::deadline::{Limit, Limits};
use crate::error::{ErrorKind, RunError, TaskError};
use crate::flight;
use crate::link::Linked;
use crate::place::Policy;
use crate::run::Run;
use crate::steps::{Step, Steps};
use crate::task::{ComputeContext, Tally, Task};
use crate::trace::Where;
use crate::unfold::Told;
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
/// Work that took longer than this many times its prediction, and than the threshold besides, was not what it seemed.
const FAR_OFF: f32 = 4.0;

/// Why a turn ended.
pub(crate) enum Paused {
    NothingIsReady,
    /// Reads became ready: they should leave before more is computed.
    ReadsAreReady,
    TurnIsOver,
}

/// How a run goes about its turns.
#[derive(Default)]
pub(crate) struct Pace {
    /// Every step is timed: for the trace, because this run is a sample, or because nodes have time-outs.
    watched: bool,
    node_limits: bool,
    /// When the clock was last looked at; nothing when too much may have happened since.
    seen: Option<Instant>,
    /// Predicted work since then, and the steps that it was.
    unseen_ns: f32,
    unseen: Vec<NodeIx>,
    turn_began: Option<Instant>,
    current: NodeIx,
    /// By node: how many have followed each other on the loop, 0 for those that ran elsewhere. Kept only where it matters.
    depths: Vec<u32>,
    pub(crate) inlined: u64,
    pub(crate) chained: u64,
}

impl Pace {
    pub(crate) fn begin(&mut self, plan: &Linked, steps: &Steps, limits: &Limits, policy: &Policy, traced: bool) {
        self.node_limits = limits.node_timeout.is_some() || steps.has_timeouts;
        self.watched = plan.is_sample() || traced || self.node_limits;
        self.depths.clear();
        if traced || (policy.max_inline_depth as usize) < steps.order.len() {
            self.depths.resize(plan.nodes.len(), 0);
        }
        self.is_stale();
        (self.unseen_ns, self.inlined, self.chained) = (0.0, 0, 0);
        self.unseen.clear();
    }

    /// Whether single nodes have limits.
    pub(crate) fn watches_nodes(&self) -> bool {
        self.node_limits
    }

    pub(crate) fn is_stale(&mut self) {
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

    pub(crate) fn goes_to(&mut self, ix: NodeIx, depth: u32) {
        if let Some(at) = self.depths.get_mut(ix as usize) {
            *at = depth;
        }
    }
}

impl Run<'_> {
    /// Runs what is ready for the loop, as long as it is this run's turn.
    pub(crate) fn turn(&mut self) -> Result<Paused, RunError> {
        if self.state.next_ready == self.state.ready.len() {
            return Ok(match self.state.fresh.is_empty() {
                true => Paused::NothingIsReady,
                false => Paused::ReadsAreReady,
            });
        }
        let host = self.host;
        self.state.pace.is_stale();
        self.state.pace.turn_began = None;
        let walked = flight::with_scratch(&host.stats, |scratch| self.walk(scratch));
        walked.unwrap_or_else(|panic| Err(self.fails(self.state.pace.current, panic)))
    }

    fn walk(&mut self, scratch: &mut Scratch) -> Result<Paused, RunError> {
        self.look()?;
        while self.state.fresh.is_empty() {
            let Some(&(ix, predicted_ns)) = self.state.ready.get(self.state.next_ready) else {
                self.state.ready.clear();
                self.state.next_ready = 0;
                self.look()?;
                return Ok(Paused::NothingIsReady);
            };
            if self.state.pace.unseen_ns >= LOOK_EVERY_NS && self.look()? {
                return Ok(Paused::TurnIsOver);
            }
            self.state.next_ready += 1;
            self.state.pace.current = ix;
            self.state.pace.inlined += 1;
            let step = self.steps.step(ix);
            let rows = match self.state.pace.watched {
                true => self.run_watched(ix, step, predicted_ns, scratch)?,
                false => {
                    self.state.pace.unseen_ns += predicted_ns + STEP_NS;
                    self.state.pace.unseen.push(ix);
                    self.call(step, scratch).map_err(|error| self.fails(ix, error))?
                }
            };
            self.finish(ix, rows)?;
        }
        Ok(Paused::ReadsAreReady)
    }

    fn call(&mut self, step: &Step, scratch: &mut Scratch) -> Result<RowSet, TaskError> {
        let Task::Compute(task) = &step.task else { return Err(flight::bug("a read does not run in a turn")) };
        let (params, stop) = (&*self.request.params, &self.cancel.requested);
        let deadline = self.limits.request.map(|request| request.at);
        let mut cx = ComputeContext { params, scratch, stop, deadline };
        self.state.progress.lend(self.steps, step, |inputs| task.run(inputs, &mut cx))
    }

    /// The same with the clock read before and after.
    fn run_watched(
        &mut self,
        ix: NodeIx,
        step: &Step,
        predicted_ns: f32,
        scratch: &mut Scratch,
    ) -> Result<RowSet, RunError> {
        let started = self.state.pace.now();
        if let Some(request) = self.limits.request.filter(|request| request.passed(started)) {
            return Err(self.plan.at_node(ix, RunError::too_late_to_start(&request)));
        }
        let inputs = self.steps.inputs(step);
        let rows_in = self.state.progress.rows_in(inputs);
        if self.recorder.is_on() {
            self.recorder.started(ix, self.state.progress.peek(inputs), Where::Loop, started);
            self.recorder.inlined(ix, self.state.pace.depths.get(ix as usize).copied().unwrap_or(0));
        }
        let result = self.call(step, scratch);
        let ended = clock::now();
        if self.recorder.is_on() && step.pass.is_some() {
            let failed = result.as_ref().err().and_then(|error| error.node);
            self.recorder.told(ix, Told { rows_out: scratch.rows_out().to_vec(), failed });
        }
        self.state.pace.seen = Some(ended);
        let took_ns = nanos_between(started, ended);
        let threshold_ns = self.host.policy.inline_threshold_ns as f32;
        self.state.pace.unseen_ns += took_ns as f32;
        if took_ns as f32 > FAR_OFF * predicted_ns + threshold_ns {
            step.cost.distrust();
        }
        let rows = result.map_err(|error| self.fails(ix, error))?;
        step.cost.learn(rows_in, took_ns, threshold_ns);
        let limit = self.limits.of_node(started, step.timeout);
        if let Some(limit) = limit.filter(|limit| limit.limit == Limit::Node && limit.passed(ended)) {
            self.recorder.ended(ix, None, (started, ended), Where::Loop, &Tally::default());
            return Err(self.plan.at_node(ix, RunError::timeout(&limit)));
        }
        self.recorder.ended(ix, Some(&rows), (started, ended), Where::Loop, &Tally::default());
        Ok(rows)
    }

    /// Looks at the clock, whether time is up and whether the predictions hold; true when the turn is over.
    fn look(&mut self) -> Result<bool, RunError> {
        let pace = &mut self.state.pace;
        let now = clock::now();
        if let Some(seen) = pace.seen.replace(now) {
            let took_ns = nanos_between(seen, now) as f32;
            if took_ns > FAR_OFF * pace.unseen_ns + self.host.policy.inline_threshold_ns as f32 {
                // One of them, and the pool will tell which.
                pace.unseen.iter().for_each(|ix| self.steps.step(*ix).cost.distrust());
            }
        }
        pace.unseen_ns = 0.0;
        pace.unseen.clear();
        let began = *pace.turn_began.get_or_insert(now);
        if let Some(&(next, _)) = self.state.ready.get(self.state.next_ready) {
            if let Some(request) = self.limits.request.filter(|request| request.passed(now)) {
                return Err(self.plan.at_node(next, RunError::too_late_to_start(&request)));
            }
            if self.cancel.requested.load(Ordering::Relaxed) {
                return Err(RunError::cancelled());
            }
        }
        Ok(nanos_between(began, now) >= TURN_NS)
    }

    /// A step that failed here. One that stopped because its time was up has no other reason.
    fn fails(&mut self, ix: NodeIx, error: TaskError) -> RunError {
        let now = clock::now();
        self.recorder.ended_now(ix, now);
        match self.limits.request.filter(|request| request.passed(now)) {
            Some(request) if error.kind == ErrorKind::Cancelled => self.plan.at_node(ix, RunError::timeout(&request)),
            _ => self.plan.blame(ix, error),
        }
    }
}
