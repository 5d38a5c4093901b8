//! Give the rows that the request brought along.
//!
//! In the request's order, with the keys that each has; a key that a row does not have is its default, or null. A repeated id
//! is an error of the request that names it. No candidates in the request: no rows.
//!
//! ```text
//! with {}
//! given
//! | id | score |
//! | 9 | 0.5 |
//! | 3 | |
//! gives
//! | id | score |
//! | 9 | 0.5 |
//! | 3 | |
//! ```

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Fetch, FetchContext, RowSource};
use rankd_plan::params;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: Task::PARAMS,
    cost: Cost::Trivial,
};

params! {
    pub(crate) struct Task {}
}

impl Fetch for Task {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        cx.candidates().await
    }

    fn row_source(&self) -> RowSource<'_> {
        RowSource::Request
    }
}
