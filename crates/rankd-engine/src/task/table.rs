//! Tables as tasks see them: the version that the run took when it started.

use crate::error::TaskError;
use crate::store::table::{Table, TableEndpoint};
use crate::task::{ComputeContext, LinkContext};
use rankd_column::Key;
use std::sync::Arc;

impl<'a> ComputeContext<'a> {
    /// The table of an endpoint, as it was when the run started.
    pub fn table(&self, endpoint: TableEndpoint) -> Result<&'a Arc<Table>, TaskError> {
        let table = self.tables.and_then(|tables| tables.get(endpoint));
        table.ok_or_else(|| TaskError::bug("a table that the run did not take along"))
    }
}

impl LinkContext<'_> {
    /// The keys of the rows that the task gives which something needs; `None` where any may be asked for.
    pub fn needed_keys(&self) -> Option<Arc<[Key]>> {
        self.needed.clone()
    }

    /// Says that the task looks up rows of a table by a key, so that the index is there before the first run; without it the first
    /// run makes it.
    pub fn need_index(&self, endpoint: TableEndpoint, key: Key) {
        self.indexes.borrow_mut().push((endpoint, key));
    }
}
