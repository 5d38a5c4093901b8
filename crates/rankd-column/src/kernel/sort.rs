//! Stable sort of a view by one column, nulls last in both orders.
//!
//! Every type is turned into a `u64` rank whose ascending order is the wanted order, so one sort serves all of them.
//! Ranks are sorted by a window of bits that starts at their highest differing bit, packed with the position: the position
//! makes the sort stable and the elements distinct, and only ties within the window need the whole rank.

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::kernel::wide::wide;
use crate::rowset::Rows;
use std::borrow::Cow;

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Asc,
    Desc,
}

/// Up to this many, counting the rows before each one beats any sort.
const COUNTING_MAX: usize = 64;
/// From this many, two passes over buckets beat a comparison sort.
const RADIX_MIN: usize = 200;

/// The stored rows of `rows` in sorted order.
pub fn sorted(batch: &Batch, rows: Rows<'_>, key: Key, order: Order) -> Vec<u32> {
    let RankedRows { ranks, rows, nulls } = rank(batch, rows, key, order);
    let mut out = Vec::with_capacity(rows.len() + nulls.len());
    arrange(&ranks, &rows, &mut out);
    out.extend_from_slice(&nulls);
    out
}

/// A view split by whether the sort key is there, each part in view order.
struct RankedRows<'a> {
    /// Ascending ranks are the wanted order; one for each of `rows`.
    ranks: Vec<u64>,
    rows: Cow<'a, [u32]>,
    nulls: Vec<u32>,
}

/// Ranks the rows of a view.
fn rank<'a>(batch: &Batch, rows: Rows<'a>, key: Key, order: Order) -> RankedRows<'a> {
    let flip = match order {
        Order::Asc => 0,
        Order::Desc => u64::MAX,
    };
    let column = match key {
        Key::ID => batch.id_column(),
        key => batch.column(key).map(|column| &**column),
    };
    match column {
        None if key == Key::ID => rank_values(batch.ids(), None, rows, |id| rank_int(id) ^ flip),
        // Lists and vectors have no order. The checks refuse to sort by one; here all rows would be equal.
        None | Some(Column::List(..) | Column::Vector(..)) => {
            RankedRows { ranks: Vec::new(), rows: Cow::default(), nulls: list(rows).into_owned() }
        }
        Some(Column::Int(cells)) => rank_cells(cells, rows, |v| rank_int(v) ^ flip),
        Some(Column::Float(cells)) => rank_cells(cells, rows, |v| rank_float(v) ^ flip),
        Some(Column::Bool(cells)) => rank_cells(cells, rows, |v| u64::from(v) ^ flip),
        Some(Column::Str(cells, dictionary)) => {
            let ranks = rank_entries(cells, dictionary, rows);
            rank_cells(cells, rows, |code| u64::from(ranks[code as usize]) ^ flip)
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
pub(super) fn rank_entries(cells: &Cells<u32>, dictionary: &Dictionary, rows: Rows<'_>) -> Vec<u32> {
    let mut used = vec![false; dictionary.len()];
    for code in rows.iter().filter_map(|row| cells.get(row)) {
        used[code as usize] = true;
    }
    let skip = dictionary.shared_prefix();
    let mut codes: Vec<(u64, u32)> = (0..dictionary.len() as u32)
        .filter(|&code| used[code as usize])
        .map(|code| (dictionary.window(code, skip), code))
        .collect();
    codes.sort_unstable_by(|(a_window, a), (b_window, b)| {
        a_window.cmp(b_window).then_with(|| dictionary.get(*a).cmp(dictionary.get(*b)))
    });
    let mut ranks = vec![0; dictionary.len()];
    for (rank, &(_, code)) in codes.iter().enumerate() {
        ranks[code as usize] = rank as u32;
    }
    ranks
}

fn rank_cells<'a, T: Copy + Default>(cells: &Cells<T>, rows: Rows<'a>, rank: impl Fn(T) -> u64) -> RankedRows<'a> {
    rank_values(cells.values(), cells.valid(), rows, rank)
}

fn rank_values<'a, T: Copy>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'a>,
    rank: impl Fn(T) -> u64,
) -> RankedRows<'a> {
    let (there, nulls): (Cow<'a, [u32]>, Vec<u32>) = match valid {
        None => (list(rows), Vec::new()),
        Some(valid) => {
            let (there, nulls): (Vec<u32>, _) = rows.iter().map(|row| row as u32).partition(|&row| valid[row as usize]);
            (there.into(), nulls)
        }
    };
    let ranks = there.iter().map(|&row| rank(values[row as usize])).collect();
    RankedRows { ranks, rows: there, nulls }
}

fn list(rows: Rows<'_>) -> Cow<'_, [u32]> {
    match rows {
        Rows::Range { start, len } => (start as u32..(start + len) as u32).collect(),
        Rows::Listed(rows) => rows.into(),
    }
}

/// Appends `rows` in stable ascending order of their ranks.
pub(super) fn arrange(ranks: &[u64], rows: &[u32], out: &mut Vec<u32>) {
    debug_assert_eq!(ranks.len(), rows.len());
    if ranks.is_sorted() {
        return out.extend_from_slice(rows);
    }
    if ranks.len() <= COUNTING_MAX {
        return count(ranks, rows, out);
    }
    let differing = wide(
        #[inline(always)]
        || ranks.iter().fold(0, |bits, rank| bits | (rank ^ ranks[0])),
    );
    let window = Window::new(64 - differing.leading_zeros(), ranks.len());
    let mut packed = if ranks.len() < RADIX_MIN {
        let mut packed: Vec<u64> = window.pack(ranks).collect();
        packed.sort_unstable();
        packed
    } else {
        wide(
            #[inline(always)]
            || window.radix_sorted(ranks),
        )
    };
    if window.shift > 0 {
        order_ties(&mut packed, ranks);
    }
    out.extend(packed.iter().map(|&packed| rows[packed as u32 as usize]));
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

    /// Each rank's window in the high half, its position in the low half.
    #[inline(always)]
    fn pack(self, ranks: &[u64]) -> impl Iterator<Item = u64> {
        let in_window = (1 << (2 * self.digit_bits)) - 1;
        ranks.iter().enumerate().map(move |(at, rank)| ((rank >> self.shift) & in_window) << 32 | at as u64)
    }

    /// Packed ranks by window, keeping the order of equals: least significant digit first, one scan to count both.
    #[inline(always)]
    fn radix_sorted(self, ranks: &[u64]) -> Vec<u64> {
        let digits = 1 << self.digit_bits;
        let low = |packed: u64| (packed >> 32) as usize & (digits - 1);
        let high = |packed: u64| (packed >> (32 + self.digit_bits)) as usize & (digits - 1);
        let mut counts = vec![0u32; 2 * digits];
        let (lows, highs) = counts.split_at_mut(digits);
        for packed in self.pack(ranks) {
            lows[low(packed)] += 1;
            highs[high(packed)] += 1;
        }
        let mut by_low = vec![0; ranks.len()];
        scatter(self.pack(ranks), lows, low, &mut by_low);
        let mut by_both = vec![0; ranks.len()];
        scatter(by_low.iter().copied(), highs, high, &mut by_both);
        by_both
    }
}

/// Moves elements to the bucket of their digit. `counts` are the sizes of the buckets.
#[inline(always)]
fn scatter(elements: impl Iterator<Item = u64>, counts: &mut [u32], digit: impl Fn(u64) -> usize, out: &mut [u64]) {
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    for element in elements {
        let place = &mut counts[digit(element)];
        out[*place as usize] = element;
        *place += 1;
    }
}

/// Puts packed elements with equal windows, which are in order of position, into the order of their whole ranks.
fn order_ties(packed: &mut [u64], ranks: &[u64]) {
    let tied = |a: u64, b: u64| a >> 32 == b >> 32;
    let mut at = 1;
    while at < packed.len() {
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
            // Ranks are close together here: sort them by the bits that differ among them, which are below the window.
            let positions: Vec<u32> = run.iter().map(|&packed| packed as u32).collect();
            let crowded: Vec<u64> = positions.iter().map(|&position| ranks[position as usize]).collect();
            let mut arranged = Vec::with_capacity(run.len());
            arrange(&crowded, &positions, &mut arranged);
            run.iter_mut().zip(arranged).for_each(|(packed, position)| *packed = u64::from(position));
        }
        at += 1;
    }
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
                arrange(&ranks, &rows, &mut out);
                assert!(out == wanted, "{len} rows");
            }
        }
    }
}
