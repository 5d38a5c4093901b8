//! The first rows of a stable sort without sorting the rest.
//!
//! One pass keeps a short list of candidates and the rank of the worst row that still counts. A later row with that same
//! rank would lose the tie by its position, so only strictly better rows enter: most are dismissed by one comparison.
//! Worst case (each row better than all before): the list is halved once per `count` rows, still O(n).

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::kernel::sort::{self, Order};
use crate::kernel::wide::wide;
use crate::rowset::Rows;

/// Rows whose ranks are looked at together. A block without a better rank costs one vectorised scan.
const BLOCK: usize = 64;

/// What `sort::sorted` gives, cut to `count` rows.
pub fn top(batch: &Batch, rows: Rows<'_>, key: Key, order: Order, count: usize) -> Vec<u32> {
    // Where much of the view is wanted, sorting all of it is the shorter way.
    if count >= rows.len() / 2 {
        let mut all = sort::sorted(batch, rows, key, order);
        all.truncate(count);
        return all;
    }
    let flip = match order {
        Order::Asc => 0,
        Order::Desc => u64::MAX,
    };
    if key == Key::ID {
        return pick(batch.ids(), None, rows, count, |id| sort::rank_int(id) ^ flip);
    }
    match batch.column(key).map(|column| &**column) {
        None => rows.slice(0, count).iter().map(|row| row as u32).collect(),
        Some(Column::Int(cells)) => pick_cells(cells, rows, count, |v| sort::rank_int(v) ^ flip),
        Some(Column::Float(cells)) => pick_cells(cells, rows, count, |v| sort::rank_float(v) ^ flip),
        Some(Column::Bool(cells)) => pick_cells(cells, rows, count, |v| u64::from(v) ^ flip),
        Some(Column::Str(cells, dictionary)) => {
            let ranks = sort::rank_entries(cells, dictionary, rows);
            // A null cell's code may be outside an empty dictionary; its rank is not looked at.
            pick_cells(cells, rows, count, |code| u64::from(ranks.get(code as usize).copied().unwrap_or(0)) ^ flip)
        }
    }
}

fn pick_cells<T: Copy + Default>(
    cells: &Cells<T>,
    rows: Rows<'_>,
    count: usize,
    rank: impl Fn(T) -> u64 + Copy,
) -> Vec<u32> {
    pick(cells.values(), cells.valid(), rows, count, rank)
}

fn pick<T: Copy>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'_>,
    count: usize,
    rank: impl Fn(T) -> u64 + Copy,
) -> Vec<u32> {
    let mut best = Candidates::new(count);
    let mut nulls = Vec::new();
    wide(
        #[inline(always)]
        || {
            let mut ranks = [0u64; BLOCK];
            for start in (0..rows.len()).step_by(BLOCK) {
                let block = rows.slice(start, BLOCK.min(rows.len() - start));
                let ranks = &mut ranks[..block.len()];
                rank_block(values, block, ranks, rank);
                if let Some(valid) = valid {
                    for (at, row) in block.iter().enumerate().filter(|&(_, row)| !valid[row]) {
                        // Never better than the limit, so the scan below passes over it; offered rows are valid ones.
                        ranks[at] = u64::MAX;
                        if nulls.len() < count {
                            nulls.push(row as u32);
                        }
                    }
                }
                if best.wants_any(ranks) {
                    for (at, row) in block.iter().enumerate() {
                        if valid.is_none_or(|valid| valid[row]) {
                            best.offer(ranks[at], (start + at) as u32);
                        }
                    }
                }
            }
        },
    );
    let mut out: Vec<u32> = best.finish().into_iter().map(|(_, position)| rows.at(position as usize) as u32).collect();
    nulls.truncate(count - out.len());
    out.extend(nulls);
    out
}

#[inline(always)]
fn rank_block<T: Copy>(values: &[T], block: Rows<'_>, ranks: &mut [u64], rank: impl Fn(T) -> u64) {
    match block {
        Rows::Range { start, len } => {
            for (out, &value) in ranks.iter_mut().zip(&values[start..start + len]) {
                *out = rank(value);
            }
        }
        Rows::Listed(rows) => {
            for (out, &row) in ranks.iter_mut().zip(rows) {
                *out = rank(values[row as usize]);
            }
        }
    }
}

/// The best `count` (rank, position) pairs seen so far, and up to as many that were not yet weeded out.
struct Candidates {
    pairs: Vec<(u64, u32)>,
    count: usize,
    /// Once `count` pairs are known: only ranks below this one can still enter.
    limit: Option<u64>,
}

impl Candidates {
    fn new(count: usize) -> Candidates {
        // Room for twice the count makes weeding rare; a floor keeps tiny counts from weeding at every row.
        Candidates { pairs: Vec::with_capacity(Self::room(count)), count, limit: None }
    }

    fn room(count: usize) -> usize {
        (count * 2).max(count + BLOCK)
    }

    #[inline(always)]
    fn wants_any(&self, ranks: &[u64]) -> bool {
        match self.limit {
            None => true,
            Some(limit) => ranks.iter().fold(false, |any, &rank| any | (rank < limit)),
        }
    }

    #[inline(always)]
    fn offer(&mut self, rank: u64, position: u32) {
        if self.limit.is_some_and(|limit| rank >= limit) {
            return;
        }
        self.pairs.push((rank, position));
        if self.pairs.len() == Self::room(self.count) {
            self.weed();
        }
    }

    fn weed(&mut self) {
        if self.count == 0 {
            self.pairs.clear();
            self.limit = Some(0);
            return;
        }
        let (_, worst, _) = self.pairs.select_nth_unstable(self.count - 1);
        self.limit = Some(worst.0);
        self.pairs.truncate(self.count);
    }

    fn finish(mut self) -> Vec<(u64, u32)> {
        self.pairs.sort_unstable();
        self.pairs.truncate(self.count);
        self.pairs
    }
}
