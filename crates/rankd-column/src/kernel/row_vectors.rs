//! The vectors of many rows, laid out so that one vector is multiplied with all of them in a short time: in blocks of 32 rows, and inside of a
//! block number by number, so that the same number of all its rows fills whole registers.
//!
//! The order of every sum is fixed, whatever the width of registers: the products at even positions are added from the first to the last, those at odd
//! positions, too, and then the two sums; each product and each sum is rounded to `f32`, never both at once.
//!
//! [`Highest`] finds the best of so many rows.

use crate::batch::Key;
use crate::column::Column;
use crate::rowset::RowSet;
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};

/// Rows of a block.
pub const BLOCK: usize = 32;
/// Blocks that are worked on between two looks.
pub(super) const BLOCKS_A_LOOK: usize = ROWS_A_LOOK / BLOCK;

/// One number of each row of a block.
pub(super) type BlockOf<T> = [T; BLOCK];

/// A vector for each row, and room for more numbers behind it.
pub struct RowVectors {
    rows: usize,
    dimension: usize,
    /// How many numbers a row has room for.
    width: usize,
    /// Zeros for rows without a vector, and behind the last row.
    lanes: Vec<BlockOf<f32>>,
    has_vector: Vec<bool>,
}

impl RowVectors {
    /// No vectors yet.
    pub fn new(rows: usize, dimension: usize, room: usize) -> RowVectors {
        let width = dimension + room;
        let lanes = vec![[0.0; BLOCK]; rows.div_ceil(BLOCK) * width];
        RowVectors { rows, dimension, width, lanes, has_vector: vec![false; rows] }
    }

    /// Those of a key, by position of the view. A key that is not there, or is no vector, has none.
    pub fn of_view(rows: &RowSet, key: Key, room: usize, stop: Stop<'_>) -> Result<RowVectors, Stopped> {
        let Some(Column::Vector(cells, vectors)) = rows.batch().column(key).map(|column| &**column) else {
            return Ok(RowVectors::new(rows.len(), 1, room));
        };
        let mut out = RowVectors::new(rows.len(), vectors.dimension().into(), room);
        let mut position = 0;
        for chunk in stop.chunks(rows.rows()) {
            for row in chunk?.iter() {
                if let Some(at) = cells.get(row) {
                    out.set(position, vectors.get(at));
                }
                position += 1;
            }
        }
        Ok(out)
    }

    /// How many numbers the vectors of a key would take.
    pub fn numbers_needed(rows: &RowSet, key: Key, room: usize) -> usize {
        let dimension = match rows.batch().column(key).map(|column| &**column) {
            Some(Column::Vector(_, vectors)) => vectors.dimension().into(),
            _ => 1,
        };
        rows.len().next_multiple_of(BLOCK).saturating_mul(room.saturating_add(dimension))
    }

    /// Sets the vector of a row.
    pub fn set(&mut self, row: usize, vector: &[f32]) {
        let lanes = &mut self.lanes[row / BLOCK * self.width..][..self.dimension];
        lanes.iter_mut().zip(vector).for_each(|(lane, number)| lane[row % BLOCK] = *number);
        self.has_vector[row] = true;
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn has_vector(&self, row: usize) -> bool {
        self.has_vector.get(row) == Some(&true)
    }

    /// How many rows have none.
    pub fn lacking(&self) -> usize {
        self.has_vector.iter().filter(|has| !**has).count()
    }

    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// The first numbers of a row.
    pub(super) fn copy(&self, row: usize, count: usize, out: &mut Vec<f32>) {
        out.clear();
        let lanes = &self.lanes[row / BLOCK * self.width..][..count];
        out.extend(lanes.iter().map(|lane| lane[row % BLOCK]));
    }

    /// The lanes of one block after the other.
    #[inline(always)]
    pub(super) fn blocks(&self) -> std::slice::ChunksExact<'_, BlockOf<f32>> {
        self.lanes.chunks_exact(self.width)
    }

    /// The lanes of some blocks.
    #[inline(always)]
    pub(super) fn blocks_mut(&mut self, first: usize, count: usize) -> std::slice::ChunksExactMut<'_, BlockOf<f32>> {
        self.lanes[first * self.width..(first + count) * self.width].chunks_exact_mut(self.width)
    }

    /// The product of each vector with itself.
    pub(super) fn squares(&self, stop: Stop<'_>) -> Result<Vec<BlockOf<f32>>, Stopped> {
        let (mut squares, mut looks) = (Vec::with_capacity(self.rows.div_ceil(BLOCK)), stop.looks());
        for block in self.blocks() {
            looks.before(BLOCK)?;
            let (mut even, mut odd) = ([0f32; BLOCK], [0f32; BLOCK]);
            let (pairs, rest) = block[..self.dimension].as_chunks::<2>();
            for [first, second] in pairs {
                (even, odd) = (added(&even, first, first), added(&odd, second, second));
            }
            for lane in rest {
                even = added(&even, lane, lane);
            }
            squares.push(each(|at| even[at] + odd[at]));
        }
        Ok(squares)
    }
}

/// The products of the rows of a block with one vector, which is no longer than the rows. Call it under [`wide`](crate::kernel::wide::wide).
#[inline(always)]
pub(super) fn products(block: &[BlockOf<f32>], with: &[f32]) -> BlockOf<f32> {
    let (mut even, mut odd) = ([0f32; BLOCK], [0f32; BLOCK]);
    let (pairs, rest) = with.as_chunks::<2>();
    let (lanes, last) = block[..with.len()].as_chunks::<2>();
    for ([first, second], by) in lanes.iter().zip(pairs) {
        even = added(&even, first, &[by[0]; BLOCK]);
        odd = added(&odd, second, &[by[1]; BLOCK]);
    }
    for (lane, by) in last.iter().zip(rest) {
        even = added(&even, lane, &[*by; BLOCK]);
    }
    each(
        #[inline(always)]
        |at| even[at] + odd[at],
    )
}

#[inline(always)]
fn added(sums: &BlockOf<f32>, a: &BlockOf<f32>, b: &BlockOf<f32>) -> BlockOf<f32> {
    each(
        #[inline(always)]
        |at| sums[at] + a[at] * b[at],
    )
}

/// What is made of each row of a block. A loop, because `array::from_fn` is sometimes compiled to a call, which is not as wide as its caller.
#[inline(always)]
pub(super) fn each<T: Copy + Default, const N: usize>(of: impl Fn(usize) -> T) -> [T; N] {
    let mut out = [T::default(); N];
    for (at, out) in out.iter_mut().enumerate() {
        *out = of(at);
    }
    out
}

/// A number for each row, in blocks; minus infinity where there is none and behind the last row.
pub(super) fn in_blocks(
    rows: usize,
    number: impl Fn(usize) -> Option<f64>,
    stop: Stop<'_>,
) -> Result<Vec<BlockOf<f64>>, Stopped> {
    let (mut blocks, mut looks) = (Vec::with_capacity(rows.div_ceil(BLOCK)), stop.looks());
    for first in (0..rows).step_by(BLOCK) {
        looks.before(BLOCK)?;
        let of = |at: usize| if first + at < rows { number(first + at) } else { None };
        blocks.push(each(|at| of(at).unwrap_or(f64::NEG_INFINITY)));
    }
    Ok(blocks)
}

/// The highest number that was offered so far and the first row that has it. Minus infinity is no number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Highest {
    pub number: f64,
    pub row: usize,
}

impl Highest {
    pub(super) const NONE: Highest = Highest { number: f64::NEG_INFINITY, row: usize::MAX };

    /// Offers the numbers of a block, which come after those that were offered before.
    #[inline(always)]
    pub(super) fn offer(&mut self, numbers: &BlockOf<f64>, block: usize) {
        let eight = higher::<16, 8>(&higher::<32, 16>(numbers));
        let two = higher::<4, 2>(&higher::<8, 4>(&eight));
        let most = if two[0] > two[1] { two[0] } else { two[1] };
        if most > self.number
            && let Some(at) = numbers.iter().position(|number| *number == most)
        {
            *self = Highest { number: most, row: block * BLOCK + at };
        }
    }

    pub(super) fn found(self) -> Option<usize> {
        Some(self.row).filter(|row| *row != usize::MAX)
    }
}

#[inline(always)]
fn higher<const N: usize, const HALF: usize>(numbers: &[f64; N]) -> [f64; HALF] {
    each(
        #[inline(always)]
        |at| if numbers[at] > numbers[at + HALF] { numbers[at] } else { numbers[at + HALF] },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::wide::wide;

    fn number(row: usize, at: usize) -> f32 {
        ((row * 31 + at * 17) % 23) as f32 / 7.0 - 1.5
    }

    #[test]
    fn products_are_those_of_the_header_at_every_width() {
        for (rows, dimension) in [(1, 1), (31, 2), (32, 3), (33, 16), (70, 65)] {
            let mut vectors = RowVectors::new(rows, dimension, 2);
            let vector = |row: usize| (0..dimension).map(|at| number(row, at)).collect::<Vec<_>>();
            (0..rows).for_each(|row| vectors.set(row, &vector(row)));
            let (with, mut copied) = (vector(rows / 2), Vec::new());
            vectors.copy(rows / 2, dimension, &mut copied);
            assert_eq!(copied, with);
            let naive = |row: usize, with: &[f32]| {
                let sum =
                    |odd: usize| (odd..dimension).step_by(2).fold(0f32, |sum, at| sum + number(row, at) * with[at]);
                sum(0) + sum(1)
            };
            let squares = vectors.squares(Stop::default()).unwrap();
            for (at, block) in vectors.blocks().enumerate() {
                let made = wide(
                    #[inline(always)]
                    || products(block, &with),
                );
                for row in at * BLOCK..rows.min((at + 1) * BLOCK) {
                    assert_eq!(
                        made[row % BLOCK].to_bits(),
                        naive(row, &with).to_bits(),
                        "{row} of {rows}, {dimension}"
                    );
                    assert_eq!(squares[at][row % BLOCK].to_bits(), naive(row, &vector(row)).to_bits());
                }
                assert_eq!(made, products(block, &with));
            }
            assert_eq!(vectors.lacking(), 0);
        }
    }

    #[test]
    fn of_equal_numbers_the_first_is_the_highest() {
        let mut highest = Highest::NONE;
        highest.offer(&[f64::NEG_INFINITY; BLOCK], 0);
        assert_eq!(highest.found(), None);
        let mut numbers = [1.0; BLOCK];
        (numbers[5], numbers[20]) = (3.0, 3.0);
        highest.offer(&numbers, 2);
        highest.offer(&numbers, 3);
        assert_eq!((highest.found(), highest.number), (Some(2 * BLOCK + 5), 3.0));
    }
}
