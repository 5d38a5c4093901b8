//! What `expand` does on a table: the table's rows that match a row, as new rows.

use crate::table_rows::Matches;
use rankd_column::kernel::gather::gather_column;
use rankd_column::rowset::Rows;
use rankd_column::{Cells, Column, Key, RowSet, Stop, Stopped};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::TableEndpoint;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext};
use rankd_plan::plan::{Dial, KeyPair};
use std::sync::Arc;

/// So many rows a step makes at most.
const ROWS_MAX: usize = 1_000_000;

pub(crate) struct TableExpand {
    endpoint: TableEndpoint,
    on: KeyPair,
    fanout: Dial,
    /// The table's columns, and the keys that they become; `None` for all of them that something needs.
    fields: Option<Vec<(Key, Key)>>,
    needed: Option<Arc<[Key]>>,
    /// The keys of the input row that come along.
    carry: Vec<Key>,
    /// `None` where the registry has no such key; then nobody can ask for it.
    parent_id: Option<Key>,
}

impl TableExpand {
    pub(crate) fn make(
        endpoint: TableEndpoint,
        on: KeyPair,
        fanout: Dial,
        fields: Option<Vec<(Key, Key)>>,
        carry: Vec<Key>,
        cx: &LinkContext<'_>,
    ) -> TableExpand {
        cx.need_index(endpoint, on.right);
        let (needed, parent_id) = (cx.needed_keys(), cx.key("parent_id"));
        TableExpand { endpoint, on, fanout, fields, needed, carry, parent_id }
    }
}

impl Compute for TableExpand {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, table, stop) = (&inputs[0], cx.table(self.endpoint)?, cx.stop());
        let (mut found, mut parents) = (Vec::new(), Vec::new());
        let fanout = self.fanout.count(cx.dials());
        Matches::of(table, self.on.right).each(rows, self.on.left, cx.id_texts(), stop, |row, of_table| {
            let taken = &of_table[..of_table.len().min(fanout)];
            if found.len() <= ROWS_MAX {
                found.extend_from_slice(taken);
                parents.extend(std::iter::repeat_n(row as u32, taken.len()));
            }
        })?;
        if found.len() > ROWS_MAX {
            let message =
                format!("more than {ROWS_MAX} rows of the table match: lower fanout, or keep fewer rows before");
            return Err(TaskError::new(codes::STORED_TOO_LARGE, message));
        }
        let all = table.rows(cx.id_texts());
        let is_needed = |key: Key| self.needed.as_ref().is_none_or(|needed| needed.contains(&key));
        let found = Rows::Listed(&found);
        let mut batch = match &self.fields {
            None => all.batch().gather(found, is_needed, stop)?,
            Some(fields) => {
                let mut batch = all.batch().gather(found, |_| false, stop)?;
                for (from, to) in fields {
                    if let Some(column) = all.batch().column(*from) {
                        batch = batch.with(*to, Arc::new(gather_column(column, found, stop)?));
                    }
                }
                batch
            }
        };
        let parents = Rows::Listed(&parents);
        for key in &self.carry {
            if let Some(column) = rows.batch().column(*key) {
                batch = batch.with(*key, Arc::new(gather_column(column, parents, stop)?));
            }
        }
        if let Some(key) = self.parent_id {
            batch = batch.with(key, Arc::new(parent_ids(rows, parents, stop)?));
        }
        Ok(RowSet::new(batch))
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
