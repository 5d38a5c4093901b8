//! What tasks that pick rows one by one have in common: the picks, and then the other rows as they came in.

use rankd_column::kernel::numbers::cells_of_view;
use rankd_column::kernel::row_vectors::RowVectors;
use rankd_column::stop::{ROWS_A_LOOK, Stopped};
use rankd_column::{Cells, Column, Key, RowSet, Stop};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use std::sync::Arc;

/// How many numbers of vectors a task may copy: 512 MiB.
const NUMBERS_MAX: usize = 1 << 27;

/// The vectors of all rows, with room for more numbers of each.
pub(crate) fn vectors(rows: &RowSet, key: Key, room: usize, stop: Stop<'_>) -> Result<RowVectors, TaskError> {
    let needed = RowVectors::numbers_needed(rows, key, room);
    if needed > NUMBERS_MAX {
        let message = format!(
            "picking by the vectors of {} rows takes {needed} numbers, which is more than the limit of {NUMBERS_MAX}",
            rows.len()
        );
        return Err(TaskError::new(codes::RUN_TOO_LARGE, message));
    }
    Ok(RowVectors::of_view(rows, key, room, stop)?)
}

/// Rows in a new order, the picks first.
pub(crate) struct PickedRows {
    rows: RowSet,
    picks: usize,
}

impl PickedRows {
    /// Of these positions, each of which is there once.
    pub(crate) fn new(rows: &RowSet, picks: &[usize], stop: Stop<'_>) -> Result<PickedRows, Stopped> {
        let (view, mut is_picked) = (rows.rows(), vec![false; rows.len()]);
        picks.iter().for_each(|position| is_picked[*position] = true);
        let mut order: Vec<u32> = Vec::with_capacity(rows.len());
        order.extend(picks.iter().map(|position| view.at(*position) as u32));
        for start in stop.starts(rows.len()) {
            let start = start?;
            let rest = (start..rows.len().min(start + ROWS_A_LOOK)).filter(|position| !is_picked[*position]);
            order.extend(rest.map(|position| view.at(position) as u32));
        }
        Ok(PickedRows { rows: rows.looking_at(order), picks: picks.len() })
    }

    /// Writes the number of each pick, from 0, where a key is given for it.
    pub(crate) fn with_ranks(self, key: Option<Key>, stop: Stop<'_>) -> Result<PickedRows, Stopped> {
        let rank = |pick: usize| Some(pick as i64);
        self.with(key, rank, Column::Int, stop)
    }

    /// Writes a number of each pick, where a key is given for it.
    pub(crate) fn with_numbers(
        self,
        key: Option<Key>,
        of: impl Fn(usize) -> Option<f64>,
        stop: Stop<'_>,
    ) -> Result<PickedRows, Stopped> {
        self.with(key, of, Column::Float, stop)
    }

    fn with<T: Copy + Default>(
        mut self,
        key: Option<Key>,
        of: impl Fn(usize) -> Option<T>,
        column: fn(Cells<T>) -> Column,
        stop: Stop<'_>,
    ) -> Result<PickedRows, Stopped> {
        let Some(key) = key else { return Ok(self) };
        let (rows, mut cells) = (&self.rows, Vec::with_capacity(self.rows.len()));
        for start in stop.starts(rows.len()) {
            let start = start?;
            let some = start..rows.len().min(start + ROWS_A_LOOK);
            cells.extend(some.map(|at| if at < self.picks { of(at) } else { None }));
        }
        self.rows = rows.with(key, Arc::new(column(cells_of_view(rows, &cells, stop)?)));
        Ok(self)
    }

    pub(crate) fn rows(self) -> RowSet {
        self.rows
    }
}
