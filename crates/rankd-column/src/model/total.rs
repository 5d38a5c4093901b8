//! From the leaves of rows to sums: four trees at a time, each row's values added in the order of the file.

use super::forest::{BLOCK, ByteLane, WINDOW};
use std::ops::AddAssign;

/// Adds the values of four trees. Each table is seen through a window that every byte is inside of.
#[inline(always)]
pub(super) fn add_four<T: Copy + AddAssign>(sums: &mut [T], values: &[T], tables: [usize; 4], leaves: &[ByteLane; 4]) {
    let [Some(a), Some(b), Some(c), Some(d)] = tables.map(|at| window(values, at)) else { return };
    let [e, f, g, h] = leaves.each_ref().map(|lane| lane.as_flattened());
    for ((((sum, e), f), g), h) in sums.iter_mut().zip(e).zip(f).zip(g).zip(h) {
        let mut total = *sum;
        total += a[usize::from(*e)];
        total += b[usize::from(*f)];
        total += c[usize::from(*g)];
        total += d[usize::from(*h)];
        *sum = total;
    }
}

#[inline(always)]
pub(super) fn add_one<T: Copy + AddAssign>(sums: &mut [T], values: &[T], table: usize, leaves: &ByteLane) {
    let Some(table) = window(values, table) else { return };
    for (sum, leaf) in sums.iter_mut().zip(leaves.as_flattened()) {
        *sum += table[usize::from(*leaf)];
    }
}

#[inline(always)]
pub(super) fn add_many<T: Copy + AddAssign>(sums: &mut [T], table: &[T], leaves: &[u32; BLOCK]) {
    for (sum, leaf) in sums.iter_mut().zip(leaves) {
        *sum += table[*leaf as usize];
    }
}

/// The builder leaves a window's room behind the last value.
#[inline(always)]
fn window<T>(values: &[T], at: usize) -> Option<&[T; WINDOW]> {
    values.get(at..)?.first_chunk()
}
