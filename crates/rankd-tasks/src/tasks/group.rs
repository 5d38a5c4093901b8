//! Compute sums, means, counts and the like of groups of rows.
//!
//! Rows whose keys of `by` are equal are a group; a null is a key like any other here, and without `by` all rows are one group. `aggregate` names
//! the keys to write, each with a word and the key whose values count: "sum" and "mean" of numbers, "min" and "max" of all but lists and
//! vectors, "first" and "last" of any type, and "count", which without a key counts rows. Nulls are skipped; a group that has nothing else gets
//! the key's default, or null, and the count 0. "mean" writes a float, "count" an int, the others the type of the values. Floats are added in the order of the rows. As
//! "rows", each group becomes one row, in the order of their first rows: with the id of the first, the keys of `by` and what was
//! computed, and no other keys. As "columns", the rows stay as they are, and each gets what was computed for its group. Empty input: no rows. Cost: linear
//! in rows and in what is computed.
//!
//! ```text
//! with {"by": ["country"], "aggregate": {"likes": ["sum", "likes"], "views": ["count"]}}
//! given
//! | id | country | likes |
//! | 7 | DE | 3 |
//! | 5 | US | |
//! | 6 | DE | 4 |
//! | 8 | | 1 |
//! | 9 | | |
//! gives
//! | id | country | likes | views |
//! | 7 | DE | 7 | 2 |
//! | 5 | US | | 1 |
//! | 8 | | 1 | 2 |
//! ```
//!
//! ```text
//! with {"by": ["country"], "aggregate": {"score": ["mean", "likes"]}, "as": "columns"}
//! given
//! | id | country | likes |
//! | 7 | DE | 3 |
//! | 5 | US | |
//! | 6 | DE | 4 |
//! gives
//! | id | score | country | likes |
//! | 7 | 3.5 | DE | 3 |
//! | 5 | | US | |
//! | 6 | 3.5 | DE | 4 |
//! ```

use crate::lacking::lacking_one;
use rankd_column::kernel::aggregate::{Aggregate, aggregated, spread};
use rankd_column::kernel::combine::CombineError;
use rankd_column::kernel::groups::groups_with_nulls;
use rankd_column::{Column, Key, RowSet, Type};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Make};
use rankd_plan::signature::typed::{Aggregated, ScalarKeys};
use rankd_plan::signature::*;
use rankd_plan::{aggregates, choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::GroupedWhere(When { param: Params::r#as, words: &["rows"] }),
    reads: &[Params::by],
    writes: Writes::Params(&[Params::aggregate]),
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 700.0, per_row_ns: 20.0 },
};

aggregates! {
    /// What is made of the values of a group.
    pub(crate) enum How -> Aggregate {
        "sum": Numbers -> Same => Aggregate::Sum,
        "mean": Numbers -> Float => Aggregate::Mean,
        "min": Scalars -> Same => Aggregate::Min,
        "max": Scalars -> Same => Aggregate::Max,
        "count": Any -> Int, alone => Aggregate::Count,
        "first": Any -> Same => Aggregate::First,
        "last": Any -> Same => Aggregate::Last,
    }
}

choices! {
    /// What becomes of the rows of a group.
    pub(crate) enum As -> Shape { "rows" => Shape::Rows, "columns" => Shape::Columns }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Rows,
    Columns,
}

params! {
    pub(crate) struct Params {
        /// The keys that rows of a group share; all rows are one group when not given
        by: Option<ScalarKeys>,
        /// The keys to write, each with what is made of the values of which key
        aggregate: How,
        /// Whether each group becomes one row ("rows"), or its rows stay and get what was computed ("columns")
        r#as: As = "rows",
    }
}

pub(crate) struct Task {
    by: Vec<Key>,
    /// What is computed, and the type of the key that gets it.
    aggregates: Vec<(Aggregated<Aggregate>, Type)>,
    shape: Shape,
}

impl Make for Task {
    type Params = Params;

    fn make(Params { by, aggregate, r#as }: Params, cx: &LinkContext<'_>) -> Task {
        let typed = aggregate.into_iter().map(|made| (made, cx.field(made.into).type_of));
        Task { by: by.unwrap_or_default(), aggregates: typed.collect(), shape: r#as }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let groups = groups_with_nulls(rows, &self.by, stop)?;
        cx.count(|| (0, lacking_one(rows, &self.by)));
        let mut out = match self.shape {
            Shape::Rows => rows.positions(groups.firsts()).gathered(|key| self.by.contains(&key), stop)?,
            Shape::Columns => rows.clone(),
        };
        for (made, type_of) in &self.aggregates {
            let column =
                aggregated(rows, &groups, made.of, made.how, stop).map_err(|error| too_large(rows, error, *type_of))?;
            let column = column.unwrap_or_else(|| Column::nulls(*type_of, groups.count));
            let column = match self.shape {
                Shape::Rows => column,
                Shape::Columns => spread(&column, rows, &groups, stop)?,
            };
            out = out.with(made.into, Arc::new(column));
        }
        Ok(out)
    }
}

fn too_large(rows: &RowSet, error: CombineError, type_of: Type) -> TaskError {
    match error {
        CombineError::Stopped => TaskError::stopped(),
        CombineError::Overflow { position } => {
            let id = rows.batch().id(rows.rows().at(position));
            let code = if type_of == Type::Int { codes::INT_OVERFLOW } else { codes::NOT_FINITE };
            TaskError::new(code, format!("the sum of the group that begins with row id {id} is too large"))
        }
    }
}
