//! Rows of a table that belong to rows at hand: by id, or by the values of a key on both sides.

use rankd_column::index::GroupIndex;
use rankd_column::kernel::gather::NO_ROW;
use rankd_column::{Column, IdTexts, Key, RowSet, Stop, Stopped};
use rankd_engine::store::Table;
use rankd_engine::task::LinkContext;
use rankd_plan::plan::NamedKeys;
use std::sync::Arc;

/// The table's columns that a plan names, and the keys that they become. The checks know every name.
pub(crate) fn columns(fields: &NamedKeys, cx: &LinkContext<'_>) -> Vec<(Key, Key)> {
    fields.iter().filter_map(|(name, key)| Some((cx.key(name)?, *key))).collect()
}

/// For each stored row of a batch, the table's row that belongs to it.
pub(crate) struct TableRows {
    /// [`NO_ROW`] where there is none. Rows outside the view may have any.
    pub(crate) rows: Vec<u32>,
    /// Whether every row of the view has one, and the others have a row that is there.
    pub(crate) all: bool,
}

impl TableRows {
    /// The row whose id is that of a row at hand, or the value of another key of it. `texts` are the run's, where ids are texts.
    pub(crate) fn matching(
        rows: &RowSet,
        on: Key,
        table: &Table,
        texts: Option<&Arc<IdTexts>>,
        stop: Stop<'_>,
    ) -> Result<TableRows, Stopped> {
        let (batch, index) = (rows.batch(), table.id_index());
        match (on, batch.column(on).map(|column| &**column)) {
            (Key::ID, _) => {
                let ids = batch.ids();
                TableRows::found(rows, table, stop, |row| index.row(ids[row]))
            }
            (_, Some(Column::Int(cells))) => {
                TableRows::found(rows, table, stop, |row| cells.get(row).map_or(NO_ROW, |id| index.row(id)))
            }
            (_, Some(Column::Str(cells, dictionary))) => {
                let known = texts.map(|texts| texts.base());
                let row_of = |code: u32| {
                    let id = known.and_then(|known| known.code(dictionary.get(code)));
                    id.map_or(NO_ROW, |id| index.row(id))
                };
                TableRows::found(rows, table, stop, |row| cells.get(row).map_or(NO_ROW, row_of))
            }
            // The checks let no other type through; and a column that is not there has no values.
            (_, _) => TableRows::found(rows, table, stop, |_| NO_ROW),
        }
    }

    /// What `row_of` gives for each row of the view.
    #[inline]
    fn found(
        rows: &RowSet,
        table: &Table,
        stop: Stop<'_>,
        row_of: impl Fn(usize) -> u32,
    ) -> Result<TableRows, Stopped> {
        // What stands at rows outside the view means nothing; where it is a row that is there, cells need no validity.
        let outside = if table.batch().is_empty() { NO_ROW } else { 0 };
        let mut found = vec![outside; rows.batch().len()];
        let mut missing = false;
        for chunk in stop.chunks(rows.rows()) {
            chunk?.iter().for_each(|row| {
                found[row] = row_of(row);
                missing |= found[row] == NO_ROW;
            });
        }
        Ok(TableRows { rows: found, all: !missing && outside != NO_ROW })
    }
}

/// The rows of a table that have the value of a row at hand.
pub(crate) enum Matches<'t> {
    /// By id: one at most.
    Ids(&'t Table),
    Groups(&'t GroupIndex),
    /// The table has no such column.
    Nothing,
}

impl<'t> Matches<'t> {
    /// Those whose values of this key match.
    pub(crate) fn of(table: &'t Table, right: Key) -> Matches<'t> {
        match right {
            Key::ID => Matches::Ids(table),
            right => table.group_index(right).map_or(Matches::Nothing, Matches::Groups),
        }
    }

    /// Calls `then` for each row of the view, in order, with the table's rows that match.
    pub(crate) fn each(
        &self,
        rows: &RowSet,
        left: Key,
        texts: Option<&Arc<IdTexts>>,
        stop: Stop<'_>,
        mut then: impl FnMut(usize, &[u32]),
    ) -> Result<(), Stopped> {
        let batch = rows.batch();
        let of_int = |value: i64, then: &mut dyn FnMut(&[u32])| match self {
            Matches::Ids(table) => match table.id_index().row(value) {
                NO_ROW => then(&[]),
                row => then(&[row]),
            },
            Matches::Groups(index) => then(index.rows_of_int(value)),
            Matches::Nothing => then(&[]),
        };
        let of_text = |text: &str, then: &mut dyn FnMut(&[u32])| match self {
            Matches::Ids(_) => match texts.and_then(|texts| texts.base().code(text)) {
                Some(code) => of_int(code, then),
                None => then(&[]),
            },
            Matches::Groups(index) => then(index.rows_of_text(text)),
            Matches::Nothing => then(&[]),
        };
        let mut each = |row: usize| {
            let mut found = |of_table: &[u32]| then(row, of_table);
            match (left, batch.column(left).map(|column| &**column)) {
                (Key::ID, _) => match (batch.id_texts(), self) {
                    // Both are codes of the same texts.
                    (_, Matches::Ids(_)) | (None, _) => of_int(batch.ids()[row], &mut found),
                    (Some(texts), _) => of_text(texts.text(batch.ids()[row]), &mut found),
                },
                (_, Some(Column::Int(cells))) => {
                    if let Some(value) = cells.get(row) {
                        of_int(value, &mut found);
                    }
                }
                (_, Some(Column::Str(cells, dictionary))) => {
                    if let Some(code) = cells.get(row) {
                        of_text(dictionary.get(code), &mut found);
                    }
                }
                (_, _) => {}
            }
        };
        for chunk in stop.chunks(rows.rows()) {
            chunk?.iter().for_each(&mut each);
        }
        Ok(())
    }
}
