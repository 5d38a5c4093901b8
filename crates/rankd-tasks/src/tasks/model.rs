//! Score rows with a trained model and write the scores to keys.
//!
//! The model is one of `registry/models.toml`, as it was in use when the request came in. Its features are keys: null is a missing value, an
//! int or bool is the number that it is, and a feature with categories takes the values that the model lists. `out_key` gets the one number
//! that it gives a row; where it gives several, as for classes, `out_keys` are a key for each, in the order of the classes. `output` is "response", which is what
//! `predict` of the library gives, or "raw", the sum of the trees with the library's bits. `iterations` uses only so many boosting rounds, from the
//! first on, and may be a dial. A score that is infinite or not a number is an error that names the row. Empty input: no rows. Cost: linear in
//! rows, trees and their leaves.
//!
//! ```text
//! with {"model": "example_model", "out_key": "score"}
//! given
//! | id | quality | age_hours |
//! | 1 | 0.9 | 2.0 |
//! | 2 | 0.3 | 48.0 |
//! | 3 | | 1.0 |
//! gives
//! | id | score | quality | age_hours |
//! | 1 | 1.5 | 0.9 | 2.0 |
//! | 2 | -0.25 | 0.3 | 48.0 |
//! | 3 | 0.75 | | 1.0 |
//! ```
//!
//! ```text
//! with {"model": "example_model", "out_keys": ["final_score"], "output": "raw", "iterations": 1}
//! given
//! | id | quality | age_hours |
//! | 1 | 0.9 | 2.0 |
//! | 2 | 0.3 | 48.0 |
//! gives
//! | id | final_score |
//! | 1 | 1.0 |
//! | 2 | -0.5 |
//! ```

use rankd_column::kernel::numbers::cells_of_scores;
use rankd_column::model::{ColumnInputs, ModelOutput, Scoring};
use rankd_column::stop::Picking;
use rankd_column::{Column, Key, RowSet};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::model::UsedModel;
use rankd_plan::signature::typed::{Dial, FloatKey, FloatKeys, ModelName};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Params(&[Task::out_key, Task::out_keys]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 3_000.0, per_row_ns: 300.0 },
};

choices! {
    pub(crate) enum Output -> ModelOutput {
        "response" => ModelOutput::Response,
        "raw" => ModelOutput::Raw,
    }
}

params! {
    pub(crate) struct Task {
        /// The model
        model: ModelName,
        /// The key that gets the score
        #[needed(out_keys: "")]
        out_key: Option<FloatKey>,
        /// The keys that get the scores, one for each class, in place of out_key
        #[only(out_key: "")]
        out_keys: Option<FloatKeys>,
        /// Whether scores are what the library predicts, or the raw sums of the trees
        output: Output = "response",
        /// How many boosting rounds to use; all where it is not given
        #[range(1..)]
        iterations: Option<Dial>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let iterations = self.iterations.as_ref().map_or(usize::MAX, |dial| dial.count(cx.dials()));
        let scoring = Scoring { output: self.output, iterations };
        let scores = score(cx.model(self.model)?, rows, scoring, Picking { stop, ..Picking::default() })?;
        let keys = self.out_key.iter().chain(self.out_keys.iter().flatten());
        let mut rows = rows.clone();
        for (key, scores) in keys.zip(scores) {
            let wrong = scores.iter().position(|score| !score.is_finite());
            if let Some(at) = wrong {
                let (score, id) = (scores[at], rows.value(Key::ID, at));
                return Err(TaskError::new(codes::NOT_FINITE, format!("the score is {score} at row id {id}")));
            }
            let cells = cells_of_scores(&rows, scores, stop)?;
            rows = rows.with(*key, Arc::new(Column::Float(cells)));
        }
        Ok(rows)
    }
}

/// The scores of all rows: a list for each number that the model gives a row.
fn score(used: &UsedModel, rows: &RowSet, scoring: Scoring, picking: Picking<'_>) -> Result<Vec<Vec<f64>>, TaskError> {
    let (model, batch) = (used.model(), rows.batch());
    let column = |key: &Option<Key>| key.and_then(|key| batch.column(key)).map(|column| &**column);
    let columns: Vec<Option<&Column>> = used.keys().iter().map(column).collect();
    let mut scores = vec![vec![0.0; rows.len()]; model.outputs(scoring.output)];
    let mut out: Vec<&mut [f64]> = scores.iter_mut().map(Vec::as_mut_slice).collect();
    used.score(|memory| {
        let mut inputs = ColumnInputs::new(model, &columns, rows.rows(), &mut memory.lookups);
        model.score(&mut inputs, rows.len(), scoring, &mut out, &mut memory.scratch, picking)
    })?;
    Ok(scores)
}
