//! Keep one row of those that have equal keys.
//!
//! Rows are equal if all keys of `by` are; null equals nothing. Of equal rows the first is kept, or with `keep` "best" the one with the
//! highest `score`, and of equal scores the first; a row without a score is the worst. It stands where the first of them stood. `combine`
//! gives it values made of all of them: the first that is not null, the highest, the lowest or the sum of numbers, or all elements of
//! lists, each once. Empty input: no rows. Cost: linear
//! in rows; only columns that are combined are copied.
//!
//! ```text
//! with {"by": ["id"], "keep": "best", "score": "score", "combine": {"likes": "sum"}}
//! given
//! | id | score | likes |
//! | 1 | 0.5 | 3 |
//! | 2 | 0.7 | 1 |
//! | 1 | 0.9 | 4 |
//! | 2 | | 2 |
//! gives
//! | id | score | likes |
//! | 1 | 0.9 | 7 |
//! | 2 | 0.7 | 3 |
//! ```

use rankd_column::kernel::combine::{Combine, CombineError, combined};
use rankd_column::kernel::groups::groups;
use rankd_column::kernel::numbers::numbers;
use rankd_column::{Key, RowSet, Type};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::signature::typed::{NumberKey, ScalarKeys};
use rankd_plan::signature::*;
use rankd_plan::{choices, key_choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[Task::by, Task::score, Task::combine],
    writes: Writes::Params(&[Task::combine]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 20.0 },
};

choices! {
    /// Which of equal rows is kept.
    pub(crate) enum Keep -> Kept { "first" => Kept::First, "best" => Kept::Best }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    First,
    Best,
}

key_choices! {
    /// What is made of the values of equal rows.
    pub(crate) enum How -> Combine {
        "first": Any => Combine::First,
        "max": Numbers => Combine::Max,
        "min": Numbers => Combine::Min,
        "sum": Numbers => Combine::Sum,
        "union": Lists => Combine::Union,
    }
}

params! {
    pub(crate) struct Task {
        /// The keys that are equal; the id when not given
        by: Option<ScalarKeys>,
        /// Which of equal rows is kept: the first, or the one with the best score
        keep: Keep = "first",
        /// The key with the scores
        #[needed(keep: "best")]
        score: Option<NumberKey>,
        /// Keys that get a value made of those of all equal rows
        combine: Option<How>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let groups = groups(rows, self.by.as_deref().unwrap_or(&[Key::ID]), stop)?;
        cx.count(|| (0, groups.lacking()));
        let kept = match (self.keep, self.score) {
            (Kept::Best, Some(score)) => groups.bests(&numbers(rows, score, stop)?, stop)?,
            (Kept::Best, None) | (Kept::First, _) => groups.firsts().collect(),
        };
        let mut out = rows.positions(kept);
        for (key, how) in self.combine.iter().flatten() {
            match combined(rows, &groups, *key, *how, stop) {
                Ok(column) => out = column.map_or(out.clone(), |column| out.with(*key, Arc::new(column))),
                Err(CombineError::Stopped) => return Err(TaskError::stopped()),
                Err(CombineError::Overflow { position }) => {
                    let id = rows.batch().id(rows.rows().at(position));
                    let is_int = rows.batch().column(*key).is_some_and(|column| column.type_of() == Type::Int);
                    let code = if is_int { codes::INT_OVERFLOW } else { codes::NOT_FINITE };
                    return Err(TaskError::new(
                        code,
                        format!("the sum of rows that are equal to row id {id} is too large"),
                    ));
                }
            }
        }
        Ok(out)
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::Same(self.by.clone().unwrap_or_else(|| vec![Key::ID]))
    }
}
