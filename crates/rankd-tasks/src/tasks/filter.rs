//! Keep the rows for which a predicate holds.
//!
//! In their order. A comparison with null does not hold. Empty input: no rows. Cost: linear in rows and in the predicate's size; columns
//! are not copied.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: &[Param { name: "pred", kind: ParamKind::Pred, need: Need::Required, doc: "The condition to keep a row" }],
    runs: Runs::Cpu,
    trivial: false,
};
