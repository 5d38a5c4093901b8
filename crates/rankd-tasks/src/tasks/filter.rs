//! Keep the rows for which a predicate holds.
//!
//! In their order. A comparison with null does not hold. Empty input: no rows. Cost: linear in rows and in the predicate's size; columns
//! are not copied.
//!
//! ```text
//! with {"pred": {"op": "cmp", "cmp": "!=", "a": {"op": "key_ref", "key": "country"}, "b": {"op": "const_string", "value": "US"}}}
//! given
//! | id | country |
//! | 1 | US |
//! | 2 | DE |
//! | 3 | |
//! gives
//! | id | country |
//! | 2 | DE |
//! ```

use rankd_column::RowSet;
use rankd_column::expr::pass::Part;
use rankd_column::expr::select;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::params;
use rankd_plan::signature::typed::Predicate;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 400.0, per_row_ns: 2.0 },
};

params! {
    pub(crate) struct Task {
        /// The condition to keep a row
        pred: Predicate,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (values, stop) = (cx.values, cx.stop());
        let kept = select(&self.pred, &inputs[0], values, cx.scratch, stop);
        kept.map(|rows| inputs[0].looking_at(rows)).map_err(|error| TaskError::eval(error, &self.pred))
    }

    fn as_part(&self) -> Option<Part> {
        Some(Part::Filter { program: self.pred.clone() })
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::Predicate(self.pred.clone())
    }
}
