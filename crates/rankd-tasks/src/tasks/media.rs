//! Read the media of each input row, as new rows.
//!
//! For each input row, in order, the first `fanout` ids of the list `media:{id}`; each new row remembers in `parent_id` which row it
//! came from. Of the other input columns those that `carry` names come along. A missing list gives no rows; an element that is not a decimal int is
//! skipped and counted. Empty input: no rows, no reads. Cost: one read a row, all in one round trip.
//!
//! ```text
//! with {"endpoint": "redis_default", "fanout": 2}
//! store {"key": "media:1", "list": [11, "x", 12]}
//! store {"key": "media:2", "list": [11]}
//! given
//! | id |
//! | 2 |
//! | 1 |
//! | 3 |
//! gives
//! | id | parent_id |
//! | 11 | 2 |
//! | 11 | 1 |
//! ```

use crate::fan_out::{self, FanOut, Params};
use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Fetch, FetchContext, LinkContext, Make, RowSource, StoredLayout};
use rankd_plan::Registry;
use rankd_plan::signature::Contract;

pub(crate) const CONTRACT: Contract = fan_out::CONTRACT;

pub(crate) struct Task(FanOut);

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        Task(FanOut::make(params, "media", cx))
    }
}

impl Fetch for Task {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        self.0.read(&inputs[0], cx).await
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        Some(self.0.layout(registry))
    }

    fn row_source(&self) -> RowSource<'_> {
        self.0.row_source()
    }
}
