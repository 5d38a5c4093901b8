//! What `expand` does on a table: the table's rows that match a row, as new rows.

use crate::table_fan_out::TableFanOut;
use crate::table_rows::Matches;
use rankd_column::kernel::gather::gather_column;
use rankd_column::rowset::Rows;
use rankd_column::{Key, RowSet};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::TableEndpoint;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, RowSource};
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
    new_rows: TableFanOut,
}

impl TableExpand {
    pub(crate) fn make(
        endpoint: TableEndpoint,
        on: KeyPair,
        fanout: Dial,
        fields: Option<Vec<(Key, Key)>>,
        carry: Option<Vec<Key>>,
        cx: &LinkContext<'_>,
    ) -> TableExpand {
        cx.need_index(endpoint, on.right);
        TableExpand { endpoint, on, fanout, fields, new_rows: TableFanOut::make(carry, cx) }
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
        let found = Rows::Listed(&found);
        let batch = match &self.fields {
            None => self.new_rows.gather(all.batch(), found, stop)?,
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
        Ok(RowSet::new(self.new_rows.with_parents(batch, rows, &parents, stop)?))
    }

    fn row_source(&self) -> RowSource<'_> {
        RowSource::TableRows { endpoint: self.endpoint, on: self.on, fanout: self.fanout }
    }
}
