//! The multiply-adds that picking rows by their vectors cannot do without: each pick is compared with every row, and for a determinant
//! each row's coefficients with those of the pick, too. Nothing is picked.
//!
//! Rows lie in blocks of 32, dimension by dimension, so that a step is four registers of 8 numbers times one number.

const BLOCK: usize = 32;

pub struct Blocks {
    /// Block by block, each dimension of 32 rows; the coefficients of earlier picks follow the dimensions.
    numbers: Vec<f32>,
    blocks: usize,
    /// How many numbers a row has, and how many are there for it.
    dimension: usize,
    width: usize,
    picks: usize,
    with_factors: bool,
    picked: Vec<f32>,
    out: Vec<f32>,
}

impl Blocks {
    pub fn new(rows: usize, dimension: usize, picks: usize, with_factors: bool) -> Blocks {
        let (blocks, width) = (rows.div_ceil(BLOCK), dimension + if with_factors { picks } else { 0 });
        let number = |at: usize| ((at * 7919 % 1009) as f32 - 504.0) / 5040.0;
        Blocks {
            numbers: (0..blocks * width * BLOCK).map(number).collect(),
            blocks,
            dimension,
            width,
            picks,
            with_factors,
            picked: (0..width).map(number).collect(),
            out: vec![0.0; blocks * BLOCK],
        }
    }

    /// All of them.
    pub fn run(&mut self) -> f32 {
        for pick in 0..self.picks {
            let used = self.dimension + if self.with_factors { pick } else { 0 };
            for block in 0..self.blocks {
                let numbers = &self.numbers[block * self.width * BLOCK..][..used * BLOCK];
                let out = &mut self.out[block * BLOCK..][..BLOCK];
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the features were detected.
                    unsafe { with_fma(numbers, &self.picked[..used], out) };
                    continue;
                }
                plain(numbers, &self.picked[..used], out);
            }
        }
        self.out.iter().sum()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_fma(numbers: &[f32], picked: &[f32], out: &mut [f32]) {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps};
    let mut sums = [_mm256_setzero_ps(); 4];
    // Two sets of sums, so that no multiply-add waits for the one before it.
    let mut others = [_mm256_setzero_ps(); 4];
    let (pairs, rest) = picked.as_chunks::<2>();
    let step = |sums: &mut [std::arch::x86_64::__m256; 4], at: usize, by: f32| {
        let by = _mm256_set1_ps(by);
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `numbers` has a block for each number of `picked`.
            let of_rows = unsafe { _mm256_loadu_ps(numbers.as_ptr().add(at * BLOCK + lane * 8)) };
            *sum = _mm256_fmadd_ps(of_rows, by, *sum);
        }
    };
    for (at, [first, second]) in pairs.iter().enumerate() {
        step(&mut sums, 2 * at, *first);
        step(&mut others, 2 * at + 1, *second);
    }
    for by in rest {
        step(&mut sums, 2 * pairs.len(), *by);
    }
    for (lane, (sum, other)) in sums.iter().zip(others).enumerate() {
        let sum = std::arch::x86_64::_mm256_add_ps(*sum, other);
        // SAFETY: `out` has 32 places.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(lane * 8), sum) };
    }
}

fn plain(numbers: &[f32], picked: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for (of_rows, by) in numbers.chunks_exact(BLOCK).zip(picked) {
        out.iter_mut().zip(of_rows).for_each(|(sum, number)| *sum += number * by);
    }
}
