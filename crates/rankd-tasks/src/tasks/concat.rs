//! Append the rows of another node.
//!
//! The rows of the input, then those of `rhs`, duplicates kept; the columns of both, the default or null where a side does not
//! have one. Cost: linear in rows and columns; this is the one task that copies them.
//!
//! ```text
//! with {"rhs": 1}
//! given
//! | id | score |
//! | 1 | 0.5 |
//! given
//! | id | country |
//! | 2 | DE |
//! | 3 | US |
//! gives
//! | id | score | country |
//! | 1 | 0.5 | |
//! | 2 | | DE |
//! | 3 | | US |
//! ```

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::Input;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 10.0 },
};

params! {
    pub(crate) struct Task {
        /// The node whose rows to append
        rhs: Input,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(inputs[0].concat(&inputs[self.rhs], cx.stop())?)
    }
}
