//! Pass the rows on after a while, or fail then.
//!
//! For trying out deadlines and failures. The loop is free while it waits.
//!
//! ```text
//! with {"duration_ms": 0}
//! given
//! | id |
//! | 1 |
//! gives
//! | id |
//! | 1 |
//! ```

use rankd_column::RowSet;
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Fetch, FetchContext};
use rankd_plan::params;
use rankd_plan::signature::typed::Millis;
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::Unknown,
};

params! {
    pub(crate) struct Task {
        /// How long to wait
        #[range(0..=3_600_000)]
        duration_ms: Millis,
        /// Whether to fail when the time is over
        fail_after_sleep: bool = false,
    }
}

impl Fetch for Task {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        cx.sleep(self.duration_ms).await;
        if self.fail_after_sleep {
            return Err(TaskError::new(codes::INJECTED_FAILURE, "configured to fail after its sleep"));
        }
        Ok(inputs[0].clone())
    }
}
