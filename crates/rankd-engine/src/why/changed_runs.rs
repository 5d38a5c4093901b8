//! Running a changed plan on what a run has read: on the sequential scheduler, in the thread that answers the question, with the reads and the weather of
//! that run ([`crate::recorded`]), and the tables, models and ids that it took along. Nothing is asked of a store, and nothing waits.

use super::keep::{Kept, KeptCall, TakenAlong};
use crate::clock::Instant;
use crate::deadline::{Deadline, Limit, Limits};
use crate::link::Linked;
use crate::recorded::{Reads, Replay};
use crate::request::Request;
use crate::run::Outcome;
use crate::sequential::Sequential;
use crate::stats::Stats;
use crate::store::{ClosedEndpoint, Open};
use crate::tasks::Tasks;
use rankd_plan::Registry;
use rankd_plan::plan::{NodeIx, Plan};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Runs plans on what one run has read.
pub(super) struct ChangedRuns<'a> {
    tasks: &'a Tasks,
    registry: &'a Registry,
    replay: &'a Arc<Replay>,
    taken: &'a TakenAlong,
    sequential: Sequential,
}

/// What came of it.
pub(super) struct ChangedRun {
    pub(super) outcome: Outcome,
    pub(super) calls: HashMap<NodeIx, KeptCall>,
    /// Whether it wanted to read what was not read.
    pub(super) is_missing: bool,
}

impl<'a> ChangedRuns<'a> {
    pub(super) fn new(
        tasks: &'a Tasks,
        registry: &'a Registry,
        replay: &'a Arc<Replay>,
        taken: &'a TakenAlong,
    ) -> io::Result<ChangedRuns<'a>> {
        let endpoints = registry.endpoints.list().iter();
        let endpoints = endpoints.map(|endpoint| Arc::new(ClosedEndpoint(endpoint.name.clone())) as Arc<dyn Open>);
        let endpoints: Vec<Arc<dyn Open>> = endpoints.collect();
        let sequential = Sequential::new(&endpoints, Arc::new(Stats::new(&endpoints)))?;
        Ok(ChangedRuns { tasks, registry, replay, taken, sequential })
    }

    /// Runs a plan that is like the one that has run but for a number. Nothing where it cannot be linked.
    pub(super) fn run(&self, plan: &Plan, request: &Request, until: Instant) -> Option<ChangedRun> {
        let kept = Arc::<Kept>::default();
        let linked = Arc::new(Linked::link_wrapped(plan, self.tasks, self.registry, Some(&kept)).ok()?);
        let request = Request { reads: Reads::Replayed(self.replay.clone()), ..request.clone() };
        let mut request = Request::clone(&linked.begin(request, None));
        let TakenAlong { tables, models, id_texts } = self.taken.clone();
        request.tables = tables.or(request.tables);
        request.models = models.or(request.models);
        request.id_texts = id_texts.or(request.id_texts);
        let deadline = Deadline { at: until, limit: Limit::Request, allowed: Duration::ZERO };
        let limits = Limits { request: Some(deadline), ..Limits::timeless(None) };
        let missing = self.replay.missing();
        let outcome = self.sequential.run(&linked, &Arc::new(request), limits);
        Some(ChangedRun { outcome, calls: kept.take().calls, is_missing: self.replay.missing() > missing })
    }
}
