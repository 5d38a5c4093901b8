//! Copies the cells of listed rows side by side.

use crate::column::{Cells, Column};
use crate::rowset::Rows;

/// Appends `values[row]` for each of `rows`.
#[inline(always)]
pub fn gather<T: Copy>(values: &[T], rows: Rows<'_>, out: &mut Vec<T>) {
    match rows {
        Rows::Range { start, len } => out.extend_from_slice(&values[start..start + len]),
        Rows::Listed(rows) => out.extend(rows.iter().map(|&row| values[row as usize])),
    }
}

/// A column of the cells of `rows` alone. Strings and the elements of lists and vectors are shared with the whole column.
pub fn gather_column(column: &Column, rows: Rows<'_>) -> Column {
    match column {
        Column::Int(cells) => Column::Int(gather_cells(cells, rows)),
        Column::Float(cells) => Column::Float(gather_cells(cells, rows)),
        Column::Bool(cells) => Column::Bool(gather_cells(cells, rows)),
        Column::Str(cells, dictionary) => Column::Str(gather_cells(cells, rows), dictionary.clone()),
        Column::List(cells, elements) => Column::List(gather_cells(cells, rows), elements.clone()),
        Column::Vector(cells, vectors) => Column::Vector(gather_cells(cells, rows), vectors.clone()),
    }
}

fn gather_cells<T: Copy + Default>(cells: &Cells<T>, rows: Rows<'_>) -> Cells<T> {
    let mut values = Vec::with_capacity(rows.len());
    gather(cells.values(), rows, &mut values);
    let valid = cells.valid().map(|mask| {
        let mut valid = Vec::with_capacity(rows.len());
        gather(mask, rows, &mut valid);
        valid
    });
    Cells::new(values, valid)
}
