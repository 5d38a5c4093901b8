//! Sums over two vectors: the dot product, the cosine and the distance.
//!
//! The order of every sum is fixed, so that results are the same on every processor: the term of position `k` goes to lane `k` modulo
//! sixteen; each product and each sum is rounded to `f32`, never both at once; then lanes are added in pairs, the first half to the
//! second, until one is left. Sixteen lanes fill one or two wide registers. Vectors have the same length: what is beyond the shorter one
//! is not looked at. Call under [`wide`](crate::kernel::wide::wide).

const LANES: usize = 16;

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
            Similarity::Dot => dot(a, b),
            Similarity::Cosine => cosine_of(a, b, dot(b, b)),
            Similarity::L2 => l2(a, b),
        }
    }
}

/// The sum of `term(a[k], b[k])`; of two zeros, a term is zero.
#[inline(always)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let len = a.len().min(b.len());
    let ((a, a_rest), (b, b_rest)) = (a[..len].as_chunks::<LANES>(), b[..len].as_chunks::<LANES>());
    let mut lanes = [0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        lanes = added(lanes, a, b, &term);
    }
    if !a_rest.is_empty() {
        // Filled up with zeros: a rest of unknown length would keep the lanes out of registers. No lane is -0.0, so zeros add nothing.
        lanes = added(lanes, &filled(a_rest), &filled(b_rest), &term);
    }
    let lanes: [f32; 8] = halved(lanes);
    let lanes: [f32; 4] = halved(lanes);
    let [low, high]: [f32; 2] = halved(lanes);
    low + high
}

#[inline(always)]
fn added(lanes: [f32; LANES], a: &[f32; LANES], b: &[f32; LANES], term: &impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at] + term(a[at], b[at]),
    )
}

#[inline(never)]
fn filled(rest: &[f32]) -> [f32; LANES] {
    let mut block = [0f32; LANES];
    block.iter_mut().zip(rest).for_each(|(slot, number)| *slot = *number);
    block
}

/// The first half of the lanes added to the second.
#[inline(always)]
fn halved<const N: usize, const HALF: usize>(lanes: [f32; N]) -> [f32; HALF] {
    std::array::from_fn(
        #[inline(always)]
        |at| lanes[at] + lanes[at + HALF],
    )
}

/// The dot product.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    f64::from(sum(
        a,
        b,
        #[inline(always)]
        |a, b| a * b,
    ))
}

/// The cosine of the angle between two vectors, from -1 to 1; 0 where the length of either is 0. `bb` is the product of `b` with itself.
#[inline(always)]
pub fn cosine_of(a: &[f32], b: &[f32], bb: f64) -> f64 {
    let (ab, lengths) = (dot(a, b), dot(a, a).sqrt() * bb.sqrt());
    if lengths == 0.0 { 0.0 } else { (ab / lengths).clamp(-1.0, 1.0) }
}

/// The distance between the points that two vectors lead to.
#[inline(always)]
pub fn l2(a: &[f32], b: &[f32]) -> f64 {
    let squares = sum(
        a,
        b,
        #[inline(always)]
        |a, b| (a - b) * (a - b),
    );
    f64::from(squares).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::wide::wide;

    fn cosine(a: &[f32], b: &[f32]) -> f64 {
        Similarity::Cosine.of(a, b)
    }

    /// The same by the words of the header.
    fn naive(a: &[f32], b: &[f32], term: fn(f32, f32) -> f32) -> f32 {
        let mut lanes = vec![0f32; LANES];
        for at in 0..a.len() {
            lanes[at % LANES] += term(a[at], b[at]);
        }
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            lanes = (0..half).map(|at| lanes[at] + lanes[at + half]).collect();
        }
        lanes[0]
    }

    #[test]
    fn sums_are_the_same_at_every_width_and_near_the_exact_ones() {
        for len in (0..70).chain([127, 128, 129, 1000, 4096]) {
            let a: Vec<f32> = (0..len).map(|at| ((at * 37 % 101) as f32 - 50.0) / 7.0).collect();
            let b: Vec<f32> = (0..len).map(|at| ((at * 53 % 97) as f32 - 48.0) / 11.0).collect();
            let plain = (dot(&a, &b), cosine(&a, &b), l2(&a, &b));
            let widened = wide(
                #[inline(always)]
                || (dot(&a, &b), cosine_of(&a, &b, dot(&b, &b)), l2(&a, &b)),
            );
            assert_eq!(plain, widened, "{len}");
            assert_eq!(plain.0, f64::from(naive(&a, &b, |a, b| a * b)), "{len}");
            assert_eq!(plain.2, f64::from(naive(&a, &b, |a, b| (a - b) * (a - b))).sqrt(), "{len}");
            let exact: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let size: f64 = a.iter().zip(&b).map(|(a, b)| (f64::from(*a) * f64::from(*b)).abs()).sum();
            // A term is rounded once and goes through one sum for each sixteen terms before it, and four more.
            let bound = size * f64::from(f32::EPSILON) * (len as f64 / LANES as f64 + 6.0);
            assert!((plain.0 - exact).abs() <= bound, "{len}: {} {exact}", plain.0);
        }
    }

    #[test]
    fn a_zero_vector_is_like_nothing() {
        let (zero, some) = ([0f32; 3], [3f32, 4.0, 0.0]);
        assert_eq!((cosine(&zero, &some), cosine(&some, &zero), cosine(&zero, &zero)), (0.0, 0.0, 0.0));
        assert_eq!((cosine(&some, &some), l2(&zero, &some), dot(&some, &some)), (1.0, 5.0, 25.0));
    }
}
