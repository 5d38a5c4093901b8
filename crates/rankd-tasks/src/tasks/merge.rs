//! Put the rows of several nodes together.
//!
//! `how` is "append": the rows of each input after those of the one before it; "round_robin": one of each in turn; or "weighted": the
//! next row is from the input with the least `(taken + 1) / weight`, of equal ones the first. An input that has no more rows is passed over.
//! `quota` takes at most so many rows of each. Duplicates are kept. Columns are those of all inputs, the default or null where one does
//! not have it. `source_key` gets the label of the input that a row is from, or the id of its node. Cost: linear in rows and columns, which
//! are copied.
//!
//! ```text
//! with {"how": "round_robin", "quota": [9, 1], "source_key": "title"}
//! given
//! | id | score |
//! | 1 | 0.5 |
//! | 2 | 0.4 |
//! given
//! | id | country |
//! | 3 | DE |
//! | 4 | US |
//! gives
//! | id | score | country | title |
//! | 1 | 0.5 | | given0 |
//! | 3 | | DE | given1 |
//! | 2 | 0.4 | | given0 |
//! ```

use rankd_column::column::ColumnBuilder;
use rankd_column::kernel::merge::{end_to_end, in_turn};
use rankd_column::{Column, RowSet, Type};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Lost, LostRow, Make};
use rankd_plan::signature::typed::{CountPerInput, TextKey, WeightPerInput};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::Several,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Params(&[Params::source_key]),
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 800.0, per_row_ns: 20.0 },
};

choices! {
    pub(crate) enum How -> Turns {
        "append" => Turns::Append,
        "round_robin" => Turns::RoundRobin,
        "weighted" => Turns::Weighted,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    Append,
    RoundRobin,
    Weighted,
}

params! {
    pub(crate) struct Params {
        /// In which order rows are taken
        how: How = "append",
        /// How much of each input is taken, beside that of the others
        #[needed(how: "weighted")]
        weights: Option<WeightPerInput>,
        /// The most rows of each input
        quota: Option<CountPerInput>,
        /// The key that gets the label of the input
        source_key: Option<TextKey>,
    }
}

pub(crate) struct Task {
    params: Params,
    labels: Vec<Arc<str>>,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        Task { params, labels: cx.input_labels().into_iter().map(Arc::from).collect() }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (Params { how, weights, quota, source_key }, stop) = (&self.params, cx.stop());
        let most = |input: usize| quota.as_ref().and_then(|quota| quota.get(input)).copied().unwrap_or(usize::MAX);
        let sets: Vec<RowSet> = inputs.iter().enumerate().map(|(input, rows)| rows.take(most(input))).collect();
        let lengths: Vec<usize> = sets.iter().map(RowSet::len).collect();
        let mut rows = end_to_end(sets, stop)?;
        if let Some(key) = source_key {
            rows = rows.with(*key, Arc::new(self.sources(&lengths)));
        }
        let order = match (how, weights) {
            (Turns::Weighted, Some(weights)) => in_turn(&lengths, weights, stop)?,
            (Turns::RoundRobin, _) => in_turn(&lengths, &vec![1.0; lengths.len()], stop)?,
            (Turns::Append, _) | (Turns::Weighted, None) => return Ok(rows),
        };
        Ok(rows.positions(order))
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        let quota = self.params.quota.as_ref().and_then(|quota| quota.get(row.input)).copied();
        Lost::Cut(0..quota.unwrap_or(usize::MAX))
    }
}

impl Task {
    /// The label of each row's input, for rows end to end.
    fn sources(&self, lengths: &[usize]) -> Column {
        let mut column = ColumnBuilder::new(Type::Str, lengths.iter().sum());
        for (label, length) in self.labels.iter().zip(lengths) {
            for _ in 0..*length {
                // It is a column of texts.
                let _ = column.push_str(label);
            }
        }
        column.finish()
    }
}
