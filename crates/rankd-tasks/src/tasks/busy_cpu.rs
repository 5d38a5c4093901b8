//! Pass the rows on after keeping a processor busy for a while.
//!
//! For trying out deadlines: it computes nothing, but looks often whether it should stop.
//!
//! ```text
//! with {"busy_wait_ms": 0}
//! given
//! | id |
//! | 1 |
//! gives
//! | id |
//! | 1 |
//! ```

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
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
        /// How long to keep busy
        #[range(0..=3_600_000)]
        busy_wait_ms: Millis,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let began = cx.now();
        while cx.now().saturating_duration_since(began) < self.busy_wait_ms {
            cx.stop().check()?;
            std::hint::spin_loop();
        }
        Ok(inputs.take(0))
    }
}
