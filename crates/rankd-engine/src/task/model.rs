//! Models as tasks see them: the version that the run took when it started.

use crate::error::TaskError;
use crate::task::ComputeContext;
use rankd_column::model::Scoring;
use rankd_plan::model::UsedModel;
use std::sync::Arc;

/// What a task says of a key whose values a trained model gives.
#[derive(Clone, Copy, Debug)]
pub struct ModelScore {
    /// The model, by its position in the registry.
    pub model: u32,
    pub scoring: Scoring,
    /// Which of the numbers that the model gives a row.
    pub at: usize,
}

impl<'a> ComputeContext<'a> {
    /// The model at a position in the registry, as it was when the run started.
    pub fn model(&self, model: u32) -> Result<&'a Arc<UsedModel>, TaskError> {
        let found = self.models.and_then(|models| models.get(model));
        found.ok_or_else(|| TaskError::bug("a model that the run did not take along"))
    }
}
