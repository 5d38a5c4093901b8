//! Copies of vectors with fewer bits, which pick the rows that are worth a look at the vectors themselves.
//!
//! `f16`: each number as a half-precision float, all scaled by one power of two, such that the largest is near the top of what a half can
//! hold; what is then below the least normal half is zero. `i8`: each number as a byte, scaled by the largest number of its vector, so that a
//! short vector loses no more than a long one. A vector that is asked for keeps its precision: 32 bits beside halves, up to 16 beside bytes.
//!
//! A search picks [`PICKED`] times as many rows as it is to find by the copy, and then compares those by the vectors themselves. So what it gives is scored
//! exactly, and it is approximate in one way only: a row may be missing that was not picked. The order of every sum is fixed, so that the same rows
//! are picked on every processor. Vectors are padded with zeros to whole blocks.

use crate::column::Column;
use crate::kernel::nearest::{BestRows, Near, NearestFault, PIECE_ROWS, Piece, PieceVectors, Pieces, nearest};
use crate::kernel::similarity::{BLOCK, LANES, Lanes, QUARTER, Similarity, quartered, square, total};
use crate::kernel::wide::wide;
use crate::rowset::Rows;
use crate::stop::Stop;

/// How many rows are picked for each that is to be found.
pub const PICKED: usize = 4;

/// The exponents of a half and a float are this far apart.
const EXPONENTS_APART: i32 = 112;
/// The largest number of a copy is at least two to this and less than twice that, as a half.
const TOP_EXPONENT: i32 = 14;

/// Rows that are summed in turn.
const IN_TURN: usize = 4;

/// How the numbers of a copy are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyKind {
    F16,
    I8,
}

impl CopyKind {
    /// Each with its name in the registry.
    pub const ALL: &[(&str, CopyKind)] = &[("f16", CopyKind::F16), ("i8", CopyKind::I8)];

    pub fn name(self) -> &'static str {
        match self {
            CopyKind::F16 => "f16",
            CopyKind::I8 => "i8",
        }
    }
}

/// A copy of the vectors of a column, by their numbers.
#[derive(Debug)]
pub struct VectorCopy {
    /// Numbers of a vector with its padding: whole blocks.
    width: usize,
    numbers: Numbers,
    /// The product of each vector with itself.
    squares: Vec<f32>,
}

#[derive(Debug)]
enum Numbers {
    /// And what one of them stands for.
    Halves { numbers: Vec<u16>, unit: f64 },
    /// And what one of each vector stands for.
    Bytes { numbers: Vec<i8>, units: Vec<f32> },
}

impl VectorCopy {
    /// A copy of the vectors of a column; nothing of one that holds none.
    pub fn new(column: &Column, kind: CopyKind) -> Option<VectorCopy> {
        let Column::Vector(_, vectors) = column else { return None };
        let dimension = usize::from(vectors.dimension());
        let width = dimension.next_multiple_of(LANES);
        let each = || vectors.values().chunks_exact(dimension);
        let numbers = match kind {
            CopyKind::F16 => {
                let mut halves = Vec::with_capacity(vectors.len() * width);
                let up = TOP_EXPONENT - exponent(largest(vectors.values()));
                let by = power_of_two(up);
                for vector in each() {
                    halves.extend(vector.iter().map(|number| half(f64::from(*number) * by)));
                    halves.resize(halves.len() + width - dimension, 0);
                }
                Numbers::Halves { numbers: halves, unit: power_of_two(-up) }
            }
            CopyKind::I8 => {
                let mut bytes = Vec::with_capacity(vectors.len() * width);
                let mut units = Vec::with_capacity(vectors.len());
                for vector in each() {
                    let unit = f64::from(largest(vector)) / f64::from(i8::MAX);
                    let by = if unit > 0.0 { 1.0 / unit } else { 0.0 };
                    bytes.extend(vector.iter().map(|number| (f64::from(*number) * by).round_ties_even() as i8));
                    bytes.resize(bytes.len() + width - dimension, 0);
                    units.push(unit as f32);
                }
                Numbers::Bytes { numbers: bytes, units }
            }
        };
        let squares = each().map(|vector| square(vector) as f32).collect();
        Some(VectorCopy { width, numbers, squares })
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        let numbers = match &self.numbers {
            Numbers::Halves { numbers, .. } => size_of_val(&**numbers),
            Numbers::Bytes { numbers, units } => size_of_val(&**numbers) + size_of_val(&**units),
        };
        numbers + size_of_val(&*self.squares)
    }

    /// What [`nearest`] gives, but for rows that the copy does not pick. The copy is that of the column.
    pub fn nearest(
        &self,
        column: &Column,
        rows: Rows<'_>,
        asked: &[&[f32]],
        by: Similarity,
        k: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<Vec<Near>>, NearestFault> {
        let picked = k.saturating_mul(PICKED);
        let Column::Vector(cells, vectors) = column else { return Ok(vec![Vec::new(); asked.len()]) };
        // Where all would be picked, the vectors themselves say it at once.
        if picked >= rows.len() || self.squares.len() != vectors.len() {
            return nearest(column, rows, asked, by, k, stop);
        }
        let dimension = usize::from(vectors.dimension());
        let mut searches: Vec<Option<CopySearch>> = asked
            .iter()
            .map(|vector| (vector.len() == dimension && k > 0).then(|| self.search(vector, picked, rows.len())))
            .collect();
        let mut pieces = Pieces::new(cells, vectors.len(), rows, self.width, stop);
        let mut keys = [0f64; PIECE_ROWS];
        while let Some(piece) = pieces.next()? {
            for search in searches.iter_mut().flatten() {
                let keys = &mut keys[..piece.vectors.len()];
                self.keys(&search.asked, piece, by, keys);
                search.best.offer(keys, piece.rows, stop)?;
            }
        }
        let mut found = Vec::with_capacity(asked.len());
        for (search, vector) in searches.into_iter().zip(asked) {
            let Some(search) = search else {
                found.push(Vec::new());
                continue;
            };
            let mut picked: Vec<u32> = search.best.finish(|key| key, stop)?.iter().map(|near| near.row).collect();
            picked.sort_unstable();
            found.extend(nearest(column, Rows::Listed(&picked), &[vector], by, k, stop)?);
        }
        Ok(found)
    }

    /// A vector that is asked for, in the form that goes with the copy.
    fn search(&self, vector: &[f32], picked: usize, rows: usize) -> CopySearch {
        let asked = match &self.numbers {
            Numbers::Halves { unit, .. } => {
                let down = exponent(largest(vector));
                // A half is read as a float that is too small by this much; here it costs nothing to make up for it.
                let by = power_of_two(EXPONENTS_APART - down);
                let mut numbers = vec![0.0; self.width];
                numbers.iter_mut().zip(vector).for_each(|(to, number)| *to = (f64::from(*number) * by) as f32);
                Asked::Floats { numbers, unit: unit * power_of_two(down) }
            }
            Numbers::Bytes { .. } => {
                // No sum of so many products leaves 31 bits.
                let most = (i32::MAX / (i32::from(i8::MAX) * self.width as i32)).min(i16::MAX.into());
                let unit = f64::from(largest(vector)) / f64::from(most);
                let by = if unit > 0.0 { 1.0 / unit } else { 0.0 };
                let mut numbers = vec![0; self.width];
                let rounded = vector.iter().map(|number| (f64::from(*number) * by).round_ties_even() as i16);
                numbers.iter_mut().zip(rounded).for_each(|(to, number)| *to = number);
                Asked::Words { numbers, unit }
            }
        };
        CopySearch { asked, best: BestRows::new(picked, rows) }
    }

    /// By which the nearest vectors of a piece are about the highest.
    fn keys(&self, asked: &Asked, piece: Piece<'_>, by: Similarity, keys: &mut [f64]) {
        wide(
            #[inline(always)]
            || match piece.vectors {
                PieceVectors::SideBySide { first, .. } => self.keys_of(
                    asked,
                    #[inline(always)]
                    |row| first + row,
                    by,
                    keys,
                ),
                PieceVectors::Listed(numbers) => self.keys_of(
                    asked,
                    #[inline(always)]
                    |row| numbers[row] as usize,
                    by,
                    keys,
                ),
            },
        );
    }

    #[inline(always)]
    fn keys_of(&self, asked: &Asked, number: impl Fn(usize) -> usize + Copy, by: Similarity, keys: &mut [f64]) {
        let width = self.width;
        match (&self.numbers, asked) {
            (Numbers::Halves { numbers: halves, .. }, Asked::Floats { numbers: with, unit }) => {
                products_of_halves(
                    keys,
                    #[inline(always)]
                    |row| &halves[number(row) * width..][..width],
                    with,
                );
                keys.iter_mut().for_each(|key| *key *= unit);
            }
            (Numbers::Bytes { numbers: bytes, units }, Asked::Words { numbers: with, unit }) => {
                products_of_bytes(
                    keys,
                    #[inline(always)]
                    |row| &bytes[number(row) * width..][..width],
                    with,
                );
                for (row, key) in keys.iter_mut().enumerate() {
                    *key *= f64::from(units[number(row)]) * unit;
                }
            }
            // A search has the form of its copy.
            (Numbers::Halves { .. }, Asked::Words { .. }) | (Numbers::Bytes { .. }, Asked::Floats { .. }) => {}
        }
        match by {
            Similarity::Dot => {}
            Similarity::Cosine => {
                for (row, key) in keys.iter_mut().enumerate() {
                    let length = f64::from(self.squares[number(row)]).sqrt();
                    *key = if length == 0.0 { 0.0 } else { *key / length };
                }
            }
            // The square of the distance, but for what is the same for all, negated.
            Similarity::L2 => {
                for (row, key) in keys.iter_mut().enumerate() {
                    *key = 2.0 * *key - f64::from(self.squares[number(row)]);
                }
            }
        }
    }
}

/// One vector that is asked for, and the rows that are picked so far.
struct CopySearch {
    asked: Asked,
    best: BestRows,
}

/// A vector in the form that goes with a copy, and what a product of its numbers with those of the copy stands for.
enum Asked {
    Floats { numbers: Vec<f32>, unit: f64 },
    Words { numbers: Vec<i16>, unit: f64 },
}

/// The products of vectors of halves with one of floats, in the order of sums that [`Similarity`] has.
#[inline(always)]
fn products_of_halves<'v>(out: &mut [f64], row: impl Fn(usize) -> &'v [u16] + Copy, with: &[f32]) {
    let with = with.as_chunks::<LANES>().0;
    let mut quarters = [[0f32; QUARTER]; BLOCK];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let mut done = 0;
        while done + IN_TURN <= out.len() {
            let mut halves = [&[] as &[[u16; LANES]]; IN_TURN];
            for (at, halves) in halves.iter_mut().enumerate() {
                *halves = &row(block * BLOCK + done + at).as_chunks().0[..with.len()];
            }
            let mut lanes = [[0f32; LANES]; IN_TURN];
            for (block, with) in with.iter().enumerate() {
                for at in 0..IN_TURN {
                    lanes[at] = with_halves(lanes[at], &halves[at][block], with);
                }
            }
            for at in 0..IN_TURN {
                quarters[done + at] = quartered(lanes[at]);
            }
            done += IN_TURN;
        }
        for (at, quarter) in quarters[..out.len()].iter_mut().enumerate().skip(done) {
            let halves = row(block * BLOCK + at).as_chunks().0;
            let blocks = halves.iter().zip(with);
            *quarter = quartered(blocks.fold([0f32; LANES], |lanes, (halves, with)| with_halves(lanes, halves, with)));
        }
        for (out, quarter) in out.iter_mut().zip(&quarters) {
            *out = total(quarter);
        }
    }
}

#[inline(always)]
fn with_halves(lanes: Lanes, halves: &[u16; LANES], with: &Lanes) -> Lanes {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at] + small_float(halves[at]) * with[at],
    )
}

/// The products of vectors of bytes with one of words: whole numbers, so that their order makes no difference.
#[inline(always)]
fn products_of_bytes<'v>(out: &mut [f64], row: impl Fn(usize) -> &'v [i8] + Copy, with: &[i16]) {
    let with = with.as_chunks::<LANES>().0;
    let mut quarters = [[0i32; QUARTER]; BLOCK];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let mut done = 0;
        while done + IN_TURN <= out.len() {
            let mut bytes = [&[] as &[[i8; LANES]]; IN_TURN];
            for (at, bytes) in bytes.iter_mut().enumerate() {
                *bytes = &row(block * BLOCK + done + at).as_chunks().0[..with.len()];
            }
            let mut lanes = [[0i32; LANES]; IN_TURN];
            for (block, with) in with.iter().enumerate() {
                for at in 0..IN_TURN {
                    lanes[at] = with_bytes(lanes[at], &bytes[at][block], with);
                }
            }
            for at in 0..IN_TURN {
                quarters[done + at] = whole_quartered(lanes[at]);
            }
            done += IN_TURN;
        }
        for (at, quarter) in quarters[..out.len()].iter_mut().enumerate().skip(done) {
            let blocks = row(block * BLOCK + at).as_chunks().0.iter().zip(with);
            *quarter =
                whole_quartered(blocks.fold([0i32; LANES], |lanes, (bytes, with)| with_bytes(lanes, bytes, with)));
        }
        for (out, [a, b, c, d]) in out.iter_mut().zip(&quarters) {
            *out = f64::from(a.wrapping_add(*b).wrapping_add(c.wrapping_add(*d)));
        }
    }
}

#[inline(always)]
fn with_bytes(lanes: [i32; LANES], bytes: &[i8; LANES], with: &[i16; LANES]) -> [i32; LANES] {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at].wrapping_add(i32::from(bytes[at]) * i32::from(with[at])),
    )
}

#[inline(always)]
fn whole_quartered(lanes: [i32; LANES]) -> [i32; QUARTER] {
    std::array::from_fn(
        #[inline(always)]
        |at| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|part| lanes[at + part * QUARTER]);
            a.wrapping_add(b).wrapping_add(c.wrapping_add(d))
        },
    )
}

/// A half as a float that is two to the [`EXPONENTS_APART`] times smaller. There are no halves below the normal ones.
#[inline(always)]
fn small_float(half: u16) -> f32 {
    // The sign is drawn out over the bits above, of which the uppermost stays.
    f32::from_bits(((i32::from(half as i16) as u32) << 13) & 0x8FFF_E000)
}

/// The half that is nearest to a number, which is no larger than one can be; zero for what is below the normal ones.
fn half(number: f64) -> u16 {
    let bits = number.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    if number.abs() < power_of_two(-14) {
        return sign;
    }
    // Ten bits after the point, rounded to the nearest, of two to the even one; a carry makes the next exponent.
    let kept = (bits & (u64::MAX >> 1)) + ((1 << 41) - 1) + (bits >> 42 & 1);
    sign | ((kept >> 42) - ((1023 - 15) << 10)) as u16
}

/// The size of the largest number.
fn largest(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |most, number| if number.abs() > most { number.abs() } else { most })
}

/// The greatest power of two that is no larger; 0 for 0.
fn exponent(size: f32) -> i32 {
    if size == 0.0 { 0 } else { (f64::from(size).to_bits() >> 52) as i32 - 1023 }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Cells;
    use crate::flat::Vectors;
    use crate::kernel::wide::each_width;
    use std::sync::Arc;

    const SIMILARITIES: [Similarity; 3] = [Similarity::Dot, Similarity::Cosine, Similarity::L2];
    const KINDS: [CopyKind; 2] = [CopyKind::F16, CopyKind::I8];

    /// Numbers that look random, in clusters as those of embeddings.
    fn column(rows: usize, dimension: usize, scale: f32) -> Column {
        let random = |at: usize| {
            let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        let number = |row: usize, at: usize| {
            scale * (random(row % 50 * 5000 + at) + random(7_000_000 + row * dimension + at) / 2.0)
        };
        let numbers = (0..rows * dimension).map(|at| number(at / dimension, at % dimension)).collect();
        Column::Vector(Cells::full((0..rows as u32).collect()), Arc::new(Vectors::new(dimension as u16, numbers)))
    }

    fn vectors(column: &Column) -> &Vectors {
        match column {
            Column::Vector(_, vectors) => vectors,
            _ => unreachable!("a column of vectors"),
        }
    }

    #[test]
    fn halves_are_the_nearest() {
        let scale = power_of_two(EXPONENTS_APART);
        for (number, expected) in [
            (1.0, 0x3C00),
            (-2.0, 0xC000),
            (65504.0, 0x7BFF),
            (power_of_two(-14), 0x0400),
            (1e-5, 0),
            (0.0, 0),
            (1.0 + power_of_two(-11), 0x3C00),
            (1.0 + 3.0 * power_of_two(-11), 0x3C02),
        ] {
            assert_eq!(half(number), expected, "{number}");
        }
        for at in 0..2_000_000u32 {
            let number = f64::from(f32::from_bits(0x3880_0000 + at * 127));
            if number >= 65504.0 {
                break;
            }
            let read = f64::from(small_float(half(-number))) * scale;
            assert!((read + number).abs() <= number * power_of_two(-11), "{number} {read}");
        }
    }

    #[test]
    fn a_copy_finds_nearly_all_and_scores_exactly() {
        for (dimension, scale) in [(7, 1.0), (16, 1e-10), (64, 1e15), (100, 3.0)] {
            let column = column(4_000, dimension, scale);
            let all = Rows::Range { start: 0, len: 4_000 };
            let asked = vectors(&column).get(1_234).to_vec();
            for kind in KINDS {
                let copy = VectorCopy::new(&column, kind).unwrap();
                for by in SIMILARITIES {
                    let exact = nearest(&column, all, &[&asked], by, 50, Stop::default()).unwrap();
                    let found = each_width(|| copy.nearest(&column, all, &[&asked], by, 50, Stop::default()).unwrap());
                    for found in &found {
                        let there = exact[0].iter().filter(|near| found[0].contains(near)).count();
                        assert!(there >= 49, "{kind:?} {by:?} {dimension} {scale}: {there} of 50");
                    }
                    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
                }
            }
        }
    }

    #[test]
    fn what_is_picked_whole_is_exact() {
        let column = column(100, 5, 1.0);
        let asked = vectors(&column).get(3).to_vec();
        let listed: Vec<u32> = (0..100).step_by(3).collect();
        for kind in KINDS {
            let copy = VectorCopy::new(&column, kind).unwrap();
            for rows in [Rows::Range { start: 0, len: 100 }, Rows::Listed(&listed)] {
                for by in SIMILARITIES {
                    for k in [0, 1, 9, 25, 200] {
                        let exact = nearest(&column, rows, &[&asked], by, k, Stop::default()).unwrap();
                        let found = copy.nearest(&column, rows, &[&asked], by, k, Stop::default()).unwrap();
                        assert_eq!(found[0].len(), exact[0].len());
                        assert!(found == exact || k * PICKED < rows.len(), "{kind:?} {by:?} {k}");
                    }
                }
            }
            assert_eq!(
                copy.nearest(
                    &column,
                    Rows::Range { start: 0, len: 100 },
                    &[&asked[..2]],
                    Similarity::Dot,
                    3,
                    Stop::default()
                ),
                Ok(vec![Vec::new()])
            );
            assert!(copy.bytes() >= 100 * 16);
        }
        assert!(VectorCopy::new(&Column::Int(Cells::full(vec![1])), CopyKind::I8).is_none());
    }

    #[test]
    fn zeros_and_nothing_are_copied_as_well() {
        let zeros = Column::Vector(Cells::full(vec![0, 0, 0, 0, 0, 0]), Arc::new(Vectors::new(2, vec![0.0, 0.0])));
        for kind in KINDS {
            let copy = VectorCopy::new(&zeros, kind).unwrap();
            for by in SIMILARITIES {
                let found =
                    copy.nearest(&zeros, Rows::Range { start: 0, len: 6 }, &[&[0.0, 0.0]], by, 1, Stop::default());
                assert_eq!(found, Ok(vec![vec![Near { row: 0, score: 0.0 }]]), "{kind:?} {by:?}");
            }
            let none = Column::Vector(Cells::full(Vec::new()), Arc::new(Vectors::new(2, Vec::new())));
            assert_eq!(VectorCopy::new(&none, kind).unwrap().bytes(), 0);
        }
    }
}
