//! Keep the first rows.
//!
//! Fewer rows than `count` are all kept. Cost: none to speak of.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: &[Param {
        name: "count",
        kind: ParamKind::Int { min: 1, max: i64::MAX },
        need: Need::Required,
        doc: "How many rows to keep",
    }],
    runs: Runs::Cpu,
    trivial: true,
};
