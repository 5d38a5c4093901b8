//! Give rows with the ids from 1 on, and columns as the plan says.
//!
//! For plans that read nothing. A column is a list of values, one a row, or made by a generator: `sequence`, `hash` or `cycle`.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Param("columns"),
    params: &[
        Param {
            name: "row_count",
            kind: ParamKind::Int { min: 0, max: 10_000_000 },
            need: Need::Default(Literal::Int(1)),
            doc: "How many rows to give",
        },
        Param { name: "columns", kind: ParamKind::Columns, need: Need::Optional, doc: "Values by key" },
    ],
    runs: Runs::Loop,
    trivial: true,
};
