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

/// Rows whose ranks are looked at together. A block without a better rank costs one vectorised comparison.
const BLOCK: usize = 16;

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
            let whole = rows.len() - rows.len() % BLOCK;
            for start in (0..whole).step_by(BLOCK) {
                let block: [u32; BLOCK] = block_at(rows, start);
                look_at(values, valid, block, rank, &mut best, &mut nulls);
            }
            for at in whole..rows.len() {
                look_at(values, valid, [rows.at(at) as u32], rank, &mut best, &mut nulls);
            }
        },
    );
    let mut out = best.finish();
    nulls.truncate(count - out.len());
    out.extend(nulls);
    out
}

#[inline(always)]
fn block_at(rows: Rows<'_>, start: usize) -> [u32; BLOCK] {
    match rows {
        Rows::Range { start: first, .. } => std::array::from_fn(|at| (first + start + at) as u32),
        Rows::Listed(rows) => *rows[start..].first_chunk().expect("only whole blocks are asked for"),
    }
}

/// Offers the rows that are there and notes the first of the others.
#[inline(always)]
fn look_at<T: Copy, const N: usize>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: [u32; N],
    rank: impl Fn(T) -> u64,
    best: &mut Candidates,
    nulls: &mut Vec<u32>,
) {
    // Plain loops: `map` of an array is not inlined here, so it would be left at the baseline width.
    let mut picked = [values[rows[0] as usize]; N];
    for (picked, row) in picked.iter_mut().zip(rows) {
        *picked = values[row as usize];
    }
    let (mut ranks, mut enters) = ([0; N], [false; N]);
    for at in 0..N {
        ranks[at] = rank(picked[at]);
        enters[at] = best.wants(ranks[at]);
    }
    if let Some(valid) = valid {
        for (enters, row) in enters.iter_mut().zip(rows) {
            *enters &= valid[row as usize];
        }
        if nulls.len() < best.count {
            nulls.extend(rows.iter().filter(|&&row| !valid[row as usize]));
        }
    }
    if enters.iter().fold(false, |any, &enters| any | enters) {
        best.add(ranks, rows, enters);
    }
}

/// The best `count` rows seen so far, and some that were not yet weeded out; all in view order, so that ties need no care.
struct Candidates {
    ranks: Vec<u64>,
    rows: Vec<u32>,
    len: usize,
    count: usize,
    /// Only ranks up to this one can still enter; `None` when no rank can.
    limit: Option<u64>,
    /// The ranks again, in no order.
    shuffled: Vec<u64>,
}

impl Candidates {
    fn new(count: usize) -> Candidates {
        // Room for a few times the count makes weeding rare; a floor keeps tiny counts from weeding at every block.
        let room = (count * 4).max(count + 4 * BLOCK) + BLOCK;
        let limit = (count > 0).then_some(u64::MAX);
        Candidates { ranks: vec![0; room], rows: vec![0; room], len: 0, count, limit, shuffled: Vec::new() }
    }

    #[inline(always)]
    fn wants(&self, rank: u64) -> bool {
        self.limit.is_some_and(|limit| rank <= limit)
    }

    /// Every row is written and only those that enter advance: no branch to mispredict.
    #[inline(always)]
    fn add<const N: usize>(&mut self, ranks: [u64; N], rows: [u32; N], enters: [bool; N]) {
        let mut len = self.len;
        for ((rank, row), enters) in ranks.into_iter().zip(rows).zip(enters) {
            (self.ranks[len], self.rows[len]) = (rank, row);
            len += usize::from(enters);
        }
        self.len = len;
        // Room for a whole block is left at all times.
        if len + BLOCK > self.ranks.len() {
            self.weed();
        }
    }

    /// Drops all but the best `count`, where there are more.
    fn weed(&mut self) {
        self.shuffled.clear();
        self.shuffled.extend_from_slice(&self.ranks[..self.len]);
        let (better, &mut worst, _) = self.shuffled.select_nth_unstable(self.count - 1);
        // Of those that tie with the worst, the first ones stay.
        let mut ties = self.count - better.iter().filter(|&&rank| rank < worst).count();
        let mut kept = 0;
        for at in 0..self.len {
            let (rank, row) = (self.ranks[at], self.rows[at]);
            let stays_as_tie = (rank == worst) & (ties > 0);
            ties -= usize::from(stays_as_tie);
            (self.ranks[kept], self.rows[kept]) = (rank, row);
            kept += usize::from((rank < worst) | stays_as_tie);
        }
        self.len = kept;
        self.limit = worst.checked_sub(1);
    }

    /// The rows of the best, best first.
    fn finish(mut self) -> Vec<u32> {
        if self.len > self.count {
            self.weed();
        }
        let mut out = Vec::with_capacity(self.count);
        sort::arrange(&self.ranks[..self.len], &self.rows[..self.len], &mut out);
        out
    }
}
