//! Compute an expression for every row and write it to a key, or several at once.
//!
//! With `out_key` and `expr` it is one; with `columns` each key gets its expression, and all of them read the rows as they came in, so that none
//! sees what another writes. A key's earlier values, if any, are replaced for these rows. A null result is the key's default, or null; a result that is
//! not finite, or an int that overflows, is an error that names the row. Empty input: no rows. Cost: linear in rows and in the
//! size of the expressions.
//!
//! ```text
//! with {"out_key": "score", "expr": {"op": "mul", "a": {"op": "key_ref", "key": "likes"}, "b": {"op": "const_number", "value": 0.5}}}
//! given
//! | id | likes |
//! | 1 | 3 |
//! | 2 | |
//! gives
//! | id | score | likes |
//! | 1 | 1.5 | 3 |
//! | 2 | | |
//! ```
//!
//! ```text
//! with {"columns": {"likes": {"op": "key_ref", "key": "views"}, "views": {"op": "key_ref", "key": "likes"}}}
//! given
//! | id | likes | views |
//! | 1 | 3 | 10 |
//! | 2 | | 20 |
//! gives
//! | id | likes | views |
//! | 1 | 10 | 3 |
//! | 2 | 20 | |
//! ```

use rankd_column::expr::pass::{Part, Pass};
use rankd_column::expr::{Program, compute};
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{self, Compute, ComputeContext, Decide, InputRows, LinkContext};
use rankd_plan::params;
use rankd_plan::signature::typed::{Expr, Exprs};
use rankd_plan::signature::*;
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Params(&[Params::out_key, Params::columns]),
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 3.0 },
};

params! {
    pub(crate) struct Params {
        /// The key to write
        #[needed(columns: "")]
        out_key: Option<Key>,
        /// The expression to compute
        #[into(out_key)]
        #[needed(columns: "")]
        expr: Option<Expr>,
        /// The keys to write, each with its expression, in place of out_key and expr
        #[only(out_key: "", expr: "")]
        columns: Option<Exprs>,
    }
}

pub(crate) enum Task {}

impl Decide for Task {
    type Params = Params;

    fn decide(Params { out_key, expr, columns }: Params, _: &LinkContext<'_>) -> task::Task {
        match (out_key.zip(expr), columns) {
            (Some((key, program)), _) => task::Task::Compute(Arc::new(One { key, program })),
            (None, columns) => {
                let part = |(at, (key, program)): (usize, (Key, Arc<Program>))| Part::Compute {
                    key,
                    program,
                    siblings: u16::try_from(at).unwrap_or(u16::MAX),
                };
                let parts = columns.into_iter().flatten().enumerate().map(part).collect();
                let pass =
                    Pass::new(parts).unwrap_or_else(|| unreachable!("the checks want no more than a pass takes"));
                task::Task::Compute(Arc::new(Several { pass }))
            }
        }
    }
}

struct One {
    key: Key,
    program: Arc<Program>,
}

impl Compute for One {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (values, stop) = (cx.values, cx.stop());
        let column = compute(&self.program, &inputs[0], values, cx.scratch, stop);
        column
            .map(|column| inputs[0].with(self.key, Arc::new(column)))
            .map_err(|error| TaskError::eval(error, &self.program))
    }

    fn as_part(&self) -> Option<Part> {
        Some(Part::Compute { key: self.key, program: self.program.clone(), siblings: 0 })
    }
}

struct Several {
    pass: Pass,
}

impl Compute for Several {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (values, stop) = (cx.values, cx.stop());
        self.pass.run(&inputs[0], values, cx.scratch, stop).map_err(|failed| {
            match self.pass.parts().get(failed.part).and_then(Part::program) {
                Some(program) => TaskError::eval(failed.error, program),
                None => TaskError::stopped(),
            }
        })
    }

    fn as_parts(&self) -> Vec<Part> {
        self.pass.parts().to_vec()
    }
}
