//! Stable sort of a view by one column, nulls last in both orders.
//!
//! Every type is turned into a `u64` rank whose ascending order is the wanted order, so one sort serves all of them.
//! Ranks are sorted by a 32-bit window that starts at their highest differing bit, packed with the position: the position
//! makes the sort stable and the elements distinct, and only ties within the window need the whole rank.

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::kernel::gather::gather;
use crate::kernel::wide::wide;
use crate::rowset::Rows;

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Asc,
    Desc,
}

/// Below this, a comparison sort beats three passes over 2,048 buckets.
const RADIX_FROM: usize = 512;
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// The stored rows of `rows` in sorted order.
pub fn sorted(batch: &Batch, rows: Rows<'_>, key: Key, order: Order) -> Vec<u32> {
    let Ranked { ranks, rows, nulls } = rank(batch, rows, key, order);
    let mut out = Vec::with_capacity(rows.len() + nulls.len());
    if ranks.is_sorted() {
        out.extend_from_slice(&rows);
    } else {
        out.extend(positions(&ranks).into_iter().map(|packed| rows[packed as u32 as usize]));
    }
    out.extend_from_slice(&nulls);
    out
}

/// A view split by whether the sort key is there, each part in view order.
pub(super) struct Ranked {
    /// Ascending ranks are the wanted order; one for each of `rows`.
    pub(super) ranks: Vec<u64>,
    pub(super) rows: Vec<u32>,
    pub(super) nulls: Vec<u32>,
}

/// Ranks the rows of a view.
pub(super) fn rank(batch: &Batch, rows: Rows<'_>, key: Key, order: Order) -> Ranked {
    let flip = match order {
        Order::Asc => 0,
        Order::Desc => u64::MAX,
    };
    if key == Key::ID {
        return rank_values(batch.ids(), None, rows, |id| rank_int(id) ^ flip);
    }
    match batch.column(key).map(|column| &**column) {
        None => Ranked { ranks: Vec::new(), rows: Vec::new(), nulls: list(rows) },
        Some(Column::Int(cells)) => rank_cells(cells, rows, |v| rank_int(v) ^ flip),
        Some(Column::Float(cells)) => rank_cells(cells, rows, |v| rank_float(v) ^ flip),
        Some(Column::Bool(cells)) => rank_cells(cells, rows, |v| u64::from(v) ^ flip),
        Some(Column::Str(cells, dictionary)) => {
            let ranks = rank_entries(cells, dictionary, rows);
            rank_cells(cells, rows, |code| u64::from(ranks[code as usize]) ^ flip)
        }
    }
}

pub(super) fn rank_int(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// Ascending ranks are ascending numbers, and -0.0 ties with 0.0. NaN never reaches a column.
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
    let mut codes: Vec<u32> = (0..dictionary.len() as u32).filter(|&code| used[code as usize]).collect();
    codes.sort_unstable_by_key(|&code| dictionary.get(code));
    let mut ranks = vec![0; dictionary.len()];
    for (rank, &code) in codes.iter().enumerate() {
        ranks[code as usize] = rank as u32;
    }
    ranks
}

fn rank_cells<T: Copy + Default>(cells: &Cells<T>, rows: Rows<'_>, rank: impl Fn(T) -> u64) -> Ranked {
    rank_values(cells.values(), cells.valid(), rows, rank)
}

fn rank_values<T: Copy>(values: &[T], valid: Option<&[bool]>, rows: Rows<'_>, rank: impl Fn(T) -> u64) -> Ranked {
    let (there, nulls) = match valid {
        None => (list(rows), Vec::new()),
        Some(valid) => rows.iter().map(|row| row as u32).partition(|&row| valid[row as usize]),
    };
    let mut picked = Vec::with_capacity(there.len());
    gather(values, if nulls.is_empty() { rows } else { Rows::Listed(&there) }, &mut picked);
    let mut ranks = Vec::with_capacity(picked.len());
    wide(
        #[inline(always)]
        || ranks.extend(picked.iter().map(|&value| rank(value))),
    );
    Ranked { ranks, rows: there, nulls }
}

fn list(rows: Rows<'_>) -> Vec<u32> {
    match rows {
        Rows::Range { start, len } => (start as u32..(start + len) as u32).collect(),
        Rows::Listed(rows) => rows.to_vec(),
    }
}

/// Positions of `ranks` in stable ascending order, each in the low half of its element.
fn positions(ranks: &[u64]) -> Vec<u64> {
    let differing = ranks.iter().fold(0, |bits, rank| bits | (rank ^ ranks[0]));
    let shift = (64 - differing.leading_zeros()).saturating_sub(32);
    let mut packed: Vec<u64> =
        ranks.iter().enumerate().map(|(at, rank)| u64::from((rank >> shift) as u32) << 32 | at as u64).collect();
    if packed.len() < RADIX_FROM {
        packed.sort_unstable();
    } else {
        radix_sort(&mut packed);
    }
    if shift > 0 {
        for ties in packed.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|ties| ties.len() > 1) {
            ties.sort_unstable_by_key(|&packed| (ranks[packed as u32 as usize], packed));
        }
    }
    packed
}

/// Sorts by the high 32 bits, keeping the order of equals: least significant digit first, one histogram scan.
fn radix_sort(packed: &mut Vec<u64>) {
    const SHIFTS: [u32; 3] = [32, 32 + DIGIT_BITS, 32 + 2 * DIGIT_BITS];
    let digit = |element: u64, shift: u32| (element >> shift) as usize & (DIGITS - 1);
    let mut counts = vec![[0u32; DIGITS]; SHIFTS.len()];
    for &element in packed.iter() {
        for (count, shift) in counts.iter_mut().zip(SHIFTS) {
            count[digit(element, shift)] += 1;
        }
    }
    let mut from = std::mem::take(packed);
    let mut to = vec![0; from.len()];
    for (starts, shift) in counts.iter_mut().zip(SHIFTS) {
        if starts[digit(from[0], shift)] as usize == from.len() {
            continue;
        }
        let mut start = 0;
        for slot in starts.iter_mut() {
            start += std::mem::replace(slot, start);
        }
        for &element in &from {
            let slot = &mut starts[digit(element, shift)];
            to[*slot as usize] = element;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    *packed = from;
}
