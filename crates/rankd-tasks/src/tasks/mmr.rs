//! Reorder the first rows so that each has a high score and is unlike those before it.
//!
//! `k` rows are picked one by one, the rest follows in its order. A pick is the row with the highest `lambda * score - (1 - lambda) *
//! likeness`, where the likeness is the highest similarity of its `vector` to that of a row picked before; `lambda` 1 looks at the score
//! alone. Of equal rows the first is picked. A row without a vector is like no other; one without a score is picked after all others. `rank_key` gets the
//! number of the pick, from 0, and `max_sim_key` the likeness at that time; null for rows that were not picked, and for the first pick's likeness. When
//! the time is up, the rows that are not picked yet stay in their order. Empty input: no rows. Cost: `k` looks at the vectors of all rows.
//!
//! ```text
//! with {"score": "score", "vector": "example_vector", "k": 2, "lambda": 0.5, "rank_key": "likes"}
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
use rankd_column::kernel::mmr::{Likeness, mmr};
use rankd_column::kernel::numbers::numbers;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows};
use rankd_plan::signature::typed::{Count, FloatKey, IntKey, NumberKey, VectorKey};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &[Task::score, Task::vector],
    writes: Writes::Params(&[Task::rank_key, Task::max_sim_key]),
    params: Task::PARAMS,
    cost: Cost::Unknown,
};

choices! {
    pub(crate) enum Sim -> Likeness { "cosine" => Likeness::Cosine, "dot" => Likeness::Dot }
}

params! {
    pub(crate) struct Task {
        /// The key with the scores
        score: NumberKey,
        /// The key with the vectors
        vector: VectorKey,
        /// How many rows to pick
        #[range(1..=10_000)]
        k: Count,
        /// How much the score counts beside the likeness: from 0 to 1, which is the score alone
        #[range(0.0..=1.0)]
        lambda: f64,
        /// What vectors are compared by
        sim: Sim = "cosine",
        /// The key that gets the number of the pick
        rank_key: Option<IntKey>,
        /// The key that gets the likeness to the rows picked before
        max_sim_key: Option<FloatKey>,
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        let (scores, vectors) = (numbers(rows, self.score, stop)?, vectors(rows, self.vector, 0, stop)?);
        let picks = mmr(&scores, &vectors, self.k, self.lambda, self.sim, cx.picking())?;
        cx.has_picked(picks.len(), self.k.min(rows.len()));
        cx.count(|| (0, vectors.lacking()));
        let positions: Vec<usize> = picks.iter().map(|pick| pick.position).collect();
        let picked = PickedRows::new(rows, &positions, stop)?.with_ranks(self.rank_key, stop)?;
        Ok(picked.with_numbers(self.max_sim_key, |at| picks[at].likeness, stop)?.rows())
    }

    fn is_anytime(&self) -> bool {
        true
    }

    fn orders_by(&self) -> Vec<Key> {
        vec![self.score]
    }
}
