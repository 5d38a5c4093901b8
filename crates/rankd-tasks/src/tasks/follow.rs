//! Read whom each input row follows, as new rows.
//!
//! For each input row, in order, the first `fanout` ids of the list `follow:{id}`; each new row remembers in `parent_id` which row it
//! came from. Other input columns do not come along. A missing list gives no rows; an element that is not a decimal int is
//! skipped and counted. Empty input: no rows, no reads. Cost: one read a row, all in one round trip.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::FanOut,
    reads: &[],
    writes: Writes::Named(&["parent_id"]),
    params: &[
        Param {
            name: "endpoint",
            kind: ParamKind::Endpoint("redis"),
            need: Need::Required,
            doc: "Where the lists are",
        },
        Param {
            name: "fanout",
            kind: ParamKind::Int { min: 1, max: 10_000 },
            need: Need::Default(Literal::Int(100)),
            doc: "How many ids to read for each input row",
        },
    ],
    runs: Runs::Loop,
    trivial: false,
};
