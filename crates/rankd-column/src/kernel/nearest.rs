//! The rows whose vectors are nearest to given ones.
//!
//! One pass over the rows, however many vectors are asked for: a piece of rows that the cache holds is compared with each of them before the
//! next one is read. The best rows so far are kept in a list of bounded length, and only a row that beats the worst of them enters. Scores
//! are those of [`Similarity`], bit for bit; of equal ones the row that comes first is nearer. Rows without a vector are left out.

use crate::column::{Cells, Column};
use crate::flat::Vectors;
use crate::kernel::similarity::{Similarity, square};
use crate::kernel::sort::rank_float;
use crate::kernel::wide::wide;
use crate::rowset::Rows;
use crate::stop::{Stop, Stopped};
use std::fmt;

/// Rows of a piece at most.
pub(super) const PIECE_ROWS: usize = 512;
/// Numbers of a piece: with those of the vectors that are asked for, they stay in the second-level cache.
const PIECE_NUMBERS: usize = 1 << 16;
/// Comparing so many numbers takes about as long as a row of one column takes elsewhere.
const NUMBERS_A_ROW: usize = 64;
/// Room for rows that enter before the worst are weeded out again.
const SPARE: usize = 256;
/// Scores that are looked at together, and again where one of them enters.
const BLOCK: usize = 64;
const FEW: usize = 8;

/// A row and how near it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// The stored row.
    pub row: u32,
    pub score: f64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NearestFault {
    /// The caller asked to stop.
    Stopped,
    /// The score of this stored row is no finite number.
    NotFinite { row: u32, score: f64 },
}

impl From<Stopped> for NearestFault {
    fn from(_: Stopped) -> NearestFault {
        NearestFault::Stopped
    }
}

impl std::error::Error for NearestFault {}

impl fmt::Display for NearestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NearestFault::Stopped => Stopped.fmt(f),
            NearestFault::NotFinite { score, .. } => write!(f, "the score is {score}"),
        }
    }
}

/// For each vector that is asked for, the `k` nearest of the rows, nearest first. The rows are in ascending order. A column that holds no vectors
/// has no near rows, and nor has a vector of another dimension.
pub fn nearest(
    column: &Column,
    rows: Rows<'_>,
    asked: &[&[f32]],
    by: Similarity,
    k: usize,
    stop: Stop<'_>,
) -> Result<Vec<Vec<Near>>, NearestFault> {
    let Column::Vector(cells, vectors) = column else { return Ok(vec![Vec::new(); asked.len()]) };
    let dimension = usize::from(vectors.dimension());
    let mut searches: Vec<VectorSearch<'_>> =
        asked.iter().map(|vector| VectorSearch::new(vector, k, by, rows.len(), dimension)).collect();
    let mut pieces = Pieces::new(cells, vectors.len(), rows, dimension, stop);
    let mut scores = [0f64; PIECE_ROWS];
    while let Some(piece) = pieces.next()? {
        for search in &mut searches {
            search.look_at(piece, vectors, &mut scores, stop)?;
        }
    }
    searches.into_iter().map(|search| Ok(search.best.finish(|key| by.of_key(key), stop)?)).collect()
}

/// Some rows that have vectors, and which.
#[derive(Clone, Copy)]
pub(super) struct Piece<'p> {
    pub(super) rows: PieceRows<'p>,
    pub(super) vectors: PieceVectors<'p>,
}

#[derive(Clone, Copy)]
pub(super) enum PieceRows<'p> {
    From(usize),
    Listed(&'p [u32]),
}

impl PieceRows<'_> {
    #[inline(always)]
    pub(super) fn at(self, position: usize) -> u32 {
        match self {
            PieceRows::From(first) => (first + position) as u32,
            PieceRows::Listed(rows) => rows[position],
        }
    }
}

/// The numbers of vectors.
#[derive(Clone, Copy)]
pub(super) enum PieceVectors<'p> {
    /// One after the other.
    SideBySide {
        first: usize,
        count: usize,
    },
    Listed(&'p [u32]),
}

impl PieceVectors<'_> {
    pub(super) fn len(self) -> usize {
        match self {
            PieceVectors::SideBySide { count, .. } => count,
            PieceVectors::Listed(numbers) => numbers.len(),
        }
    }
}

/// The rows that have vectors, piece by piece, with a look at the stop.
pub(super) struct Pieces<'c, 's> {
    cells: &'c Cells<u32>,
    /// How many vectors there are.
    vectors: usize,
    rows: Rows<'c>,
    start: usize,
    /// Rows of a piece.
    room: usize,
    /// How many rows a row takes as long as.
    weight: usize,
    looks: crate::stop::Looks<'s>,
    listed: Vec<u32>,
    numbers: Vec<u32>,
}

impl<'c, 's> Pieces<'c, 's> {
    pub(super) fn new(
        cells: &'c Cells<u32>,
        vectors: usize,
        rows: Rows<'c>,
        dimension: usize,
        stop: Stop<'s>,
    ) -> Pieces<'c, 's> {
        let room = (PIECE_NUMBERS / dimension.max(1)).clamp(BLOCK / 2, PIECE_ROWS);
        let weight = dimension.div_ceil(NUMBERS_A_ROW).max(1);
        let (listed, numbers) = (Vec::with_capacity(room), Vec::with_capacity(room));
        Pieces { cells, vectors, rows, start: 0, room, weight, looks: stop.looks(), listed, numbers }
    }

    pub(super) fn next(&mut self) -> Result<Option<Piece<'_>>, Stopped> {
        if self.start >= self.rows.len() {
            return Ok(None);
        }
        let count = self.room.min(self.rows.len() - self.start);
        self.looks.before(count * self.weight)?;
        let rows = self.rows.slice(self.start, count);
        self.start += count;
        if let (Rows::Range { start, len }, None) = (rows, self.cells.valid()) {
            let numbers = &self.cells.values()[start..start + len];
            return Ok(Some(Piece { rows: PieceRows::From(start), vectors: side_by_side(numbers, self.vectors) }));
        }
        self.listed.clear();
        self.numbers.clear();
        for row in rows.iter() {
            if let Some(number) = self.cells.get(row) {
                self.listed.push(row as u32);
                self.numbers.push(number);
            }
        }
        let vectors = side_by_side(&self.numbers, self.vectors);
        Ok(Some(Piece { rows: PieceRows::Listed(&self.listed), vectors }))
    }
}

/// Vectors with these numbers, of so many.
fn side_by_side(numbers: &[u32], of: usize) -> PieceVectors<'_> {
    let Some(&first) = numbers.first() else { return PieceVectors::Listed(numbers) };
    // All are looked at, because a loop that can end early is not vectorised.
    let strays = wide(
        #[inline(always)]
        || {
            let numbers = numbers.iter().enumerate();
            numbers.fold(0, |strays, (after, number)| strays | (number ^ first.wrapping_add(after as u32)))
        },
    );
    match strays == 0 && first as usize + numbers.len() <= of {
        true => PieceVectors::SideBySide { first: first as usize, count: numbers.len() },
        false => PieceVectors::Listed(numbers),
    }
}

/// One vector that is asked for, and the best rows so far.
struct VectorSearch<'q> {
    /// The vector and its square; nothing where no row can be near it.
    with: Option<(&'q [f32], f64)>,
    by: Similarity,
    best: BestRows,
}

impl<'q> VectorSearch<'q> {
    fn new(vector: &'q [f32], k: usize, by: Similarity, rows: usize, dimension: usize) -> VectorSearch<'q> {
        let with = (vector.len() == dimension && k > 0).then(|| (vector, square(vector)));
        VectorSearch { with, by, best: BestRows::new(k, rows) }
    }

    fn look_at(
        &mut self,
        piece: Piece<'_>,
        vectors: &Vectors,
        scores: &mut [f64; PIECE_ROWS],
        stop: Stop<'_>,
    ) -> Result<(), NearestFault> {
        let Some(with) = self.with else { return Ok(()) };
        let (by, dimension) = (self.by, usize::from(vectors.dimension()));
        let scores = &mut scores[..piece.vectors.len()];
        match piece.vectors {
            PieceVectors::SideBySide { first, count } => {
                let values = &vectors.values()[first * dimension..][..count * dimension];
                by.keys_side_by_side(scores, values, with);
            }
            PieceVectors::Listed(numbers) => wide(
                #[inline(always)]
                || {
                    by.keys_with_one(
                        scores,
                        #[inline(always)]
                        |row| vectors.get(numbers[row]),
                        with,
                    );
                },
            ),
        }
        let are_finite = wide(
            #[inline(always)]
            || {
                // Adding one to an exponent carries into the sign's place only where all its bits are set: NaN and infinity.
                const EXPONENT: u64 = 0x7FF << 52;
                let carries = scores.iter().fold(0, |bits, v| bits | ((v.to_bits() & EXPONENT) + (1 << 52)));
                carries >> 63 == 0
            },
        );
        if !are_finite && let Some(at) = scores.iter().position(|score| !score.is_finite()) {
            return Err(NearestFault::NotFinite { row: piece.rows.at(at), score: by.of_key(scores[at]) });
        }
        Ok(self.best.offer(scores, piece.rows, stop)?)
    }
}

/// The rows with the highest keys of those that were offered so far.
pub(super) struct BestRows {
    count: usize,
    /// More than `count` until the worst are weeded out: ranks, of which low ones are better, and rows.
    entered: Vec<(u64, u32)>,
    room: usize,
    /// A row has to have a higher key than this to enter, once there are enough.
    worst: f64,
}

impl BestRows {
    /// For the best `count` of at most `rows` rows.
    pub(super) fn new(count: usize, rows: usize) -> BestRows {
        let room = count.saturating_mul(2).max(count.saturating_add(SPARE)).min(rows);
        BestRows { count, entered: Vec::with_capacity(room), room, worst: f64::NEG_INFINITY }
    }

    /// Offers rows of a piece that come after those that were offered before. A key that is no number is the highest.
    pub(super) fn offer(&mut self, keys: &[f64], rows: PieceRows<'_>, stop: Stop<'_>) -> Result<(), Stopped> {
        let worst = self.worst;
        let mut has_better = [false; PIECE_ROWS / BLOCK];
        wide(
            #[inline(always)]
            || {
                for (has_better, keys) in has_better.iter_mut().zip(keys.chunks(BLOCK)) {
                    *has_better = keys.iter().fold(0u64, |count, &key| count + u64::from(beats(key, worst))) > 0;
                }
            },
        );
        for (block, keys) in keys.chunks(BLOCK).enumerate().filter(|(block, _)| has_better[*block]) {
            for (few, keys) in keys.chunks(FEW).enumerate() {
                if !keys.iter().fold(false, |any, &key| any | beats(key, self.worst)) {
                    continue;
                }
                for (at, &key) in keys.iter().enumerate() {
                    if beats(key, self.worst) {
                        self.entered.push((!rank_float(key), rows.at(block * BLOCK + few * FEW + at)));
                        if self.entered.len() >= self.room {
                            self.weed(stop)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn weed(&mut self, stop: Stop<'_>) -> Result<(), Stopped> {
        if self.entered.len() > self.count {
            stop.check()?;
            // Of equal ranks, the row that comes first is better, so no two entries are equal.
            let (_, &mut (worst, _), _) = self.entered.select_nth_unstable(self.count - 1);
            self.entered.truncate(self.count);
            self.worst = key_of(!worst);
        }
        Ok(())
    }

    /// The best rows, best first.
    pub(super) fn finish(mut self, score: impl Fn(f64) -> f64, stop: Stop<'_>) -> Result<Vec<Near>, Stopped> {
        if self.count == 0 {
            return Ok(Vec::new());
        }
        self.weed(stop)?;
        stop.check()?;
        self.entered.sort_unstable();
        Ok(self.entered.into_iter().map(|(rank, row)| Near { row, score: score(key_of(!rank)) }).collect())
    }
}

/// True for a key that is no number, too.
#[inline(always)]
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "the other way round takes two comparisons")]
fn beats(key: f64, worst: f64) -> bool {
    !(key <= worst)
}

/// The number that has this rank.
fn key_of(rank: u64) -> f64 {
    f64::from_bits(if rank >> 63 == 1 { rank ^ (1 << 63) } else { !rank })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::wide::each_width;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// All rows that have a vector, each by itself, in one stable sort.
    fn naive(rows: &[usize], vectors: &[Option<Vec<f32>>], asked: &[f32], by: Similarity, k: usize) -> Vec<Near> {
        let score = |row: &usize| {
            let score = by.of(vectors[*row].as_ref()?, asked);
            Some(Near { row: *row as u32, score })
        };
        let mut all: Vec<Near> = rows.iter().filter_map(score).collect();
        match by {
            Similarity::Dot | Similarity::Cosine => all.sort_by(|a, b| b.score.total_cmp(&a.score)),
            Similarity::L2 => all.sort_by(|a, b| a.score.total_cmp(&b.score)),
        }
        all.truncate(k);
        all
    }

    /// A column of vectors, in whatever order they lie in.
    fn column(vectors: &[Option<Vec<f32>>], dimension: usize, backwards: bool) -> Column {
        let mut numbers = Vec::new();
        let mut add = |vector: &[f32]| {
            numbers.extend_from_slice(vector);
            (numbers.len() / dimension) as u32 - 1
        };
        let mut cells: Vec<Option<u32>> = vec![None; vectors.len()];
        let mut set = |row: usize| cells[row] = vectors[row].as_deref().map(&mut add);
        match backwards {
            true => (0..vectors.len()).rev().for_each(&mut set),
            false => (0..vectors.len()).for_each(&mut set),
        }
        Column::Vector(cells.into_iter().collect(), Arc::new(Vectors::new(dimension as u16, numbers)))
    }

    const ALL: [Similarity; 3] = [Similarity::Dot, Similarity::Cosine, Similarity::L2];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn rows_are_those_of_a_stable_sort(
            cells in proptest::collection::vec(prop_oneof![5 => proptest::collection::vec(-2i8..3, 20).prop_map(Some), 1 => Just(None)], 0..40),
            asked in proptest::collection::vec(proptest::collection::vec(-2i8..3, 20), 0..4),
            dimension in 1..=20usize,
            k in 0..50usize,
            by in 0..3usize,
            (backwards, all_equal, viewed) in any::<(bool, bool, u64)>(),
        ) {
            let float = |vector: &Vec<i8>| vector[..dimension].iter().map(|n| f32::from(*n)).collect::<Vec<f32>>();
            let mut vectors: Vec<Option<Vec<f32>>> = cells.iter().map(|cell| cell.as_ref().map(float)).collect();
            if all_equal && let Some(first) = vectors.iter().flatten().next().cloned() {
                vectors.iter_mut().flatten().for_each(|vector| vector.clone_from(&first));
            }
            let asked: Vec<Vec<f32>> = asked.iter().map(float).collect();
            let (column, by) = (column(&vectors, dimension, backwards), ALL[by]);
            let some: Vec<u32> = (0..vectors.len() as u32).filter(|row| viewed >> (row % 64) & 1 == 1).collect();
            let all = Rows::Range { start: 0, len: vectors.len() };
            for rows in [all, Rows::Listed(&some)] {
                let wanted: Vec<&[f32]> = asked.iter().map(|asked| &asked[..]).collect();
                let found = nearest(&column, rows, &wanted, by, k, Stop::default()).unwrap();
                let stored: Vec<usize> = rows.iter().collect();
                let expected: Vec<Vec<Near>> =
                    wanted.iter().map(|asked| naive(&stored, &vectors, asked, by, k)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    fn many(rows: usize, dimension: usize) -> Vec<Option<Vec<f32>>> {
        let number = |at: usize| ((at.wrapping_mul(7919) % 1009) as f32 - 504.0) / 504.0;
        let vector = |row: usize| (0..dimension).map(|at| number(row * dimension + at)).collect();
        (0..rows).map(|row| (row % 17 != 5).then(|| vector(row))).collect()
    }

    #[test]
    fn many_rows_are_weeded_again_and_again() {
        for (rows, dimension) in [(5_000, 3), (3_000, 33), (200, 1500)] {
            let vectors = many(rows, dimension);
            let (column, stored) = (column(&vectors, dimension, false), (0..rows).collect::<Vec<_>>());
            let asked: Vec<f32> = (0..dimension).map(|at| (at % 7) as f32 - 3.0).collect();
            for by in ALL {
                for k in [1, 10, 700, rows] {
                    let all = Rows::Range { start: 0, len: rows };
                    let found = each_width(|| nearest(&column, all, &[&asked], by, k, Stop::default()).unwrap());
                    let expected = naive(&stored, &vectors, &asked, by, k);
                    for found in found {
                        assert_eq!(found, std::slice::from_ref(&expected), "{rows} {dimension} {by:?} {k}");
                    }
                }
            }
        }
        // Each row nearer than all before it.
        let rising: Vec<Option<Vec<f32>>> = (0..10_000).map(|row| Some(vec![row as f32])).collect();
        let found = nearest(
            &column(&rising, 1, false),
            Rows::Range { start: 0, len: 10_000 },
            &[&[1.0]],
            Similarity::Dot,
            3,
            Stop::default(),
        );
        let rows: Vec<u32> = found.unwrap()[0].iter().map(|near| near.row).collect();
        assert_eq!(rows, [9_999, 9_998, 9_997]);
    }

    #[test]
    fn what_is_not_finite_names_its_row() {
        let vectors = vec![Some(vec![1.0, 1.0]), None, Some(vec![3e38, 3e38])];
        let found = nearest(
            &column(&vectors, 2, false),
            Rows::Range { start: 0, len: 3 },
            &[&[3e38, 1.0]],
            Similarity::Dot,
            1,
            Stop::default(),
        );
        assert_eq!(found, Err(NearestFault::NotFinite { row: 2, score: f64::INFINITY }));
    }

    #[test]
    fn other_columns_and_other_dimensions_have_no_near_rows() {
        let ints = Column::Int(Cells::full(vec![1, 2]));
        let all = Rows::Range { start: 0, len: 2 };
        assert_eq!(nearest(&ints, all, &[&[1.0]], Similarity::Dot, 1, Stop::default()), Ok(vec![Vec::new()]));
        let vectors = column(&[Some(vec![1.0]), Some(vec![2.0])], 1, false);
        assert_eq!(nearest(&vectors, all, &[&[1.0, 2.0]], Similarity::Dot, 1, Stop::default()), Ok(vec![Vec::new()]));
    }

    #[test]
    fn the_key_of_a_rank_is_the_number() {
        for number in [0.0, 1.5, -1.5, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -5e-324] {
            assert_eq!(key_of(rank_float(number)), number);
        }
    }
}
