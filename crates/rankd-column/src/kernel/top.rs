//! The first rows of a stable sort without sorting the rest.
//!
//! One pass keeps a short list of candidates and the rank of the worst row that still counts. A later row with that same
//! rank would lose the tie by its position, so only strictly better rows enter: most are dismissed by one comparison.
//! Worst case (each row better than all before): the list is cut to `count` each time it has grown to a multiple of that,
//! still O(n).

use crate::batch::{Batch, Key};
use crate::column::Column;
use crate::kernel::compact::{LANES, compact_into};
use crate::kernel::sort::{self, Order};
use crate::kernel::texts;
use crate::kernel::wide::wide;
use crate::rowset::Rows;

/// Rows that are looked at together. A block without a better row costs one vectorised scan.
const BLOCK: usize = 64;
/// With this many rows for each distinct string, there are few of those.
const ROWS_A_STRING: usize = 16;

/// What `sort::sorted` gives, cut to `count` rows.
pub fn top(batch: &Batch, rows: Rows<'_>, key: Key, order: Order, count: usize) -> Vec<u32> {
    if count == 0 {
        return Vec::new();
    }
    // Where much of the view is wanted, sorting all of it is the shorter way.
    if count > rows.len() / 2 {
        let mut all = sort::sorted(batch, rows, key, order);
        all.truncate(count);
        return all;
    }
    let column = match key {
        Key::ID => batch.id_column(),
        key => batch.column(key).map(|column| &**column),
    };
    match column {
        None if key == Key::ID => pick(batch.ids(), None, rows, count, order),
        // Lists and vectors have no order: see `sort`.
        None | Some(Column::List(..) | Column::Vector(..)) => {
            rows.slice(0, count).iter().map(|row| row as u32).collect()
        }
        Some(Column::Int(cells)) => pick(cells.values(), cells.valid(), rows, count, order),
        Some(Column::Float(cells)) => pick(cells.values(), cells.valid(), rows, count, order),
        Some(Column::Bool(cells)) => pick(cells.values(), cells.valid(), rows, count, order),
        // Where there are few distinct strings, putting them in order takes less than looking at one a row.
        Some(Column::Str(cells, dictionary)) if dictionary.len() > rows.len() / ROWS_A_STRING => {
            texts::top(cells, dictionary, rows, order, count)
        }
        Some(Column::Str(cells, dictionary)) => {
            let (ranks, desc) = (sort::rank_entries(cells, dictionary, rows), order == Order::Desc);
            let mut best = Best::new(count, rows.len());
            best.offer_by(&Entries { ranks, desc }, cells.values(), cells.valid(), rows, None);
            best.finish()
        }
    }
}

fn pick<T: Ranked>(values: &[T], valid: Option<&[bool]>, rows: Rows<'_>, count: usize, order: Order) -> Vec<u32> {
    let mut best = Best::new(count, rows.len());
    best.offer(order, values, valid, rows, None);
    best.finish()
}

/// A value whose type alone says how it is ordered.
pub(crate) trait Ranked: Copy + Default + PartialOrd {
    /// Ascending ranks are ascending values.
    fn rank(self) -> u64;
}

impl Ranked for i64 {
    #[inline(always)]
    fn rank(self) -> u64 {
        sort::rank_int(self)
    }
}

impl Ranked for f64 {
    #[inline(always)]
    fn rank(self) -> u64 {
        sort::rank_float(self)
    }
}

impl Ranked for bool {
    #[inline(always)]
    fn rank(self) -> u64 {
        self.into()
    }
}

/// An order of values: which rank they have, and the same on the values themselves, so that dismissing a row takes no rank.
trait By<T> {
    fn rank(&self, value: T) -> u64;
    fn beats(&self, a: T, b: T) -> bool;
}

struct Ascending;
struct Descending;

/// Strings by the places of their dictionary entries.
struct Entries {
    ranks: Vec<u32>,
    desc: bool,
}

impl<T: Ranked> By<T> for Ascending {
    #[inline(always)]
    fn rank(&self, value: T) -> u64 {
        value.rank()
    }

    #[inline(always)]
    fn beats(&self, a: T, b: T) -> bool {
        a < b
    }
}

impl<T: Ranked> By<T> for Descending {
    #[inline(always)]
    fn rank(&self, value: T) -> u64 {
        !value.rank()
    }

    #[inline(always)]
    fn beats(&self, a: T, b: T) -> bool {
        a > b
    }
}

impl By<u32> for Entries {
    #[inline(always)]
    fn rank(&self, code: u32) -> u64 {
        // A null cell's code may be outside an empty dictionary; its rank is not looked at.
        let rank = u64::from(self.ranks.get(code as usize).copied().unwrap_or(0));
        if self.desc { !rank } else { rank }
    }

    #[inline(always)]
    fn beats(&self, a: u32, b: u32) -> bool {
        self.rank(a) < self.rank(b)
    }
}

/// The best rows of those that were offered so far.
pub(crate) struct Best<T> {
    candidates: Candidates,
    nulls: Vec<u32>,
    /// The value of the last row that counts, once there are enough.
    worst: Option<T>,
}

impl<T: Copy + Default> Best<T> {
    /// For the `count` best of at most `rows` rows. Both are at least one.
    pub(crate) fn new(count: usize, rows: usize) -> Best<T> {
        Best { candidates: Candidates::new(count, rows), nulls: Vec::new(), worst: None }
    }

    /// Offers the rows whose mask is true, all of them without one. They come after those that were offered before.
    ///
    /// `values` and `valid` are by stored row and hold those that were offered before, too.
    pub(crate) fn offer(
        &mut self,
        order: Order,
        values: &[T],
        valid: Option<&[bool]>,
        rows: Rows<'_>,
        mask: Option<&[bool]>,
    ) where
        T: Ranked,
    {
        match order {
            Order::Asc => self.offer_by(&Ascending, values, valid, rows, mask),
            Order::Desc => self.offer_by(&Descending, values, valid, rows, mask),
        }
    }

    fn offer_by(
        &mut self,
        by: &impl By<T>,
        values: &[T],
        valid: Option<&[bool]>,
        rows: Rows<'_>,
        mask: Option<&[bool]>,
    ) {
        let mut start = 0;
        while start < rows.len() {
            // While nulls may still count, each row is looked at.
            if let Some(worst) = self.worst.filter(|_| valid.is_none() || self.nulls.len() >= self.candidates.count) {
                start += dismissed(values, rows.slice(start, rows.len() - start), |value| by.beats(value, worst));
                if start >= rows.len() {
                    break;
                }
            }
            let len = BLOCK.min(rows.len() - start);
            let (rows, mask) = (rows.slice(start, len), mask.map(|mask| &mask[start..start + len]));
            if self.candidates.is_full() {
                self.candidates.weed();
                self.worst = Some(values[self.candidates.worst_row()]);
            }
            let mut enters = [true; BLOCK];
            let any = wide(
                #[inline(always)]
                || mark(&mut enters[..len], by, self.worst, values, valid, rows, mask),
            );
            if any {
                self.enter(by, &enters[..len], values, rows);
            }
            if let Some(valid) = valid.filter(|_| self.nulls.len() < self.candidates.count) {
                let offered = |at: usize| mask.is_none_or(|mask| mask[at]);
                let nulls = rows.iter().enumerate().filter(|(at, row)| !valid[*row] && offered(*at));
                self.nulls.extend(nulls.map(|(_, row)| row as u32));
            }
            start += BLOCK;
        }
    }

    #[inline(always)]
    fn enter(&mut self, by: &impl By<T>, enters: &[bool], values: &[T], rows: Rows<'_>) {
        let mut entering = [0; BLOCK + LANES];
        let count = wide(
            #[inline(always)]
            || compact_into(enters, rows, &mut entering),
        );
        let entering = &entering[..count];
        self.candidates.ranks.extend(entering.iter().map(|&row| by.rank(values[row as usize])));
        self.candidates.rows.extend_from_slice(entering);
    }

    /// The best rows, best first, then nulls.
    pub(crate) fn finish(mut self) -> Vec<u32> {
        let count = self.candidates.count;
        let mut out = self.candidates.finish();
        self.nulls.truncate(count - out.len());
        out.extend(self.nulls);
        out
    }
}

/// How many rows come in blocks none of whose values beats the worst, whether they count or not. Where most rows do not, this
/// is where the time goes: no mask is made, and comparisons stay as wide as the values.
#[inline(always)]
fn dismissed<T: Copy>(values: &[T], rows: Rows<'_>, beats: impl Fn(T) -> bool) -> usize {
    let blocks = wide(
        #[inline(always)]
        || match rows {
            Rows::Range { start, len } => values[start..start + len]
                .chunks(BLOCK)
                .take_while(|block| block.iter().fold(0u64, |count, &value| count + u64::from(beats(value))) == 0)
                .count(),
            Rows::Listed(rows) => {
                rows.chunks(BLOCK).take_while(|block| !block.iter().any(|&row| beats(values[row as usize]))).count()
            }
        },
    );
    blocks * BLOCK
}

/// Clears the marks of rows that were not offered, are null or do not beat the worst. True when one is left.
#[inline(always)]
fn mark<T: Copy + Default>(
    enters: &mut [bool],
    by: &impl By<T>,
    worst: Option<T>,
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'_>,
    mask: Option<&[bool]>,
) -> bool {
    if let Some(mask) = mask {
        enters.copy_from_slice(mask);
    }
    match rows {
        Rows::Range { start, len } => {
            if let Some(valid) = valid {
                enters.iter_mut().zip(&valid[start..start + len]).for_each(|(enters, &valid)| *enters &= valid);
            }
            if let Some(worst) = worst {
                let values = &values[start..start + len];
                enters.iter_mut().zip(values).for_each(|(enters, &value)| *enters &= by.beats(value, worst));
            }
        }
        Rows::Listed(rows) => {
            if let Some(valid) = valid {
                enters.iter_mut().zip(rows).for_each(|(enters, &row)| *enters &= valid[row as usize]);
            }
            if let Some(worst) = worst {
                let mut picked = [T::default(); BLOCK];
                picked.iter_mut().zip(rows).for_each(|(value, &row)| *value = values[row as usize]);
                enters.iter_mut().zip(picked).for_each(|(enters, value)| *enters &= by.beats(value, worst));
            }
        }
    }
    enters.iter().fold(false, |any, &enters| any | enters)
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
    fn new(count: usize, rows: usize) -> Candidates {
        // Room for a few times the count makes weeding rare; a floor keeps tiny counts from weeding at every block.
        let room = count.saturating_mul(4).max(count.saturating_add(2 * BLOCK));
        let capacity = room.min(rows);
        let (ranks, rows) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Candidates { ranks, rows, room, count, shuffled: Vec::new() }
    }

    /// Whether a block may not fit. There are more than `count` then.
    fn is_full(&self) -> bool {
        self.ranks.len() + BLOCK > self.room
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
