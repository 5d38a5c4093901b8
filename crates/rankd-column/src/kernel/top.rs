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
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};

/// Rows that are looked at together. A block without a better row costs one vectorised scan.
const BLOCK: usize = 64;
/// With this many rows for each distinct string, there are few of those.
const ROWS_A_STRING: usize = 16;
/// So many ranks are put in order without a look.
const RANKS_A_LOOK: usize = 1 << 15;

/// What `sort::sorted` gives, cut to `count` rows.
pub fn top(
    batch: &Batch,
    rows: Rows<'_>,
    key: Key,
    order: Order,
    count: usize,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // Where much of the view is wanted, sorting all of it is the shorter way.
    if count > rows.len() / 2 {
        let mut all = sort::sorted(batch, rows, key, order, stop)?;
        all.truncate(count);
        return Ok(all);
    }
    let column = match key {
        Key::ID => batch.id_column(stop)?,
        key => batch.column(key).map(|column| &**column),
    };
    match column {
        None if key == Key::ID => pick(batch.ids(), None, rows, count, order, stop),
        // Lists and vectors have no order: see `sort`.
        None | Some(Column::List(..) | Column::Vector(..)) => {
            Ok(rows.slice(0, count).iter().map(|row| row as u32).collect())
        }
        Some(Column::Int(cells)) => pick(cells.values(), cells.valid(), rows, count, order, stop),
        Some(Column::Float(cells)) => pick(cells.values(), cells.valid(), rows, count, order, stop),
        Some(Column::Bool(cells)) => pick(cells.values(), cells.valid(), rows, count, order, stop),
        // Where there are few distinct strings, putting them in order takes less than looking at one a row.
        Some(Column::Str(cells, dictionary)) if dictionary.len() > rows.len() / ROWS_A_STRING => {
            texts::top(cells, dictionary, rows, order, count, stop)
        }
        Some(Column::Str(cells, dictionary)) => {
            let (ranks, desc) = (sort::rank_entries(cells, dictionary, rows, stop)?, order == Order::Desc);
            let (mut best, by) = (Best::new(count, rows.len()), Entries { ranks, desc });
            for chunk in stop.chunks(rows) {
                best.offer_by(&by, cells.values(), cells.valid(), chunk?, None, stop)?;
            }
            best.finish(stop)
        }
    }
}

fn pick<T: Ranked>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'_>,
    count: usize,
    order: Order,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    let mut best = Best::new(count, rows.len());
    for chunk in stop.chunks(rows) {
        best.offer(order, values, valid, chunk?, None, stop)?;
    }
    best.finish(stop)
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
    /// `values` and `valid` are by stored row and hold those that were offered before, too. The caller looks at the stop from chunk to
    /// chunk.
    pub(crate) fn offer(
        &mut self,
        order: Order,
        values: &[T],
        valid: Option<&[bool]>,
        rows: Rows<'_>,
        mask: Option<&[bool]>,
        stop: Stop<'_>,
    ) -> Result<(), Stopped>
    where
        T: Ranked,
    {
        match order {
            Order::Asc => self.offer_by(&Ascending, values, valid, rows, mask, stop),
            Order::Desc => self.offer_by(&Descending, values, valid, rows, mask, stop),
        }
    }

    fn offer_by(
        &mut self,
        by: &impl By<T>,
        values: &[T],
        valid: Option<&[bool]>,
        rows: Rows<'_>,
        mask: Option<&[bool]>,
        stop: Stop<'_>,
    ) -> Result<(), Stopped> {
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
                self.candidates.weed(stop)?;
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
        Ok(())
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
    pub(crate) fn finish(mut self, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
        let count = self.candidates.count;
        let mut out = self.candidates.finish(stop)?;
        self.nulls.truncate(count - out.len());
        out.extend(self.nulls);
        Ok(out)
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
    /// Some of the ranks again, in no order.
    spare: Vec<u64>,
}

impl Candidates {
    fn new(count: usize, rows: usize) -> Candidates {
        // Room for a few times the count makes weeding rare; a floor keeps tiny counts from weeding at every block.
        let room = count.saturating_mul(4).max(count.saturating_add(2 * BLOCK));
        let capacity = room.min(rows);
        let (ranks, rows) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Candidates { ranks, rows, room, count, spare: Vec::new() }
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
    fn weed(&mut self, stop: Stop<'_>) -> Result<(), Stopped> {
        let worst = nth(&self.ranks, self.count - 1, &mut self.spare, stop)?;
        let mut kept = 0;
        for start in stop.starts(self.ranks.len()) {
            for at in start?..self.ranks.len().min(start? + ROWS_A_LOOK) {
                let (rank, row) = (self.ranks[at], self.rows[at]);
                (self.ranks[kept], self.rows[kept]) = (rank, row);
                kept += usize::from(rank <= worst);
            }
        }
        self.truncate(kept);
        // More than `count` only where several tie with the worst.
        if kept > self.count {
            self.drop_last_ties(worst);
        }
        Ok(())
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
    fn finish(mut self, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
        if self.ranks.len() > self.count {
            self.weed(stop)?;
        }
        let mut out = Vec::with_capacity(self.count);
        sort::arrange(&self.ranks, &self.rows, &mut out, stop)?;
        Ok(out)
    }
}

/// The rank that has this place in the order of all, counted from 0. Where there are many, those that may be it are narrowed down first,
/// by counting how many lie in each part of a range.
fn nth(ranks: &[u64], mut place: usize, spare: &mut Vec<u64>, stop: Stop<'_>) -> Result<u64, Stopped> {
    const PART_BITS: u32 = 11;
    let (mut low, mut high, mut left) = (0, u64::MAX, ranks.len());
    while left > RANKS_A_LOOK && low < high {
        let width = high - low;
        let shift = (64 - width.leading_zeros()).saturating_sub(PART_BITS);
        let mut parts = [0usize; 1 << PART_BITS];
        for some in stop.slices(ranks) {
            let distances = some?.iter().map(|rank| rank.wrapping_sub(low));
            distances
                .filter(|distance| *distance <= width)
                .for_each(|distance| parts[(distance >> shift) as usize] += 1);
        }
        let mut part = 0;
        while place >= parts[part] {
            place -= parts[part];
            part += 1;
        }
        left = parts[part];
        low += (part as u64) << shift;
        high = high.min(low + ((1 << shift) - 1));
    }
    if low == high {
        return Ok(low);
    }
    spare.clear();
    match left == ranks.len() {
        true => spare.extend_from_slice(ranks),
        false => {
            for some in stop.slices(ranks) {
                spare.extend(some?.iter().filter(|rank| (low..=high).contains(*rank)));
            }
        }
    }
    Ok(*spare.select_nth_unstable(place).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_a_place_is_found_among_few_and_among_many() {
        let random = |at: usize| (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let shapes: [fn(u64) -> u64; 5] =
            [|x| x, |x| x >> 62, |_| 7, |x| u64::MAX - (x >> 40), |x| if x >> 60 == 0 { x } else { 1 << 50 | x >> 44 }];
        for len in [1, 2, 1000, RANKS_A_LOOK, RANKS_A_LOOK + 1, 3 * RANKS_A_LOOK] {
            for shape in shapes {
                let ranks: Vec<u64> = (0..len).map(|at| shape(random(at))).collect();
                let mut sorted = ranks.clone();
                sorted.sort_unstable();
                for place in [0, len / 3, len / 2, len - 1] {
                    let found = nth(&ranks, place, &mut Vec::new(), Stop::default());
                    assert_eq!(found, Ok(sorted[place]), "place {place} of {len}");
                }
            }
        }
    }
}
