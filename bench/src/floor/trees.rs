//! Boosted trees by hand, for one kind of model: LightGBM's text, numbers only, NaN by its direction, at most 256 leaves a tree.
//!
//! The method is that of the evaluator in `rankd-column`, because no faster one is known to us: thresholds become ranks, trees are worked out
//! bottom-up over bytes. Here with AVX2 intrinsics, no checks, and all that this one query does not need left out.

use std::collections::HashMap;

const BLOCK: usize = 256;
type Bytes = [u8; BLOCK];

#[derive(Clone, Copy)]
struct Op {
    column: usize,
    rank: u8,
    /// Results are numbered from 0, leaves from `LEAF` on.
    left: usize,
    right: usize,
    to: usize,
}

const LEAF: usize = 1 << 16;

struct Column {
    feature: usize,
    missing_right: bool,
    /// Ascending, and an infinity.
    thresholds: Vec<f64>,
    low: f64,
    scale: f64,
    starts: Vec<u32>,
    steps: usize,
}

const BUCKETS: usize = 1024;

pub struct Trees {
    columns: Vec<Column>,
    /// Operations and leaves of each tree.
    trees: Vec<(Vec<Op>, usize, Vec<f64>)>,
    bytes: Vec<Bytes>,
    places: Vec<Bytes>,
    four: [Bytes; 4],
}

struct Split {
    feature: usize,
    threshold: f64,
    missing_right: bool,
    left: i64,
    right: i64,
}

impl Trees {
    /// From the text of a model; panics where it is not of that one kind.
    pub fn read(text: &str) -> Trees {
        let blocks: Vec<&str> = text.split("\nTree=").skip(1).collect();
        let parsed: Vec<(Vec<Split>, Vec<f64>)> = blocks.iter().map(|block| parse(block)).collect();
        let mut thresholds: HashMap<(usize, bool), Vec<f64>> = HashMap::new();
        for split in parsed.iter().flat_map(|(splits, _)| splits) {
            thresholds.entry((split.feature, split.missing_right)).or_default().push(split.threshold);
        }
        let mut keys: Vec<(usize, bool)> = thresholds.keys().copied().collect();
        keys.sort_unstable();
        let columns: Vec<Column> =
            keys.iter().map(|key| Column::new(*key, thresholds.remove(key).expect("a key of it"))).collect();
        let trees = parsed
            .into_iter()
            .map(|(splits, mut leaves)| {
                let (ops, root) = order(&splits, &columns, &keys);
                leaves.resize(256, 0.0);
                (ops, root, leaves)
            })
            .collect();
        let bytes = vec![[0; BLOCK]; columns.len()];
        Trees { columns, trees, bytes, places: vec![[0; BLOCK]; 256], four: [[0; BLOCK]; 4] }
    }

    /// Scores rows; `values` has a slice for each feature.
    pub fn score(&mut self, values: &[&[f64]], out: &mut [f64]) {
        assert!(is_x86_feature_detected!("avx2"), "this floor is for AVX2");
        let mut padded = [0.0; BLOCK];
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let from = block * BLOCK;
            for (column, bytes) in self.columns.iter().zip(&mut self.bytes) {
                let cells = &values[column.feature][from..from + out.len()];
                padded[..cells.len()].copy_from_slice(cells);
                // SAFETY: AVX2 was detected.
                unsafe { column.rank(&padded, out.len(), bytes) };
            }
            // SAFETY: AVX2 was detected; columns, places and leaves of operations are in range as they were made.
            unsafe { self.sum(out) };
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn sum(&mut self, out: &mut [f64]) {
        let strips = out.len().div_ceil(32);
        out.fill(0.0);
        let mut trees = self.trees.chunks_exact(4);
        for four in &mut trees {
            for ((ops, root, _), into) in four.iter().zip(&mut self.four) {
                unsafe { run(ops, &self.bytes, &mut self.places, strips) };
                *into = self.places[*root];
            }
            let [a, b, c, d] = [0, 1, 2, 3].map(|at| four[at].2.as_ptr());
            for (row, out) in out.iter_mut().enumerate() {
                let leaf = |tree: usize| usize::from(self.four[tree][row]);
                // SAFETY: every table has 256 values.
                unsafe {
                    *out = *out + *a.add(leaf(0)) + *b.add(leaf(1)) + *c.add(leaf(2)) + *d.add(leaf(3));
                }
            }
        }
        for (ops, root, leaves) in trees.remainder() {
            unsafe { run(ops, &self.bytes, &mut self.places, strips) };
            for (out, leaf) in out.iter_mut().zip(&self.places[*root]) {
                *out += leaves[usize::from(*leaf)];
            }
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn run(ops: &[Op], columns: &[Bytes], places: &mut [Bytes], strips: usize) {
    use std::arch::x86_64::*;
    unsafe {
        for op in ops {
            let bytes = columns.get_unchecked(op.column).as_ptr().cast::<__m256i>();
            let above = _mm256_set1_epi8(op.rank.wrapping_add(1) as i8);
            let base = places.as_mut_ptr();
            let to = base.add(op.to).cast::<__m256i>();
            let constant = |at: usize| _mm256_set1_epi8((at - LEAF) as u8 as i8);
            macro_rules! each {
                ($left:expr, $right:expr) => {
                    for strip in 0..strips {
                        let found = _mm256_loadu_si256(bytes.add(strip));
                        let right = _mm256_cmpeq_epi8(_mm256_max_epu8(found, above), found);
                        let chosen = _mm256_blendv_epi8($left(strip), $right(strip), right);
                        _mm256_storeu_si256(to.add(strip), chosen);
                    }
                };
            }
            let result = |at: usize| base.add(at).cast::<__m256i>();
            match (op.left >= LEAF, op.right >= LEAF) {
                (true, true) => {
                    let (left, right) = (constant(op.left), constant(op.right));
                    each!(|_| left, |_| right);
                }
                (true, false) => {
                    let (left, right) = (constant(op.left), result(op.right));
                    each!(|_| left, |strip| _mm256_loadu_si256(right.add(strip)));
                }
                (false, true) => {
                    let (left, right) = (result(op.left), constant(op.right));
                    each!(|strip| _mm256_loadu_si256(left.add(strip)), |_| right);
                }
                (false, false) => {
                    let (left, right) = (result(op.left), result(op.right));
                    each!(|strip| _mm256_loadu_si256(left.add(strip)), |strip| _mm256_loadu_si256(right.add(strip)));
                }
            }
        }
    }
}

impl Column {
    fn new((feature, missing_right): (usize, bool), mut thresholds: Vec<f64>) -> Column {
        thresholds.sort_unstable_by(f64::total_cmp);
        thresholds.dedup();
        assert!(thresholds.len() < 255, "more thresholds than a byte can count");
        let (low, high) = (thresholds[0], thresholds[thresholds.len() - 1]);
        let scale = if high > low { (BUCKETS - 1) as f64 / (high - low) } else { 0.0 };
        let mut column = Column { feature, missing_right, thresholds, low, scale, starts: vec![0; BUCKETS], steps: 0 };
        let buckets: Vec<usize> = column.thresholds.iter().map(|value| column.bucket(*value)).collect();
        for (bucket, start) in column.starts.iter_mut().enumerate() {
            *start = buckets.partition_point(|other| *other < bucket) as u32;
        }
        column.steps = buckets.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0);
        column.thresholds.push(f64::INFINITY);
        column
    }

    fn bucket(&self, value: f64) -> usize {
        ((value - self.low) * self.scale).clamp(0.0, (BUCKETS - 1) as f64).round_ties_even() as usize
    }

    #[target_feature(enable = "avx2")]
    unsafe fn rank(&self, values: &[f64; BLOCK], len: usize, bytes: &mut Bytes) {
        use std::arch::x86_64::*;
        let nearly_zero = f64::from(1e-35_f32);
        unsafe {
            let missing = _mm256_set1_pd(if self.missing_right { f64::INFINITY } else { f64::NEG_INFINITY });
            let sign = _mm256_set1_pd(-0.0);
            let zero = _mm256_setzero_pd();
            let few = self.thresholds.len() <= 17;
            for at in (0..len.next_multiple_of(4)).step_by(4) {
                let value = _mm256_loadu_pd(values.as_ptr().add(at));
                let value = _mm256_blendv_pd(value, missing, _mm256_cmp_pd::<_CMP_UNORD_Q>(value, value));
                let small = _mm256_cmp_pd::<_CMP_LE_OQ>(_mm256_andnot_pd(sign, value), _mm256_set1_pd(nearly_zero));
                let value = _mm256_andnot_pd(small, value);
                let counts = if few {
                    let mut counts = _mm256_setzero_si256();
                    for threshold in &self.thresholds {
                        let above = _mm256_cmp_pd::<_CMP_GT_OQ>(value, _mm256_set1_pd(*threshold));
                        counts = _mm256_sub_epi64(counts, _mm256_castpd_si256(above));
                    }
                    counts
                } else {
                    let bucket =
                        _mm256_mul_pd(_mm256_sub_pd(value, _mm256_set1_pd(self.low)), _mm256_set1_pd(self.scale));
                    let bucket = _mm256_min_pd(_mm256_max_pd(bucket, zero), _mm256_set1_pd((BUCKETS - 1) as f64));
                    let start = _mm_i32gather_epi32::<4>(self.starts.as_ptr().cast(), _mm256_cvtpd_epi32(bucket));
                    let mut counts = _mm256_cvtepi32_epi64(start);
                    for _ in 0..self.steps {
                        let threshold = _mm256_i64gather_pd::<8>(self.thresholds.as_ptr(), counts);
                        let above = _mm256_cmp_pd::<_CMP_GT_OQ>(value, threshold);
                        counts = _mm256_sub_epi64(counts, _mm256_castpd_si256(above));
                    }
                    counts
                };
                let counts: [u64; 4] = std::mem::transmute(counts);
                counts.iter().zip(&mut bytes[at..at + 4]).for_each(|(count, byte)| *byte = *count as u8);
            }
        }
    }
}

fn parse(block: &str) -> (Vec<Split>, Vec<f64>) {
    let line = |name: &str| {
        let found = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or("").split_whitespace()
    };
    let doubles = |name: &str| -> Vec<f64> { line(name).map(|word| word.parse().expect("a number")).collect() };
    let ints = |name: &str| -> Vec<i64> { line(name).map(|word| word.parse().expect("an int")).collect() };
    let (features, kinds) = (ints("split_feature"), ints("decision_type"));
    let (lefts, rights) = (ints("left_child"), ints("right_child"));
    let splits = doubles("threshold").into_iter().enumerate().map(|(at, threshold)| {
        assert!(matches!(kinds[at], 8 | 10), "a split that is not of the one kind");
        let missing_right = kinds[at] & 2 == 0;
        Split { feature: features[at] as usize, threshold, missing_right, left: lefts[at], right: rights[at] }
    });
    (splits.collect(), doubles("leaf_value"))
}

/// The operations of a tree, children first, and where the root's result is.
fn order(splits: &[Split], columns: &[Column], keys: &[(usize, bool)]) -> (Vec<Op>, usize) {
    let (mut ops, mut places, mut free, mut next) = (Vec::new(), vec![0; splits.len()], Vec::new(), 0);
    // Parents before children, so backwards it is the other way round.
    let (mut way, mut stack) = (Vec::new(), vec![0]);
    while let Some(at) = stack.pop() {
        way.push(at);
        stack.extend([splits[at].left, splits[at].right].iter().filter_map(|child| usize::try_from(*child).ok()));
    }
    for at in way.into_iter().rev() {
        let split = &splits[at];
        let place = |child: i64| if child < 0 { LEAF + !child as usize } else { places[child as usize] };
        let (left, right) = (place(split.left), place(split.right));
        let to = match (left < LEAF, right < LEAF) {
            (true, both) => {
                free.extend(both.then_some(right));
                left
            }
            (false, true) => right,
            (false, false) => free.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            }),
        };
        places[at] = to;
        let column = keys.binary_search(&(split.feature, split.missing_right)).expect("a column for every split");
        let rank = columns[column].thresholds.partition_point(|other| *other < split.threshold) as u8;
        ops.push(Op { column, rank, left, right, to });
    }
    (ops, places[0])
}
