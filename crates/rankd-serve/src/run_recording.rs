//! Whether what a run depends on is recorded, and what becomes of the record.
//!
//! It is decided here alone, before a request runs, for whoever wants the record: a run has one recorder at most, and one that nobody wants a record of
//! pays one test a read. When the answer is there, the record goes to those who wanted it.

use crate::catalog::{Catalog, CatalogEntry, ServedPlan};
use crate::loop_state::LoopState;
use crate::shadow::ShadowedRequest;
use bytes::Bytes;
use rankd_edge::capture::{Capture, CapturedPlan, CapturedRequest};
use rankd_engine::recorded::{Reads, RunRecorder};
use rankd_engine::{ErrorKind, Linked, Outcome, Request};
use rankd_plan::Registry;
use std::sync::Arc;

/// A run that is recorded.
pub(crate) struct RunRecording {
    recorder: Arc<RunRecorder>,
    /// Where it is captured: what was sent, and what it runs with.
    captured: Option<CaptureStart>,
    /// Where the plan's shadow runs for it.
    shadowed: Option<ShadowedRequest>,
    /// What answered; nothing before the answer was written.
    answered: Option<(Arc<Linked>, Arc<Registry>)>,
}

struct CaptureStart {
    sent: Vec<u8>,
    plan: CapturedPlan,
}

impl RunRecording {
    /// Decides about a request that is ready to run, with this body, for a plan of this catalog. `None` where nobody wants a record.
    pub(crate) fn begin(
        loop_state: &LoopState,
        catalog: &Catalog,
        CatalogEntry { plan, shadow, .. }: &CatalogEntry,
        request: &mut Request,
        body: &Bytes,
    ) -> Option<Box<RunRecording>> {
        let capture = loop_state.app.capture.as_ref();
        let captured = capture.and_then(|capture| CaptureStart::of(capture, catalog, plan, request, body));
        let shadowed = shadow.as_ref().and_then(|bound| ShadowedRequest::draw(loop_state, bound, request));
        if captured.is_none() && shadowed.is_none() {
            return None;
        }
        let recorder = Arc::<RunRecorder>::default();
        request.reads = Reads::Recorded(recorder.clone());
        Some(Box::new(RunRecording { recorder, captured, shadowed, answered: None }))
    }

    /// The run is over, and its answer was written. A run that was broken off from outside says nothing about its plan.
    pub(crate) fn answered(&mut self, plan: &Arc<Linked>, registry: &Arc<Registry>, outcome: &Outcome) {
        let is_cancelled = outcome.result.as_ref().is_err_and(|error| error.code.kind == ErrorKind::Cancelled);
        self.answered = (!is_cancelled).then(|| (plan.clone(), registry.clone()));
        if let Some(shadowed) = &mut self.shadowed {
            shadowed.answered(outcome);
        }
    }

    /// The answer is handed over: the record goes to those who wanted it.
    pub(crate) fn end(self, loop_state: &LoopState, request_id: &str, answer: &Bytes) {
        let RunRecording { recorder, captured, shadowed, answered } = self;
        let mut record = recorder.take();
        if let Some(shadowed) = shadowed {
            // Few requests are wanted by both.
            let own = if captured.is_some() { record.clone() } else { std::mem::take(&mut record) };
            shadowed.hand_over(loop_state, own);
        }
        let Some((linked, registry)) = answered else { return };
        // One that was turned away before its run began depends on nothing that was recorded.
        if !record.has_begun {
            return;
        }
        if let (Some(CaptureStart { sent, plan }), Some(capture)) = (captured, &loop_state.app.capture) {
            let about = (&*linked, &*registry);
            capture.keep(CapturedRequest::new(request_id.to_owned(), about, sent, answer.clone(), record), plan);
        }
    }
}

impl CaptureStart {
    fn of(
        capture: &Capture,
        catalog: &Catalog,
        plan: &ServedPlan,
        request: &Request,
        body: &Bytes,
    ) -> Option<CaptureStart> {
        if !capture.takes(&request.request_id) {
            return None;
        }
        let good = plan.good.as_ref()?;
        let plan = CapturedPlan::new(&good.linked, good.artifact.clone()?, &plan.registry, catalog.texts.clone());
        // A copy: the body may be a small part of what was read from the connection.
        Some(CaptureStart { sent: body.to_vec(), plan })
    }
}
