//! Which requests have a shadow, and what is handed over once they are answered. That their reads are recorded is up to [`crate::run_recording`].

use crate::catalog::{BoundShadow, ShadowVersion};
use crate::loop_state::LoopState;
use crate::shadow_engine::ShadowJob;
use crate::shadow_pair::{DropReason, ShadowPair};
use rankd_column::RowSet;
use rankd_engine::recorded::RunRecord;
use rankd_engine::{Outcome, Request};
use std::sync::Arc;

/// A request for which its plan's shadow runs.
pub(crate) struct ShadowedRequest {
    pair: Arc<ShadowPair>,
    version: ShadowVersion,
    /// As it came, in its arms.
    request: Request,
    /// What it was answered; nothing where that is not all that the plan has to say.
    answer: Option<Vec<RowSet>>,
}

impl ShadowedRequest {
    /// Decides whether a request for a plan with a shadow is one of the share.
    #[cold]
    #[inline(never)]
    pub(crate) fn draw(loop_state: &LoopState, bound: &BoundShadow, request: &Request) -> Option<ShadowedRequest> {
        let BoundShadow { pair, runs } = bound;
        if !pair.takes(loop_state.draw()) {
            return None;
        }
        // Shadows are the first to go.
        if loop_state.admission.last_pressure() > 0 {
            pair.counts.drop_one(DropReason::Pressure);
            return None;
        }
        let Some(version) = runs else {
            pair.counts.drop_one(DropReason::Unfit);
            return None;
        };
        let (pair, version) = (pair.clone(), version.clone());
        Some(ShadowedRequest { pair, version, request: request.clone(), answer: None })
    }

    /// The run is over. Where it failed, or a fallback was taken, there is nothing to compare with.
    pub(crate) fn answered(&mut self, outcome: &Outcome) {
        self.answer = outcome.result.as_ref().ok().filter(|_| outcome.degraded.is_empty()).cloned();
    }

    /// The answer is about to leave, and this is what its run depended on. The shadow gets it afterwards: the loop comes to what is spawned here when it
    /// has written the answer.
    pub(crate) fn hand_over(self, loop_state: &LoopState, record: RunRecord) {
        let ShadowedRequest { pair, version, request, answer } = self;
        let Some(answer) = answer else { return pair.counts.drop_one(DropReason::Answer) };
        if record.facts.pressure > 0 {
            return pair.counts.drop_one(DropReason::Pressure);
        }
        let ShadowVersion { plan, registry } = version;
        let (app, job) = (loop_state.app.clone(), ShadowJob { pair, plan, registry, request, record, answer });
        loop_state.loop_handle.spawn(async move {
            if let Some(shadows) = &app.shadows {
                shadows.submit(job);
            }
        });
    }
}
