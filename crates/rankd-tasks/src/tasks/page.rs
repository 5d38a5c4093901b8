//! Keep the rows of the next page.
//!
//! The first `size` rows whose id the user was not served on earlier pages, each id once. Which those are is in the parameter `cursor`: null for
//! the first page, and after that what the last answer had as `cursor`. An answer without one was the last page. Rows that come and go, or change their
//! places, while a user pages are neither repeated nor skipped. The last 1,000 rows are remembered. The node is an output. Empty
//! input: no rows. Cost: linear in rows; columns are not copied.
//!
//! ```text
//! with {"size": 2, "cursor": {"param": "cursor"}}
//! given
//! | id | score |
//! | 1 | 0.9 |
//! | 1 | 0.8 |
//! | 2 | 0.7 |
//! | 3 | 0.6 |
//! gives
//! | id | score |
//! | 1 | 0.9 |
//! | 2 | 0.7 |
//! ```

use rankd_column::kernel::page::{id_hashes, page};
use rankd_column::{Key, RowSet, Stop};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Lost, LostRow, Make};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, PageCursor};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 30.0 },
};

params! {
    pub(crate) struct Params {
        /// How many rows a page has
        #[range(1..=1_000)]
        size: Count,
        /// The parameter with the cursor of the last answer
        cursor: PageCursor,
    }
}

pub(crate) struct Task {
    size: usize,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, _: &LinkContext<'_>) -> Task {
        // The engine reads the cursor before the run.
        Task { size: params.size }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop, served) = (&inputs[0], cx.stop(), cx.served());
        let is_served = |hash| served.is_some_and(|served| served.has(hash));
        let page = page(&id_hashes(rows, stop)?, is_served, self.size, stop)?;
        if page.has_more {
            cx.has_more();
        }
        Ok(rows.positions(page.positions))
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        // Nothing stops it.
        let hashes = id_hashes(&row.inputs[row.input], Stop::default()).unwrap_or_default();
        let served = row.served.zip(hashes.get(row.position));
        if served.is_some_and(|(served, hash)| served.has(*hash)) {
            Lost::Served
        } else if row.has_twin() {
            Lost::Same(vec![Key::ID])
        } else {
            Lost::Enough(self.size)
        }
    }
}
