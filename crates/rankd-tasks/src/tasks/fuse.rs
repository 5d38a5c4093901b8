//! Fuse several ranked lists into one.
//!
//! The inputs are matched by id. `how` is "rrf", reciprocal rank fusion: each input that has the row adds `weight / (k + rank)`, ranks
//! counted from 1; or "sum" or "max" of the weighted scores, each input's `score` scaled so that its lowest is 0 and its highest 1, or all
//! 0.5 where they are equal. An input that does not have the row adds nothing. `out_key` gets the result, by which the rows are
//! sorted, the highest first; of equal ones the row with the best rank in an input, and then that of the first input, comes first. Each row is
//! there once, with the values of the first input that has it. `rank_keys` and `score_keys`, a key for each input, get its rank and its `score` in each, or null where it is not
//! there. Cost: about linear in the rows of all inputs, which are copied.
//!
//! ```text
//! with {"how": "rrf", "k": 1, "out_key": "score"}
//! given
//! | id | country |
//! | 1 | DE |
//! | 2 | US |
//! given
//! | id | country |
//! | 2 | FR |
//! | 3 | FR |
//! gives
//! | id | score | country |
//! | 2 | 0.8333333333333333 | US |
//! | 1 | 0.5 | DE |
//! | 3 | 0.3333333333333333 | FR |
//! ```
//!
//! ```text
//! with {"how": "sum", "score": "score", "out_key": "final_score", "rank_keys": ["likes", "views"], "score_keys": ["score", "quality"]}
//! given
//! | id | score |
//! | 1 | 5.0 |
//! | 2 | 3.0 |
//! given
//! | id | score |
//! | 2 | 0.5 |
//! | 3 | 0.25 |
//! gives
//! | id | score | final_score | quality | likes | views |
//! | 1 | 5.0 | 1.0 | | 1 | |
//! | 2 | 3.0 | 1.0 | 0.5 | 2 | 1 |
//! | 3 | | 0.0 | 0.25 | | 2 |
//! ```

use rankd_column::kernel::fuse::{FusedRow, Together, fused, positions};
use rankd_column::kernel::gather::NO_ROW;
use rankd_column::kernel::groups::groups;
use rankd_column::kernel::merge::end_to_end;
use rankd_column::kernel::numbers::{cells_of_view, numbers};
use rankd_column::kernel::scores::{Scale, scaled};
use rankd_column::stop::ROWS_A_LOOK;
use rankd_column::{Column, Key, RowSet, Stop};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, Lost, LostRow};
use rankd_plan::signature::typed::{FloatKey, FloatKeyPerInput, IntKeyPerInput, NumberKey, WeightPerInput};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::Several,
    rows: RowEffect::Appended,
    reads: &[Task::score],
    writes: Writes::Params(&[Task::rank_keys, Task::score_keys, Task::out_key]),
    params: Task::PARAMS,
    cost: Cost::About { fixed_ns: 1_000.0, per_row_ns: 60.0 },
};

choices! {
    /// What is made of a row's places or scores.
    pub(crate) enum How -> Fusion { "rrf" => Fusion::Ranks, "sum" => Fusion::Sum, "max" => Fusion::Max }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fusion {
    Ranks,
    Sum,
    Max,
}

params! {
    pub(crate) struct Task {
        /// Ranks ("rrf"), or scores that are added ("sum") or of which the highest counts ("max")
        how: How = "rrf",
        /// How little the first ranks are ahead of the others; 60 when not given
        #[range(0.0..)]
        #[only(how: "rrf")]
        k: Option<f64>,
        /// The key with the scores of each input
        #[needed(how: "sum" | "max")]
        score: Option<NumberKey>,
        /// How much each input counts; 1 when not given
        weights: Option<WeightPerInput>,
        /// The key that gets the fused score
        out_key: FloatKey,
        /// The keys that get the row's rank in each input, counted from 1; null where it is not in it
        rank_keys: Option<IntKeyPerInput>,
        /// The keys that get the row's score in each input, as it is there
        #[only(score: "given")]
        score_keys: Option<FloatKeyPerInput>,
    }
}

const RANK_CONSTANT: f64 = 60.0;
const FLAT: f64 = 0.5;

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let stop = cx.stop();
        let sets: Vec<RowSet> = inputs.iter().cloned().collect();
        let lengths: Vec<usize> = sets.iter().map(RowSet::len).collect();
        let mut terms = Vec::with_capacity(lengths.iter().sum());
        let mut plain_scores = Vec::new();
        for (input, rows) in sets.iter().enumerate() {
            let weight = self.weights.as_ref().and_then(|weights| weights.get(input)).copied().unwrap_or(1.0);
            match (self.how, self.score) {
                (Fusion::Ranks, _) => {
                    let k = self.k.unwrap_or(RANK_CONSTANT);
                    for start in stop.starts(rows.len()) {
                        let start = start?;
                        let ranks = start + 1..=rows.len().min(start + ROWS_A_LOOK);
                        terms.extend(ranks.map(|rank| Some(weight / (k + rank as f64))));
                    }
                }
                (Fusion::Sum | Fusion::Max, Some(score)) => {
                    let scores = numbers(rows, score, stop)?;
                    let scores = scaled(&scores, Scale::MinMax, FLAT, stop)?;
                    for chunk in stop.slices(&scores) {
                        terms.extend(chunk?.iter().map(|score| score.map(|score| weight * score)));
                    }
                }
                // The checks want a score for these.
                (Fusion::Sum | Fusion::Max, None) => terms.extend(rows.ids().map(|_| None)),
            }
        }
        cx.count(|| (0, terms.iter().filter(|term| term.is_none()).count()));
        if let (Some(_), Some(score)) = (&self.score_keys, self.score) {
            plain_scores.reserve_exact(terms.len());
            for rows in &sets {
                for chunk in stop.slices(&numbers(rows, score, stop)?) {
                    plain_scores.extend_from_slice(chunk?);
                }
            }
        }
        let rows = end_to_end(sets, stop)?;
        let groups = groups(&rows, &[Key::ID], stop)?;
        let together = match self.how {
            Fusion::Ranks | Fusion::Sum => Together::Sum,
            Fusion::Max => Together::Max,
        };
        let found = fused(&groups, &lengths, &terms, together, stop)?;
        let mut rows = rows.positions(each(&found, |row| row.position, stop)?);
        // Columns are written for all stored rows: where few are left of many, for those alone.
        if rows.is_narrow() {
            rows = rows.gathered(|_| true, stop)?;
        }
        if self.rank_keys.is_some() || self.score_keys.is_some() {
            let (by_input, mut start) = (positions(&groups, &lengths, stop)?, 0);
            for (input, firsts) in by_input.iter().enumerate() {
                let first = |row: &FusedRow| {
                    let at = firsts[groups.of_rows[row.position] as usize];
                    (at != NO_ROW).then_some(at as usize)
                };
                if let Some(key) = self.rank_keys.as_ref().and_then(|keys| keys.get(input)) {
                    let ranks = each(&found, |row| first(row).map(|at| (at - start + 1) as i64), stop)?;
                    rows = rows.with(*key, Arc::new(Column::Int(cells_of_view(&rows, &ranks, stop)?)));
                }
                if let Some(key) = self.score_keys.as_ref().and_then(|keys| keys.get(input)) {
                    let score = |at: usize| plain_scores.get(at).copied().flatten();
                    let scores = each(&found, |row| first(row).and_then(score), stop)?;
                    rows = rows.with(*key, Arc::new(Column::Float(cells_of_view(&rows, &scores, stop)?)));
                }
                start += lengths[input];
            }
        }
        let scores = each(&found, |row| row.score, stop)?;
        Ok(rows.with(self.out_key, Arc::new(Column::Float(cells_of_view(&rows, &scores, stop)?))))
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::Same(vec![Key::ID])
    }

    fn orders_by(&self) -> Vec<Key> {
        vec![self.out_key]
    }
}

/// What is made of each row, with looks at the stop.
fn each<T>(rows: &[FusedRow], make: impl Fn(&FusedRow) -> T, stop: Stop<'_>) -> Result<Vec<T>, TaskError> {
    let mut made = Vec::with_capacity(rows.len());
    for chunk in stop.slices(rows) {
        made.extend(chunk?.iter().map(&make));
    }
    Ok(made)
}
