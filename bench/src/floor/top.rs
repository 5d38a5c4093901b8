//! The first rows of a stable descending sort, picked in one pass.
//!
//! A short list of candidates and a limit: a row whose score is below the limit cannot be among the best. The list is cut
//! to the best `take` when it is full, and the limit rises to just above the worst of them (a later tie loses).

use crate::floor::Width;

/// Rows looked at together.
const BLOCK: usize = 8;

/// Candidates in row order, kept from call to call.
#[derive(Default)]
pub struct Best {
    scores: Vec<f64>,
    rows: Vec<u32>,
    len: usize,
    take: usize,
    pub(super) limit: f64,
    keys: Vec<u64>,
}

pub fn top(scores: &[f64], rows: &[u32], take: usize, width: Width, best: &mut Best) -> Vec<u32> {
    match width {
        // SAFETY: the features were detected.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { avx512(scores, rows, take, best) },
        // SAFETY: the features were detected.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { avx2(scores, rows, take, best) },
        _ => pick(scores, rows, take, best),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn avx512(scores: &[f64], rows: &[u32], take: usize, best: &mut Best) -> Vec<u32> {
    pick(scores, rows, take, best)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn avx2(scores: &[f64], rows: &[u32], take: usize, best: &mut Best) -> Vec<u32> {
    pick(scores, rows, take, best)
}

#[inline(always)]
fn pick(scores: &[f64], rows: &[u32], take: usize, best: &mut Best) -> Vec<u32> {
    best.start(take, f64::NEG_INFINITY);
    // SAFETY: the filter gave row numbers of these scores.
    let score = |row: u32| unsafe { *scores.get_unchecked(row as usize) };
    let (blocks, rest) = rows.as_chunks::<BLOCK>();
    for block in blocks {
        let picked = block.map(score);
        if picked.iter().fold(false, |any, &score| any | (score >= best.limit)) {
            best.offer(&picked, block);
        }
    }
    for &row in rest {
        best.offer(&[score(row)], &[row]);
    }
    best.finish()
}

impl Best {
    /// Forgets everything and wants the `take` best scores of at least `limit`.
    pub(super) fn start(&mut self, take: usize, limit: f64) {
        let room = (take * 4).max(take + BLOCK * 4) + BLOCK;
        if self.scores.len() < room {
            self.scores.resize(room, 0.0);
            self.rows.resize(room, 0);
            self.keys.resize(room, 0);
        }
        (self.len, self.take, self.limit) = (0, take, limit);
    }

    /// Offers neighbouring rows, at most a block of them.
    #[inline(always)]
    pub(super) fn offer(&mut self, scores: &[f64], rows: &[u32]) {
        debug_assert!(scores.len() <= BLOCK && scores.len() == rows.len());
        let mut len = self.len;
        for (&score, &row) in scores.iter().zip(rows) {
            // Written always, kept if good enough: no branch to mispredict.
            // SAFETY: before each call at least a block is free, see below.
            unsafe {
                *self.scores.get_unchecked_mut(len) = score;
                *self.rows.get_unchecked_mut(len) = row;
            }
            len += usize::from(score >= self.limit);
        }
        self.len = len;
        if len + BLOCK > self.scores.len() {
            self.weed();
        }
    }

    /// Cuts the candidates to the best `take`, in row order.
    #[inline(always)]
    fn weed(&mut self) {
        let keys = &mut self.keys[..self.len];
        for (key, &score) in keys.iter_mut().zip(&self.scores) {
            *key = descending(score);
        }
        let (_, &mut worst, _) = keys.select_nth_unstable(self.take - 1);
        let (mut better, mut kept) = (0, 0);
        for at in 0..self.len {
            let (score, row) = (self.scores[at], self.rows[at]);
            (self.scores[kept], self.rows[kept]) = (score, row);
            let key = descending(score);
            better += usize::from(key < worst);
            kept += usize::from(key <= worst);
        }
        // More than wanted only where several tie at the end: the last of those go.
        let mut surplus = kept - self.take;
        debug_assert!(better < self.take);
        while surplus > 0 {
            let last = (0..kept).rfind(|&at| descending(self.scores[at]) == worst).unwrap_or(0);
            self.scores.copy_within(last + 1..kept, last);
            self.rows.copy_within(last + 1..kept, last);
            kept -= 1;
            surplus -= 1;
        }
        self.len = kept;
        self.limit = ascending(!worst).next_up();
    }

    /// The rows of the best, best first.
    #[inline(always)]
    pub(super) fn finish(&mut self) -> Vec<u32> {
        if self.len > self.take {
            self.weed();
        }
        by_counting(&self.scores[..self.len], &self.rows[..self.len])
    }
}

/// Sorts few rows: the place of each is the number of rows before it, counted without a branch.
#[inline(always)]
pub(super) fn by_counting(scores: &[f64], rows: &[u32]) -> Vec<u32> {
    let mut out = vec![0; rows.len()];
    for (at, (&score, &row)) in scores.iter().zip(rows).enumerate() {
        let earlier = scores[..at].iter().fold(0, |count, &other| count + u64::from(other >= score));
        let later = scores[at..].iter().fold(0, |count, &other| count + u64::from(other > score));
        out[(earlier + later) as usize] = row;
    }
    out
}

/// Ascending keys are descending scores.
#[inline(always)]
pub(super) fn descending(score: f64) -> u64 {
    let bits = score.to_bits();
    !(bits ^ (((bits as i64) >> 63) as u64 | 1 << 63))
}

/// The score whose bits were ordered ascending.
fn ascending(ordered: u64) -> f64 {
    f64::from_bits(ordered ^ ((((!ordered) as i64) >> 63) as u64 | 1 << 63))
}
