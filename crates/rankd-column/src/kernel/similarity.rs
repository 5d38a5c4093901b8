//! Sums over two vectors: the dot product, the cosine and the distance.
//!
//! The order of every sum is fixed, so that results are the same on every processor and wherever a row stands: the term of position
//! `k` goes to lane `k` modulo sixteen, and a last block that is not whole is moved to the end of its lanes; each product and each sum is
//! rounded to `f32`, never both at once; then lanes are added in pairs, the first half to the second, until one is left. Sixteen lanes
//! fill one or two wide registers. Vectors have the same length: what is beyond the shorter one is not looked at.
//!
//! The additions of one row wait for each other, so rows are summed four in turn. The last four lanes are put together for many rows at
//! once: in a loop of its own, the compiler fills a register with many rows, and in the loop before it with many lanes.

const LANES: usize = 16;
const QUARTER: usize = LANES / 4;
/// Rows that are summed in turn.
const IN_TURN: usize = 4;
/// Rows whose lanes are put together at once.
const BLOCK: usize = 32;

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

    /// Of the vectors of many rows, which `pair` gives. `b_square` is the square of each second one, where that is the same for all. Call
    /// it under [`wide`](crate::kernel::wide::wide).
    #[inline(always)]
    pub fn of_rows<'v>(self, out: &mut [f64], pair: impl Fn(usize) -> (&'v [f32], &'v [f32]), b_square: Option<f64>) {
        let mut squares = [[0.0; BLOCK]; 2];
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = block * BLOCK;
            match self {
                Similarity::Dot => sums(out, first, &pair, product),
                Similarity::L2 => {
                    sums(out, first, &pair, squared_difference);
                    out.iter_mut().for_each(|sum| *sum = sum.sqrt());
                }
                Similarity::Cosine => {
                    let [a_squares, b_squares] = &mut squares;
                    sums(out, first, &pair, product);
                    sums(
                        &mut a_squares[..out.len()],
                        first,
                        #[inline(always)]
                        |row| (pair(row).0, pair(row).0),
                        product,
                    );
                    match b_square {
                        Some(square) => b_squares.fill(square),
                        None => sums(
                            &mut b_squares[..out.len()],
                            first,
                            #[inline(always)]
                            |row| (pair(row).1, pair(row).1),
                            product,
                        ),
                    }
                    for ((out, aa), bb) in out.iter_mut().zip(a_squares).zip(b_squares) {
                        *out = cosine(*out, *aa, *bb);
                    }
                }
            }
        }
    }
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

/// The cosine of the angle between two vectors, from -1 to 1; 0 where the length of either is 0.
#[inline(always)]
fn cosine(ab: f64, aa: f64, bb: f64) -> f64 {
    let lengths = aa.sqrt() * bb.sqrt();
    if lengths == 0.0 { 0.0 } else { (ab / lengths).clamp(-1.0, 1.0) }
}

/// The sums of [`BLOCK`] rows at most, from `first` on.
#[inline(always)]
fn sums<'v>(
    out: &mut [f64],
    first: usize,
    pair: impl Fn(usize) -> (&'v [f32], &'v [f32]),
    term: impl Fn(f32, f32) -> f32 + Copy,
) {
    let mut quarters = [[0f32; QUARTER]; BLOCK];
    let whole = out.len() / IN_TURN * IN_TURN;
    let mut are_long = true;
    for (turn, quarters) in quarters[..whole].as_chunks_mut().0.iter_mut().enumerate() {
        let (mut a, mut b): ([&[f32]; IN_TURN], [&[f32]; IN_TURN]) = Default::default();
        for row in 0..IN_TURN {
            (a[row], b[row]) = pair(first + IN_TURN * turn + row);
        }
        let len = a[0].len();
        // A null cell may lead to no numbers.
        if len < LANES || (0..IN_TURN).any(|row| a[row].len() != len || b[row].len() != len) {
            are_long = false;
            break;
        }
        lanes(quarters, (a, b), len, term);
    }
    if are_long {
        for (out, quarter) in out.iter_mut().zip(&quarters[..whole]) {
            *out = total(quarter);
        }
    }
    for (row, out) in out.iter_mut().enumerate().skip(if are_long { whole } else { 0 }) {
        let (a, b) = pair(first + row);
        *out = sum(a, b, term);
    }
}

/// The sum of `term(a[k], b[k])` over two vectors of any length.
#[inline(never)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32 + Copy) -> f64 {
    let len = a.len().min(b.len());
    let mut quarters = [[0f32; QUARTER]];
    if len < LANES {
        quarters[0] = quartered(added([0.0; LANES], &moved(&a[..len]), &moved(&b[..len]), term));
    } else {
        lanes(&mut quarters, ([a], [b]), len, term);
    }
    total(&quarters[0])
}

/// The lanes of vectors of this length, which is that of a block at least; each four of them added already. Loops and not `map`, which would
/// not be compiled for each width.
#[inline(always)]
fn lanes<const N: usize>(
    quarters: &mut [[f32; QUARTER]; N],
    (a, b): ([&[f32]; N], [&[f32]; N]),
    len: usize,
    term: impl Fn(f32, f32) -> f32 + Copy,
) {
    let (whole, rest) = (len / LANES, len % LANES);
    let mut blocks = [(&[] as &[[f32; LANES]], &[] as &[[f32; LANES]]); N];
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
        for row in 0..N {
            if let (Some(a), Some(b)) = (a[row][..len].last_chunk(), b[row][..len].last_chunk()) {
                lanes[row] = added(lanes[row], &kept(a, rest), &kept(b, rest), term);
            }
        }
    }
    for row in 0..N {
        quarters[row] = quartered(lanes[row]);
    }
}

/// Of two zeros, a term is zero; and no lane is -0.0, so zeros add nothing.
#[inline(always)]
fn added(lanes: [f32; LANES], a: &[f32; LANES], b: &[f32; LANES], term: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at] + term(a[at], b[at]),
    )
}

/// The last numbers of a block, zeros before them. Bits are masked: a choice between numbers would be compiled to branches.
#[inline(always)]
fn kept(block: &[f32; LANES], count: usize) -> [f32; LANES] {
    std::array::from_fn(
        #[inline(always)]
        |at| f32::from_bits(block[at].to_bits() & 0_u32.wrapping_sub(u32::from(at + count >= LANES))),
    )
}

/// The same for numbers that are less than a block.
fn moved(numbers: &[f32]) -> [f32; LANES] {
    let mut block = [0f32; LANES];
    block[LANES - numbers.len()..].copy_from_slice(numbers);
    block
}

/// The first half of the lanes added to the second, and once more.
#[inline(always)]
fn quartered(lanes: [f32; LANES]) -> [f32; QUARTER] {
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
fn total(quarter: &[f32; QUARTER]) -> f64 {
    f64::from((quarter[0] + quarter[2]) + (quarter[1] + quarter[3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::wide::wide;

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
        for len in [1, 5, 15, 16, 17, 31, 32, 33, 50, 64, 100, 300] {
            for rows in [0, 1, 2, 3, 31, 32, 33, 65] {
                let mut a: Vec<Vec<f32>> = (0..rows).map(|row| numbers(len, row)).collect();
                let b: Vec<Vec<f32>> = (0..rows).map(|row| numbers(len, row + 5)).collect();
                for null in [None, Some(0), Some(34)] {
                    // What a null cell leads to.
                    if let Some(null) = null.and_then(|null: usize| a.get_mut(null)) {
                        null.clear();
                    }
                    for similarity in ALL {
                        let (each, same) = (fill(similarity, rows, |row| (&a[row], &b[row]), None), numbers(len, 3));
                        let with_same = fill(similarity, rows, |row| (&a[row], &same), Some(square(&same)));
                        for row in 0..rows {
                            let expected = similarity.of(&a[row], &b[row]);
                            assert_eq!(each[row].to_bits(), expected.to_bits(), "{similarity:?} {len} {row} of {rows}");
                            let expected = similarity.of(&a[row], &same);
                            assert_eq!(with_same[row].to_bits(), expected.to_bits(), "{similarity:?} {len} {row}");
                        }
                    }
                }
            }
        }
    }

    /// As wide as this processor can.
    fn fill<'v>(
        similarity: Similarity,
        rows: usize,
        pair: impl Fn(usize) -> (&'v [f32], &'v [f32]),
        b_square: Option<f64>,
    ) -> Vec<f64> {
        let mut out = vec![f64::NAN; rows];
        wide(
            #[inline(always)]
            || similarity.of_rows(&mut out, pair, b_square),
        );
        out
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
