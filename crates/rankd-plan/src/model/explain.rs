//! What the raw score of one row is made of, for whoever asks about that row. Nothing here is counted as scoring.

use super::UsedModel;
use rankd_column::model::{ColumnInputs, Contributions, Inputs, Lookups, NoContributions, ScoreScratch, Scoring};
use rankd_column::model::{Model, ModelOutput};
use rankd_column::stop::{Picking, Stop};
use rankd_column::{Column, Key, RowSet};

/// The raw score of one row, and what each feature adds to it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawScore {
    /// Nothing where there was no time for it.
    pub raw: Option<f64>,
    pub made_of: Result<Contributions, NoContributions>,
}

impl UsedModel {
    /// Explains the number that is the `at`-th of those that a scoring gives the row at a position.
    pub fn explain(&self, rows: &RowSet, position: usize, scoring: Scoring, at: usize, stop: Stop<'_>) -> RawScore {
        let (model, batch) = (self.model(), rows.batch());
        let column = |key: &Option<Key>| key.and_then(|key| batch.column(key)).map(|column| &**column);
        let columns: Vec<Option<&Column>> = self.keys().iter().map(column).collect();
        let (mut lookups, mut scratch) = (Lookups::default(), ScoreScratch::default());
        let mut inputs = ColumnInputs::new(model, &columns, rows.rows().slice(position, 1), &mut lookups);
        let raw_scoring = Scoring { output: ModelOutput::Raw, ..scoring };
        let Some(raw) = numbers(model, &mut inputs, raw_scoring, &mut scratch, stop) else {
            return RawScore { raw: None, made_of: Err(NoContributions::Stopped) };
        };
        let output = match model.outputs(scoring.output) == raw.len() {
            true => at,
            // One number for several sums is the class of the largest.
            false => numbers(model, &mut inputs, scoring, &mut scratch, stop).map_or(at, |given| given[0] as usize),
        };
        let one = output..output + 1;
        let made_of = model.contributions(&mut inputs, 0, one, scoring.iterations, &mut scratch, stop);
        let made_of = made_of.and_then(|mut list| list.pop().ok_or(NoContributions::Stopped));
        RawScore { raw: raw.get(output).copied(), made_of }
    }
}

/// What a scoring gives the first row; nothing where it was stopped.
fn numbers(
    model: &Model,
    inputs: &mut dyn Inputs,
    scoring: Scoring,
    scratch: &mut ScoreScratch,
    stop: Stop<'_>,
) -> Option<Vec<f64>> {
    let mut scores = vec![0.0; model.outputs(scoring.output)];
    let mut out: Vec<&mut [f64]> = scores.iter_mut().map(std::slice::from_mut).collect();
    let done = model.score(inputs, 1, scoring, &mut out, scratch, Picking { stop, ..Picking::default() });
    done.is_ok().then_some(scores)
}
