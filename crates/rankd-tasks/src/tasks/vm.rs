//! Compute an expression for every row and write it to a key.
//!
//! The key's earlier values, if any, are replaced for these rows. A null result is the key's default, or null; a result that is
//! not finite, or an int that overflows, is an error that names the row. Empty input: no rows. Cost: linear in rows and in the
//! expression's size.
//!
//! ```text
//! with {"out_key": "score", "expr": {"op": "mul", "a": {"op": "key_ref", "key": "likes"}, "b": {"op": "const_number", "value": 0.5}}}
//! given
//! | id | likes |
//! | 1 | 3 |
//! | 2 | |
//! gives
//! | id | score | likes |
//! | 1 | 1.5 | 3 |
//! | 2 | | |
//! ```

use rankd_column::expr::compute;
use rankd_column::expr::pass::Part;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::Expr;
use rankd_plan::signature::*;
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Params(&[Task::out_key]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 3.0 },
};

params! {
    pub(crate) struct Task {
        /// The key to write
        out_key: Key,
        /// The expression to compute
        #[into(out_key)]
        expr: Expr,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (values, stop) = (cx.values, cx.stop());
        let column = compute(&self.expr, &inputs[0], values, cx.scratch, stop);
        column
            .map(|column| inputs[0].with(self.out_key, Arc::new(column)))
            .map_err(|error| TaskError::eval(error, &self.expr))
    }

    fn as_part(&self) -> Option<Part> {
        Some(Part::Compute { key: self.out_key, program: self.expr.clone() })
    }
}
