//! Pass the rows on after keeping a processor busy for a while.
//!
//! For trying out deadlines: it computes nothing, but looks often whether it should stop.

use rankd_plan::signature::*;

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
    trivial: false,
};
