//! Tables as tasks see them: the version that the run took when it started.

use crate::error::TaskError;
use crate::store::table::{Table, TableEndpoint, TablePart};
use crate::task::{ComputeContext, LinkContext};
use rankd_column::Key;
use rankd_column::kernel::vector_copy::CopyKind;
use rankd_plan::registry::EndpointSettings;
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
        self.table_needs.borrow_mut().push((endpoint, TablePart::Index(key)));
    }

    /// The kind of the copy by which the task is to search the vectors of a key of a table, as the registry says; then it is there before the
    /// first run, as an index is. `None` where the vectors themselves are searched.
    pub fn need_copy(&self, endpoint: TableEndpoint, key: Key) -> Option<CopyKind> {
        let EndpointSettings::Table(table) = &self.registry.endpoints.get(endpoint.0).settings else { return None };
        let kind = table.copy_of(self.registry.key(key))?;
        self.table_needs.borrow_mut().push((endpoint, TablePart::Copy(key, kind)));
        Some(kind)
    }
}
