//! How many thresholds of a sorted list are below a value, for a block of values at a time.
//!
//! Few thresholds are compared one by one with many values at once. With more, a value's bucket says where to start, and a few steps
//! go to the end. All ways count exactly: buckets are made by a function that never falls, of thresholds and of values alike, so all
//! thresholds in lower buckets are below a value, and none in higher ones. Values are never NaN; they may be infinite.

/// Up to so many thresholds are compared one by one.
const FEW: usize = 8;
/// More steps from the start of a bucket than this, and a search takes no longer.
const STEPS_MAX: usize = 6;
const BUCKETS_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Ranks {
    /// Ascending, each once; an infinity follows the last, which no value is above.
    thresholds: Vec<f64>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Few,
    Buckets { buckets: Buckets, starts: Box<[u16; BUCKETS_MAX]>, steps: usize },
    Search,
}

/// A function from values to buckets that never falls.
#[derive(Clone, Copy, Debug)]
enum Buckets {
    /// Of equal width.
    Even { low: f64, scale: f64 },
    /// Of equal width in the order of all floats, so narrower around zero.
    Floats { low: u64, shift: u32 },
}

impl Ranks {
    /// Of finite thresholds in any order.
    pub(super) fn new(mut thresholds: Vec<f64>) -> Ranks {
        // The two zeros are one threshold.
        thresholds.iter_mut().for_each(|threshold| *threshold += 0.0);
        thresholds.sort_unstable_by(f64::total_cmp);
        thresholds.dedup();
        thresholds.shrink_to_fit();
        let way = Way::of(&thresholds);
        thresholds.push(f64::INFINITY);
        Ranks { thresholds, way }
    }

    /// How many thresholds there are.
    pub(super) fn len(&self) -> usize {
        self.thresholds.len() - 1
    }

    /// The position of a threshold: rows whose count is above it are above the threshold.
    pub(super) fn position(&self, threshold: f64) -> usize {
        self.thresholds.partition_point(|other| *other < threshold)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.thresholds) + if let Way::Buckets { .. } = self.way { 2 * BUCKETS_MAX } else { 0 }
    }

    /// Counts for each value, of which there are whole strips; only the first `len` matter.
    #[inline(always)]
    pub(super) fn count(&self, values: &[f64], counts: &mut [u32], len: usize) {
        match &self.way {
            Way::Few => self.compare(values, counts),
            Way::Buckets { buckets, starts, steps } => {
                buckets.of_all(values, counts);
                match steps {
                    0 | 1 => self.step::<1>(values, starts, counts, len),
                    2 => self.step::<2>(values, starts, counts, len),
                    3 => self.step::<3>(values, starts, counts, len),
                    _ => self.step::<STEPS_MAX>(values, starts, counts, len),
                }
            }
            Way::Search => {
                for (count, value) in counts[..len].iter_mut().zip(values) {
                    *count = search(&self.thresholds, *value);
                }
            }
        }
    }

    #[inline(always)]
    fn compare(&self, values: &[f64], counts: &mut [u32]) {
        const LANES: usize = 16;
        let (values, _) = values.as_chunks::<LANES>();
        let (counts, _) = counts.as_chunks_mut::<LANES>();
        for (counts, values) in counts.iter_mut().zip(values) {
            let mut sums = [0u64; LANES];
            for threshold in &self.thresholds {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += u64::from(value > threshold));
            }
            counts.iter_mut().zip(sums).for_each(|(count, sum)| *count = sum as u32);
        }
    }

    /// From the starts of buckets on. There are at most `STEPS` thresholds in a bucket.
    #[inline(always)]
    fn step<const STEPS: usize>(&self, values: &[f64], starts: &[u16; BUCKETS_MAX], counts: &mut [u32], len: usize) {
        for (count, value) in counts[..len].iter_mut().zip(values) {
            let mut at = usize::from(starts[*count as usize % BUCKETS_MAX]);
            for _ in 0..STEPS {
                at += usize::from(*value > self.thresholds[at]);
            }
            *count = at as u32;
        }
    }
}

impl Way {
    fn of(thresholds: &[f64]) -> Way {
        let (Some(&low), Some(&high)) = (thresholds.first(), thresholds.last()) else { return Way::Few };
        if thresholds.len() <= FEW {
            return Way::Few;
        }
        let Ok(last) = u16::try_from(thresholds.len()) else { return Way::Search };
        let (even, floats) = (Buckets::even(low, high), Buckets::floats(low, high));
        let (steps, buckets) = match (even.steps(thresholds), floats.steps(thresholds)) {
            (evenly, in_floats) if evenly <= in_floats => (evenly, even),
            (_, in_floats) => (in_floats, floats),
        };
        if steps > STEPS_MAX {
            return Way::Search;
        }
        let mut starts = Box::new([last; BUCKETS_MAX]);
        for (at, threshold) in (0..last).zip(thresholds).rev() {
            starts[..=buckets.of(*threshold)].fill(at);
        }
        Way::Buckets { buckets, starts, steps }
    }
}

impl Buckets {
    fn even(low: f64, high: f64) -> Buckets {
        Buckets::Even { low, scale: (BUCKETS_MAX - 1) as f64 / (high - low) }
    }

    fn floats(low: f64, high: f64) -> Buckets {
        let low = ordered(low);
        let range = ordered(high) - low;
        let bits = 64 - range.leading_zeros();
        Buckets::Floats { low, shift: bits.saturating_sub(BUCKETS_MAX.ilog2()) }
    }

    /// The most thresholds of a bucket.
    fn steps(self, thresholds: &[f64]) -> usize {
        thresholds.chunk_by(|a, b| self.of(*a) == self.of(*b)).map(<[f64]>::len).max().unwrap_or(0)
    }

    #[inline(always)]
    fn of(self, value: f64) -> usize {
        match self {
            Buckets::Even { low, scale } => even_bucket(value, low, scale) as usize,
            Buckets::Floats { low, shift } => float_bucket(value, low, shift) as usize,
        }
    }

    #[inline(always)]
    fn of_all(self, values: &[f64], buckets: &mut [u32]) {
        match self {
            Buckets::Even { low, scale } => {
                buckets.iter_mut().zip(values).for_each(|(bucket, value)| *bucket = even_bucket(*value, low, scale));
            }
            Buckets::Floats { low, shift } => {
                buckets.iter_mut().zip(values).for_each(|(bucket, value)| *bucket = float_bucket(*value, low, shift));
            }
        }
    }
}

#[inline(always)]
fn even_bucket(value: f64, low: f64, scale: f64) -> u32 {
    const LAST: f64 = (BUCKETS_MAX - 1) as f64;
    /// Added to a small number, it leaves that number, rounded, in the lowest bits.
    const ROUNDING: f64 = (1u64 << 52) as f64;
    let at = (value - low) * scale;
    // Also right where an infinity times zero is no number.
    let at = if at > 0.0 { at } else { 0.0 };
    let at = if at < LAST { at } else { LAST };
    (at + ROUNDING).to_bits() as u32
}

#[inline(always)]
fn float_bucket(value: f64, low: u64, shift: u32) -> u32 {
    let at = ordered(value).max(low).wrapping_sub(low) >> shift;
    at.min(BUCKETS_MAX as u64 - 1) as u32
}

/// A number that orders as the value does.
#[inline(always)]
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    bits ^ (((bits as i64) >> 63) as u64 | 1 << 63)
}

/// How many thresholds are below the value. Without a branch on what it finds.
#[inline(always)]
fn search(thresholds: &[f64], value: f64) -> u32 {
    let (mut from, mut len) = (0, thresholds.len());
    while len > 1 {
        let half = len / 2;
        from += if thresholds[from + half - 1] < value { half } else { 0 };
        len -= half;
    }
    from as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::forest::BLOCK;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        *state >> 11
    }

    #[test]
    fn every_way_counts_what_comparing_all_counts() {
        let mut state = 7;
        let mut ways = [0; 3];
        for case in 0..2_000 {
            let n = 1 + random(&mut state) as usize % if case % 10 == 0 { 2_000 } else { 300 };
            let thresholds: Vec<f64> = (0..n)
                .map(|_| {
                    let unit = random(&mut state) as f64 / (1u64 << 53) as f64 - 0.5;
                    match case % 5 {
                        0 => unit,
                        1 => crate::math::exp2(unit * 40.0) * unit.signum(),
                        2 => (unit * 20.0).round(),
                        3 => unit * f64::MAX,
                        _ => f64::from_bits(1 + random(&mut state) % 1_000),
                    }
                })
                .collect();
            let ranks = Ranks::new(thresholds.clone());
            ways[match ranks.way {
                Way::Few => 0,
                Way::Buckets { .. } => 1,
                Way::Search => 2,
            }] += 1;
            let mut values = [0.0; BLOCK];
            for value in &mut values {
                let near = thresholds[random(&mut state) as usize % n];
                *value = [near, near.next_up(), near.next_down(), -near, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY]
                    [random(&mut state) as usize % 8];
            }
            let mut counts = [0; BLOCK];
            ranks.count(&values, &mut counts, BLOCK);
            for (value, count) in values.iter().zip(counts) {
                let below = ranks.thresholds.iter().filter(|threshold| *threshold < value).count();
                assert_eq!(count as usize, below, "{value} among {thresholds:?}");
            }
            for threshold in &thresholds {
                let at = ranks.position(*threshold);
                assert!(ranks.thresholds[at] == *threshold && at < ranks.len());
            }
        }
        assert!(ways.iter().all(|cases| *cases > 50), "{ways:?}");
    }
}
