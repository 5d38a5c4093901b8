//! From the values of a feature to byte columns: what is missing is decided, and what is left is counted against thresholds.

use super::forest::{BLOCK, ByteLane};
use super::members::{Members, categories};
use super::ranks::Ranks;
use super::source::{Dialect, Missing};

/// The most thresholds of one byte column. A feature with more has several, each of them counting its part.
pub(super) const RANKS_MAX: usize = 255;

/// As LightGBM has it: closer to zero than this is zero.
const NEARLY_ZERO: f64 = 1e-35_f32 as f64;

/// A feature that the trees look at, and the byte columns that it becomes.
#[derive(Debug)]
pub(super) struct UsedFeature {
    pub(super) feature: u32,
    pub(super) numbers: Vec<NumberColumn>,
    pub(super) sets: Vec<SetColumn>,
    /// Where leaves with formulas find its values.
    pub(super) kept: Option<u32>,
}

/// One missing rule of a feature, and the thresholds of the splits that have it.
#[derive(Debug)]
pub(super) struct NumberColumn {
    pub(super) missing: Missing,
    pub(super) ranks: Ranks,
    pub(super) column: usize,
}

#[derive(Debug)]
pub(super) struct SetColumn {
    pub(super) members: Members,
    pub(super) column: usize,
}

/// Room for the work on one feature.
#[derive(Debug)]
pub(super) struct DeriveScratch {
    filled: [f64; BLOCK],
    counts: [u32; BLOCK],
    categories: [i32; BLOCK],
}

impl Default for DeriveScratch {
    fn default() -> DeriveScratch {
        DeriveScratch { filled: [0.0; BLOCK], counts: [0; BLOCK], categories: [0; BLOCK] }
    }
}

/// Values as the trees of a dialect see them.
#[inline(always)]
pub(super) fn prepare(dialect: Dialect, values: &mut [f64]) {
    match dialect {
        Dialect::LightGbm => {
            values.iter_mut().for_each(|value| *value = if value.abs() <= NEARLY_ZERO { 0.0 } else { *value });
        }
        Dialect::XgBoost | Dialect::CatBoost => {
            values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
        }
    }
}

impl UsedFeature {
    /// Fills the byte columns of this feature from prepared values: whole strips, of which the first `len` count.
    #[inline(always)]
    pub(super) fn derive(
        &self,
        dialect: Dialect,
        values: &[f64],
        len: usize,
        scratch: &mut DeriveScratch,
        columns: &mut [ByteLane],
    ) {
        let rows = values.len();
        let (filled, counts) = (&mut scratch.filled[..rows], &mut scratch.counts[..rows]);
        for number in &self.numbers {
            number.missing.fill(values, filled);
            number.ranks.count(filled, counts, len);
            number.put(counts, columns);
        }
        let found = &mut scratch.categories[..rows];
        if !self.sets.is_empty() {
            categories(dialect, values, found);
        }
        for set in &self.sets {
            set.members.sides(found, columns[set.column].as_flattened_mut());
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<UsedFeature>()
            + self.numbers.iter().map(|number| size_of::<NumberColumn>() + number.ranks.bytes()).sum::<usize>()
            + self.sets.iter().map(|set| size_of::<SetColumn>() + set.members.bytes()).sum::<usize>()
    }
}

impl NumberColumn {
    /// How many byte columns it takes.
    pub(super) fn columns(&self) -> usize {
        self.ranks.len().div_ceil(RANKS_MAX)
    }

    #[inline(always)]
    fn put(&self, counts: &[u32], columns: &mut [ByteLane]) {
        for (part, lane) in columns[self.column..][..self.columns()].iter_mut().enumerate() {
            let from = (part * RANKS_MAX) as u32;
            let lane = lane.as_flattened_mut().iter_mut();
            lane.zip(counts).for_each(|(byte, count)| *byte = count.saturating_sub(from).min(RANKS_MAX as u32) as u8);
        }
    }
}

impl Missing {
    /// Values without NaN that go where the rule says: an infinity is below or above every threshold.
    #[inline(always)]
    fn fill(self, values: &[f64], filled: &mut [f64]) {
        let side = |right: bool| if right { f64::INFINITY } else { f64::NEG_INFINITY };
        let pairs = filled.iter_mut().zip(values);
        match self {
            Missing::Goes { right } => {
                let side = side(right);
                pairs.for_each(|(filled, value)| *filled = if value.is_nan() { side } else { *value });
            }
            Missing::IsZero => pairs.for_each(|(filled, value)| *filled = if value.is_nan() { 0.0 } else { *value }),
            Missing::GoesWithZero { right } => {
                let side = side(right);
                // A prepared value that is nearly zero is zero.
                pairs.for_each(|(filled, value)| *filled = if value.is_nan() || *value == 0.0 { side } else { *value });
            }
        }
    }
}
