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
use rankd_engine::task::{Args, Compute, ComputeContext, InputRows};
use rankd_plan::signature::*;
use std::time::Duration;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Nothing,
    params: &[Param {
        name: "busy_wait_ms",
        kind: ParamKind::Int { min: 0, max: 3_600_000 },
        need: Need::Required,
        doc: "How long to keep busy",
    }],
    runs: Runs::Cpu,
    cost: Cost::Unknown,
};

pub(crate) struct Task {
    busy: Duration,
}

impl Task {
    pub(crate) fn make(args: &Args<'_>) -> Task {
        Task { busy: args.millis("busy_wait_ms") }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let began = cx.now();
        while cx.now().saturating_duration_since(began) < self.busy {
            if cx.is_stopped() {
                return Err(TaskError::stopped());
            }
            std::hint::spin_loop();
        }
        Ok(inputs.take(0))
    }
}
