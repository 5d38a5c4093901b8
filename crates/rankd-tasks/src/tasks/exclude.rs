//! Leave out the rows that other rows name.
//!
//! A row is left out if one of the keys of `by` is the id of one of `rows`. Null is no id. The others stay in their order. Empty
//! input: no rows. Cost: linear in the rows of both; columns are not copied.
//!
//! ```text
//! with {"rows": 1, "by": ["id", "parent_id"]}
//! given
//! | id | parent_id |
//! | 1 | 20 |
//! | 2 | 30 |
//! | 3 | |
//! | 4 | 40 |
//! given
//! | id |
//! | 30 |
//! | 4 |
//! gives
//! | id | parent_id |
//! | 1 | 20 |
//! | 3 | |
//! ```

pub(crate) use crate::membership::CONTRACT;

use crate::membership::Params;
use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Make};

pub(crate) struct Task(Params);

impl Make for Task {
    type Params = Params;

    fn make(params: Params, _: &LinkContext<'_>) -> Task {
        Task(params)
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        self.0.keep(inputs, false, cx)
    }
}
