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

use rankd_column::expr::pass::Part;
use rankd_column::kernel::sort::Order;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Args, Compute, ComputeContext, InputRows};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &["key"],
    writes: Writes::Nothing,
    params: &[
        Param { name: "key", kind: ParamKind::Key, need: Need::Required, doc: "The key to sort by" },
        Param {
            name: "order",
            kind: ParamKind::Choice(&["asc", "desc"]),
            need: Need::Default(Literal::Text("asc")),
            doc: "Smallest first or largest first",
        },
    ],
    runs: Runs::Cpu,
    cost: Cost::About { fixed_ns: 400.0, per_row_ns: 20.0 },
};

pub(crate) struct Task {
    key: Key,
    order: Order,
}

impl Task {
    pub(crate) fn make(args: &Args<'_>) -> Task {
        let order = if &*args.text("order") == "desc" { Order::Desc } else { Order::Asc };
        Task { key: args.key("key"), order }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(inputs[0].sort(self.key, self.order))
    }

    fn as_part(&self) -> Option<Part> {
        Some(Part::Sort { key: self.key, order: self.order })
    }
}
