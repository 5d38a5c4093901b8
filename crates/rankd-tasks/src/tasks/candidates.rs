//! Give the rows that the request brought along.
//!
//! In the request's order, with the keys that each has; a key that a row does not have is null. A repeated id is an error that
//! names it. No candidates in the request: no rows.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: &[],
    runs: Runs::Loop,
    trivial: true,
};
