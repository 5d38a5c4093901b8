//! What `hydrate` does on a table: the columns of the table's rows whose ids match.

use crate::table_rows::TableRows;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::store::TableEndpoint;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext};
use std::sync::Arc;

pub(crate) struct TableHydrate {
    endpoint: TableEndpoint,
    /// The key of a row that is matched with the table's ids.
    on: Key,
    /// The table's columns, and the keys that they become.
    fields: Vec<(Key, Key)>,
}

impl TableHydrate {
    pub(crate) fn make(
        endpoint: TableEndpoint,
        on: Option<Key>,
        fields: Vec<(Key, Key)>,
        cx: &LinkContext<'_>,
    ) -> TableHydrate {
        cx.need_index(endpoint, Key::ID);
        TableHydrate { endpoint, on: on.unwrap_or(Key::ID), fields }
    }
}

impl Compute for TableHydrate {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, table, stop) = (&inputs[0], cx.table(self.endpoint)?, cx.stop());
        let found = TableRows::matching(rows, self.on, table, cx.id_texts(), stop)?;
        let mut batch = rows.batch().clone();
        for (from, to) in &self.fields {
            // A table without the column is one without a value in it.
            if let Some(column) = table.batch().column(*from) {
                batch = batch.with(*to, Arc::new(column.pick(&found.rows, found.all, stop)?));
            }
        }
        Ok(rows.with_batch(batch))
    }
}
