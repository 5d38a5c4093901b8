//! Copies the cells of listed rows side by side.

use crate::column::{Cells, Column};
use crate::rowset::Rows;
use crate::stop::{Stop, Stopped};

/// Stands for a row that is not there: no batch is so long.
pub const NO_ROW: u32 = u32::MAX;

/// Appends `values[row]` for each of `rows`, which are those of a chunk.
#[inline(always)]
pub(crate) fn gather<T: Copy>(values: &[T], rows: Rows<'_>, out: &mut Vec<T>) {
    match rows {
        Rows::Range { start, len } => out.extend_from_slice(&values[start..start + len]),
        Rows::Listed(rows) => out.extend(rows.iter().map(|&row| values[row as usize])),
    }
}

/// The same for any number of rows.
pub(crate) fn gather_all<T: Copy>(
    values: &[T],
    rows: Rows<'_>,
    out: &mut Vec<T>,
    stop: Stop<'_>,
) -> Result<(), Stopped> {
    for chunk in stop.chunks(rows) {
        gather(values, chunk?, out);
    }
    Ok(())
}

/// A column of the cells of `rows` alone. Strings and the elements of lists and vectors are shared with the whole column.
pub fn gather_column(column: &Column, rows: Rows<'_>, stop: Stop<'_>) -> Result<Column, Stopped> {
    Ok(match column {
        Column::Int(cells) => Column::Int(gather_cells(cells.values(), cells.valid(), rows, stop)?),
        Column::Float(cells) => Column::Float(gather_cells(cells.values(), cells.valid(), rows, stop)?),
        Column::Bool(cells) => Column::Bool(gather_cells(cells.values(), cells.valid(), rows, stop)?),
        Column::Str(cells, dictionary) => {
            Column::Str(gather_cells(cells.values(), cells.valid(), rows, stop)?, dictionary.clone())
        }
        Column::List(cells, elements) => {
            Column::List(gather_cells(cells.values(), cells.valid(), rows, stop)?, elements.clone())
        }
        Column::Vector(cells, vectors) => {
            Column::Vector(gather_cells(cells.values(), cells.valid(), rows, stop)?, vectors.clone())
        }
    })
}

fn gather_cells<T: Copy + Default>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: Rows<'_>,
    stop: Stop<'_>,
) -> Result<Cells<T>, Stopped> {
    let mut gathered = Vec::with_capacity(rows.len());
    gather_all(values, rows, &mut gathered, stop)?;
    let valid = match valid {
        None => None,
        Some(mask) => {
            let mut valid = Vec::with_capacity(rows.len());
            gather_all(mask, rows, &mut valid, stop)?;
            Some(valid)
        }
    };
    Ok(Cells::new(gathered, valid))
}

impl Column {
    /// The cells of these rows, of which some may be [`NO_ROW`], whose cells are null; `all` where none is. What cells refer to is shared.
    pub fn pick(&self, rows: &[u32], all: bool, stop: Stop<'_>) -> Result<Column, Stopped> {
        Ok(match self {
            Column::Int(cells) => Column::Int(pick_cells(cells.values(), cells.valid(), rows, all, stop)?),
            Column::Float(cells) => Column::Float(pick_cells(cells.values(), cells.valid(), rows, all, stop)?),
            Column::Bool(cells) => Column::Bool(pick_cells(cells.values(), cells.valid(), rows, all, stop)?),
            Column::Str(cells, dictionary) => {
                Column::Str(pick_cells(cells.values(), cells.valid(), rows, all, stop)?, dictionary.clone())
            }
            Column::List(cells, elements) => {
                Column::List(pick_cells(cells.values(), cells.valid(), rows, all, stop)?, elements.clone())
            }
            Column::Vector(cells, vectors) => {
                Column::Vector(pick_cells(cells.values(), cells.valid(), rows, all, stop)?, vectors.clone())
            }
        })
    }
}

/// The same for plain values and which of them are there.
pub(super) fn pick_cells<T: Copy + Default>(
    values: &[T],
    valid: Option<&[bool]>,
    rows: &[u32],
    all: bool,
    stop: Stop<'_>,
) -> Result<Cells<T>, Stopped> {
    if all {
        return gather_cells(values, valid, Rows::Listed(rows), stop);
    }
    let (mut picked, mut there) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for rows in stop.slices(rows) {
        let rows = rows?;
        // A row that is not there is none of the values either.
        picked.extend(rows.iter().map(|&row| values.get(row as usize).copied().unwrap_or_default()));
        match valid {
            None => there.extend(rows.iter().map(|&row| row != NO_ROW)),
            Some(valid) => there.extend(rows.iter().map(|&row| valid.get(row as usize).copied().unwrap_or(false))),
        }
    }
    Ok(Cells::new(picked, Some(there)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn a_row_that_is_not_there_is_null() {
        let column = Column::Int([Some(10), None, Some(30)].into_iter().collect());
        let values = |column: &Column| (0..column.len()).map(|row| column.value(row)).collect::<Vec<_>>();
        let pick = |column: &Column, rows: &[u32], all| column.pick(rows, all, Stop::default()).unwrap();
        let (ten, thirty) = (Value::Int(10), Value::Int(30));
        assert_eq!(
            values(&pick(&column, &[2, NO_ROW, 1, 0], false)),
            [thirty.clone(), Value::Null, Value::Null, ten.clone()]
        );
        assert_eq!(values(&pick(&column, &[2, 0], true)), [thirty.clone(), ten]);
        assert_eq!(
            values(&gather_column(&column, Rows::Range { start: 1, len: 2 }, Stop::default()).unwrap()),
            [Value::Null, thirty]
        );
        let full = Column::Int(Cells::full(vec![1, 2]));
        assert!(pick(&full, &[1, 1], true).valid().is_none());
        assert_eq!(pick(&full, &[NO_ROW], false).value(0), Value::Null);
    }
}
