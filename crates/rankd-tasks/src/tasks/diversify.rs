//! Reorder the rows so that rows of a group are not too near each other.
//!
//! A rule says how many rows with the same key may be among so many neighbours, or in the whole list; `gap` says how many others are
//! between two of them. Rows are picked one by one: each is the first that is left that breaks no rule. If there is none, the last rule is
//! dropped for this pick, then the one before it, and at last the first row that is left is taken. A row without the key is
//! free. With `size`, the rows after so many picks stay in their order; with `lookahead`, only so many of the rows that are left are looked
//! at. When the time is up, the rows that are not picked yet stay in their order. Empty input: no rows. Cost: about linear in rows where few
//! groups are at their limit; columns are not copied.
//!
//! ```text
//! with {"rules": [{"by": "parent_id", "gap": 1}]}
//! given
//! | id | parent_id |
//! | 1 | 20 |
//! | 2 | 20 |
//! | 3 | 20 |
//! | 4 | 30 |
//! | 5 | |
//! gives
//! | id | parent_id |
//! | 1 | 20 |
//! | 4 | 30 |
//! | 2 | 20 |
//! | 5 | |
//! | 3 | 20 |
//! ```

use rankd_column::RowSet;
use rankd_column::kernel::diversify::{GroupLimit, diversified};
use rankd_column::kernel::groups::groups;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, Rules};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &[Task::rules],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 1_000.0, per_row_ns: 100.0 },
};

params! {
    pub(crate) struct Task {
        /// The rules, the most important first
        rules: Rules,
        /// How many rows to pick; all when not given
        #[range(1..)]
        size: Option<Count>,
        /// How many of the rows that are left to look at for a pick; 0 is all
        lookahead: Count = 0,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            rules.push(GroupLimit { groups: groups(rows, &[rule.by], stop)?, max: rule.max, window: rule.window });
        }
        let size = self.size.unwrap_or(rows.len()).min(rows.len());
        let picks = diversified(&rules, rows.len(), size, self.lookahead, cx.picking())?;
        cx.has_picked(picks.picked, size);
        cx.count(|| (picks.relaxed, rules.iter().map(|rule| rule.groups.lacking()).max().unwrap_or(0)));
        Ok(rows.positions(picks.order))
    }

    fn is_anytime(&self) -> bool {
        true
    }
}
