//! The numbers of a view, and what was computed for a view as the cells of a column.

use crate::batch::Key;
use crate::column::{Cells, Column};
use crate::rowset::{RowSet, Rows};
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};

/// The numbers of a key in the order of the view, ints as floats. A key that is not there, or is no number, has none.
pub fn numbers(rows: &RowSet, key: Key, stop: Stop<'_>) -> Result<Vec<Option<f64>>, Stopped> {
    match rows.batch().column(key).map(|column| &**column) {
        Some(Column::Float(cells)) => by_row(rows, |row| cells.get(row), stop),
        Some(Column::Int(cells)) => by_row(rows, |row| cells.get(row).map(|value| value as f64), stop),
        None if key == Key::ID && rows.batch().id_texts().is_none() => {
            let ids = rows.batch().ids();
            by_row(rows, |row| Some(ids[row] as f64), stop)
        }
        None | Some(Column::Bool(_) | Column::Str(..) | Column::List(..) | Column::Vector(..)) => {
            Ok(vec![None; rows.len()])
        }
    }
}

fn by_row<T>(rows: &RowSet, of: impl Fn(usize) -> T, stop: Stop<'_>) -> Result<Vec<T>, Stopped> {
    let mut out = Vec::with_capacity(rows.len());
    for chunk in stop.chunks(rows.rows()) {
        out.extend(chunk?.iter().map(&of));
    }
    Ok(out)
}

/// Cells for every row of the batch, from those of a view in its order; null at rows outside the view.
pub fn cells_of_view<T: Copy + Default>(
    rows: &RowSet,
    of_view: &[Option<T>],
    stop: Stop<'_>,
) -> Result<Cells<T>, Stopped> {
    let stored = rows.batch().len();
    let is_full = of_view.len() == stored && of_view.iter().all(Option::is_some);
    let (mut values, mut valid) = (vec![T::default(); stored], vec![false; if is_full { 0 } else { stored }]);
    let mut cells = of_view.iter();
    for chunk in stop.chunks(rows.rows()) {
        for (row, cell) in chunk?.iter().zip(&mut cells) {
            if let Some(value) = cell {
                values[row] = *value;
                if !is_full {
                    valid[row] = true;
                }
            }
        }
    }
    Ok(Cells::new(values, (!is_full).then_some(valid)))
}

/// The same for a number of each row of the view. Where that is the whole batch, they are its cells as they are.
pub fn cells_of_scores(rows: &RowSet, of_view: Vec<f64>, stop: Stop<'_>) -> Result<Cells<f64>, Stopped> {
    let stored = rows.batch().len();
    if let Rows::Range { start: 0, len } = rows.rows()
        && len == stored
    {
        return Ok(Cells::new(of_view, None));
    }
    let (mut values, mut valid) = (vec![0.0; stored], vec![false; stored]);
    let mut cells = of_view.iter();
    for chunk in stop.chunks(rows.rows()) {
        for (row, value) in chunk?.iter().zip(&mut cells) {
            (values[row], valid[row]) = (*value, true);
        }
    }
    Ok(Cells::new(values, Some(valid)))
}

/// The same where only the first rows of the view have a number: the others keep what they have of the key, if it is a number.
pub fn cells_of_first_scores(rows: &RowSet, key: Key, of_first: &[f64], stop: Stop<'_>) -> Result<Cells<f64>, Stopped> {
    let stored = rows.batch().len();
    let (mut values, mut valid) = (vec![0.0; stored], vec![false; stored]);
    let mut put = |row: usize, value: f64| (values[row], valid[row]) = (value, true);
    let kept = numbers(rows, key, stop)?;
    // A row that stands at two places has its number if one of them is among the first.
    rows.rows()
        .iter()
        .zip(&kept)
        .filter_map(|(row, value)| Some((row, (*value)?)))
        .for_each(|(row, value)| put(row, value));
    for chunk in stop.starts(of_first.len()) {
        let start = chunk?;
        let first = &of_first[start..of_first.len().min(start + ROWS_A_LOOK)];
        rows.rows().slice(start, first.len()).iter().zip(first).for_each(|(row, value)| put(row, *value));
    }
    Ok(Cells::new(values, Some(valid)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use std::sync::Arc;

    #[test]
    fn a_column_has_the_cells_of_the_view_and_nulls_elsewhere() {
        let rows = RowSet::new(Batch::new(vec![10, 11, 12, 13]));
        let column = |of: &RowSet, cells: &[Option<i64>]| {
            let cells = cells_of_view(of, cells, Stop::default()).unwrap();
            rows.with(Key(1), Arc::new(Column::Int(cells)))
        };
        let some = rows.looking_at(vec![3, 0, 2]);
        let with = column(&some, &[Some(5), None, Some(-1)]);
        assert_eq!(numbers(&with, Key(1), Stop::default()).unwrap(), [None, None, Some(-1.0), Some(5.0)]);
        assert_eq!(numbers(&with.looking_at(vec![3, 2]), Key(1), Stop::default()).unwrap(), [Some(5.0), Some(-1.0)]);
        let all = column(&rows.looking_at(vec![3, 2, 1, 0]), &[Some(1), Some(2), Some(3), Some(4)]);
        assert!(all.batch().column(Key(1)).unwrap().valid().is_none());
        assert_eq!(numbers(&all, Key(1), Stop::default()).unwrap(), [Some(4.0), Some(3.0), Some(2.0), Some(1.0)]);
        assert_eq!(numbers(&all, Key(2), Stop::default()).unwrap(), [None; 4]);
        let first = |rows: &RowSet, key| {
            let cells = cells_of_first_scores(rows, key, &[7.0, 8.0], Stop::default()).unwrap();
            (0..4).map(|row| cells.get(row)).collect::<Vec<_>>()
        };
        // Two of three rows, of which the third has a value already, or none.
        assert_eq!(first(&all.looking_at(vec![3, 0, 2]), Key(1)), [Some(8.0), None, Some(2.0), Some(7.0)]);
        assert_eq!(first(&all.looking_at(vec![3, 0, 2]), Key(2)), [Some(8.0), None, None, Some(7.0)]);
        assert_eq!(first(&all.looking_at(vec![1, 2, 1]), Key(1)), [None, Some(7.0), Some(8.0), None]);
        assert_eq!(numbers(&some, Key::ID, Stop::default()).unwrap(), [Some(13.0), Some(10.0), Some(12.0)]);
    }
}
