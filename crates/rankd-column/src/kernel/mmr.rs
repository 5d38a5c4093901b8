//! Maximal marginal relevance: rows are picked by their score and by how little they are like the rows picked before.
//!
//! Each pick is the row with the highest `lambda * score - (1 - lambda) * likeness`, where the likeness is the highest similarity to a row
//! that was picked, and 0 for the first pick; of equal ones it is the first row. Rows without a score come after all others, in their
//! order. A row without a vector is like no other: its similarity is 0.
//!
//! The numbers of all vectors are copied side by side first, so that each pick is one pass over them.

use crate::kernel::similarity::{Similarity, square};
use crate::kernel::wide::wide;
use crate::stop::{Picking, ROWS_A_LOOK, Stopped};
use std::ops::Range;

/// What two vectors are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    Cosine,
    Dot,
}

/// Rows with a vector each, side by side; zeros for those that have none.
pub struct RowVectors {
    pub dimension: usize,
    pub numbers: Vec<f32>,
    /// How many rows have none.
    pub lacking: usize,
}

impl RowVectors {
    #[inline(always)]
    fn get(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.dimension..][..self.dimension]
    }
}

/// A row that was picked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pick {
    pub position: usize,
    /// Its similarity to the most similar row picked before it; `None` for the first.
    pub likeness: Option<f64>,
}

/// Picks `count` rows, or all where there are fewer, or fewer where there is no time for more. There is a vector for each score.
pub fn mmr(
    scores: &[Option<f64>],
    vectors: &RowVectors,
    count: usize,
    lambda: f64,
    by: Likeness,
    picking: Picking<'_>,
) -> Result<Vec<Pick>, Stopped> {
    let (rows, stop) = (scores.len(), picking.stop);
    let mut lengths = Vec::new();
    if by == Likeness::Cosine {
        for start in stop.starts(rows) {
            lengths.extend(chunk(start?, rows).map(|row| square(vectors.get(row)).sqrt()));
        }
    }
    let (mut likeness, mut similar) = (vec![f64::NEG_INFINITY; rows], vec![0f64; ROWS_A_LOOK.min(rows)]);
    let (mut left, mut picks): (Vec<bool>, Vec<Pick>) = (vec![true; rows], Vec::with_capacity(count.min(rows)));
    while picks.len() < count.min(rows) && picking.goes_on()? {
        let last = picks.last().map(|pick| pick.position);
        let mut best: Option<(usize, f64)> = None;
        for start in stop.starts(rows) {
            let chunk = chunk(start?, rows);
            if let Some(last) = last {
                let similar = &mut similar[..chunk.len()];
                compare(similar, vectors, chunk.start, last, &lengths);
                likeness[chunk.clone()].iter_mut().zip(similar).for_each(|(most, similar)| *most = most.max(*similar));
            }
            for row in chunk.filter(|row| left[*row]) {
                let penalty = if last.is_none() { 0.0 } else { (1.0 - lambda) * likeness[row] };
                let worth = scores[row].map_or(f64::NEG_INFINITY, |score| lambda * score - penalty);
                if best.is_none_or(|(_, most)| worth > most) {
                    best = Some((row, worth));
                }
            }
        }
        let Some((position, _)) = best else { break };
        left[position] = false;
        picks.push(Pick { position, likeness: last.map(|_| likeness[position]) });
    }
    Ok(picks)
}

fn chunk(start: usize, rows: usize) -> Range<usize> {
    start..rows.min(start + ROWS_A_LOOK)
}

/// The similarities of some rows, from `first` on, to one of them. Lengths are there where they matter.
fn compare(out: &mut [f64], vectors: &RowVectors, first: usize, with: usize, lengths: &[f64]) {
    let other = vectors.get(with);
    wide(
        #[inline(always)]
        || {
            Similarity::Dot.of_rows(
                out,
                #[inline(always)]
                |row| (vectors.get(first + row), other),
                None,
            );
        },
    );
    if let Some(length) = lengths.get(with) {
        for (similar, other) in out.iter_mut().zip(&lengths[first..]) {
            let both = other * length;
            *similar = if both == 0.0 { 0.0 } else { (*similar / both).clamp(-1.0, 1.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the words of the header, with each vector by itself.
    fn naive(scores: &[Option<f64>], vectors: &[Vec<f32>], count: usize, lambda: f64, by: Likeness) -> Vec<Pick> {
        let similar = |a: usize, b: usize| match by {
            Likeness::Cosine => Similarity::Cosine.of(&vectors[a], &vectors[b]),
            Likeness::Dot => Similarity::Dot.of(&vectors[a], &vectors[b]),
        };
        let mut picks: Vec<Pick> = Vec::new();
        while picks.len() < count.min(scores.len()) {
            let likeness = |row: usize| picks.iter().map(|pick| similar(row, pick.position)).reduce(f64::max);
            let left = (0..scores.len()).filter(|row| picks.iter().all(|pick| pick.position != *row));
            let worth = |row: usize| {
                let penalty = likeness(row).map_or(0.0, |likeness| (1.0 - lambda) * likeness);
                scores[row].map(|score| lambda * score - penalty)
            };
            let best = left.reduce(|best, row| if worth(row) > worth(best) { row } else { best }).unwrap();
            picks.push(Pick { position: best, likeness: likeness(best) });
        }
        picks
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn rows_are_picked_by_the_words_of_the_header(
            rows in proptest::collection::vec((prop_oneof![4 => (-3i8..4).prop_map(Some), 1 => Just(None)], proptest::collection::vec(-2i8..3, 20)), 0..14),
            dimension in 1..=20usize,
            count in 0..16usize,
            lambda in 0..=4u8,
            cosine in any::<bool>(),
        ) {
            let by = if cosine { Likeness::Cosine } else { Likeness::Dot };
            let (scores, lambda): (Vec<Option<f64>>, f64) =
                (rows.iter().map(|(score, _)| score.map(f64::from)).collect(), f64::from(lambda) / 4.0);
            let vectors: Vec<Vec<f32>> =
                rows.iter().map(|(_, vector)| vector[..dimension].iter().map(|n| f32::from(*n)).collect()).collect();
            let together = RowVectors { dimension, numbers: vectors.concat(), lacking: 0 };
            let found = mmr(&scores, &together, count, lambda, by, Picking::default()).unwrap();
            prop_assert_eq!(found, naive(&scores, &vectors, count, lambda, by));
        }
    }
}
