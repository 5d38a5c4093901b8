//! Give the rows of a table.
//!
//! All of them, in the order of the file, with a column for each of the table's that is a registered key. The rows are those of the
//! table itself: nothing is copied, and a filter, a sort or a computation after it works where they lie. The table is the one that was
//! in use when the request came in, whatever is loaded meanwhile. `where` is a `filter` of its own after the scan. Cost: nothing.
//!
//! ```text
//! with {"endpoint": "example_table"}
//! table
//! | id | title | likes |
//! | 7 | Alpha | 3 |
//! | 3 | | 9 |
//! gives
//! | id | title | likes |
//! | 7 | Alpha | 3 |
//! | 3 | | 9 |
//! ```

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::store::TableEndpoint;
use rankd_engine::task::{Compute, ComputeContext, InputRows, RowSource};
use rankd_plan::params;
use rankd_plan::signature::typed::Where;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Table(Task::endpoint),
    params: Task::PARAMS,
    cost: Cost::Trivial,
};

params! {
    pub(crate) struct Task {
        /// The table
        endpoint: TableEndpoint,
        /// The condition to keep a row
        r#where: Option<Where>,
    }
}

impl Compute for Task {
    fn run(&self, _: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(cx.table(self.endpoint)?.rows(cx.id_texts()))
    }

    fn row_source(&self) -> RowSource<'_> {
        RowSource::Table(self.endpoint)
    }
}
