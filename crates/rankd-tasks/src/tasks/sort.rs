//! Order the rows by a key.
//!
//! Rows with equal keys keep their order; nulls come last in both orders; strings are compared by their bytes. Empty input: no rows.
//! Cost: about linear in rows; columns are not copied.
//!
//! ```text
//! with {"key": "score", "order": "desc"}
//! given
//! | id | score |
//! | 1 | 0.5 |
//! | 2 | |
//! | 3 | 0.9 |
//! | 4 | 0.5 |
//! gives
//! | id | score |
//! | 3 | 0.9 |
//! | 1 | 0.5 |
//! | 4 | 0.5 |
//! | 2 | |
//! ```

use rankd_column::RowSet;
use rankd_column::expr::pass::Part;
use rankd_column::kernel::sort::Order;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::signature::typed::ScalarKey;
use rankd_plan::signature::*;
use rankd_plan::{choices, params};

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &[Task::key],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 400.0, per_row_ns: 20.0 },
};

choices! {
    pub(crate) enum Direction -> Order { "asc" => Order::Asc, "desc" => Order::Desc }
}

params! {
    pub(crate) struct Task {
        /// The key to sort by
        key: ScalarKey,
        /// Smallest first or largest first
        order: Direction = "asc",
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(inputs[0].sort(self.key, self.order, cx.stop())?)
    }

    fn as_part(&self) -> Option<Part> {
        Some(Part::Sort { key: self.key, order: self.order })
    }
}
