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
use rankd_engine::task::{Args, Fetch, FetchContext};
use rankd_plan::signature::*;
use std::time::Duration;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Nothing,
    params: &[
        Param {
            name: "duration_ms",
            kind: ParamKind::Int { min: 0, max: 3_600_000 },
            need: Need::Required,
            doc: "How long to wait",
        },
        Param {
            name: "fail_after_sleep",
            kind: ParamKind::Bool,
            need: Need::Default(Literal::Bool(false)),
            doc: "Whether to fail when the time is over",
        },
    ],
    runs: Runs::Loop,
    cost: Cost::Unknown,
};

pub(crate) struct Task {
    duration: Duration,
    fails: bool,
}

impl Task {
    pub(crate) fn make(args: &Args<'_>) -> Task {
        Task { duration: args.millis("duration_ms"), fails: args.flag("fail_after_sleep") }
    }
}

impl Fetch for Task {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        cx.sleep(self.duration).await;
        if self.fails {
            return Err(TaskError::new(codes::INJECTED_FAILURE, "configured to fail after its sleep"));
        }
        Ok(inputs[0].clone())
    }
}
