//! Keep the first rows, or those after them.
//!
//! `offset` rows are left out, and the `count` rows after them are kept, or all where there are fewer. Cost: none to speak of; with an
//! offset, linear in the rows that are kept.
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
//!
//! ```text
//! with {"count": 2, "offset": 2}
//! given
//! | id |
//! | 7 |
//! | 5 |
//! | 6 |
//! gives
//! | id |
//! | 6 |
//! ```

use rankd_column::RowSet;
use rankd_column::expr::pass::Part;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, Dial};
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
        /// How many rows to leave out before them
        offset: Count = 0,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, count) = (&inputs[0], self.count.count(cx.dials()));
        if self.offset == 0 {
            return Ok(rows.take(count));
        }
        Ok(rows.positions(self.offset..rows.len().min(self.offset.saturating_add(count))))
    }

    fn as_part(&self) -> Option<Part> {
        // A pass has its numbers when it is made, and takes from the first row on.
        self.count.fixed().filter(|_| self.offset == 0).map(|count| Part::Take { count })
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        Lost::Cut(self.offset..self.offset.saturating_add(self.count.count(row.dials)))
    }
}
