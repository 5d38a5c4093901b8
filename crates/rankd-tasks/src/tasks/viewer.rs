//! Read the requesting user's profile, as one row.
//!
//! The hash `user:{user_id}`: one row whose id is the user's, with a column for each field that is a registered key, typed by the
//! registry. A value that is not of its key's type is null and counted; an unregistered field is passed over. A missing hash still
//! gives the one row. Cost: one read.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: &[Param {
        name: "endpoint",
        kind: ParamKind::Endpoint("redis"),
        need: Need::Required,
        doc: "Where the profiles are",
    }],
    runs: Runs::Loop,
    trivial: false,
};
