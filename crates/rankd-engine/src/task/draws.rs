//! Random numbers as tasks see them: a node says when its plan is linked that it draws some, and every run of the plan then has a seed.

use crate::task::{ComputeContext, LinkContext};
use rankd_column::kernel::draws::Draws;
use std::sync::Arc;

/// Lets the task of one node draw random numbers.
pub struct NodeDraws {
    node: Arc<str>,
}

impl LinkContext<'_> {
    /// Says that the node's task draws random numbers. Plans without such a node have no seed.
    pub fn draws(&self) -> NodeDraws {
        self.draws.set(true);
        NodeDraws { node: self.node.id.clone() }
    }
}

impl ComputeContext<'_> {
    /// The numbers of this node in this run.
    pub fn draws(&self, of: &NodeDraws) -> Draws {
        Draws::new(&self.seed.map(|seed| seed.text()).unwrap_or_default(), &of.node)
    }
}
