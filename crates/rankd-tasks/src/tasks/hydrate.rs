//! Add columns read from a hash of each row.
//!
//! For each row the fields `keys` of the hash `{prefix}:{id}`. A missing hash or field is null; a value that is not of its key's type
//! is null and counted. Empty input: no reads. Cost: one read a row, all in one round trip.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Param("keys"),
    params: &[
        Param {
            name: "endpoint",
            kind: ParamKind::Endpoint("redis"),
            need: Need::Required,
            doc: "Where the hashes are",
        },
        Param {
            name: "prefix",
            kind: ParamKind::Text,
            need: Need::Required,
            doc: "What stands before the id in the hash's name, such as user or media",
        },
        Param { name: "keys", kind: ParamKind::Keys, need: Need::Required, doc: "The fields to read" },
    ],
    runs: Runs::Loop,
    trivial: false,
};
