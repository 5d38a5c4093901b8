//! The first rows of a stable sort without sorting the rest.
//!
//! One pass keeps a short list of candidates and the rank of the worst row that still counts. A later row with that same
//! rank would lose the tie by its position, so only strictly better rows enter: most are dismissed by one comparison.
//! Worst case (each row better than all before): the list is cut to `count` each time it has grown to a multiple of that,
//! still O(n).

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::kernel::sort::{self, Order};
use crate::kernel::wide::wide;
use crate::rowset::Rows;

/// Neighbouring rows whose ranks are looked at together. A block without a better rank costs one vectorised scan.
const BLOCK: usize = 64;

/// What `sort::sorted` gives, cut to `count` rows.
pub fn top(batch: &Batch, rows: Rows<'_>, key: Key, order: Order, count: usize) -> Vec<u32> {
    if count == 0 {
        return Vec::new();
    }
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
    // Entering is rare, so the branch is cheap; ranks of scattered rows are not worth putting side by side first.
    let look_at = |row: usize, best: &mut Candidates, nulls: &mut Vec<u32>| {
        if valid.is_none_or(|valid| valid[row]) {
            best.offer(rank(values[row]), row as u32);
        } else if nulls.len() < count {
            nulls.push(row as u32);
        }
    };
    match rows {
        Rows::Listed(rows) => rows.iter().for_each(|&row| look_at(row as usize, &mut best, &mut nulls)),
        Rows::Range { start, len } => wide(
            #[inline(always)]
            || {
                for first in (start..start + len).step_by(BLOCK) {
                    let block = first..(first + BLOCK).min(start + len);
                    let nulls_wanted = valid.is_some() && nulls.len() < count;
                    if nulls_wanted || best.wants_any(values[block.clone()].iter().map(|&value| rank(value))) {
                        block.for_each(|row| look_at(row, &mut best, &mut nulls));
                    }
                }
            },
        ),
    }
    let mut out = best.finish();
    nulls.truncate(count - out.len());
    out.extend(nulls);
    out
}

/// The best `count` rows seen so far, and some that were not yet weeded out; all in view order, so that ties need no care.
struct Candidates {
    ranks: Vec<u64>,
    rows: Vec<u32>,
    room: usize,
    count: usize,
    /// Ranks above this one cannot enter any more.
    limit: u64,
    /// No rank can: the worst that counts is the best there is.
    closed: bool,
    /// The ranks again, in no order.
    shuffled: Vec<u64>,
}

impl Candidates {
    fn new(count: usize) -> Candidates {
        // Room for a few times the count makes weeding rare; a floor keeps tiny counts from weeding at every row.
        let room = (count * 4).max(count + BLOCK);
        let (ranks, rows) = (Vec::with_capacity(room), Vec::with_capacity(room));
        Candidates { ranks, rows, room, count, limit: u64::MAX, closed: false, shuffled: Vec::new() }
    }

    /// Counted in the width of the ranks: bools would be packed and shuffled first.
    #[inline(always)]
    fn wants_any(&self, ranks: impl Iterator<Item = u64>) -> bool {
        !self.closed && ranks.fold(0, |count, rank| count + u64::from(rank <= self.limit)) > 0
    }

    #[inline(always)]
    fn offer(&mut self, rank: u64, row: u32) {
        if rank > self.limit || self.closed {
            return;
        }
        self.ranks.push(rank);
        self.rows.push(row);
        if self.ranks.len() == self.room {
            self.weed();
        }
    }

    /// Drops all but the best `count`, where there are more.
    fn weed(&mut self) {
        self.shuffled.clear();
        self.shuffled.extend_from_slice(&self.ranks);
        let (_, &mut worst, _) = self.shuffled.select_nth_unstable(self.count - 1);
        let mut kept = 0;
        for at in 0..self.ranks.len() {
            let (rank, row) = (self.ranks[at], self.rows[at]);
            (self.ranks[kept], self.rows[kept]) = (rank, row);
            kept += usize::from(rank <= worst);
        }
        self.truncate(kept);
        // More than `count` only where several tie with the worst.
        if kept > self.count {
            self.drop_last_ties(worst);
        }
        match worst.checked_sub(1) {
            Some(better) => self.limit = better,
            None => self.closed = true,
        }
    }

    fn drop_last_ties(&mut self, worst: u64) {
        let better = self.ranks.iter().filter(|&&rank| rank < worst).count();
        let mut ties = self.count - better;
        let mut kept = 0;
        for at in 0..self.ranks.len() {
            let (rank, row) = (self.ranks[at], self.rows[at]);
            if rank == worst {
                if ties == 0 {
                    continue;
                }
                ties -= 1;
            }
            (self.ranks[kept], self.rows[kept]) = (rank, row);
            kept += 1;
        }
        self.truncate(kept);
    }

    fn truncate(&mut self, len: usize) {
        self.ranks.truncate(len);
        self.rows.truncate(len);
    }

    /// The rows of the best, best first.
    fn finish(mut self) -> Vec<u32> {
        if self.ranks.len() > self.count {
            self.weed();
        }
        let mut out = Vec::with_capacity(self.count);
        sort::arrange(&self.ranks, &self.rows, &mut out);
        out
    }
}
