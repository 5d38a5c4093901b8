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
    if key == Key::ID {
        return pick_ordered(batch.ids(), None, rows, count, order, sort::rank_int);
    }
    match batch.column(key).map(|column| &**column) {
        None => rows.slice(0, count).iter().map(|row| row as u32).collect(),
        Some(Column::Int(cells)) => pick_cells(cells, rows, count, order, sort::rank_int),
        Some(Column::Float(cells)) => pick_cells(cells, rows, count, order, sort::rank_float),
        Some(Column::Bool(cells)) => pick_cells(cells, rows, count, order, u64::from),
        Some(Column::Str(cells, dictionary)) => {
            let ranks = sort::rank_entries(cells, dictionary, rows);
            let flip = match order {
                Order::Asc => 0,
                Order::Desc => u64::MAX,
            };
            // A null cell's code may be outside an empty dictionary; its rank is not looked at.
            let rank = |code: u32| u64::from(ranks.get(code as usize).copied().unwrap_or(0)) ^ flip;
            pick(cells.values(), cells.valid(), rows, count, rank, |a, b| rank(a) < rank(b))
        }
    }
}

fn pick_cells<T: Copy + Default + PartialOrd>(
    cells: &Cells<T>,
    rows: Rows<'_>,
    count: usize,
    order: Order,
    rank: impl Fn(T) -> u64,
) -> Vec<u32> {
    pick_ordered(cells.values(), cells.valid(), rows, count, order, rank)
}

fn pick_ordered<T: Copy + PartialOrd>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'_>,
    count: usize,
    order: Order,
    rank: impl Fn(T) -> u64,
) -> Vec<u32> {
    match order {
        Order::Asc => pick(values, valid, rows, count, rank, |a, b| a < b),
        Order::Desc => pick(values, valid, rows, count, |value| !rank(value), |a, b| a > b),
    }
}

/// `beats` is the order of the ranks on the values themselves: dismissing a row takes no rank.
fn pick<T: Copy>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'_>,
    count: usize,
    rank: impl Fn(T) -> u64,
    beats: impl Fn(T, T) -> bool,
) -> Vec<u32> {
    let mut best = Candidates::new(count);
    let mut nulls = Vec::new();
    // The value of the last row that counts, once there are enough.
    let mut worst = None;
    // Until the list is full for the first time every row enters.
    let mut at = if valid.is_none() { rows.len().min(best.room - 1) } else { 0 };
    best.ranks.extend(rows.slice(0, at).iter().map(|row| rank(values[row])));
    best.rows.extend(rows.slice(0, at).iter().map(|row| row as u32));
    while at < rows.len() {
        if let Some(worst) = worst.filter(|_| valid.is_none() || nulls.len() >= count) {
            at += dismissed(values, rows.slice(at, rows.len() - at), |value| beats(value, worst));
            if at == rows.len() {
                break;
            }
        }
        let row = rows.at(at);
        if valid.is_some_and(|valid| !valid[row]) {
            if nulls.len() < count {
                nulls.push(row as u32);
            }
        } else if worst.is_none_or(|worst| beats(values[row], worst)) && best.add(rank(values[row]), row as u32) {
            worst = Some(values[best.worst_row()]);
        }
        at += 1;
    }
    let mut out = best.finish();
    nulls.truncate(count - out.len());
    out.extend(nulls);
    out
}

/// How many rows come before the first whose value enters. Where most rows do not, this is where the time goes.
#[inline(always)]
fn dismissed<T: Copy>(values: &[T], rows: Rows<'_>, enters: impl Fn(T) -> bool) -> usize {
    match rows {
        Rows::Listed(rows) => rows.iter().position(|&row| enters(values[row as usize])).unwrap_or(rows.len()),
        Rows::Range { start, len } => {
            let values = &values[start..start + len];
            let blocks = values.chunks(BLOCK).take_while(|block| !any(block, &enters)).count();
            let done = (blocks * BLOCK).min(len);
            done + values[done..].iter().position(|&value| enters(value)).unwrap_or(len - done)
        }
    }
}

/// Whether the test holds for some value. All are looked at: counting vectorises, stopping early does not.
fn any<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> bool {
    let count = wide(
        #[inline(always)]
        || values.iter().fold(0u64, |count, &value| count + u64::from(test(value))),
    );
    count > 0
}

/// The best `count` rows seen so far, and some that were not yet weeded out; all in view order, so that ties need no care.
struct Candidates {
    ranks: Vec<u64>,
    rows: Vec<u32>,
    room: usize,
    count: usize,
    /// The ranks again, in no order.
    shuffled: Vec<u64>,
}

impl Candidates {
    fn new(count: usize) -> Candidates {
        // Room for a few times the count makes weeding rare; a floor keeps tiny counts from weeding at every row.
        let room = (count * 4).max(count + BLOCK);
        let (ranks, rows) = (Vec::with_capacity(room), Vec::with_capacity(room));
        Candidates { ranks, rows, room, count, shuffled: Vec::new() }
    }

    /// Adds a row that beats the worst that counts. True when that one is now another, see `worst_row`.
    #[inline(always)]
    fn add(&mut self, rank: u64, row: u32) -> bool {
        self.ranks.push(rank);
        self.rows.push(row);
        let full = self.ranks.len() == self.room;
        if full {
            self.weed();
        }
        full
    }

    /// After weeding: the row of the highest rank.
    fn worst_row(&self) -> usize {
        let worst = self.ranks.iter().zip(&self.rows).max_by_key(|(rank, _)| **rank);
        worst.map_or(0, |(_, &row)| row as usize)
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
