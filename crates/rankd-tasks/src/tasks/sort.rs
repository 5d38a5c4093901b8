//! Order the rows by a key.
//!
//! Rows with equal keys keep their order; nulls come last in both orders; strings are compared by their bytes. Empty input: no rows.
//! Cost: about linear in rows; columns are not copied.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &["key"],
    writes: Writes::Nothing,
    params: &[
        Param { name: "key", kind: ParamKind::Key, need: Need::Required, doc: "The key to sort by" },
        Param {
            name: "order",
            kind: ParamKind::Choice(&["asc", "desc"]),
            need: Need::Default(Literal::Text("asc")),
            doc: "Smallest first or largest first",
        },
    ],
    runs: Runs::Cpu,
    trivial: false,
};
