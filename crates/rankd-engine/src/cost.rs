//! What a step costs, learned from real calls: so much for a call and so much for each row.
//!
//! Shared by all loops and read on every request, so it is two words that are loaded and stored without order: a sample that
//! another thread overwrites is a sample less, and nothing worse. What comes near the threshold is measured by what the thread
//! worked, and not by the clock, which also counts what others did meanwhile. A call that took far longer than predicted only
//! makes the step suspect: the next call is measured by itself, and if that is slow as well, the loop no longer trusts the step. It
//! does again after the step has been cheap on the pool for a while, which takes longer each time.
//!
//! A step is slower on a thread of the pool, whose caches are cold. So near the threshold, what seems expensive there counts only when it
//! was measured on the loop, and a step that is there may become a little dearer before it has to leave: else it would stay wherever it
//! happened to be, or go back and forth.

use crate::clock;
use rankd_plan::signature::Cost;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Rows that weigh as much as the call itself when an error is shared out between the two.
const ROWS_SCALE: f32 = 256.0;
/// A call that took longer than the threshold plus this many times its prediction was mispredicted.
const FAR_OFF: f32 = 4.0;
/// From this part of the threshold on, the clock alone is not believed.
const EXACT_FROM: f32 = 0.25;
/// What is between the threshold divided by this and multiplied with it is near the threshold.
const NEAR: f32 = 3.0;
/// A step that the loop has taken may cost this much of the threshold before it has to leave.
const STAYS_UNTIL: f32 = 1.25;
/// Probation doubles up to this many cheap calls on the pool.
const PROBATION_MAX: u32 = 1 << 12;
const WANTED: u32 = 0xFFFF;
const LENGTH: u32 = 0x3FFF;
const STAYS: u32 = 1 << 30;
const SUSPECT: u32 = 1 << 31;
/// So many measured calls without a surprise make the next probation shorter again.
const CALM: u32 = 256;

pub struct LearnedCost {
    /// Nanoseconds for a call and nanoseconds for a row, as two `f32`.
    line: AtomicU64,
    /// From the low bits on: 16 for the cheap calls that are still wanted before the loop takes the step again, 14 for the
    /// length of the last probation, one for having been found cheap, and one for being suspect.
    probation: AtomicU32,
    samples: AtomicU32,
}

/// What has been learned, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostLine {
    /// Infinite while nothing is known.
    pub fixed_ns: f32,
    pub per_row_ns: f32,
    pub samples: u32,
}

impl LearnedCost {
    /// Starts from what the author of the plan says, else from what the author of the task says.
    pub(crate) fn new(declared: Cost, estimate_us: Option<u32>) -> LearnedCost {
        let (fixed, per_row) = match (estimate_us, declared) {
            (Some(us), _) => (us as f32 * 1000.0, 0.0),
            (None, Cost::Trivial) => (0.0, 0.0),
            (None, Cost::About { fixed_ns, per_row_ns }) => (fixed_ns, per_row_ns),
            (None, Cost::Unknown) => (f32::INFINITY, 0.0),
        };
        LearnedCost {
            line: AtomicU64::new(pack(fixed, per_row)),
            probation: AtomicU32::new(0),
            samples: AtomicU32::new(0),
        }
    }

    /// Nanoseconds that a call on this many rows takes; infinite while that is not known.
    pub(crate) fn predict_ns(&self, rows: usize) -> f32 {
        let (fixed, per_row) = unpack(self.line.load(Relaxed));
        fixed + per_row * rows as f32
    }

    /// How many nanoseconds a call on this many rows takes, if that is cheap and the loop trusts the step.
    #[inline]
    pub(crate) fn cheap_ns(&self, rows: usize, threshold_ns: f32) -> Option<f32> {
        let (predicted_ns, word) = (self.predict_ns(rows), self.probation.load(Relaxed));
        let most = if word & STAYS != 0 { threshold_ns * STAYS_UNTIL } else { threshold_ns };
        (predicted_ns < most && word & WANTED == 0).then_some(predicted_ns)
    }

    /// The most rows for which [`LearnedCost::cheap_ns`] calls a call cheap: `u64::MAX` where rows do not matter, nothing where not
    /// even a call without rows is cheap.
    pub fn cheap_up_to(&self, threshold_ns: f32) -> Option<u64> {
        self.cheap_ns(0, threshold_ns)?;
        let (_, per_row_ns) = unpack(self.line.load(Relaxed));
        if per_row_ns <= 0.0 {
            return Some(u64::MAX);
        }
        let is_cheap = |rows: u64| self.cheap_ns(rows as usize, threshold_ns).is_some();
        let (mut cheap, mut dear) = (0, 1 << 40);
        while dear - cheap > 1 {
            let rows = cheap + (dear - cheap) / 2;
            if is_cheap(rows) { cheap = rows } else { dear = rows }
        }
        Some(cheap)
    }

    /// The same for one that is not known to be cheap, but near enough to be tried on the loop now and then.
    pub(crate) fn near_ns(&self, rows: usize, threshold_ns: f32) -> Option<f32> {
        let predicted_ns = self.predict_ns(rows);
        (predicted_ns < threshold_ns * NEAR && self.probation.load(Relaxed) & WANTED == 0).then_some(predicted_ns)
    }

    /// Begins to measure a call.
    pub(crate) fn stopwatch(&self, rows: usize, threshold_ns: f32) -> Stopwatch {
        let exact = self.is_suspect() || self.predict_ns(rows) >= threshold_ns * EXACT_FROM;
        Stopwatch { exact, began_ns: if exact { clock::thread_cpu_ns() } else { None } }
    }

    /// Whether the next call should be timed by itself.
    pub(crate) fn is_suspect(&self) -> bool {
        self.probation.load(Relaxed) & SUSPECT != 0
    }

    /// It was among what took far longer than predicted.
    pub(crate) fn suspect(&self) {
        self.probation.store(self.probation.load(Relaxed) | SUSPECT, Relaxed);
    }

    /// Whether work of a predicted length was something else.
    pub(crate) fn is_far_off(predicted_ns: f32, took_ns: f32, threshold_ns: f32) -> bool {
        took_ns > FAR_OFF * predicted_ns + threshold_ns
    }

    /// Learns from how long a call on this many rows took.
    pub(crate) fn learn(&self, rows: usize, took: Took, threshold_ns: f32) {
        let (rows, took_ns) = (rows as f32, took.ns as f32);
        let (fixed, per_row) = unpack(self.line.load(Relaxed));
        let predicted_ns = fixed + per_row * rows;
        let word = self.probation.load(Relaxed);
        // What is not known cannot be far off: an infinite prediction.
        let far_off = LearnedCost::is_far_off(predicted_ns, took_ns, threshold_ns);
        let doubtful = !took.exact && took_ns >= threshold_ns * EXACT_FROM;
        if doubtful || (far_off && word & SUSPECT == 0) {
            self.suspect();
            return;
        }
        let near = (threshold_ns / NEAR..threshold_ns * NEAR).contains(&predicted_ns);
        // On the pool it takes longer: what is cheap even there is cheap, and what is not may still be cheap on the loop.
        let tells_nothing = near && !took.on_loop && (threshold_ns..threshold_ns * NEAR).contains(&took_ns);
        let line = match fixed.is_finite() {
            false => (took_ns, 0.0),
            true if tells_nothing => (fixed, per_row),
            true => nearer((fixed, per_row), rows, took_ns),
        };
        self.line.store(pack(line.0, line.1), Relaxed);
        let samples = self.samples.load(Relaxed).saturating_add(1);
        self.samples.store(samples, Relaxed);
        let stays = match line.0 + line.1 * rows {
            predicted_ns if predicted_ns < threshold_ns => STAYS,
            predicted_ns if predicted_ns < threshold_ns * STAYS_UNTIL => word & STAYS,
            _ => 0,
        };
        let (wanted, length) = (word & WANTED, (word >> 16) & LENGTH);
        let next = match wanted {
            _ if far_off => probation((length * 2).clamp(2, PROBATION_MAX)),
            0 if length > 1 && samples.is_multiple_of(CALM) => (length / 2) << 16,
            0 => length << 16,
            // It is measured on the pool, where it takes longer.
            _ if took_ns < threshold_ns * NEAR => (length << 16) | (wanted - 1),
            _ => probation(length),
        };
        if next | stays != word {
            self.probation.store(next | stays, Relaxed);
        }
    }

    pub fn line(&self) -> CostLine {
        let (fixed_ns, per_row_ns) = unpack(self.line.load(Relaxed));
        CostLine { fixed_ns, per_row_ns, samples: self.samples.load(Relaxed) }
    }
}

/// A call that is being measured.
pub(crate) struct Stopwatch {
    exact: bool,
    /// What the thread had worked when it began, where that is asked for and known.
    began_ns: Option<u64>,
}

impl Stopwatch {
    /// For a virtual clock, which no other thread can move.
    pub(crate) fn of_exact_clock() -> Stopwatch {
        Stopwatch { exact: true, began_ns: None }
    }

    /// The call has ended, after so long by the clock.
    pub(crate) fn stop(self, clock_ns: u64, on_loop: bool) -> Took {
        let worked_ns = self.began_ns.and_then(|began_ns| Some(clock::thread_cpu_ns()?.saturating_sub(began_ns)));
        // What the thread worked includes finding that out, which the clock need not have seen.
        Took { ns: worked_ns.map_or(clock_ns, |worked_ns| worked_ns.min(clock_ns)), exact: self.exact, on_loop }
    }
}

/// How long a call took.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) ns: u64,
    /// Whether interruptions are not in it.
    exact: bool,
    on_loop: bool,
}

#[cfg(test)]
impl Took {
    pub(crate) fn exact(ns: u64) -> Took {
        Took { ns, exact: true, on_loop: true }
    }
}

/// All of a probation of this length is still to come.
fn probation(length: u32) -> u32 {
    (length << 16) | length
}

/// A line that passes nearer to the sample. Down quickly, because a call is slow for many reasons and fast for one.
fn nearer((fixed, per_row): (f32, f32), rows: f32, took: f32) -> (f32, f32) {
    let error = took - (fixed + per_row * rows);
    let step = if error < 0.0 { 0.75 } else { 0.25 } * error;
    let aim = fixed + per_row * rows + step;
    let weight = rows / ROWS_SCALE;
    let share = step / (1.0 + weight * weight);
    let (fixed, per_row) = ((fixed + share).max(0.0), (per_row + share * weight / ROWS_SCALE).max(0.0));
    // Neither is less than nothing: what one of them cannot give, the other does.
    let over = fixed + per_row * rows - aim;
    if over <= 1.0 || rows < 1.0 {
        return (fixed, per_row);
    }
    let fixed = (fixed - over).max(0.0);
    (fixed, (aim - fixed).max(0.0) / rows)
}

fn pack(fixed: f32, per_row: f32) -> u64 {
    u64::from(fixed.to_bits()) << 32 | u64::from(per_row.to_bits())
}

fn unpack(word: u64) -> (f32, f32) {
    (f32::from_bits((word >> 32) as u32), f32::from_bits(word as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: f32 = 10_000.0;

    impl LearnedCost {
        fn seen(&self, rows: usize, ns: u64, on_loop: bool) {
            self.learn(rows, Took { ns, exact: true, on_loop }, THRESHOLD);
        }

        fn is_trusted(&self) -> bool {
            self.probation.load(Relaxed) & WANTED == 0
        }

        fn is_cheap(&self) -> bool {
            self.cheap_ns(1000, THRESHOLD).is_some()
        }
    }

    #[test]
    fn the_line_of_a_linear_task_is_found() {
        let cost = LearnedCost::new(Cost::Unknown, None);
        assert!(cost.predict_ns(10).is_infinite());
        for round in 0..400 {
            let rows = [10, 100, 300, 1000][round % 4];
            cost.seen(rows, 500 + 7 * rows as u64, true);
        }
        for rows in [10usize, 100, 1000] {
            let (told, truth) = (cost.predict_ns(rows), (500 + 7 * rows) as f32);
            assert!((told - truth).abs() < 0.2 * truth, "{told} for {rows} rows, not {truth}");
        }
    }

    #[test]
    fn what_becomes_slow_is_known_after_two_calls() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 5_000.0, per_row_ns: 0.0 }, None);
        cost.seen(10, 5_000_000, true);
        assert!(cost.predict_ns(10) < THRESHOLD && cost.is_trusted() && cost.is_suspect());
        cost.seen(10, 5_000_000, true);
        assert!(cost.predict_ns(10) > THRESHOLD && !cost.is_trusted() && !cost.is_suspect());
    }

    #[test]
    fn one_slow_call_changes_nothing() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 1_000.0, per_row_ns: 0.0 }, None);
        cost.seen(10, 5_000_000, true);
        cost.seen(10, 1_000, true);
        assert!(cost.predict_ns(10) < 1_100.0 && cost.is_trusted() && !cost.is_suspect());
    }

    #[test]
    fn what_becomes_fast_again_is_known_after_a_few_calls() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 5_000_000.0, per_row_ns: 0.0 }, None);
        let calls = (0..).take_while(|_| {
            cost.seen(10, 1_000, true);
            cost.predict_ns(10) > THRESHOLD
        });
        assert!(calls.count() < 6);
    }

    #[test]
    fn trust_comes_back_later_each_time() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 0.0, per_row_ns: 0.0 }, None);
        let mut lengths = Vec::new();
        for _ in 0..4 {
            (0..2).for_each(|_| cost.seen(1, 1_000_000, true));
            assert!(!cost.is_trusted());
            let calls = (0..).take_while(|_| {
                cost.seen(1, 100, true);
                !cost.is_trusted()
            });
            lengths.push(calls.count() + 1);
            (0..20).for_each(|_| cost.seen(1, 100, true));
        }
        assert_eq!(lengths, [2, 4, 8, 16]);
    }

    /// A step that takes 8 µs on the loop and 14 on the pool, or 18 and 24: where it is after many calls, wherever it began.
    #[test]
    fn near_the_threshold_a_step_ends_at_the_same_place_wherever_it_began() {
        let about = |fixed_ns| Cost::About { fixed_ns, per_row_ns: 0.0 };
        for (on_loop, on_pool, is_cheap) in [(8_000, 14_000, true), (18_000, 24_000, false)] {
            for declared in [about(500.0), about(9_000.0), about(15_000.0), about(40_000.0), Cost::Unknown] {
                let cost = LearnedCost::new(declared, None);
                for call in 0..400 {
                    let tried = call % 32 == 0 && cost.near_ns(1000, THRESHOLD).is_some();
                    match tried || cost.is_cheap() {
                        true => cost.seen(1000, on_loop, true),
                        false => cost.seen(1000, on_pool, false),
                    }
                }
                assert_eq!(cost.is_cheap(), is_cheap, "{on_loop} ns, declared as {declared:?}");
            }
        }
    }

    #[test]
    fn a_step_at_the_threshold_does_not_go_back_and_forth() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 9_000.0, per_row_ns: 0.0 }, None);
        for call in 0..400 {
            cost.seen(1000, 9_000 + 2_500 * (call % 2), true);
            assert!(cost.is_cheap());
        }
    }

    #[test]
    fn near_the_threshold_the_clock_alone_is_not_believed() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 1_000.0, per_row_ns: 0.0 }, None);
        assert!(!cost.stopwatch(10, THRESHOLD).exact);
        for _ in 0..100 {
            cost.learn(10, Took { ns: 9_000, exact: false, on_loop: true }, THRESHOLD);
        }
        assert!(cost.predict_ns(10) < 1_100.0 && cost.is_suspect() && cost.stopwatch(10, THRESHOLD).exact);
        cost.learn(10, Took { ns: 1_500, exact: true, on_loop: true }, THRESHOLD);
        assert!(!cost.is_suspect());
    }
}
