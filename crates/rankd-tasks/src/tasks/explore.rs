//! Pick the first rows by chance, likelier ones for higher scores, and say how likely each was.
//!
//! `k` rows are picked one after the other, the rest follows in its order. With `how` "softmax", each pick is one of the rows that are left with a
//! probability proportional to `exp(score / tau)`: a low `tau` keeps near the order of scores, a high one hardly looks at them. With
//! "epsilon", each pick is with the probability `epsilon` any of the rows that are left, and otherwise the one with the highest score.
//! `propensity_key` gets the probability that the pick had, given the picks before it; null for rows that were not picked. A row without a
//! score is picked after all others, in order. The choice follows from the request's `seed`, or a hash of its `request_id`, from the node
//! and from the ids of the rows, which are to be different: the same seed picks the same rows. When the time is up, the rows that are not picked
//! yet stay in their order. Empty input: no rows. Cost: that of one or two sorts.
//!
//! ```text
//! with {"score": "score", "how": "softmax", "tau": 0.5, "k": 2, "propensity_key": "quality"}
//! given
//! | id | score |
//! | 1 | 1.0 |
//! | 2 | 0.5 |
//! | 3 | |
//! gives
//! | id | score | quality |
//! | 1 | 1.0 | 0.7310585786300049 |
//! | 2 | 0.5 | 1.0 |
//! | 3 | | |
//! ```
//!
//! ```text
//! with {"score": "score", "how": "epsilon", "epsilon": 0.1, "k": 1, "propensity_key": "quality"}
//! given
//! | id | score |
//! | 1 | 0.5 |
//! | 2 | 1.0 |
//! gives
//! | id | score | quality |
//! | 2 | 1.0 | 0.95 |
//! | 1 | 0.5 | |
//! ```

use crate::picked_rows::PickedRows;
use rankd_column::kernel::explore::{Exploring, explored};
use rankd_column::kernel::numbers::numbers;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Make, NodeDraws};
use rankd_plan::signature::typed::{Count, FloatKey, NumberKey};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Reordered,
    reads: &[Params::score],
    writes: Writes::Params(&[Params::propensity_key]),
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 1_000.0, per_row_ns: 100.0 },
};

choices! {
    /// How chance takes part.
    pub(crate) enum How -> Way { "softmax" => Way::Softmax, "epsilon" => Way::Epsilon }
}

#[derive(Clone, Copy)]
pub(crate) enum Way {
    Softmax,
    Epsilon,
}

params! {
    pub(crate) struct Params {
        /// The key with the scores
        score: NumberKey,
        /// Every pick by chance, by weights of the scores ("softmax"), or some picks by chance and the others by score ("epsilon")
        how: How,
        /// How little the scores count: weights are exp(score / tau)
        #[range(1e-9..)]
        #[needed(how: "softmax")]
        tau: Option<f64>,
        /// The part of the picks that are by chance, from 0 to 1
        #[range(0.0..=1.0)]
        #[needed(how: "epsilon")]
        epsilon: Option<f64>,
        /// How many rows to pick
        #[range(1..=10_000)]
        k: Count,
        /// The key that gets the probability of the pick
        propensity_key: Option<FloatKey>,
    }
}

pub(crate) struct Task {
    params: Params,
    how: Exploring,
    draws: NodeDraws,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        // The checks want the number that goes with each way.
        let how = match params.how {
            Way::Softmax => Exploring::Softmax { tau: params.tau.unwrap_or(1.0) },
            Way::Epsilon => Exploring::Epsilon(params.epsilon.unwrap_or(0.0)),
        };
        Task { params, how, draws: cx.draws() }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop, k) = (&inputs[0], cx.stop(), self.params.k);
        let scores = numbers(rows, self.params.score, stop)?;
        let mut draws = cx.draws(&self.draws);
        let of_rows = draws.of_rows(rows, stop)?;
        let picks = explored(&scores, &of_rows, |place| draws.of_place(place), self.how, k, cx.picking())?;
        cx.has_picked(picks.len(), k.min(rows.len()));
        cx.count(|| (0, scores.iter().filter(|score| score.is_none()).count()));
        let positions: Vec<usize> = picks.iter().map(|pick| pick.position).collect();
        let picked = PickedRows::new(rows, &positions, stop)?;
        Ok(picked.with_numbers(self.params.propensity_key, |at| Some(picks[at].propensity), stop)?.rows())
    }

    fn is_anytime(&self) -> bool {
        true
    }

    fn orders_by(&self) -> Vec<Key> {
        vec![self.params.score]
    }
}
