//! Write each row's position to a key.
//!
//! The first row gets 0. With `by`, rows with the same key are counted by themselves, and so are those that lack it. Empty input: no rows.
//! Cost: linear in rows.
//!
//! ```text
//! with {"rank_key": "likes", "by": "country"}
//! given
//! | id | country |
//! | 7 | DE |
//! | 5 | US |
//! | 6 | DE |
//! gives
//! | id | country | likes |
//! | 7 | DE | 0 |
//! | 5 | US | 0 |
//! | 6 | DE | 1 |
//! ```

use crate::lacking::lacking_one;
use rankd_column::kernel::groups::groups;
use rankd_column::kernel::numbers::cells_of_view;
use rankd_column::{Column, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::{IntKey, ScalarKey};
use rankd_plan::signature::*;
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[Task::by],
    writes: Writes::Params(&[Task::rank_key]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 400.0, per_row_ns: 4.0 },
};

params! {
    pub(crate) struct Task {
        /// The key that gets the position
        rank_key: IntKey,
        /// The key of rows that are counted by themselves
        by: Option<ScalarKey>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let groups = groups(rows, self.by.as_slice(), stop)?.with_one_for_nulls();
        cx.count(|| (0, lacking_one(rows, self.by.as_slice())));
        let (mut next, mut ranks) = (vec![0; groups.count], Vec::with_capacity(rows.len()));
        for chunk in stop.slices(&groups.of_rows) {
            for group in chunk? {
                ranks.push(Some(next[*group as usize]));
                next[*group as usize] += 1;
            }
        }
        Ok(rows.with(self.rank_key, Arc::new(Column::Int(cells_of_view(rows, &ranks, stop)?))))
    }
}
