//! Keep one row in `step`, from the first on.
//!
//! In their order; nulls do not matter. Empty input: no rows. Cost: linear in the rows that are kept; columns are not copied.
//!
//! ```text
//! with {"step": 2}
//! given
//! | id |
//! | 7 |
//! | 5 |
//! | 6 |
//! gives
//! | id |
//! | 7 |
//! | 6 |
//! ```

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::Count;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 300.0, per_row_ns: 2.0 },
};

params! {
    pub(crate) struct Task {
        /// How far apart the rows are that are kept
        #[range(1..)]
        step: Count = 2,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(keep(&inputs[0], self.step))
    }
}

fn keep(rows: &RowSet, step: usize) -> RowSet {
    rows.looking_at(rows.rows().iter().step_by(step).map(|row| row as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::Batch;

    #[test]
    fn the_first_row_is_always_kept() {
        let rows = RowSet::new(Batch::new(vec![7, 5, 6]));
        assert_eq!(keep(&rows, 2).ids().collect::<Vec<_>>(), [7, 6]);
        assert_eq!(keep(&rows, 9).ids().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn no_rows_stay_no_rows() {
        assert!(keep(&RowSet::empty(), 2).ids().next().is_none());
    }
}
