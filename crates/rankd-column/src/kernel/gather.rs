//! Copies the cells of listed rows side by side.

use crate::rowset::Rows;

/// Appends `values[row]` for each of `rows`.
#[inline(always)]
pub fn gather<T: Copy>(values: &[T], rows: Rows<'_>, out: &mut Vec<T>) {
    match rows {
        Rows::Range { start, len } => out.extend_from_slice(&values[start..start + len]),
        Rows::Listed(rows) => out.extend(rows.iter().map(|&row| values[row as usize])),
    }
}
