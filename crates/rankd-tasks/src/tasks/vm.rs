//! Compute an expression for every row and write it to a key.
//!
//! The key's earlier values, if any, are replaced for these rows. A null result is a null cell; a result that is not finite, or an int
//! that overflows, is an error that names the row. Empty input: no rows. Cost: linear in rows and in the expression's size.

use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Param("out_key"),
    params: &[
        Param { name: "out_key", kind: ParamKind::Key, need: Need::Required, doc: "The key to write" },
        Param {
            name: "expr",
            kind: ParamKind::Expr { into: "out_key" },
            need: Need::Required,
            doc: "The expression to compute",
        },
    ],
    runs: Runs::Cpu,
    trivial: false,
};
