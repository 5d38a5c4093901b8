//! Stable sort of a view by one column, nulls last in both orders.
//!
//! Every type is turned into a `u64` rank whose ascending order is the wanted order, so one sort serves all of them.
//! Ranks are sorted by a window of bits that starts at their highest differing bit, packed with the position: the position
//! makes the sort stable and the elements distinct, and only ties within the window need the whole rank.
//! Every loop looks at the stop now and then; where comparisons take long, as those of texts, runs are sorted and then merged.

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::kernel::wide::wide;
use crate::rowset::Rows;
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::mem::swap;

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Asc,
    Desc,
}

/// Where rows come that have no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullPlace {
    First,
    Last,
}

/// One of several keys that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub key: Key,
    pub order: Order,
    pub nulls: NullPlace,
}

/// Up to this many, counting the rows before each one beats any sort.
const COUNTING_MAX: usize = 64;
/// From this many, two passes over buckets beat a comparison sort.
const RADIX_MIN: usize = 200;

/// The stored rows of `rows` in sorted order.
pub fn sorted(batch: &Batch, rows: Rows<'_>, key: Key, order: Order, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    sorted_with(batch, rows, SortKey { key, order, nulls: NullPlace::Last }, stop)
}

/// The same by several keys, the most important first.
pub fn sorted_by(batch: &Batch, rows: Rows<'_>, by: &[SortKey], stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    // Each sort leaves rows that are equal to it as the one before has put them.
    let mut out = list(rows, stop)?.into_owned();
    for by in by.iter().rev() {
        out = sorted_with(batch, Rows::Listed(&out), *by, stop)?;
    }
    Ok(out)
}

fn sorted_with(batch: &Batch, rows: Rows<'_>, by: SortKey, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    let RankedRows { ranks, rows, nulls } = rank(batch, rows, by.key, by.order, stop)?;
    let mut out = Vec::with_capacity(rows.len() + nulls.len());
    if by.nulls == NullPlace::First {
        out.extend_from_slice(&nulls);
    }
    arrange(&ranks, &rows, &mut out, stop)?;
    if by.nulls == NullPlace::Last {
        out.extend_from_slice(&nulls);
    }
    Ok(out)
}

/// A view split by whether the sort key is there, each part in view order.
struct RankedRows<'a> {
    /// Ascending ranks are the wanted order; one for each of `rows`.
    ranks: Vec<u64>,
    rows: Cow<'a, [u32]>,
    nulls: Vec<u32>,
}

/// Ranks the rows of a view.
fn rank<'a>(batch: &Batch, rows: Rows<'a>, key: Key, order: Order, stop: Stop<'_>) -> Result<RankedRows<'a>, Stopped> {
    let flip = match order {
        Order::Asc => 0,
        Order::Desc => u64::MAX,
    };
    let column = match key {
        Key::ID => batch.id_column(stop)?,
        key => batch.column(key).map(|column| &**column),
    };
    match column {
        None if key == Key::ID => rank_values(batch.ids(), None, rows, |id| rank_int(id) ^ flip, stop),
        // Lists and vectors have no order. The checks refuse to sort by one; here all rows would be equal.
        None | Some(Column::List(..) | Column::Vector(..)) => {
            Ok(RankedRows { ranks: Vec::new(), rows: Cow::default(), nulls: list(rows, stop)?.into_owned() })
        }
        Some(Column::Int(cells)) => rank_cells(cells, rows, |v| rank_int(v) ^ flip, stop),
        Some(Column::Float(cells)) => rank_cells(cells, rows, |v| rank_float(v) ^ flip, stop),
        Some(Column::Bool(cells)) => rank_cells(cells, rows, |v| u64::from(v) ^ flip, stop),
        Some(Column::Str(cells, dictionary)) => {
            let ranks = rank_entries(cells, dictionary, rows, stop)?;
            rank_cells(cells, rows, |code| u64::from(ranks[code as usize]) ^ flip, stop)
        }
    }
}

#[inline(always)]
pub(super) fn rank_int(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// Ascending ranks are ascending numbers, and -0.0 ties with 0.0. NaN never reaches a column.
#[inline(always)]
pub(super) fn rank_float(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    bits ^ (((bits as i64) >> 63) as u64 | 1 << 63)
}

/// For each dictionary entry that the view uses, its place among the used ones by bytes.
pub(super) fn rank_entries(
    cells: &Cells<u32>,
    dictionary: &Dictionary,
    rows: Rows<'_>,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    let mut used = vec![false; dictionary.len()];
    for chunk in stop.chunks(rows) {
        for code in chunk?.iter().filter_map(|row| cells.get(row)) {
            used[code as usize] = true;
        }
    }
    let (skip, mut codes) = (dictionary.shared_prefix(stop)?, Vec::new());
    for start in stop.starts(used.len()) {
        let some = start?..used.len().min(start? + ROWS_A_LOOK);
        let some = some.filter(|code| used[*code]).map(|code| code as u32);
        codes.extend(some.map(|code| (dictionary.window(code, skip), code)));
    }
    sort_runs(&mut codes, stop, |(a_window, a), (b_window, b)| {
        a_window.cmp(b_window).then_with(|| dictionary.get(*a).cmp(dictionary.get(*b)))
    })?;
    let (mut ranks, mut rank) = (vec![0; dictionary.len()], 0);
    for codes in stop.slices(&codes) {
        for &(_, code) in codes? {
            ranks[code as usize] = rank;
            rank += 1;
        }
    }
    Ok(ranks)
}

/// Sorts by comparisons, which may take long each. What is equal may come in any order.
pub(super) fn sort_runs<T: Copy>(
    items: &mut Vec<T>,
    stop: Stop<'_>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<(), Stopped> {
    for run in items.chunks_mut(ROWS_A_LOOK) {
        stop.check()?;
        run.sort_unstable_by(&compare);
    }
    let (mut run_len, mut merged, mut looks) = (ROWS_A_LOOK, Vec::new(), stop.looks());
    while run_len < items.len() {
        merged.clear();
        merged.reserve_exact(items.len());
        for runs in items.chunks(2 * run_len) {
            let (mut a, mut b) = runs.split_at(run_len.min(runs.len()));
            while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
                looks.before(1)?;
                if compare(first_b, first_a) == Ordering::Less {
                    merged.push(*first_b);
                    b = rest_b;
                } else {
                    merged.push(*first_a);
                    a = rest_a;
                }
            }
            for rest in stop.slices(a).chain(stop.slices(b)) {
                merged.extend_from_slice(rest?);
            }
        }
        swap(items, &mut merged);
        run_len *= 2;
    }
    Ok(())
}

fn rank_cells<'a, T: Copy + Default>(
    cells: &Cells<T>,
    rows: Rows<'a>,
    rank: impl Fn(T) -> u64,
    stop: Stop<'_>,
) -> Result<RankedRows<'a>, Stopped> {
    rank_values(cells.values(), cells.valid(), rows, rank, stop)
}

fn rank_values<'a, T: Copy>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'a>,
    rank: impl Fn(T) -> u64,
    stop: Stop<'_>,
) -> Result<RankedRows<'a>, Stopped> {
    let (there, nulls): (Cow<'a, [u32]>, Vec<u32>) = match valid {
        None => (list(rows, stop)?, Vec::new()),
        Some(valid) => {
            let (mut there, mut nulls) = (Vec::new(), Vec::new());
            for chunk in stop.chunks(rows) {
                for row in chunk?.iter() {
                    if valid[row] { &mut there } else { &mut nulls }.push(row as u32);
                }
            }
            (there.into(), nulls)
        }
    };
    let mut ranks = Vec::with_capacity(there.len());
    for rows in stop.slices(&there) {
        ranks.extend(rows?.iter().map(|&row| rank(values[row as usize])));
    }
    Ok(RankedRows { ranks, rows: there, nulls })
}

fn list<'a>(rows: Rows<'a>, stop: Stop<'_>) -> Result<Cow<'a, [u32]>, Stopped> {
    match rows {
        Rows::Range { start: first, len } => {
            let mut listed = Vec::with_capacity(len);
            for start in stop.starts(len) {
                let from = first + start?;
                listed.extend(from as u32..(first + len).min(from + ROWS_A_LOOK) as u32);
            }
            Ok(listed.into())
        }
        Rows::Listed(rows) => Ok(rows.into()),
    }
}

/// Appends `rows` in stable ascending order of their ranks.
pub(super) fn arrange(ranks: &[u64], rows: &[u32], out: &mut Vec<u32>, stop: Stop<'_>) -> Result<(), Stopped> {
    debug_assert_eq!(ranks.len(), rows.len());
    if is_sorted(ranks, stop)? {
        out.extend_from_slice(rows);
        return Ok(());
    }
    if ranks.len() <= COUNTING_MAX {
        count(ranks, rows, out);
        return Ok(());
    }
    let window = Window::new(64 - differing(ranks, stop)?.leading_zeros(), ranks.len());
    let mut packed = if ranks.len() < RADIX_MIN {
        let mut packed: Vec<u64> = window.pack(ranks, 0).collect();
        packed.sort_unstable();
        packed
    } else {
        wide(
            #[inline(always)]
            || window.radix_sorted(ranks, stop),
        )?
    };
    if window.shift > 0 {
        order_ties(&mut packed, ranks, stop)?;
    }
    for packed in stop.slices(&packed) {
        out.extend(packed?.iter().map(|&packed| rows[packed as u32 as usize]));
    }
    Ok(())
}

fn is_sorted(ranks: &[u64], stop: Stop<'_>) -> Result<bool, Stopped> {
    for start in stop.starts(ranks.len()) {
        // With the first of the next chunk.
        if !ranks[start?..ranks.len().min(start? + ROWS_A_LOOK + 1)].is_sorted() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The bits in which not all ranks are the same. There is at least one rank.
pub(super) fn differing(ranks: &[u64], stop: Stop<'_>) -> Result<u64, Stopped> {
    let mut differing = 0;
    for some in stop.slices(ranks) {
        let some = some?;
        differing |= wide(
            #[inline(always)]
            || some.iter().fold(0, |bits, rank| bits | (rank ^ ranks[0])),
        );
    }
    Ok(differing)
}

/// The place of a row is the number of rows with a lower rank, and of equal rows before it. Quadratic, but without a branch
/// and in wide vectors: signed numbers, which these can compare, and a whole number of vectors.
fn count(ranks: &[u64], rows: &[u32], out: &mut Vec<u32>) {
    const LANES: usize = 8;
    let start = out.len();
    out.resize(start + rows.len(), 0);
    let mut signed = [i64::MAX; COUNTING_MAX];
    signed.iter_mut().zip(ranks).for_each(|(signed, rank)| *signed = (rank ^ 1 << 63) as i64);
    let (blocks, _) = signed[..ranks.len().next_multiple_of(LANES)].as_chunks::<LANES>();
    let mut equals = [0u8; COUNTING_MAX];
    wide(
        #[inline(always)]
        || {
            for (&rank, &row) in signed.iter().zip(rows) {
                let mut lower = [0i64; LANES];
                for block in blocks {
                    lower.iter_mut().zip(block).for_each(|(lower, &other)| *lower += i64::from(other < rank));
                }
                let place = lower.iter().sum::<i64>() as usize;
                out[start + place + usize::from(equals[place])] = row;
                equals[place] += 1;
            }
        },
    );
}

/// The bits of ranks that are sorted first: two digits from the highest bit that differs.
#[derive(Clone, Copy)]
struct Window {
    shift: u32,
    digit_bits: u32,
}

impl Window {
    /// Wide enough to leave few ties among `len` evenly spread ranks: a third digit costs more than the ties.
    fn new(significant_bits: u32, len: usize) -> Window {
        let digit_bits = if len < RADIX_MIN { 16 } else { (len.ilog2() / 2 + 2).clamp(8, 11) };
        Window { shift: significant_bits.saturating_sub(2 * digit_bits), digit_bits }
    }

    /// Each rank's window in the high half, its position in the low half. The first position is `from`.
    #[inline(always)]
    fn pack(self, ranks: &[u64], from: usize) -> impl Iterator<Item = u64> {
        let in_window = (1 << (2 * self.digit_bits)) - 1;
        let packed = move |(at, rank): (usize, &u64)| ((rank >> self.shift) & in_window) << 32 | (from + at) as u64;
        ranks.iter().enumerate().map(packed)
    }

    /// Packed ranks by window, keeping the order of equals: least significant digit first, one scan to count both.
    #[inline(always)]
    fn radix_sorted(self, ranks: &[u64], stop: Stop<'_>) -> Result<Vec<u64>, Stopped> {
        let digits = 1 << self.digit_bits;
        let low = |packed: u64| (packed >> 32) as usize & (digits - 1);
        let high = |packed: u64| (packed >> (32 + self.digit_bits)) as usize & (digits - 1);
        let mut counts = vec![0u32; 2 * digits];
        let (lows, highs) = counts.split_at_mut(digits);
        for some in stop.slices(ranks) {
            for packed in self.pack(some?, 0) {
                lows[low(packed)] += 1;
                highs[high(packed)] += 1;
            }
        }
        begin_buckets(lows);
        begin_buckets(highs);
        let (mut by_low, mut from) = (vec![0; ranks.len()], 0);
        for some in stop.slices(ranks) {
            scatter(self.pack(some?, from), lows, low, &mut by_low);
            from += ROWS_A_LOOK;
        }
        let mut by_both = vec![0; ranks.len()];
        for some in stop.slices(&by_low) {
            scatter(some?.iter().copied(), highs, high, &mut by_both);
        }
        Ok(by_both)
    }
}

/// The sizes of buckets become their beginnings.
#[inline(always)]
fn begin_buckets(counts: &mut [u32]) {
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
}

/// Moves elements to the bucket of their digit. `places` are where the next one of each bucket goes.
#[inline(always)]
fn scatter(elements: impl Iterator<Item = u64>, places: &mut [u32], digit: impl Fn(u64) -> usize, out: &mut [u64]) {
    for element in elements {
        let place = &mut places[digit(element)];
        out[*place as usize] = element;
        *place += 1;
    }
}

/// Puts packed elements with equal windows, which are in order of position, into the order of their whole ranks.
fn order_ties(packed: &mut [u64], ranks: &[u64], stop: Stop<'_>) -> Result<(), Stopped> {
    let tied = |a: u64, b: u64| a >> 32 == b >> 32;
    let mut at = 1;
    while at < packed.len() {
        stop.check()?;
        let look_at = at + ROWS_A_LOOK;
        while at < packed.len().min(look_at) {
            if !tied(packed[at - 1], packed[at]) {
                at += 1;
                continue;
            }
            let start = at - 1;
            at += packed[at..].iter().take_while(|&&other| tied(packed[start], other)).count();
            let run = &mut packed[start..at];
            if run.len() < RADIX_MIN {
                run.sort_unstable_by_key(|&packed| (ranks[packed as u32 as usize], packed));
            } else {
                order_crowd(run, ranks, stop)?;
            }
            at += 1;
        }
    }
    Ok(())
}

/// The same for many elements with one window. Their ranks are close together: they are sorted by the bits that differ among them, which
/// are below the window.
fn order_crowd(run: &mut [u64], ranks: &[u64], stop: Stop<'_>) -> Result<(), Stopped> {
    let (mut positions, mut crowded) = (Vec::with_capacity(run.len()), Vec::with_capacity(run.len()));
    for some in stop.slices(run) {
        let some = some?;
        positions.extend(some.iter().map(|&packed| packed as u32));
        crowded.extend(some.iter().map(|&packed| ranks[packed as u32 as usize]));
    }
    let mut arranged = Vec::with_capacity(run.len());
    arrange(&crowded, &positions, &mut arranged, stop)?;
    run.iter_mut().zip(arranged).for_each(|(packed, position)| *packed = u64::from(position));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spread evenly, with few distinct values, all close together but one, and crowded at two levels.
    fn shapes(len: usize) -> [Vec<u64>; 4] {
        let random = |at: usize| (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let of = |rank: &dyn Fn(usize) -> u64| (0..len).map(rank).collect();
        [
            of(&random),
            of(&|at| random(at) >> 61),
            of(&|at| if at == len / 2 { u64::MAX } else { random(at) >> 50 }),
            of(&|at| (random(at) >> 63) << 60 | (random(at) >> 40 & 1) << 30 | random(at) >> 51),
        ]
    }

    #[test]
    fn every_way_of_sorting_is_stable_and_complete() {
        for len in [0, 1, 2, COUNTING_MAX, COUNTING_MAX + 1, RADIX_MIN - 1, RADIX_MIN, 1_000, 20_000] {
            for ranks in shapes(len) {
                let rows: Vec<u32> = (0..len as u32).collect();
                let mut wanted = rows.clone();
                wanted.sort_by_key(|&row| ranks[row as usize]);
                let mut out = Vec::new();
                arrange(&ranks, &rows, &mut out, Stop::default()).unwrap();
                assert!(out == wanted, "{len} rows");
            }
        }
    }

    #[test]
    fn runs_are_sorted_and_merged() {
        for len in [0, 1, ROWS_A_LOOK, ROWS_A_LOOK + 1, 2 * ROWS_A_LOOK, 5 * ROWS_A_LOOK + 17] {
            for ranks in shapes(len) {
                let mut wanted = ranks.clone();
                wanted.sort_unstable();
                let mut items = ranks;
                sort_runs(&mut items, Stop::default(), u64::cmp).unwrap();
                assert!(items == wanted, "{len} items");
            }
        }
    }
}
