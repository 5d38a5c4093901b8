//! Keep at most so many rows of each group.
//!
//! Rows with the same `by` are a group. A row is dropped if `max` rows of its group were kept before it: in the whole list, or with `window`
//! among the last `window - 1`, so that no `window` neighbours have more of a group. A row without the key is kept. The others stay in
//! their order. Empty input: no rows. Cost: linear in rows; columns are not copied.
//!
//! ```text
//! with {"by": "parent_id", "max": 1, "window": 2}
//! given
//! | id | parent_id |
//! | 1 | 20 |
//! | 2 | 20 |
//! | 3 | |
//! | 4 | 20 |
//! gives
//! | id | parent_id |
//! | 1 | 20 |
//! | 3 | |
//! | 4 | 20 |
//! ```

use rankd_column::RowSet;
use rankd_column::kernel::cap::capped;
use rankd_column::kernel::groups::groups;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, ScalarKey};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[Task::by],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 400.0, per_row_ns: 15.0 },
};

params! {
    pub(crate) struct Task {
        /// The key that rows of a group share
        by: ScalarKey,
        /// How many rows of a group to keep
        #[range(1..)]
        max: Count,
        /// Among how many neighbours the rows of a group are counted; 0 is the whole list
        window: Count = 0,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let groups = groups(rows, &[self.by], stop)?;
        let kept = capped(&groups, self.max, self.window, stop)?;
        cx.count(|| (0, groups.lacking()));
        Ok(rows.positions(kept))
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::Full { by: self.by, max: self.max, window: self.window }
    }
}
