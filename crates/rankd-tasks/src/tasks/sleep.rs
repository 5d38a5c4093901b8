//! Pass the rows on after a while, or fail then.
//!
//! For trying out deadlines and failures. The loop is free while it waits.

use rankd_plan::signature::*;

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
    trivial: false,
};
