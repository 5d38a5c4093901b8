//! Sums over two vectors: the dot product, the cosine and the distance.
//!
//! The order of every sum is fixed, so that results are the same on every processor and wherever a row stands: the term of position
//! `k` goes to lane `k` modulo sixteen, and a last block that is not whole is moved to the end of its lanes; each product and each sum is
//! rounded to `f32`, never both at once; then lanes are added in pairs, the first half to the second, until one is left. Sixteen lanes
//! fill one or two wide registers. Vectors have the same length: what is beyond the shorter one is not looked at.
//!
//! The additions of one row wait for each other, so several rows are summed in turn. The
//! last four lanes are put together for many rows at once: in a loop of its own, the compiler fills a register with many rows, and in the
//! loop before it with many lanes. Short vectors that lie side by side have loops of their own, see [`short_sums`]. Whatever gives the rows is taken by value: called through a reference, it would be called for each row.

use crate::kernel::wide::wide;

pub(super) const LANES: usize = 16;
pub(super) const QUARTER: usize = LANES / 4;
/// Rows whose lanes are put together at once.
pub(super) const BLOCK: usize = 32;

/// Rows that are summed in turn.
const IN_TURN: usize = 4;

/// The numbers that are worked on at once.
pub(super) type Lanes = [f32; LANES];

/// How two vectors are compared. Which of them comes first makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    Dot,
    Cosine,
    L2,
}

impl Similarity {
    /// Of two vectors by themselves.
    pub fn of(self, a: &[f32], b: &[f32]) -> f64 {
        match self {
            Similarity::Dot => sum(a, b, product),
            Similarity::Cosine => cosine(sum(a, b, product), square(a), square(b)),
            Similarity::L2 => sum(a, b, squared_difference).sqrt(),
        }
    }

    /// Of the vectors of many rows, which `pair` gives. Call it under [`wide`].
    #[inline(always)]
    pub fn of_rows<'v>(self, out: &mut [f64], pair: impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy) {
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let pair = at(block * BLOCK, pair);
            match self {
                Similarity::Dot => sums(out, pair, product),
                Similarity::L2 => {
                    sums(out, pair, squared_difference);
                    out.iter_mut().for_each(|sum| *sum = sum.sqrt());
                }
                Similarity::Cosine => {
                    let mut squares = [[0.0; BLOCK]; 2];
                    let [aa, bb] = &mut squares;
                    let (aa, bb) = (&mut aa[..out.len()], &mut bb[..out.len()]);
                    // One sum after the other: several at once need more registers than there are.
                    sums(out, pair, product);
                    sums(aa, first_twice(pair), product);
                    sums(
                        bb,
                        #[inline(always)]
                        move |row| (pair(row).1, pair(row).1),
                        product,
                    );
                    for ((out, aa), bb) in out.iter_mut().zip(aa).zip(bb) {
                        *out = cosine(*out, *aa, *bb);
                    }
                }
            }
        }
    }

    /// Of the vectors of many rows, which `row` gives, with one whose [`square`] is known. Call it under [`wide`].
    #[inline(always)]
    pub fn with_one<'v>(
        self,
        out: &mut [f64],
        row: impl Fn(usize) -> &'v [f32] + Copy,
        (with, with_square): (&'v [f32], f64),
    ) {
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let pair = beside(block * BLOCK, row, with);
            match self {
                Similarity::Dot => sums(out, pair, product),
                Similarity::L2 => {
                    sums(out, pair, squared_difference);
                    out.iter_mut().for_each(|sum| *sum = sum.sqrt());
                }
                Similarity::Cosine => cosines(out, pair, with_square),
            }
        }
    }

    /// The same for vectors that lie side by side, as long as the one. Finds the width by itself.
    pub fn with_one_side_by_side(self, out: &mut [f64], values: &[f32], with: (&[f32], f64)) {
        self.side_by_side(out, values, with);
        match self {
            Similarity::Dot | Similarity::Cosine => {}
            Similarity::L2 => wide(
                #[inline(always)]
                || out.iter_mut().for_each(|sum| *sum = sum.sqrt()),
            ),
        }
    }

    /// The same as keys by which the nearest vectors are the highest: of a distance, the sum before its root, negated. Different sums have
    /// different roots, so that keys are in the order of what [`Similarity::of_key`] makes of them.
    #[inline(always)]
    pub(super) fn keys_with_one<'v>(
        self,
        out: &mut [f64],
        row: impl Fn(usize) -> &'v [f32] + Copy,
        (with, with_square): (&'v [f32], f64),
    ) {
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let pair = beside(block * BLOCK, row, with);
            match self {
                Similarity::Dot => sums(out, pair, product),
                Similarity::L2 => {
                    sums(out, pair, squared_difference);
                    out.iter_mut().for_each(|sum| *sum = -*sum);
                }
                Similarity::Cosine => cosines(out, pair, with_square),
            }
        }
    }

    /// The same for vectors that lie side by side, as long as the one. Finds the width by itself.
    pub(super) fn keys_side_by_side(self, out: &mut [f64], values: &[f32], with: (&[f32], f64)) {
        self.side_by_side(out, values, with);
        match self {
            Similarity::Dot | Similarity::Cosine => {}
            Similarity::L2 => wide(
                #[inline(always)]
                || out.iter_mut().for_each(|sum| *sum = -*sum),
            ),
        }
    }

    /// The products, cosines or squared distances of vectors that lie side by side with one of their length.
    fn side_by_side(self, out: &mut [f64], values: &[f32], (with, with_square): (&[f32], f64)) {
        match self {
            Similarity::Dot => sums_side_by_side(out, values, with, product),
            Similarity::L2 => sums_side_by_side(out, values, with, squared_difference),
            Similarity::Cosine => {
                let length = with.len().max(1);
                for (out, values) in out.chunks_mut(BLOCK).zip(values.chunks(BLOCK * length)) {
                    sums_side_by_side(out, values, with, product);
                    scale_to_cosines(out, values, length, with_square);
                }
            }
        }
    }

    /// What a key stands for.
    pub(super) fn of_key(self, key: f64) -> f64 {
        match self {
            Similarity::Dot | Similarity::Cosine => key,
            // Not `-key`, which may be -0.0.
            Similarity::L2 => (0.0 - key).sqrt(),
        }
    }
}

#[inline(always)]
fn cosines<'v>(out: &mut [f64], pair: impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy, with_square: f64) {
    let mut squares = [0.0; BLOCK];
    let squares = &mut squares[..out.len()];
    sums(out, pair, product);
    sums(squares, first_twice(pair), product);
    for (out, square) in out.iter_mut().zip(squares) {
        *out = cosine(*out, *square, with_square);
    }
}

/// The same pairs, counted from another row on.
#[inline(always)]
fn at<'v>(
    first: usize,
    pair: impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy,
) -> impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy {
    #[inline(always)]
    move |row| pair(first + row)
}

/// Rows and one vector as pairs, counted from a row on.
#[inline(always)]
fn beside<'v>(
    first: usize,
    row: impl Fn(usize) -> &'v [f32] + Copy,
    with: &'v [f32],
) -> impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy {
    #[inline(always)]
    move |at| (row(first + at), with)
}

/// The product of a vector with itself.
pub fn square(a: &[f32]) -> f64 {
    sum(a, a, product)
}

#[inline(always)]
fn product(a: f32, b: f32) -> f32 {
    a * b
}

#[inline(always)]
fn squared_difference(a: f32, b: f32) -> f32 {
    (a - b) * (a - b)
}

/// The first vector of each pair beside itself.
#[inline(always)]
fn first_twice<'v>(
    pair: impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy,
) -> impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy {
    #[inline(always)]
    move |row| (pair(row).0, pair(row).0)
}

/// The cosine of the angle between two vectors, from -1 to 1; 0 where the length of either is 0.
#[inline(always)]
fn cosine(ab: f64, aa: f64, bb: f64) -> f64 {
    let lengths = aa.sqrt() * bb.sqrt();
    if lengths == 0.0 { 0.0 } else { (ab / lengths).clamp(-1.0, 1.0) }
}

/// The sums of [`BLOCK`] rows at most.
#[inline(always)]
fn sums<'v>(
    out: &mut [f64],
    pair: impl Fn(usize) -> (&'v [f32], &'v [f32]) + Copy,
    term: impl Fn(f32, f32) -> f32 + Copy,
) {
    let mut quarters = [[0f32; QUARTER]; BLOCK];
    let mut done = 0;
    while done + IN_TURN <= out.len() {
        let (mut a, mut b): ([&[f32]; IN_TURN], [&[f32]; IN_TURN]) = ([&[]; IN_TURN], [&[]; IN_TURN]);
        for row in 0..IN_TURN {
            (a[row], b[row]) = pair(done + row);
        }
        let len = a[0].len();
        // A null cell may lead to no numbers.
        if len < LANES || (0..IN_TURN).any(|row| a[row].len() != len || b[row].len() != len) {
            break;
        }
        let lanes = lanes(a, b, len, term);
        for row in 0..IN_TURN {
            quarters[done + row] = quartered(lanes[row]);
        }
        done += IN_TURN;
    }
    for (out, quarter) in out.iter_mut().zip(&quarters[..done]) {
        *out = total(quarter);
    }
    for (row, out) in out.iter_mut().enumerate().skip(done) {
        let (a, b) = pair(row);
        *out = sum(a, b, term);
    }
}

/// The sums of rows whose vectors lie side by side, with one vector of their length.
fn sums_side_by_side(out: &mut [f64], values: &[f32], with: &[f32], term: impl Fn(f32, f32) -> f32 + Copy) {
    match with.as_chunks::<LANES>() {
        (blocks, []) if blocks.len() == 2 => short_sums::<2>(out, values, blocks, term),
        (blocks, []) if blocks.len() == 3 => short_sums::<3>(out, values, blocks, term),
        (blocks, []) if blocks.len() == 4 => short_sums::<4>(out, values, blocks, term),
        (blocks, []) if blocks.len() == 6 => short_sums::<6>(out, values, blocks, term),
        (blocks, []) if blocks.len() == 8 => short_sums::<8>(out, values, blocks, term),
        _ => wide(
            #[inline(always)]
            || {
                for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                    sums(
                        out,
                        #[inline(always)]
                        move |row| (&values[(block * BLOCK + row) * with.len()..][..with.len()], with),
                        term,
                    );
                }
            },
        ),
    }
}

/// The same for vectors of a few whole blocks: all blocks of the one stay in registers, nothing is checked, and of two rows in turn
/// numbers are read nearly in the order in which they lie, which the processor fetches ahead. (With four it does not; with one block, or with one row at a
/// time, the compiler finds no vectors.) A function by itself: among others, the compiler makes less of it.
#[inline(never)]
fn short_sums<const BLOCKS: usize>(
    out: &mut [f64],
    values: &[f32],
    with: &[Lanes],
    term: impl Fn(f32, f32) -> f32 + Copy,
) {
    let Ok(with) = <[Lanes; BLOCKS]>::try_from(with) else { return };
    let rows = values.as_chunks::<LANES>().0.as_chunks::<BLOCKS>().0;
    wide(
        #[inline(always)]
        || {
            for (out, rows) in out.chunks_mut(BLOCK).zip(rows.chunks(BLOCK)) {
                let mut quarters = [[0f32; QUARTER]; BLOCK];
                for (quarters, pair) in quarters.as_chunks_mut::<2>().0.iter_mut().zip(rows.as_chunks::<2>().0) {
                    let mut lanes = [[0f32; LANES]; 2];
                    for block in 0..BLOCKS {
                        for row in 0..2 {
                            lanes[row] = added(lanes[row], &pair[row][block], &with[block], term);
                        }
                    }
                    for row in 0..2 {
                        quarters[row] = quartered(lanes[row]);
                    }
                }
                for (out, quarter) in out.iter_mut().zip(&quarters) {
                    *out = total(quarter);
                }
            }
        },
    );
    // The one that is left where their number is odd.
    if let (1, Some(row), Some(out)) = (rows.len() % 2, rows.last(), out.last_mut()) {
        *out = sum(row.as_flattened(), with.as_flattened(), term);
    }
}

/// Makes cosines of the products of vectors that lie side by side with one whose square is known.
fn scale_to_cosines(products: &mut [f64], values: &[f32], length: usize, with_square: f64) {
    wide(
        #[inline(always)]
        || {
            let mut squares = [0.0; BLOCK];
            let squares = &mut squares[..products.len()];
            sums(
                squares,
                #[inline(always)]
                |row| {
                    let vector = &values[row * length..][..length];
                    (vector, vector)
                },
                product,
            );
            for (product, square) in products.iter_mut().zip(squares) {
                *product = cosine(*product, *square, with_square);
            }
        },
    );
}

/// The sum of `term(a[k], b[k])` over two vectors of any length.
#[inline(never)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32 + Copy) -> f64 {
    let len = a.len().min(b.len());
    let lanes = if len < LANES {
        added([0.0; LANES], &moved(&a[..len]), &moved(&b[..len]), term)
    } else {
        let [lanes] = lanes([a], [b], len, term);
        lanes
    };
    total(&quartered(lanes))
}

/// The lanes of vectors of this length, which is that of a block at least. Loops and not `map`, which would not be compiled for each width.
#[inline(always)]
fn lanes<const N: usize>(
    a: [&[f32]; N],
    b: [&[f32]; N],
    len: usize,
    term: impl Fn(f32, f32) -> f32 + Copy,
) -> [Lanes; N] {
    let (whole, rest) = (len / LANES, len % LANES);
    let mut blocks = [(&[] as &[Lanes], &[] as &[Lanes]); N];
    for row in 0..N {
        // Cut once, so that nothing is checked in the loop.
        blocks[row] = (&a[row][..len].as_chunks().0[..whole], &b[row][..len].as_chunks().0[..whole]);
    }
    let mut lanes = [[0f32; LANES]; N];
    for block in 0..whole {
        for row in 0..N {
            let (a, b) = blocks[row];
            lanes[row] = added(lanes[row], &a[block], &b[block], term);
        }
    }
    if rest > 0 {
        let mask = last(rest);
        for row in 0..N {
            if let (Some(a), Some(b)) = (a[row][..len].last_chunk(), b[row][..len].last_chunk()) {
                lanes[row] = added(lanes[row], &kept(a, &mask), &kept(b, &mask), term);
            }
        }
    }
    lanes
}

/// Of two zeros, a term is zero; and no lane is -0.0, so zeros add nothing.
#[inline(always)]
fn added(lanes: Lanes, a: &Lanes, b: &Lanes, term: impl Fn(f32, f32) -> f32) -> Lanes {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at] + term(a[at], b[at]),
    )
}

/// All bits of the last lanes.
#[inline(always)]
fn last(count: usize) -> [u32; LANES] {
    std::array::from_fn(
        #[inline(always)]
        |at| 0_u32.wrapping_sub(u32::from(at + count >= LANES)),
    )
}

/// The last numbers of a block, zeros before them. Bits are masked: a choice between numbers would be compiled to branches.
#[inline(always)]
fn kept(block: &Lanes, mask: &[u32; LANES]) -> Lanes {
    std::array::from_fn(
        #[inline(always)]
        |at| f32::from_bits(block[at].to_bits() & mask[at]),
    )
}

/// The same for numbers that are less than a block.
fn moved(numbers: &[f32]) -> Lanes {
    let mut block = [0f32; LANES];
    block[LANES - numbers.len()..].copy_from_slice(numbers);
    block
}

/// The first half of the lanes added to the second, and once more.
#[inline(always)]
pub(super) fn quartered(lanes: Lanes) -> [f32; QUARTER] {
    halved::<{ LANES / 2 }, QUARTER>(halved(lanes))
}

#[inline(always)]
fn halved<const N: usize, const HALF: usize>(lanes: [f32; N]) -> [f32; HALF] {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at] + lanes[at + HALF],
    )
}

#[inline(always)]
pub(super) fn total(quarter: &[f32; QUARTER]) -> f64 {
    f64::from((quarter[0] + quarter[2]) + (quarter[1] + quarter[3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::wide::each_width;

    const ALL: [Similarity; 3] = [Similarity::Dot, Similarity::Cosine, Similarity::L2];

    /// The same by the words of the header.
    fn naive(a: &[f32], b: &[f32], term: fn(f32, f32) -> f32) -> f64 {
        let mut lanes = vec![0f32; LANES];
        let (whole, moved) = (a.len() / LANES * LANES, LANES - a.len() % LANES);
        for at in 0..a.len() {
            let lane = if at < whole { at % LANES } else { moved + at - whole };
            lanes[lane] += term(a[at], b[at]);
        }
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            lanes = (0..half).map(|at| lanes[at] + lanes[at + half]).collect();
        }
        lanes[0].into()
    }

    fn numbers(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|at| (((at + 3 * seed) * (37 + 2 * seed) % 101) as f32 - 50.0) / 7.0).collect()
    }

    #[test]
    fn sums_are_those_of_the_header_and_near_the_exact_ones() {
        for len in (0..70).chain([127, 128, 129, 1000, 4096]) {
            let (a, b) = (numbers(len, 0), numbers(len, 8));
            let dot = Similarity::Dot.of(&a, &b);
            assert_eq!(dot, naive(&a, &b, product), "{len}");
            assert_eq!(Similarity::L2.of(&a, &b), naive(&a, &b, squared_difference).sqrt(), "{len}");
            let squares = (naive(&a, &a, product), naive(&b, &b, product));
            assert_eq!(Similarity::Cosine.of(&a, &b), cosine(dot, squares.0, squares.1), "{len}");
            let exact: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let size: f64 = a.iter().zip(&b).map(|(a, b)| (f64::from(*a) * f64::from(*b)).abs()).sum();
            // A term is rounded once and goes through one sum for each sixteen terms before it, and four more.
            let bound = size * f64::from(f32::EPSILON) * (len as f64 / LANES as f64 + 6.0);
            assert!((dot - exact).abs() <= bound, "{len}: {dot} {exact}");
        }
    }

    #[test]
    fn a_row_is_the_same_at_every_width_and_whatever_stands_beside_it() {
        for len in [1, 5, 15, 16, 17, 31, 32, 33, 48, 50, 64, 96, 100, 128, 300] {
            for rows in [0, 1, 2, 3, 31, 32, 33, 65] {
                let mut a: Vec<Vec<f32>> = (0..rows).map(|row| numbers(len, row)).collect();
                let b: Vec<Vec<f32>> = (0..rows).map(|row| numbers(len, row + 5)).collect();
                let flat = a.concat();
                for similarity in ALL {
                    let same = numbers(len, 3);
                    let (mut scores, mut keys) = (vec![f64::NAN; rows], vec![f64::NAN; rows]);
                    similarity.with_one_side_by_side(&mut scores, &flat, (&same, square(&same)));
                    similarity.keys_side_by_side(&mut keys, &flat, (&same, square(&same)));
                    for (row, (score, key)) in scores.into_iter().zip(keys).enumerate() {
                        let expected = similarity.of(&a[row], &same);
                        assert_eq!(score.to_bits(), expected.to_bits(), "{similarity:?} {len} {row}");
                        assert_eq!(similarity.of_key(key), expected, "{similarity:?} {len} {row}");
                    }
                }
                for null in [None, Some(0), Some(34)] {
                    // What a null cell leads to.
                    if let Some(null) = null.and_then(|null: usize| a.get_mut(null)) {
                        null.clear();
                    }
                    for similarity in ALL {
                        let same = numbers(len, 3);
                        let made = each_width(
                            #[inline(always)]
                            || {
                                let (mut each, mut with_same) = (vec![f64::NAN; rows], vec![f64::NAN; rows]);
                                similarity.of_rows(&mut each, |row| (&a[row], &b[row]));
                                similarity.with_one(&mut with_same, |row| &a[row], (&same, square(&same)));
                                (each, with_same)
                            },
                        );
                        for (width, (each, with_same)) in made.iter().enumerate() {
                            for row in 0..rows {
                                let expected = similarity.of(&a[row], &b[row]);
                                assert_eq!(
                                    each[row].to_bits(),
                                    expected.to_bits(),
                                    "{similarity:?} {len} {row} {width}"
                                );
                                let expected = similarity.of(&a[row], &same);
                                assert_eq!(
                                    with_same[row].to_bits(),
                                    expected.to_bits(),
                                    "{similarity:?} {len} {row} {width}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_zero_vector_is_like_nothing() {
        let (zero, some) = ([0f32; 3], [3f32, 4.0, 0.0]);
        let cosine = |a: &[f32], b: &[f32]| Similarity::Cosine.of(a, b);
        assert_eq!((cosine(&zero, &some), cosine(&some, &zero), cosine(&zero, &zero)), (0.0, 0.0, 0.0));
        let (l2, dot) = (Similarity::L2.of(&zero, &some), Similarity::Dot.of(&some, &some));
        assert_eq!((cosine(&some, &some), l2, dot), (1.0, 5.0, 25.0));
    }
}
