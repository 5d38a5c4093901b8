//! Lower the scores of a group's second, third and later rows.
//!
//! Rows with the same `by` are a group. Its best row keeps its score; the next is multiplied with `factor`, the one after it with
//! `factor` twice, and so on, but with no less than `floor`. The order in a group is that of the scores, and of the rows where those are
//! equal. A row without the key keeps its score; one without a score has none. The rows stay where they are. Empty input: no rows.
//! Cost: about linear in rows.
//!
//! ```text
//! with {"by": "country", "score": "score", "factor": 0.5, "floor": 0.3, "out_key": "score"}
//! given
//! | id | score | country |
//! | 1 | 1.0 | DE |
//! | 2 | 2.0 | DE |
//! | 3 | 1.0 | |
//! | 4 | 1.0 | DE |
//! gives
//! | id | score | country |
//! | 1 | 0.5 | DE |
//! | 2 | 2.0 | DE |
//! | 3 | 1.0 | |
//! | 4 | 0.3 | DE |
//! ```

use rankd_column::kernel::groups::groups;
use rankd_column::kernel::numbers::{cells_of_view, numbers};
use rankd_column::kernel::scores::damped;
use rankd_column::{Column, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::{FloatKey, NumberKey, ScalarKey};
use rankd_plan::signature::*;
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[Task::by, Task::score],
    writes: Writes::Params(&[Task::out_key]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 30.0 },
};

params! {
    pub(crate) struct Task {
        /// The key that rows of a group share
        by: ScalarKey,
        /// The key with the scores
        score: NumberKey,
        /// What each further row of a group is multiplied with
        #[range(0.0..=1.0)]
        factor: f64,
        /// The least that a score is multiplied with
        #[range(0.0..=1.0)]
        floor: f64 = 0.0,
        /// The key that gets the result
        out_key: FloatKey,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let groups = groups(rows, &[self.by], stop)?;
        let scores = numbers(rows, self.score, stop)?;
        cx.count(|| (0, scores.iter().filter(|score| score.is_none()).count()));
        let made = damped(scores, &groups, self.factor, self.floor, stop)?;
        Ok(rows.with(self.out_key, Arc::new(Column::Float(cells_of_view(rows, &made, stop)?))))
    }
}
