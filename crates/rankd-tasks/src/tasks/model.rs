//! Score rows with a trained model and write the scores to keys.
//!
//! The model is one of `registry/models.toml`, as it was in use when the request came in. Its features are keys: null is a missing value, an
//! int or bool is the number that it is, and a feature with categories takes the values that the model lists. `out_key` gets the one number
//! that it gives a row; where it gives several, as for classes, `out_keys` are a key for each, in the order of the classes. `output` is "response", which is what
//! `predict` of the library gives, or "raw", the sum of the trees with the library's bits. `iterations` uses only so many boosting rounds, from the
//! first on, and may be a dial. A score that is infinite or not a number is an error that names the row. With the fallback "input", it hands over what
//! it has when its time is up: rows that were not scored have the values that they came with, or else the key's default or null. Empty input: no rows.
//! Cost: linear in rows, trees and their leaves.
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

use rankd_column::kernel::numbers::{cells_of_first_scores, cells_of_scores};
use rankd_column::model::{ColumnInputs, ModelOutput, Scoring};
use rankd_column::stop::Picking;
use rankd_column::{Column, Key, RowSet};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Make, ModelScore};
use rankd_plan::model::UsedModel;
use rankd_plan::signature::typed::{Dial, FloatKey, FloatKeys, ModelName};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Params(&[Params::out_key, Params::out_keys]),
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 3_000.0, per_row_ns: 300.0 },
};

choices! {
    pub(crate) enum Output -> ModelOutput {
        "response" => ModelOutput::Response,
        "raw" => ModelOutput::Raw,
    }
}

params! {
    pub(crate) struct Params {
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

pub(crate) struct Task {
    params: Params,
    /// Whether rows that there was no time for may stay as they came in.
    is_anytime: bool,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        Task { params, is_anytime: cx.falls_back_on_input() }
    }
}

impl Task {
    fn scoring(&self, dials: &[i64]) -> Scoring {
        let iterations = self.params.iterations.as_ref().map_or(usize::MAX, |dial| dial.count(dials));
        Scoring { output: self.params.output, iterations }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (Params { model, out_key, out_keys, .. }, stop) = (&self.params, cx.stop());
        let picking = if self.is_anytime { cx.picking() } else { Picking { stop, ..Picking::default() } };
        let mut rows = inputs[0].clone();
        let (scores, done) = score(cx.model(*model)?, &rows, self.scoring(cx.dials()), picking)?;
        for (key, scores) in out_key.iter().chain(out_keys.iter().flatten()).zip(scores) {
            let wrong = scores[..done].iter().position(|score| !score.is_finite());
            if let Some(at) = wrong {
                let (score, id) = (scores[at], rows.value(Key::ID, at));
                return Err(TaskError::new(codes::NOT_FINITE, format!("the score is {score} at row id {id}")));
            }
            let cells = match done == rows.len() {
                true => cells_of_scores(&rows, scores, stop)?,
                false => cells_of_first_scores(&rows, *key, &scores[..done], stop)?,
            };
            rows = rows.with(*key, Arc::new(Column::Float(cells)));
        }
        cx.has_finished(done, rows.len());
        Ok(rows)
    }

    fn is_anytime(&self) -> bool {
        self.is_anytime
    }

    fn scored_by(&self, key: Key, dials: &[i64]) -> Option<ModelScore> {
        let Params { model, out_key, out_keys, .. } = &self.params;
        let at = out_key.iter().chain(out_keys.iter().flatten()).position(|written| *written == key)?;
        Some(ModelScore { model: *model, scoring: self.scoring(dials), at })
    }
}

/// The scores of rows, a list for each number that the model gives a row, and how many rows have them, from the first on.
fn score(
    used: &UsedModel,
    rows: &RowSet,
    scoring: Scoring,
    picking: Picking<'_>,
) -> Result<(Vec<Vec<f64>>, usize), TaskError> {
    let (model, batch) = (used.model(), rows.batch());
    let column = |key: &Option<Key>| key.and_then(|key| batch.column(key)).map(|column| &**column);
    let columns: Vec<Option<&Column>> = used.keys().iter().map(column).collect();
    let mut scores = vec![vec![0.0; rows.len()]; model.outputs(scoring.output)];
    let mut out: Vec<&mut [f64]> = scores.iter_mut().map(Vec::as_mut_slice).collect();
    let done = used.score(|memory| {
        let mut inputs = ColumnInputs::new(model, &columns, rows.rows(), &mut memory.lookups);
        model.score(&mut inputs, rows.len(), scoring, &mut out, &mut memory.scratch, picking)
    })?;
    Ok((scores, done))
}
