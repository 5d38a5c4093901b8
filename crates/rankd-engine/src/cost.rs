//! What a step costs, learned from real calls: so much for a call and so much for each row.
//!
//! Shared by all loops and read on every request, so it is two words that are loaded and stored without order: a sample that
//! another thread overwrites is a sample less, and nothing worse. A call that took far longer than predicted may have been
//! interrupted by anything, so it only makes the step suspect: the next call is timed by itself, and if that is slow, too, the
//! step loses the trust of the loop. It gets it back after having been cheap on the pool for a while; each time it takes longer.

use rankd_plan::signature::Cost;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Rows that weigh as much as the call itself when an error is shared out between the two.
const ROWS_SCALE: f32 = 256.0;
/// A call that took longer than this many times its prediction, and than the threshold besides, was not what it seemed.
const FAR_OFF: f32 = 4.0;
/// Probation doubles up to this many cheap calls on the pool.
const PROBATION_MAX: u32 = 1 << 12;
const SUSPECT: u32 = 1 << 31;
/// So many measured calls without a surprise make the next probation shorter again.
const CALM: u32 = 256;

pub struct LearnedCost {
    /// Nanoseconds for a call and nanoseconds for a row, as two `f32`.
    line: AtomicU64,
    /// From the low bits on: 16 for the cheap calls that are still wanted before the loop takes the step again, 15 for the
    /// length of the last probation, and one for being suspect.
    probation: AtomicU32,
    samples: AtomicU32,
}

/// What has been learned, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
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

    /// Nanoseconds that a call on so many rows takes; infinite while that is not known.
    pub(crate) fn predict_ns(&self, rows: usize) -> f32 {
        let (fixed, per_row) = unpack(self.line.load(Relaxed));
        fixed + per_row * rows as f32
    }

    /// Whether the loop may run it, as far as trust goes.
    pub(crate) fn is_trusted(&self) -> bool {
        self.probation.load(Relaxed) & 0xFFFF == 0
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

    /// Takes in how long a call took.
    pub(crate) fn learn(&self, rows: usize, took_ns: u64, threshold_ns: f32) {
        let took = took_ns as f32;
        let (fixed, per_row) = unpack(self.line.load(Relaxed));
        let word = self.probation.load(Relaxed);
        // What is not known cannot be far off: an infinite prediction.
        let far_off = LearnedCost::is_far_off(fixed + per_row * rows as f32, took, threshold_ns);
        if far_off && word & SUSPECT == 0 {
            self.suspect();
            return;
        }
        let line = if fixed.is_finite() { nearer((fixed, per_row), rows as f32, took) } else { (took, 0.0) };
        self.line.store(pack(line.0, line.1), Relaxed);
        let samples = self.samples.load(Relaxed).saturating_add(1);
        self.samples.store(samples, Relaxed);
        let (wanted, length) = (word & 0xFFFF, (word & !SUSPECT) >> 16);
        let next = match wanted {
            _ if far_off => probation((length * 2).clamp(2, PROBATION_MAX)),
            0 if length > 1 && samples.is_multiple_of(CALM) => (length / 2) << 16,
            0 => length << 16,
            _ if took < threshold_ns => (length << 16) | (wanted - 1),
            _ => probation(length),
        };
        if next != word {
            self.probation.store(next, Relaxed);
        }
    }

    pub fn line(&self) -> Line {
        let (fixed_ns, per_row_ns) = unpack(self.line.load(Relaxed));
        Line { fixed_ns, per_row_ns, samples: self.samples.load(Relaxed) }
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
    let weight = rows / ROWS_SCALE;
    let share = step / (1.0 + weight * weight);
    ((fixed + share).max(0.0), (per_row + share * weight / ROWS_SCALE).max(0.0))
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

    #[test]
    fn the_line_of_a_linear_task_is_found() {
        let cost = LearnedCost::new(Cost::Unknown, None);
        assert!(cost.predict_ns(10).is_infinite());
        for round in 0..400 {
            let rows = [10, 100, 300, 1000][round % 4];
            cost.learn(rows, 500 + 7 * rows as u64, THRESHOLD);
        }
        for rows in [10usize, 100, 1000] {
            let (told, truth) = (cost.predict_ns(rows), (500 + 7 * rows) as f32);
            assert!((told - truth).abs() < 0.2 * truth, "{told} for {rows} rows, not {truth}");
        }
    }

    #[test]
    fn what_becomes_slow_is_known_after_two_calls() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 5_000.0, per_row_ns: 0.0 }, None);
        cost.learn(10, 5_000_000, THRESHOLD);
        assert!(cost.predict_ns(10) < THRESHOLD && cost.is_trusted() && cost.is_suspect());
        cost.learn(10, 5_000_000, THRESHOLD);
        assert!(cost.predict_ns(10) > THRESHOLD && !cost.is_trusted() && !cost.is_suspect());
    }

    #[test]
    fn one_slow_call_changes_nothing() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 1_000.0, per_row_ns: 0.0 }, None);
        cost.learn(10, 5_000_000, THRESHOLD);
        cost.learn(10, 1_000, THRESHOLD);
        assert!(cost.predict_ns(10) < 1_100.0 && cost.is_trusted() && !cost.is_suspect());
    }

    #[test]
    fn what_becomes_fast_again_is_known_after_a_few_calls() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 5_000_000.0, per_row_ns: 0.0 }, None);
        let calls = (0..).take_while(|_| {
            cost.learn(10, 1_000, THRESHOLD);
            cost.predict_ns(10) > THRESHOLD
        });
        assert!(calls.count() < 6);
    }

    #[test]
    fn trust_comes_back_later_each_time() {
        let cost = LearnedCost::new(Cost::About { fixed_ns: 0.0, per_row_ns: 0.0 }, None);
        let mut lengths = Vec::new();
        for _ in 0..4 {
            (0..2).for_each(|_| cost.learn(1, 1_000_000, THRESHOLD));
            assert!(!cost.is_trusted());
            let calls = (0..).take_while(|_| {
                cost.learn(1, 100, THRESHOLD);
                !cost.is_trusted()
            });
            lengths.push(calls.count() + 1);
            (0..20).for_each(|_| cost.learn(1, 100, THRESHOLD));
        }
        assert_eq!(lengths, [2, 4, 8, 16]);
    }
}
