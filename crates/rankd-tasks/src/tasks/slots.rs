//! Put rows of other nodes at places of their own.
//!
//! Places are those of the finished list, counted from 0: `at` has them, or `every` n puts a row at the end of every n. The fills are served in
//! their order: each row takes the next place of its fill that no earlier fill has, and is left out where there is none. A place of `at` past the
//! end is the end; `every` has the places that the list reaches. At most `max` rows of a fill are placed. A row whose id is among the others is
//! moved, not doubled: it has the values of the fill. The others close up. Columns are those of all, the default or null where one does
//! not have it. Cost: linear in the rows of all, which are copied.
//!
//! ```text
//! with {"fills": [{"rows": 1, "at": [0, 2]}, {"rows": 2, "every": 3}]}
//! given
//! | id | score |
//! | 1 | 0.5 |
//! | 2 | 0.4 |
//! | 3 | 0.3 |
//! given
//! | id | country |
//! | 8 | DE |
//! | 2 | DE |
//! given
//! | id | country |
//! | 9 | US |
//! gives
//! | id | score | country |
//! | 8 | | DE |
//! | 1 | 0.5 | |
//! | 2 | | DE |
//! | 3 | 0.3 | |
//! ```
//!
//! Row 9 is left out: its first place, 2, is taken, and the list does not reach the next one, 5.

use rankd_column::kernel::groups::groups;
use rankd_column::kernel::merge::end_to_end;
use rankd_column::kernel::slots::{SlotFill, slots};
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::params;
use rankd_plan::signature::typed::Fills;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 1_000.0, per_row_ns: 40.0 },
};

params! {
    pub(crate) struct Task {
        /// The rows that get places, and which; an earlier fill wins
        fills: Fills,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (base, stop) = (inputs[0].len(), cx.stop());
        let of_fill = |input: usize| inputs[input].clone();
        let sets = std::iter::once(inputs[0].clone()).chain(self.fills.iter().map(|fill| of_fill(fill.input)));
        let rows = end_to_end(sets.collect(), stop)?;
        let fills: Vec<SlotFill<'_>> = self
            .fills
            .iter()
            .map(|fill| SlotFill { rows: inputs[fill.input].len(), max: fill.max, places: &fill.places })
            .collect();
        let found = slots(&groups(&rows, &[Key::ID], stop)?, base, &fills, stop)?;
        cx.count(|| (found.moved, 0));
        Ok(rows.positions(found.order))
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        if row.has_twin() { Lost::Same(vec![Key::ID]) } else { Lost::NoPlace }
    }
}
