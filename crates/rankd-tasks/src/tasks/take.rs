//! Keep the first rows.
//!
//! Fewer rows than `count` are all kept. Cost: none to speak of.
//!
//! ```text
//! with {"count": 2}
//! given
//! | id | score |
//! | 7 | 0.1 |
//! | 5 | 0.9 |
//! | 6 | 0.5 |
//! gives
//! | id | score |
//! | 7 | 0.1 |
//! | 5 | 0.9 |
//! ```

use rankd_column::RowSet;
use rankd_column::expr::pass::Part;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::Dial;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::Trivial,
};

params! {
    pub(crate) struct Task {
        /// How many rows to keep
        #[range(1..)]
        count: Dial,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(inputs[0].take(self.count.count(cx.dials())))
    }

    fn as_part(&self) -> Option<Part> {
        // A pass has its numbers when it is made.
        self.count.fixed().map(|count| Part::Take { count })
    }
}
