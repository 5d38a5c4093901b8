//! When what has left the loop must be back: one timer a run, armed to the earliest limit.

use crate::clock::{Instant, Timer};
use crate::deadline::{Deadline, Limits};
use crate::job::Whereabouts;
use crate::steps::{Step, Steps};
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
pub(crate) struct Watch {
    /// Earliest first; those of steps that are back are passed over.
    limits: BinaryHeap<Reverse<Watched>>,
    /// By step: whether it is in flight and has a limit.
    in_flight: Vec<bool>,
    started: u32,
    /// The timer of an earlier run is set anew.
    timer: Option<Timer>,
}

/// When to look at a step in flight.
struct Watched {
    at: Instant,
    /// Of equal moments, that of the step that was started first counts.
    started: u32,
    step: NodeIx,
    /// The first step's own; nothing where only a later step of the stretch has one.
    deadline: Option<Deadline>,
    /// For a stretch: where its job is by now, and the shortest time that one of its steps may take.
    stretch: Option<(Arc<Whereabouts>, Option<Duration>)>,
}

impl Ord for Watched {
    fn cmp(&self, other: &Watched) -> std::cmp::Ordering {
        (self.at, self.started).cmp(&(other.at, other.started))
    }
}

impl PartialOrd for Watched {
    fn partial_cmp(&self, other: &Watched) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Watched {}

impl Watch {
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

    /// A step leaves the loop now.
    pub(crate) fn set(
        &mut self,
        ix: NodeIx,
        step: &Step,
        steps: &Steps,
        limits: &Limits,
        now: Instant,
        whereabouts: Option<Arc<Whereabouts>>,
    ) {
        let stretch = whereabouts.map(|whereabouts| (whereabouts, shortest(ix, steps, limits)));
        let deadline = limits.of_node(now, step.timeout);
        let own = deadline.map(|deadline| deadline.at);
        let soonest = stretch.as_ref().and_then(|(_, shortest)| now.checked_add((*shortest)?));
        let Some(at) = soonest.into_iter().chain(own).min() else { return };
        self.started += 1;
        self.in_flight[ix as usize] = true;
        self.limits.push(Reverse(Watched { at, started: self.started, step: ix, deadline, stretch }));
    }

    /// A step is back.
    pub(crate) fn unset(&mut self, ix: NodeIx) {
        self.in_flight[ix as usize] = false;
    }

    /// Waits for the first limit of what is in flight to pass, and tells whose it is.
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
                && let Some(passed) = self.passed(first, steps, limits)
            {
                return Poll::Ready(passed);
            }
        }
    }

    /// Whose limit has passed: that of the step, or of the one that its stretch is at, unless that one still has time.
    fn passed(&mut self, mut first: Watched, steps: &Steps, limits: &Limits) -> Option<(NodeIx, Deadline)> {
        // A job that has not begun is its first step's.
        let (step, deadline) = match first.stretch.as_ref().and_then(|(whereabouts, _)| whereabouts.now()) {
            Some((step, since)) if step != first.step => (step, limits.of_node(since, steps.step(step).timeout)),
            _ => (first.step, first.deadline),
        };
        if let Some(deadline) = deadline.filter(|deadline| deadline.passed(first.at)) {
            return Some((step, deadline));
        }
        let again = first.stretch.as_ref().and_then(|(_, shortest)| first.at.checked_add((*shortest)?));
        first.at = again.into_iter().chain(deadline.map(|deadline| deadline.at)).min()?;
        self.limits.push(Reverse(first));
        None
    }
}

/// The shortest time that a step of the stretch from `ix` on may take.
fn shortest(ix: NodeIx, steps: &Steps, limits: &Limits) -> Option<Duration> {
    let stretch = std::iter::successors(Some(ix), |ix| steps.step(*ix).next);
    stretch.filter_map(|ix| steps.step(ix).timeout).chain(limits.node_timeout).min()
}
