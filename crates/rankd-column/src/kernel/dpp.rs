//! Picks by determinants (a determinantal point process, greedily): rows with high scores whose vectors span much room together.
//!
//! The kernel is `L = diag(q) (E Eᵀ + ridge I) diag(q)` with `q = exp(alpha * score)` and the vectors as rows of `E`. Each pick is the row that makes
//! the determinant of `L` of the picked rows the highest; of equal ones it is the first. With a window, it is the determinant of the last
//! so many picks and the row. A row without a vector stands at a right angle to all others, as if its vector had the length 1. Rows without a score
//! come after all others, in their order.
//!
//! `L` itself is never made. What a row adds is `q²` times what is left of its square when the parts along the picks are taken away, and these parts
//! are the coefficients of a Cholesky factor, one more for each pick (Chen, Zhang and Zhou, 2018). They are kept behind the numbers of each
//! vector, so that a pick is one pass of products ([`RowVectors`]). When a pick leaves the window, its coefficients are rotated into the others.
//!
//! What is left of a row is never less than `ridge`, nor than a small part of its square: below that are only rounding errors. So there are always
//! picks, also more than the vectors have dimensions.

use crate::kernel::row_vectors::{BLOCK, BLOCKS_A_LOOK, BlockOf, Highest, RowVectors, each, in_blocks, products};
use crate::kernel::wide::wide;
use crate::math;
use crate::stop::{Picking, ROWS_A_LOOK, Stop, Stopped};

/// What is picked by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Determinants {
    /// How much scores count.
    pub alpha: f64,
    pub ridge: f32,
    /// How many of the last picks count; 0 is all.
    pub window: usize,
}

impl Determinants {
    /// How many numbers each row needs behind its vector.
    pub fn room(self, count: usize) -> usize {
        if self.window == 0 { count } else { self.window.min(count) }
    }
}

/// What rounding leaves of a square, at most.
const ROUNDING: f32 = 1.0 / 65_536.0;
/// The square of a row without a vector.
const NO_VECTOR: f32 = 1.0;
/// Keeps what is left above 0 where a vector has no length and there is no ridge.
const LEAST: f32 = 1e-30;

/// Picks `count` rows, or all where there are fewer, or fewer where there is no time for more. There is a vector for each score, with
/// [room](Determinants::room) for so many picks.
pub fn dpp(
    scores: &[Option<f64>],
    vectors: &mut RowVectors,
    count: usize,
    by: Determinants,
    picking: Picking<'_>,
) -> Result<Vec<usize>, Stopped> {
    let mut weights = Weights::new(scores, by.alpha, picking.stop)?;
    let mut remains = Remains::new(vectors, by.ridge, picking.stop)?;
    let (mut left, mut first_left) = (vec![true; scores.len()], 0);
    let (mut picks, room): (Vec<usize>, usize) = (Vec::with_capacity(count.min(scores.len())), by.room(count));
    while picks.len() < count.min(scores.len()) && picking.goes_on(picks.len())? {
        let mut best = match picks.last() {
            None => remains.highest(&weights, picking.stop)?,
            Some(last) => {
                if remains.held.len() == room {
                    remains.forget(vectors, picking.stop)?;
                }
                remains.take_away(vectors, *last, &weights, picking.stop)?
            }
        };
        // The weights of all rows that are left may be too small beside the highest of all.
        if best.number == 0.0 {
            weights.rescale(|row| left[row], picking.stop)?;
            best = remains.highest(&weights, picking.stop)?;
        }
        while left.get(first_left) == Some(&false) {
            first_left += 1;
        }
        // Where no score decides, the order does.
        let position = best.found().unwrap_or(first_left);
        left[position] = false;
        weights.now[position / BLOCK][position % BLOCK] = f64::NEG_INFINITY;
        picks.push(position);
    }
    Ok(picks)
}

/// `q²` of each row, in parts of the highest; minus infinity for rows that cannot be picked by it, or not again.
struct Weights {
    logs: Vec<Option<f64>>,
    now: Vec<BlockOf<f64>>,
}

impl Weights {
    fn new(scores: &[Option<f64>], alpha: f64, stop: Stop<'_>) -> Result<Weights, Stopped> {
        // Far beyond what `exp` can tell apart, and differences are still numbers.
        let log = |score: f64| (2.0 * alpha * score).clamp(-1e300, 1e300);
        let mut logs = Vec::with_capacity(scores.len());
        for chunk in stop.slices(scores) {
            logs.extend(chunk?.iter().map(|score| score.map(log)));
        }
        let mut weights = Weights { logs, now: Vec::new() };
        weights.rescale(|_| true, stop)?;
        Ok(weights)
    }

    /// By the highest of the rows that are left.
    fn rescale(&mut self, is_left: impl Fn(usize) -> bool, stop: Stop<'_>) -> Result<(), Stopped> {
        let log = |row: usize| self.logs[row].filter(|_| is_left(row));
        let mut most = f64::NEG_INFINITY;
        for start in stop.starts(self.logs.len()) {
            let start = start?;
            let some = start..self.logs.len().min(start + ROWS_A_LOOK);
            most = some.filter_map(log).fold(most, f64::max);
        }
        self.now = in_blocks(self.logs.len(), |row| log(row).map(|log| math::exp(log - most)), stop)?;
        Ok(())
    }
}

/// What is left of each row's square.
struct Remains {
    squares: Vec<BlockOf<f32>>,
    floors: Vec<BlockOf<f32>>,
    /// The picks whose parts are taken away, the first of them longest ago; and the root of what was left of each.
    held: Vec<(usize, f32)>,
    /// The numbers of the last pick.
    last: Vec<f32>,
}

impl Remains {
    fn new(vectors: &RowVectors, ridge: f32, stop: Stop<'_>) -> Result<Remains, Stopped> {
        let (mut squares, mut floors, mut looks) = (vectors.squares(stop)?, Vec::new(), stop.looks());
        for (block, squares) in squares.iter_mut().enumerate() {
            looks.before(BLOCK)?;
            // Also behind the last row, so that nothing there is 0.
            *squares = each(|at| {
                let square = if vectors.has_vector(block * BLOCK + at) { squares[at] } else { NO_VECTOR };
                (square + ridge).max(LEAST)
            });
            floors.push(each(|at| (squares[at] * ROUNDING).max(ridge).max(LEAST)));
        }
        Ok(Remains { squares, floors, held: Vec::new(), last: Vec::new() })
    }

    /// The row that adds most.
    fn highest(&self, weights: &Weights, stop: Stop<'_>) -> Result<Highest, Stopped> {
        let (mut best, mut looks) = (Highest::NONE, stop.looks());
        for (at, (squares, weights)) in self.squares.iter().zip(&weights.now).enumerate() {
            looks.before(BLOCK)?;
            best.offer(&each(|row| weights[row] * f64::from(squares[row])), at);
        }
        Ok(best)
    }

    /// Takes the parts along a pick away from all rows; then the row that adds most.
    fn take_away(
        &mut self,
        vectors: &mut RowVectors,
        pick: usize,
        weights: &Weights,
        stop: Stop<'_>,
    ) -> Result<Highest, Stopped> {
        let (dimension, width) = (vectors.dimension(), vectors.dimension() + self.held.len());
        let root = self.squares[pick / BLOCK][pick % BLOCK].sqrt();
        vectors.copy(pick, width, &mut self.last);
        self.last[dimension..].iter_mut().for_each(|coefficient| *coefficient = -*coefficient);
        let (scale, last, mut best) = (1.0 / root, &self.last, Highest::NONE);
        for start in (0..self.squares.len()).step_by(BLOCKS_A_LOOK) {
            stop.check()?;
            let some = start..self.squares.len().min(start + BLOCKS_A_LOOK);
            let blocks = vectors.blocks_mut(start, some.len());
            let numbers = self.squares[some.clone()].iter_mut().zip(&self.floors[some.clone()]).zip(&weights.now[some]);
            wide(
                #[inline(always)]
                || {
                    for (at, (lanes, ((squares, floors), weights))) in blocks.zip(numbers).enumerate() {
                        let along = products(lanes, last);
                        let along: BlockOf<f32> = each(
                            #[inline(always)]
                            |row| along[row] * scale,
                        );
                        lanes[width] = along;
                        let remains: BlockOf<f32> = each(
                            #[inline(always)]
                            |row| {
                                let remains = squares[row] - along[row] * along[row];
                                if remains > floors[row] { remains } else { floors[row] }
                            },
                        );
                        *squares = remains;
                        let adds = each(
                            #[inline(always)]
                            |row| weights[row] * f64::from(remains[row]),
                        );
                        best.offer(&adds, start + at);
                    }
                },
            );
        }
        self.held.push((pick, root));
        Ok(best)
    }

    /// Gives back the parts along the pick that was made longest ago: rotations make its coefficients part of those of the other picks, until only what
    /// it had by itself is over.
    fn forget(&mut self, vectors: &mut RowVectors, stop: Stop<'_>) -> Result<(), Stopped> {
        let (dimension, held) = (vectors.dimension(), self.held.len());
        let mut factors: Vec<Vec<f32>> = Vec::with_capacity(held);
        for (at, (pick, _)) in self.held.iter().enumerate() {
            vectors.copy(*pick, dimension + at, &mut self.last);
            factors.push(self.last[dimension..].to_vec());
        }
        let mut turns = Vec::with_capacity(held);
        for at in 1..held {
            let (root, part) = (self.held[at].1, factors[at][0]);
            let both = (root * root + part * part).sqrt();
            let (cos, sin) = (root / both, part / both);
            self.held[at].1 = both;
            turns.push((cos, sin));
            for factors in &mut factors[at + 1..] {
                (factors[at], factors[0]) = turned(factors[at], factors[0], cos, sin);
            }
        }
        self.held.remove(0);
        for start in (0..self.squares.len()).step_by(BLOCKS_A_LOOK) {
            stop.check()?;
            let some = start..self.squares.len().min(start + BLOCKS_A_LOOK);
            let blocks = vectors.blocks_mut(start, some.len());
            let (squares, turns) = (&mut self.squares[some], &turns);
            wide(
                #[inline(always)]
                || {
                    for (lanes, squares) in blocks.zip(squares) {
                        let lanes = &mut lanes[dimension..];
                        let mut over = lanes[0];
                        for (at, (cos, sin)) in turns.iter().enumerate() {
                            let kept = lanes[at + 1];
                            lanes[at] = each(
                                #[inline(always)]
                                |row| turned(kept[row], over[row], *cos, *sin).0,
                            );
                            over = each(
                                #[inline(always)]
                                |row| turned(kept[row], over[row], *cos, *sin).1,
                            );
                        }
                        *squares = each(
                            #[inline(always)]
                            |row| squares[row] + over[row] * over[row],
                        );
                    }
                },
            );
        }
        Ok(())
    }
}

#[inline(always)]
fn turned(kept: f32, over: f32, cos: f32, sin: f32) -> (f32, f32) {
    (cos * kept + sin * over, cos * over - sin * kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By elimination with the largest pivot.
    fn determinant(mut matrix: Vec<Vec<f64>>) -> f64 {
        let (size, mut product) = (matrix.len(), 1.0);
        for at in 0..size {
            let pivot = (at..size).max_by(|a, b| matrix[*a][at].abs().total_cmp(&matrix[*b][at].abs())).unwrap();
            if matrix[pivot][at] == 0.0 {
                return 0.0;
            }
            if pivot != at {
                matrix.swap(pivot, at);
                product = -product;
            }
            product *= matrix[at][at];
            for row in at + 1..size {
                let (by, above) = (matrix[row][at] / matrix[at][at], matrix[at].clone());
                matrix[row].iter_mut().zip(above).for_each(|(cell, above)| *cell -= by * above);
            }
        }
        product
    }

    struct Given {
        scores: Vec<Option<f64>>,
        vectors: Vec<Option<Vec<f32>>>,
        dimension: usize,
    }

    impl Given {
        fn picks(&self, count: usize, by: Determinants) -> Vec<usize> {
            let mut vectors = RowVectors::new(self.vectors.len(), self.dimension, by.room(count));
            for (row, vector) in self.vectors.iter().enumerate() {
                vector.iter().for_each(|vector| vectors.set(row, vector));
            }
            dpp(&self.scores, &mut vectors, count, by, Picking::default()).unwrap()
        }

        /// The determinant of `L` for these rows.
        fn of(&self, rows: &[usize], by: Determinants) -> f64 {
            let product = |a: usize, b: usize| match (&self.vectors[a], &self.vectors[b]) {
                (Some(x), Some(y)) => x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum(),
                _ if a == b => 1.0,
                _ => 0.0,
            };
            let quality = |row: usize| math::exp(by.alpha * self.scores[row].unwrap_or(0.0));
            let cell = |a: usize, b: usize| {
                let ridge = if a == b { f64::from(by.ridge) } else { 0.0 };
                quality(a) * (product(a, b) + ridge) * quality(b)
            };
            determinant(rows.iter().map(|a| rows.iter().map(|b| cell(*a, *b)).collect()).collect())
        }

        /// Every pick makes the determinant as high as any other row would, but for rounding.
        fn check(&self, picks: &[usize], count: usize, by: Determinants) {
            assert_eq!(picks.len(), count.min(self.scores.len()));
            for place in 0..picks.len() {
                assert!(!picks[..place].contains(&picks[place]), "{picks:?}");
                let left: Vec<usize> = (0..self.scores.len()).filter(|row| !picks[..place].contains(row)).collect();
                let scored: Vec<usize> = left.iter().copied().filter(|row| self.scores[*row].is_some()).collect();
                if scored.is_empty() {
                    assert_eq!(picks[place], left[0], "rows without a score keep their order");
                    continue;
                }
                let since = if by.window == 0 { 0 } else { place.saturating_sub(by.window) };
                let with = |row: usize| {
                    let rows: Vec<usize> = picks[since..place].iter().copied().chain([row]).collect();
                    self.of(&rows, by)
                };
                let most = scored.iter().map(|row| with(*row)).fold(0.0, f64::max);
                let own = with(picks[place]);
                assert!(
                    self.scores[picks[place]].is_some() && own >= most * (1.0 - 1e-3),
                    "{own} of {most}: {picks:?}, place {place}"
                );
            }
        }
    }

    fn given(rows: &[(Option<i8>, Option<Vec<i8>>)], dimension: usize) -> Given {
        let number = |n: &i8| f32::from(*n) / 2.0;
        Given {
            scores: rows.iter().map(|(score, _)| score.map(|score| f64::from(score) / 2.0)).collect(),
            vectors: rows
                .iter()
                .map(|(_, vector)| vector.as_ref().map(|vector| vector[..dimension].iter().map(number).collect()))
                .collect(),
            dimension,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn each_pick_makes_the_determinant_the_highest(
            rows in proptest::collection::vec((prop_oneof![5 => (-3i8..4).prop_map(Some), 1 => Just(None)], prop_oneof![5 => proptest::collection::vec(-2i8..3, 5).prop_map(Some), 1 => Just(None)]), 0..9),
            dimension in 1..=5usize,
            count in 0..11usize,
            alpha in 0..3u8,
            ridge in 0..3usize,
            window in prop_oneof![2 => Just(0usize), 1 => 1..5usize],
        ) {
            let by = Determinants { alpha: f64::from(alpha) / 2.0, ridge: [0.1, 0.5, 2.0][ridge], window };
            let given = given(&rows, dimension);
            given.check(&given.picks(count, by), count, by);
        }
    }

    #[test]
    fn without_a_ridge_there_are_as_many_picks_as_wanted() {
        let same = given(&vec![(Some(1), Some(vec![1, 1])); 40], 2);
        let by = Determinants { alpha: 1.0, ridge: 0.0, window: 0 };
        assert_eq!(same.picks(40, by), (0..40).collect::<Vec<_>>(), "what is equal keeps its order");
        let none = given(&vec![(Some(1), Some(vec![0, 0])); 5], 2);
        assert_eq!(none.picks(9, by), (0..5).collect::<Vec<_>>());
    }

    #[test]
    fn scores_that_are_far_apart_still_decide() {
        let mut given = given(&vec![(Some(1), Some(vec![1, 1])); 5], 2);
        given.scores = [-1e9, 1e9, 3.0, f64::MAX, 1e9 - 1.0].map(Some).to_vec();
        let by = Determinants { alpha: 10.0, ridge: 0.01, window: 0 };
        assert_eq!(given.picks(5, by), [3, 1, 4, 2, 0]);
    }
}
