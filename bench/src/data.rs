//! The rows that all contenders rank: the same for everyone and for every run.

/// Input columns, the parameters of the pipeline and how many rows it takes.
pub struct Table {
    pub ids: Vec<i64>,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    /// Values of null cells are zero, as a reader would leave them.
    pub c: Vec<f64>,
    pub c_valid: Vec<bool>,
    pub w: f64,
    /// About half of the rows score at least this.
    pub x: f64,
    pub take: usize,
}

/// What a null `c` counts as.
pub const C_DEFAULT: f64 = 0.5;

impl Table {
    pub fn new(rows: usize) -> Table {
        let mut random = Random(0x5EED_0F0B_E9C4_0001);
        let column = |random: &mut Random| (0..rows).map(|_| random.unit()).collect::<Vec<f64>>();
        let (a, b, mut c) = (column(&mut random), column(&mut random), column(&mut random));
        let c_valid: Vec<bool> = (0..rows).map(|_| random.unit() >= 0.2).collect();
        for (value, valid) in c.iter_mut().zip(&c_valid) {
            *value = if *valid { *value } else { 0.0 };
        }
        let ids = (0..rows as i64).map(|row| 1_000_003 + row * 7).collect();
        let mut table = Table { ids, a, b, c, c_valid, w: 0.75, x: 0.0, take: 50 };
        let mut scores: Vec<f64> = (0..rows).map(|row| table.score(row)).collect();
        scores.sort_unstable_by(f64::total_cmp);
        table.x = scores[rows / 2];
        table
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The definition: `a * b + coalesce(c, 0.5) * w`, each operation rounded.
    #[inline(always)]
    pub fn score(&self, row: usize) -> f64 {
        let c = if self.c_valid[row] { self.c[row] } else { C_DEFAULT };
        self.a[row] * self.b[row] + c * self.w
    }

    /// The answer, computed in the plainest way: ids of the best rows, ties in row order.
    pub fn expected(&self) -> Vec<i64> {
        let mut rows: Vec<usize> = (0..self.len()).filter(|&row| self.score(row) >= self.x).collect();
        rows.sort_by(|&p, &q| self.score(q).total_cmp(&self.score(p)));
        rows.iter().take(self.take).map(|&row| self.ids[row]).collect()
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
