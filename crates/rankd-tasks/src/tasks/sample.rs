//! Keep some rows by chance.
//!
//! `count` rows are kept, or all where there are fewer, in their order; every choice of so many rows is as likely as any other. The choice
//! follows from the request's `seed`, or a hash of its `request_id`, from the node and from the ids of the rows: the same seed keeps the
//! same rows, and of rows with the same id the first. Empty input: no rows. Cost: linear in rows; columns are not copied.
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
//! | 5 | 0.9 |
//! | 6 | 0.5 |
//! ```

use rankd_column::RowSet;
use rankd_column::kernel::sample::lowest;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Lost, LostRow, Make, NodeDraws};
use rankd_plan::params;
use rankd_plan::signature::typed::Dial;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 25.0 },
};

params! {
    pub(crate) struct Params {
        /// How many rows to keep
        #[range(1..)]
        count: Dial,
    }
}

pub(crate) struct Task {
    params: Params,
    draws: NodeDraws,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        Task { params, draws: cx.draws() }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop, count) = (&inputs[0], cx.stop(), self.params.count.count(cx.dials()));
        if count >= rows.len() {
            return Ok(rows.clone());
        }
        let draws = cx.draws(&self.draws).of_rows(rows, stop)?;
        Ok(rows.positions(lowest(&draws, count, stop)?))
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        Lost::Chance(self.params.count.count(row.dials))
    }
}
