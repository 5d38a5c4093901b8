//! Scale the numbers of a key to each other.
//!
//! `how` is "minmax": the lowest becomes 0, the highest 1; "zscore": how many standard deviations, those of all rows and not of a sample, a
//! number is above the mean; or "quantile": its place among all, from 0 to 1, equal numbers sharing the mean of their places. Where all
//! numbers are equal, and so where there is only one, each becomes `flat`. A row without a number gets none, and counts for
//! nothing. Nothing is clipped. Empty input: no rows. Cost: linear in rows.
//!
//! ```text
//! with {"key": "likes", "out_key": "score", "how": "minmax"}
//! given
//! | id | likes |
//! | 1 | 10 |
//! | 2 | |
//! | 3 | 30 |
//! | 4 | 15 |
//! gives
//! | id | score | likes |
//! | 1 | 0.0 | 10 |
//! | 2 | | |
//! | 3 | 1.0 | 30 |
//! | 4 | 0.25 | 15 |
//! ```

use rankd_column::kernel::numbers::{cells_of_view, numbers};
use rankd_column::kernel::scores::{Scale, scaled};
use rankd_column::{Column, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::signature::typed::{FloatKey, NumberKey};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[Task::key],
    writes: Writes::Params(&[Task::out_key]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 400.0, per_row_ns: 8.0 },
};

choices! {
    pub(crate) enum How -> Scale {
        "minmax" => Scale::MinMax,
        "zscore" => Scale::Deviations,
        "quantile" => Scale::Quantiles,
    }
}

params! {
    pub(crate) struct Task {
        /// The key to scale
        key: NumberKey,
        /// The key that gets the result
        out_key: FloatKey,
        /// What the numbers are scaled by
        how: How,
        /// The result where all numbers are equal
        flat: f64 = 0.5,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let found = numbers(rows, self.key, stop)?;
        let made = scaled(&found, self.how, self.flat, stop)?;
        cx.count(|| (0, found.iter().filter(|number| number.is_none()).count()));
        Ok(rows.with(self.out_key, Arc::new(Column::Float(cells_of_view(rows, &made, stop)?))))
    }
}
