//! When what has left the loop must be back: one timer a run, armed to the earliest limit.

use super::job::JobProgress;
use crate::clock::{Instant, Timer};
use crate::deadline::{Deadline, Limits};
use crate::steps::Steps;
use rankd_plan::plan::NodeIx;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The limits of what is in flight.
#[derive(Default)]
pub(crate) struct Timeouts {
    /// Earliest first; those of steps that are back are passed over.
    limits: BinaryHeap<Reverse<PendingTimeout>>,
    /// By step: whether it is in flight and has a limit.
    in_flight: Vec<bool>,
    started: u32,
    /// Kept from an earlier run and set again.
    timer: Option<Timer>,
}

/// When to look at a step in flight.
struct PendingTimeout {
    at: Instant,
    /// Of equal moments, that of the step that was started first counts.
    started: u32,
    step: NodeIx,
    /// The first step's own; nothing where only a later step of the chain has one.
    deadline: Option<Deadline>,
    /// For a chain: where its job is by now, and the shortest time that one of its steps may take.
    chain: Option<(Arc<JobProgress>, Option<Duration>)>,
}

impl Ord for PendingTimeout {
    fn cmp(&self, other: &PendingTimeout) -> std::cmp::Ordering {
        (self.at, self.started).cmp(&(other.at, other.started))
    }
}

impl PartialOrd for PendingTimeout {
    fn partial_cmp(&self, other: &PendingTimeout) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingTimeout {
    fn eq(&self, other: &PendingTimeout) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PendingTimeout {}

impl Timeouts {
    pub(crate) fn begin(&mut self, nodes: usize) {
        self.limits.clear();
        self.in_flight.clear();
        self.in_flight.resize(nodes, false);
        self.started = 0;
    }

    /// The run is over.
    pub(crate) fn end(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.unset();
        }
    }

    /// A step leaves the loop now. `deadline` is its own.
    pub(crate) fn add(
        &mut self,
        ix: NodeIx,
        steps: &Steps,
        limits: &Limits,
        (now, deadline): (Instant, Option<Deadline>),
        job_progress: Option<Arc<JobProgress>>,
    ) {
        let chain = job_progress.map(|job_progress| (job_progress, shortest(ix, steps, limits)));
        let own = deadline.map(|deadline| deadline.at);
        let soonest = chain.as_ref().and_then(|(_, shortest)| now.checked_add((*shortest)?));
        let Some(at) = soonest.into_iter().chain(own).min() else { return };
        self.started += 1;
        self.in_flight[ix as usize] = true;
        self.limits.push(Reverse(PendingTimeout { at, started: self.started, step: ix, deadline, chain }));
    }

    /// A step is back.
    pub(crate) fn remove(&mut self, ix: NodeIx) {
        self.in_flight[ix as usize] = false;
    }

    /// Waits for the first limit of what is in flight to pass, and returns the step that it belongs to.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, steps: &Steps, limits: &Limits) -> Poll<(NodeIx, Deadline)> {
        loop {
            let Some(Reverse(first)) = self.limits.peek() else { return Poll::Pending };
            if !self.in_flight[first.step as usize] {
                self.limits.pop();
                continue;
            }
            let at = first.at;
            let timer = match &mut self.timer {
                Some(timer) => {
                    timer.set(at);
                    timer
                }
                none => none.insert(Timer::new(at)),
            };
            if Pin::new(timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(Reverse(first)) = self.limits.pop()
                && let Some(passed) = self.whose(first, steps, limits)
            {
                return Poll::Ready(passed);
            }
        }
    }

    /// Whose limit has passed: that of the step, or of the one that its chain is at, unless that one still has time.
    fn whose(&mut self, mut first: PendingTimeout, steps: &Steps, limits: &Limits) -> Option<(NodeIx, Deadline)> {
        // A job that has not begun is its first step's.
        let (step, deadline) = match first.chain.as_ref().and_then(|(job_progress, _)| job_progress.current()) {
            Some((step, since)) if step != first.step => (step, limits.of_node(since, steps.step(step).timeout)),
            _ => (first.step, first.deadline),
        };
        if let Some(deadline) = deadline.filter(|deadline| deadline.has_passed(first.at)) {
            return Some((step, deadline));
        }
        let again = first.chain.as_ref().and_then(|(_, shortest)| first.at.checked_add((*shortest)?));
        first.at = again.into_iter().chain(deadline.map(|deadline| deadline.at)).min()?;
        self.limits.push(Reverse(first));
        None
    }
}

/// The shortest time that a step of the chain from `ix` on may take.
fn shortest(ix: NodeIx, steps: &Steps, limits: &Limits) -> Option<Duration> {
    let chain = std::iter::successors(Some(ix), |ix| steps.step(*ix).next);
    chain.filter_map(|ix| steps.step(ix).timeout.filter(|_| limits.times_nodes)).chain(limits.node_timeout).min()
}
