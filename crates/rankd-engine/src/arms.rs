//! The arms of experiments that a request is in. Who gets which is decided before a run; here they are only carried along, for answers,
//! logs and metrics.

use rankd_plan::registry::Experiments;
use std::sync::Arc;

/// The arms of one request.
#[derive(Clone, Debug)]
pub struct Arms {
    experiments: Arc<Experiments>,
    /// Positions of experiments, and of arms in them, in order.
    taken: Vec<(u32, u32)>,
    /// Whether the request chose arms itself.
    pub is_forced: bool,
}

impl Arms {
    pub fn new(experiments: &Arc<Experiments>, mut taken: Vec<(u32, u32)>, is_forced: bool) -> Arms {
        taken.sort_unstable();
        Arms { experiments: experiments.clone(), taken, is_forced }
    }

    /// The names of experiments and of their arms, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.taken.iter().filter_map(|(experiment, arm)| {
            let experiment = self.experiments.list().get(*experiment as usize)?;
            Some((&*experiment.name, &*experiment.arms.get(*arm as usize)?.name))
        })
    }

    /// The experiments that they are arms of.
    pub fn experiments(&self) -> &Arc<Experiments> {
        &self.experiments
    }

    /// The numbers of the arms, among those of all experiments.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.taken.iter().map(|(experiment, arm)| self.experiments.get(*experiment).first_arm + arm)
    }

    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }
}
