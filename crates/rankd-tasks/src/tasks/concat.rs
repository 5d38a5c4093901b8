//! Append the rows of another node.
//!
//! The rows of the input, then those of `rhs`, duplicates kept; the columns of both, null where a side does not have one. Cost: linear in
//! rows and columns; this is the one task that copies them.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Nothing,
    params: &[Param { name: "rhs", kind: ParamKind::Node, need: Need::Required, doc: "The node whose rows to append" }],
    runs: Runs::Cpu,
    trivial: false,
};
