//! Maximal marginal relevance: rows are picked by their score and by how little they are like the rows picked before.
//!
//! Each pick is the row with the highest `lambda * score - (1 - lambda) * likeness`, where the likeness is the highest similarity to a row
//! that was picked, and 0 for the first pick; of equal ones it is the first row. Rows without a score come after all others, in their
//! order. A row without a vector is like no other: its similarity is 0.
//!
//! Each pick is one pass over all vectors, which lie in blocks ([`RowVectors`]).

use crate::kernel::row_vectors::{BLOCK, BLOCKS_A_LOOK, BlockOf, Highest, RowVectors, each, in_blocks, products};
use crate::kernel::wide::wide;
use crate::stop::{Picking, Stopped};

/// What two vectors are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    Cosine,
    Dot,
}

/// A row that was picked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pick {
    pub position: usize,
    /// Its similarity to the most similar row picked before it; `None` for the first.
    pub likeness: Option<f64>,
}

/// No similarity is larger: what is too large for `f32` counts as the largest number that is not.
const MOST: f64 = f32::MAX as f64;

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
    let lengths: Option<Vec<BlockOf<f64>>> = match by {
        Likeness::Dot => None,
        Likeness::Cosine => {
            let (squares, mut looks) = (vectors.squares(stop)?, stop.looks());
            let mut lengths = Vec::with_capacity(squares.len());
            for squares in &squares {
                looks.before(BLOCK)?;
                lengths.push(each(|at| f64::from(squares[at]).sqrt()));
            }
            Some(lengths)
        }
    };
    // What the score is worth: nothing of rows that cannot be picked by it, or not again.
    let mut worths = in_blocks(rows, |row| scores[row].map(|score| lambda * score), stop)?;
    let mut likeness = in_blocks(rows, |_| None, stop)?;
    let (mut left, mut first_left) = (vec![true; rows], 0);
    let (mut picks, mut last): (Vec<Pick>, Vec<f32>) = (Vec::with_capacity(count.min(rows)), Vec::new());
    while picks.len() < count.min(rows) && picking.goes_on(picks.len())? {
        let mut best = Highest::NONE;
        let before = picks.last().map(|pick| pick.position);
        let length = before.and_then(|row| lengths.as_ref().map(|lengths| lengths[row / BLOCK][row % BLOCK]));
        let mut blocks = vectors.blocks();
        for start in (0..worths.len()).step_by(BLOCKS_A_LOOK) {
            stop.check()?;
            let some = start..worths.len().min(start + BLOCKS_A_LOOK);
            let blocks = blocks.by_ref().take(some.len());
            wide(
                #[inline(always)]
                || match before {
                    None => some.for_each(|block| best.offer(&worths[block], block)),
                    Some(_) => {
                        for (at, lanes) in some.zip(blocks) {
                            let lengths = length.zip(lengths.as_ref().map(|lengths| &lengths[at]));
                            let similar = similarities(&products(lanes, &last), lengths);
                            let most = &mut likeness[at];
                            *most = each(
                                #[inline(always)]
                                |row| if similar[row] > most[row] { similar[row] } else { most[row] },
                            );
                            let worth = each(
                                #[inline(always)]
                                |row| worths[at][row] - (1.0 - lambda) * most[row],
                            );
                            best.offer(&worth, at);
                        }
                    }
                },
            );
        }
        while left.get(first_left) == Some(&false) {
            first_left += 1;
        }
        // Where no score decides, the order does.
        let position = best.found().unwrap_or(first_left);
        let (block, at) = (position / BLOCK, position % BLOCK);
        (left[position], worths[block][at]) = (false, f64::NEG_INFINITY);
        vectors.copy(position, vectors.dimension(), &mut last);
        picks.push(Pick { position, likeness: before.map(|_| likeness[block][at]) });
    }
    Ok(picks)
}

/// Of the rows of a block to one: their products, by the lengths of both where those matter.
#[inline(always)]
fn similarities(products: &BlockOf<f32>, lengths: Option<(f64, &BlockOf<f64>)>) -> BlockOf<f64> {
    match lengths {
        None => each(
            #[inline(always)]
            |row| within(f64::from(products[row]), MOST),
        ),
        Some((length, lengths)) => each(
            #[inline(always)]
            |row| {
                let both = lengths[row] * length;
                let similar = f64::from(products[row]) / both;
                within(if both == 0.0 { 0.0 } else { similar }, 1.0)
            },
        ),
    }
}

/// From `-most` to `most`, and 0 for what is no number because numbers overflowed.
#[inline(always)]
fn within(similar: f64, most: f64) -> f64 {
    let low = if similar > -most { similar } else { -most };
    let high = if low < most { low } else { most };
    if similar.is_nan() { 0.0 } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::similarity::Similarity;
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
            let mut together = RowVectors::new(vectors.len(), dimension, 0);
            vectors.iter().enumerate().for_each(|(row, vector)| together.set(row, vector));
            let found = mmr(&scores, &together, count, lambda, by, Picking::default()).unwrap();
            prop_assert_eq!(found, naive(&scores, &vectors, count, lambda, by));
        }
    }
}
