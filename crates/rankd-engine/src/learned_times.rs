//! How long the steps of a plan with fallbacks take, learned from its runs, and the limits that follow from that: nobody has to write
//! time-outs.
//!
//! A step with a fallback may take what the request's deadline leaves it, less what usually follows: its fallback, if that has to run
//! first, and the longest path from there to the answer. A step that usually takes longer than that is not started, except now and
//! then, so that a source that is fast again is used again. Kept for each version of a plan and shared by all loops: words that are
//! loaded and stored without order. A sample that another thread overwrites is a sample less, and nothing worse.

use crate::clock::{self, Instant};
use crate::deadline::{Deadline, Limit};
use crate::steps::Steps;
use crate::substitutes::source;
use rankd_plan::plan::NodeIx;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// The slow end is taken from so many samples: a few that had to wait for the machine do not count.
const SAMPLES: usize = 64;
/// What is usual is taken from the last few alone, so that a change shows soon.
const RECENT: usize = 16;
/// What handing over the answer takes, and the timer's error.
const MARGIN: Duration = Duration::from_millis(1);
/// Of the time that is left, at least this part is kept back.
const KEPT_PART: u32 = 10;
/// A step that is not started is tried all the same in one run of so many, and after this time.
const TRY_EVERY: u32 = 16;
const TRY_AFTER_MS: u32 = 100;

/// By node.
pub(crate) struct LearnedTimes {
    began: Instant,
    steps: Box<[StepTime]>,
}

struct StepTime {
    /// The last times in microseconds, over and over from the first place on.
    samples: [AtomicU32; SAMPLES],
    count: AtomicU32,
    p50_us: AtomicU32,
    p95_us: AtomicU32,
    /// The longest way from its end to the answer, and what has to run before its fallback has rows: each by the slow end.
    tail_us: AtomicU32,
    fallback_us: AtomicU32,
    /// Runs that did not start it, and when it was last started or cut, in milliseconds since `began`.
    refused: AtomicU32,
    started_ms: AtomicU32,
}

/// Whether a step with a fallback is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Until(Deadline),
    /// It usually takes longer than what is left for it.
    NoTime {
        left: Duration,
        usual: Duration,
    },
}

/// What has been learned of a step, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualTimes {
    pub samples: u32,
    pub p50: Duration,
    pub p95: Duration,
    /// What usually follows it, up to the answer: its own fallback, if that has to run first, and the steps after it.
    pub reserve: Duration,
}

fn micros(us: &AtomicU32) -> Duration {
    Duration::from_micros(us.load(Relaxed).into())
}

impl LearnedTimes {
    pub(crate) fn new(nodes: usize) -> LearnedTimes {
        let step = || StepTime {
            samples: std::array::from_fn(|_| AtomicU32::new(0)),
            count: AtomicU32::new(0),
            p50_us: AtomicU32::new(0),
            p95_us: AtomicU32::new(0),
            tail_us: AtomicU32::new(0),
            fallback_us: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            started_ms: AtomicU32::new(0),
        };
        LearnedTimes { began: clock::now(), steps: (0..nodes).map(|_| step()).collect() }
    }

    /// A step has taken this long.
    pub(crate) fn learn(&self, node: NodeIx, took: Duration) {
        let step = &self.steps[node as usize];
        let count = step.count.load(Relaxed) as usize;
        // Rounded up: a step that was called has taken some time.
        let us = u32::try_from(took.as_nanos().div_ceil(1_000)).unwrap_or(u32::MAX);
        step.samples[count % SAMPLES].store(us, Relaxed);
        let count = count.wrapping_add(1);
        step.count.store(count as u32, Relaxed);
        let last = |most: usize| (1..=most.min(count)).map(|back| step.samples[(count - back) % SAMPLES].load(Relaxed));
        let mut recent = [0; RECENT];
        let recent = fill(&mut recent, last(RECENT));
        step.p50_us.store(recent[(recent.len() - 1) / 2], Relaxed);
        if count <= RECENT || count.is_multiple_of(4) {
            let mut all = [0; SAMPLES];
            let all = fill(&mut all, last(SAMPLES));
            step.p95_us.store(all[(all.len() * 95).div_ceil(100) - 1], Relaxed);
        }
    }

    /// A step was cut. How long it would have taken is not known, except that it is longer than its limit.
    pub(crate) fn learn_cut(&self, node: NodeIx, limit: &Deadline, now: Instant) {
        self.learn(node, limit.allowed * 2);
        // Trying it again soon would tell no more.
        self.steps[node as usize].started_ms.store(self.millis(now), Relaxed);
    }

    /// Whether a step with a fallback is started now, and until when it may take.
    pub(crate) fn start(&self, node: NodeIx, request: &Deadline, now: Instant) -> Start {
        let step = &self.steps[node as usize];
        let left = request.at.saturating_duration_since(now);
        let until = |allowed: Duration| {
            step.started_ms.store(self.millis(now), Relaxed);
            Start::Until(Deadline { at: now + allowed, limit: Limit::Learned, allowed })
        };
        if step.count.load(Relaxed) == 0 {
            return until(left / 2);
        }
        let left = self.usable(step, left);
        let usual = micros(&step.p50_us);
        if usual <= left {
            return until(left);
        }
        if left.is_zero() || !self.is_due(step, now) {
            return Start::NoTime { left, usual };
        }
        // One that is only tried must not make the answer the last possible one.
        until(left * 7 / 8)
    }

    /// Until when an anytime step may go on. One that never ran has half of what is left.
    pub(crate) fn hand_over(&self, node: NodeIx, request: &Deadline, now: Instant) -> Deadline {
        let step = &self.steps[node as usize];
        let left = request.at.saturating_duration_since(now);
        let allowed = match step.count.load(Relaxed) {
            0 => left / 2,
            _ => self.usable(step, left),
        };
        Deadline { at: now + allowed, limit: Limit::Learned, allowed }
    }

    /// What follows usually takes its reserve; on a busy machine it takes longer, and then the answer would be too late.
    fn usable(&self, step: &StepTime, left: Duration) -> Duration {
        left.saturating_sub(self.reserve(step)).min(left - left / KEPT_PART)
    }

    fn is_due(&self, step: &StepTime, now: Instant) -> bool {
        let refused = step.refused.load(Relaxed).wrapping_add(1);
        step.refused.store(refused, Relaxed);
        let idle_ms = self.millis(now).wrapping_sub(step.started_ms.load(Relaxed));
        refused.is_multiple_of(TRY_EVERY) || idle_ms >= TRY_AFTER_MS
    }

    fn millis(&self, now: Instant) -> u32 {
        now.saturating_duration_since(self.began).as_millis() as u32
    }

    fn reserve(&self, step: &StepTime) -> Duration {
        micros(&step.tail_us) + micros(&step.fallback_us) + MARGIN
    }

    /// How long a step and what follows it take at the slow end: what is longest leaves the loop first.
    pub(crate) fn path(&self, node: NodeIx) -> Duration {
        let step = &self.steps[node as usize];
        micros(&step.p95_us) + micros(&step.tail_us)
    }

    pub(crate) fn usual(&self, node: NodeIx) -> UsualTimes {
        let step = &self.steps[node as usize];
        UsualTimes {
            samples: step.count.load(Relaxed),
            p50: micros(&step.p50_us),
            p95: micros(&step.p95_us),
            reserve: self.reserve(step),
        }
    }

    /// Finds the longest paths anew, from what was learned since the last time. Not for every run.
    pub(crate) fn find_paths(&self, steps: &Steps) {
        let p95_us = |node: NodeIx| self.steps[node as usize].p95_us.load(Relaxed);
        let is_lazy = |node: NodeIx| steps.is_lazy(node);
        // What has to run before a lazy node has rows.
        let mut before_us = vec![0u32; self.steps.len()];
        for &node in steps.order.iter().filter(|node| is_lazy(**node)) {
            let inputs = steps.step(node).awaited().iter().map(|input| before_us[*input as usize]);
            before_us[node as usize] = p95_us(node).saturating_add(inputs.max().unwrap_or(0));
        }
        let mut tail_us = vec![0u32; self.steps.len()];
        for &node in steps.order.iter().rev() {
            let at = node as usize;
            let readers = steps.step(node).readers.iter().filter(|reader| is_lazy(node) || !is_lazy(**reader));
            let longest = readers.map(|reader| p95_us(*reader).saturating_add(tail_us[*reader as usize])).max();
            tail_us[at] = tail_us[at].max(longest.unwrap_or(0));
            // A reserve that gives too little leaves time for those after it.
            let mut after_us = p95_us(node).saturating_add(tail_us[at]);
            for &reserve in steps.step(node).reserves().iter().rev() {
                let reserve = reserve as usize;
                tail_us[reserve] = tail_us[reserve].max(after_us);
                after_us = after_us.saturating_add(before_us[reserve]);
            }
            let fallback = steps.substitutes.as_ref().and_then(|of| of.of_node(node).fallback);
            if let Some(source) = fallback.and_then(|of| source(of, &steps.step(node).inputs)) {
                // Where it stands in, what follows is what would have followed this one.
                tail_us[source as usize] = tail_us[source as usize].max(tail_us[at]);
                self.steps[at].fallback_us.store(before_us[source as usize], Relaxed);
            }
            self.steps[at].tail_us.store(tail_us[at], Relaxed);
        }
    }
}

/// Sorted.
fn fill(into: &mut [u32], from: impl Iterator<Item = u32>) -> &[u32] {
    let mut len = 0;
    for (place, us) in into.iter_mut().zip(from) {
        *place = us;
        len += 1;
    }
    into[..len].sort_unstable();
    &into[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn deadline(now: Instant) -> Deadline {
        Deadline { at: now + 100 * MS, limit: Limit::Request, allowed: 100 * MS }
    }

    /// How long a step may take, or nothing where it is not started.
    fn allowed(times: &LearnedTimes, now: Instant) -> Option<Duration> {
        match times.start(0, &deadline(now), now) {
            Start::Until(until) => Some(until.allowed),
            Start::NoTime { .. } => None,
        }
    }

    #[test]
    fn a_step_that_never_ran_gets_half_of_what_is_left() {
        assert_eq!(allowed(&LearnedTimes::new(1), clock::now()), Some(50 * MS));
    }

    #[test]
    fn a_step_that_became_slow_is_soon_not_started_and_one_that_is_fast_again_soon_is() {
        let (times, mut now) = (LearnedTimes::new(1), clock::now());
        (0..100).for_each(|_| times.learn(0, 5 * MS));
        assert_eq!(allowed(&times, now), Some(90 * MS));
        // A read that was cut counts as twice its limit.
        (0..RECENT).for_each(|_| times.learn(0, 198 * MS));
        let started = (0..160).filter(|_| allowed(&times, now).is_some()).count();
        assert_eq!(started, 160 / TRY_EVERY as usize);
        now += Duration::from_millis(TRY_AFTER_MS.into());
        assert_eq!(allowed(&times, now), Some(90 * MS * 7 / 8), "one that is tried has a little less");
        assert_eq!(allowed(&times, now), None);
        (0..=RECENT / 2).for_each(|_| times.learn(0, 5 * MS));
        assert_eq!(allowed(&times, now), Some(90 * MS));
    }

    #[test]
    fn the_slow_end_is_not_the_slowest_sample() {
        let times = LearnedTimes::new(1);
        (0..SAMPLES as u32).for_each(|at| times.learn(0, MS * if at % 32 == 0 { 500 } else { 2 }));
        assert_eq!(times.usual(0).p95, 2 * MS);
        (0..SAMPLES as u32).for_each(|at| times.learn(0, MS * if at % 8 == 0 { 500 } else { 2 }));
        assert_eq!((times.usual(0).p50, times.usual(0).p95), (2 * MS, 500 * MS));
    }
}
