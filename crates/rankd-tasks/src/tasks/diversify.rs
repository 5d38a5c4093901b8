//! Reorder the rows so that rows of a group are not too near each other.
//!
//! A rule says how many rows with the same key may be among so many neighbours, or in the whole list; `gap` says how many others are
//! between two of them. Rows are picked one by one: each is the first that is left that breaks no rule. If there is none, the last rule is
//! dropped for this pick, then the one before it, and at last the first row that is left is taken. A row without the key is
//! free. With `size`, the rows after so many picks stay in their order; with `lookahead`, only so many of the rows that are left are looked
//! at. With `counts`, the rows of earlier pages come last, and count as if they stood before the first. When the time is up, the rows that are not picked yet stay in their order. Empty input: no rows. Cost: about linear in rows where few
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

use rankd_column::kernel::diversify::{GroupLimit, diversified};
use rankd_column::kernel::groups::{Groups, NO_GROUP, groups};
use rankd_column::kernel::page::{id_hashes, value_hash};
use rankd_column::{Key, RowSet};
use rankd_engine::cursor::Served;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, Rules, SeenCursor};
use rankd_plan::signature::*;
use std::collections::HashMap;

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
        /// The parameter with the cursor of a page: the rows of earlier pages count, too
        counts: Option<SeenCursor>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (stop, served) = (cx.stop(), cx.served().filter(|_| self.counts.is_some()));
        let Some(served) = served else {
            return Ok(inputs[0].positions(self.pick(&inputs[0], None, cx)?));
        };
        let hashes = id_hashes(&inputs[0], stop)?;
        let (seen, new): (Vec<usize>, Vec<usize>) = (0..hashes.len()).partition(|at| served.has(hashes[*at]));
        let rows = inputs[0].positions(new.iter().copied());
        let order = self.pick(&rows, Some(served), cx)?;
        Ok(inputs[0].positions(order.into_iter().map(|at| new[at]).chain(seen)))
    }

    fn is_anytime(&self) -> bool {
        true
    }
}

impl Task {
    /// Positions of the rows: those that were picked, and then the others in their order.
    fn pick(
        &self,
        rows: &RowSet,
        served: Option<&Served>,
        cx: &mut ComputeContext<'_>,
    ) -> Result<Vec<usize>, TaskError> {
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let groups = groups(rows, &[rule.by], cx.stop())?;
            let before = served.map_or_else(Vec::new, |of| groups_of(of.values(rule.by), rows, rule.by, &groups));
            rules.push(GroupLimit { groups, max: rule.max, window: rule.window, before });
        }
        let size = self.size.unwrap_or(rows.len()).min(rows.len());
        let picks = diversified(&rules, rows.len(), size, self.lookahead, cx.picking())?;
        cx.has_picked(picks.picked, size);
        cx.count(|| (picks.relaxed, rules.iter().map(|rule| rule.groups.lacking()).max().unwrap_or(0)));
        Ok(picks.order)
    }
}

/// The groups that values are in, which are known by their hashes.
fn groups_of(hashes: &[u32], rows: &RowSet, key: Key, groups: &Groups) -> Vec<u32> {
    let firsts = groups.firsts().filter(|at| groups.of_rows[*at] != NO_GROUP);
    let known: HashMap<u32, u32> =
        firsts.filter_map(|at| Some((value_hash(&rows.value(key, at))?, groups.of_rows[at]))).collect();
    hashes.iter().map(|hash| known.get(hash).copied().unwrap_or(NO_GROUP)).collect()
}
