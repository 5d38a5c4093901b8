//! Models as tasks see them: the version that the run took when it started.

use crate::error::TaskError;
use crate::task::ComputeContext;
use rankd_plan::model::UsedModel;
use std::sync::Arc;

impl<'a> ComputeContext<'a> {
    /// The model at a position in the registry, as it was when the run started.
    pub fn model(&self, model: u32) -> Result<&'a Arc<UsedModel>, TaskError> {
        let found = self.models.and_then(|models| models.get(model));
        found.ok_or_else(|| TaskError::bug("a model that the run did not take along"))
    }
}
