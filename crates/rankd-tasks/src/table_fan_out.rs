//! New rows that are rows of a table, made for rows at hand: what `expand` and `nearest` have in common.

use crate::fan_out::{PARENT_ID, with_carried};
use rankd_column::kernel::gather::gather_column;
use rankd_column::rowset::Rows;
use rankd_column::{Batch, Cells, Column, Key, RowSet, Stop, Stopped};
use rankd_engine::task::LinkContext;
use std::sync::Arc;

/// What new rows have besides their ids.
pub(crate) struct TableFanOut {
    /// The table's columns that something needs; `None` for all.
    needed: Option<Arc<[Key]>>,
    /// The keys of the input row that come along.
    carry: Vec<Key>,
    /// `None` where the registry has no such key; then nobody can ask for it.
    parent_id: Option<Key>,
}

impl TableFanOut {
    pub(crate) fn make(carry: Option<Vec<Key>>, cx: &LinkContext<'_>) -> TableFanOut {
        let carry = cx.carried(carry).unwrap_or_default();
        TableFanOut { needed: cx.needed_keys(), carry, parent_id: cx.key(PARENT_ID) }
    }

    /// These rows of a table, with the columns that something needs.
    pub(crate) fn gather(&self, table: &Batch, found: Rows<'_>, stop: Stop<'_>) -> Result<Batch, Stopped> {
        let is_needed = |key: Key| self.needed.as_ref().is_none_or(|needed| needed.contains(&key));
        table.gather(found, is_needed, stop)
    }

    /// New rows with what comes along of the rows that they came from: `parents` has a stored row of `rows` for each.
    pub(crate) fn with_parents(
        &self,
        batch: Batch,
        rows: &RowSet,
        parents: &[u32],
        stop: Stop<'_>,
    ) -> Result<Batch, Stopped> {
        let batch = with_carried(batch, rows, parents, &self.carry, stop)?;
        Ok(match self.parent_id {
            Some(key) => batch.with(key, Arc::new(parent_ids(rows, Rows::Listed(parents), stop)?)),
            None => batch,
        })
    }
}

/// The ids of the rows that new ones came from, as a column.
fn parent_ids(rows: &RowSet, parents: Rows<'_>, stop: Stop<'_>) -> Result<Column, Stopped> {
    match rows.batch().id_column(stop)? {
        Some(texts) => gather_column(texts, parents, stop),
        None => {
            let (ids, mut parent_ids) = (rows.batch().ids(), Vec::with_capacity(parents.len()));
            for chunk in stop.chunks(parents) {
                parent_ids.extend(chunk?.iter().map(|row| ids[row]));
            }
            Ok(Column::Int(Cells::full(parent_ids)))
        }
    }
}
