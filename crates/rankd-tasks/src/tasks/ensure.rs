//! Fill up the rows from others until there are enough.
//!
//! The rows stay where they are. Where there are fewer than `count`, the nodes of `from` are asked, one after the other and only while there are
//! too few: their rows follow in their order, without those whose id is there already. A node that nothing else needs does not run unless it is
//! asked; one that fails or is too slow gives nothing, and the answer says so. Rows that are still too few are no error: the answer has them in
//! `short`. Columns are those of all, the default or null where one does not have it. Cost: nothing where there are enough rows, otherwise linear in the
//! rows of all that were asked, which are copied.
//!
//! ```text
//! with {"count": 4, "from": [1, 2]}
//! given
//! | id | score |
//! | 1 | 0.5 |
//! | 1 | 0.4 |
//! given
//! | id | country |
//! | 1 | DE |
//! | 2 | DE |
//! given
//! | id | country |
//! | 2 | US |
//! | 3 | US |
//! | 4 | US |
//! gives
//! | id | score | country |
//! | 1 | 0.5 | |
//! | 1 | 0.4 | |
//! | 2 | | DE |
//! | 3 | | US |
//! ```

use rankd_column::kernel::ensure::filled_up;
use rankd_column::kernel::groups::groups;
use rankd_column::kernel::merge::end_to_end;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, Reserves, Then};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 300.0, per_row_ns: 20.0 },
};

params! {
    pub(crate) struct Task {
        /// How many rows there should be
        #[range(1..=100_000)]
        count: Count,
        /// The nodes that are asked for more rows, the first first
        from: Reserves,
        /// What is done to the rows of each of them before they are taken
        then: Option<Then>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (kept, stop) = (inputs[0].len(), cx.stop());
        let has_more = inputs.iter().nth(1).is_some();
        let rows = if has_more && kept < self.count {
            let all = end_to_end(inputs.iter().cloned().collect(), stop)?;
            let order = filled_up(&groups(&all, &[Key::ID], stop)?, kept, self.count, stop)?;
            all.positions(order)
        } else {
            inputs.take(0)
        };
        if rows.len() < self.count {
            cx.wants(self.count);
        }
        Ok(rows)
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        if row.has_twin() { Lost::Same(vec![Key::ID]) } else { Lost::Enough(self.count) }
    }
}
