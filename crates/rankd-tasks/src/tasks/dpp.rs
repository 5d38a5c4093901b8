//! Reorder the first rows so that they have high scores and their vectors point in many directions.
//!
//! `k` rows are picked one by one, the rest follows in its order. A pick is the row that makes the determinant of the picked rows the highest, in the
//! kernel `L = diag(q) (E Eᵀ + ridge I) diag(q)` with `q = exp(alpha * score)` and the vectors as rows of `E`: a high `alpha` looks at the
//! score, `alpha` 0 at the directions alone. With `window`, only so many of the last picks count. Of equal rows the first is picked. A row
//! without a vector stands at a right angle to all others, as if its vector had the length 1; one without a score is picked after all
//! others. Vectors span no more room than they have dimensions: with a `ridge` of 0, picks after that go by the score and the length alone. `rank_key` gets the
//! number of the pick, from 0; null for rows that were not picked. When the time is up, the rows that are not picked yet stay in their
//! order. Empty input: no rows. Cost: `k` looks at the vectors of all rows, and at as many numbers as there were picks.
//!
//! ```text
//! with {"score": "score", "vector": "example_vector", "k": 2, "alpha": 1, "rank_key": "likes"}
//! given
//! | id | score | example_vector |
//! | 1 | 1.0 | [1.0, 0.0, 0.0] |
//! | 2 | 0.9 | [1.0, 0.0, 0.0] |
//! | 3 | 0.5 | [0.0, 1.0, 0.0] |
//! gives
//! | id | score | example_vector | likes |
//! | 1 | 1.0 | [1.0, 0.0, 0.0] | 0 |
//! | 3 | 0.5 | [0.0, 1.0, 0.0] | 1 |
//! | 2 | 0.9 | [1.0, 0.0, 0.0] | |
//! ```

use crate::picked_rows::{PickedRows, vectors};
use rankd_column::kernel::dpp::{Determinants, dpp};
use rankd_column::kernel::numbers::numbers;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::{Count, IntKey, NumberKey, VectorKey};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &[Task::score, Task::vector],
    writes: Writes::Params(&[Task::rank_key]),
    params: Task::PARAMS,
    cost: Cost::Unknown,
};

params! {
    pub(crate) struct Task {
        /// The key with the scores
        score: NumberKey,
        /// The key with the vectors
        vector: VectorKey,
        /// How many rows to pick
        #[range(1..=10_000)]
        k: Count,
        /// How much the score counts beside the directions
        #[range(0.0..)]
        alpha: f64,
        /// How much a row counts whose direction the picks have already; 0 only where k is no more than the vectors' dimension
        #[range(0.0..)]
        ridge: f64 = 0.01,
        /// How many of the last picks count; 0 is all
        window: Count = 0,
        /// The key that gets the number of the pick
        rank_key: Option<IntKey>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let (scores, k) = (numbers(rows, self.score, stop)?, self.k.min(rows.len()));
        let by = Determinants { alpha: self.alpha, ridge: self.ridge as f32, window: self.window };
        let mut vectors = vectors(rows, self.vector, by.room(k), stop)?;
        let picks = dpp(&scores, &mut vectors, k, by, cx.picking())?;
        cx.has_picked(picks.len(), k);
        cx.count(|| (0, vectors.lacking()));
        Ok(PickedRows::new(rows, &picks, stop)?.with_ranks(self.rank_key, stop)?.rows())
    }

    fn is_anytime(&self) -> bool {
        true
    }

    fn orders_by(&self) -> Vec<Key> {
        vec![self.score]
    }
}
