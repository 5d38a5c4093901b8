//! Order the rows by a key, or by several.
//!
//! Rows with equal keys keep their order; nulls come last in both orders; strings are compared by their bytes. With `by`, rows that are
//! equal by the first key are in the order of the second, and so on; each has its own order, and nulls come last unless it says
//! otherwise. Empty input: no rows. Cost: about linear in rows, for each key; columns are not copied.
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
//!
//! ```text
//! with {"by": [{"key": "country", "nulls": "first"}, {"key": "score", "order": "desc"}]}
//! given
//! | id | score | country |
//! | 1 | 0.5 | US |
//! | 2 | 0.9 | DE |
//! | 3 | 0.7 | US |
//! | 4 | 0.1 | |
//! gives
//! | id | score | country |
//! | 4 | 0.1 | |
//! | 2 | 0.9 | DE |
//! | 3 | 0.7 | US |
//! | 1 | 0.5 | US |
//! ```

use rankd_column::expr::pass::Part;
use rankd_column::kernel::sort::Order;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::signature::typed::{ScalarKey, SortKeys};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &[Task::key, Task::by],
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
        #[needed(by: "")]
        key: Option<ScalarKey>,
        /// Smallest first or largest first
        #[only(by: "")]
        order: Direction = "asc",
        /// Several keys to sort by, the most important first
        by: Option<SortKeys>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(match (&self.by, self.key) {
            (Some(by), _) => inputs[0].sort_by(by, cx.stop())?,
            (None, Some(key)) => inputs[0].sort(key, self.order, cx.stop())?,
            // The checks want one of the two.
            (None, None) => inputs.take(0),
        })
    }

    fn as_part(&self) -> Option<Part> {
        self.key.map(|key| Part::Sort { key, order: self.order })
    }

    fn orders_by(&self) -> Vec<Key> {
        self.by.iter().flatten().map(|by| by.key).chain(self.key).collect()
    }
}
