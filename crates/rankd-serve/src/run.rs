//! One run of a plan for a request on this loop, through admission, and what is logged and counted of it.

use crate::admission::Purpose;
use crate::catalog::ServedPlan;
use crate::connection_state::ConnectionState;
use crate::refusal_answer::error_of;
use crate::request_scope::RequestScope;
use crate::traced_run;
use rankd_column::Id;
use rankd_edge::feature_log::LoggedRequest;
use rankd_engine::clock::{self, nanos_between};
use rankd_engine::deadline::Limits;
use rankd_engine::run::Cancel;
use rankd_engine::{ErrorKind, Linked, Outcome, Request};
use std::rc::Rc;
use std::sync::Arc;

/// Runs a plan if it may run now.
pub(crate) async fn run(scope: &mut RequestScope, linked: &Arc<Linked>, request: Request) -> Outcome {
    let limits = scope.loop_state.loop_handle.limits(scope.since, &request);
    run_within(scope, linked, request, limits, Purpose::Answer).await
}

/// The same within these limits.
pub(crate) async fn run_within(
    scope: &mut RequestScope,
    linked: &Arc<Linked>,
    request: Request,
    limits: Limits,
    purpose: Purpose,
) -> Outcome {
    let loop_state = scope.loop_state.clone();
    let deadline = limits.request.map(|deadline| deadline.at);
    let counters = scope.plan.as_ref().map(|plan| &plan.counters);
    let (state, handle) = (&scope.state, &loop_state.loop_handle);
    let start = |pressure: u8| async move {
        let cancel_on_stop = CancelOnStop::new(state);
        let request = match purpose {
            Purpose::Answer => Request { pressure, ..request },
            Purpose::Question => request,
        };
        handle.run(linked, request, limits, cancel_on_stop.cancel.clone()).await
    };
    let outcome = match loop_state.admission.run(&*loop_state, deadline, counters, purpose, start).await {
        Ok((outcome, queued_ns)) => {
            scope.queued_ns = queued_ns;
            outcome
        }
        Err(refusal) => Outcome::failed(error_of(refusal)),
    };
    if scope.sampled {
        let took_ns = u64::try_from(outcome.took.as_nanos()).unwrap_or(u64::MAX);
        scope.began_ns = nanos_between(scope.since, clock::now()).saturating_sub(took_ns);
    }
    outcome
}

/// Counts rows, nodes, taken fallbacks and how the version did, and logs what operators should know.
pub(crate) fn record(scope: &mut RequestScope, linked: &Linked, outcome: &Outcome) {
    traced_run::record(scope, linked, outcome);
    if let Some(good) = scope.plan.as_ref().and_then(|plan| plan.good.as_ref()) {
        outcome.degraded.iter().for_each(|one| good.degraded.add(one.node, one.reason));
        if let Some(counts) = &good.counts {
            counts.count(scope.loop_state.loop_handle.number(), linked, outcome);
        }
    }
    scope.degraded.clone_from(&outcome.degraded);
    let error = match &outcome.result {
        Ok(outputs) => {
            scope.rows = outputs.iter().map(|rows| rows.len() as u64).sum();
            return;
        }
        Err(error) => error,
    };
    let log = &scope.loop_state.app.log;
    if error.code.kind == ErrorKind::Bug {
        log.event("error", &format!("bug: plan {}, request {}: {error}", linked.name, scope.request_id));
    }
    if let Some(detail) = error.detail.as_ref().filter(|_| scope.loop_state.should_log_store_failure()) {
        log.event("warn", &format!("plan {}, request {}: {detail}", linked.name, scope.request_id));
    }
}

/// The user of a request whose rows are to be logged.
pub(crate) fn logged_user(scope: &RequestScope, request: &Request) -> Option<Id> {
    let log = scope.loop_state.app.feature_log.as_ref()?;
    log.takes(&scope.request_id).then(|| request.user_id.clone())
}

/// Hands the rows of a request that is answered over to the feature log.
pub(crate) fn log_rows(scope: &RequestScope, plan: &ServedPlan, user_id: Id, outcome: &mut Outcome) {
    let logged = plan.good.as_ref().and_then(|good| good.logged.as_ref());
    if let Some((log, plan)) = scope.loop_state.app.feature_log.as_ref().zip(logged) {
        log.keep(LoggedRequest { request_id: scope.request_id.clone(), user_id }, plan, outcome);
    }
}

/// Lets a run be cancelled when the process stops, until it is dropped.
struct CancelOnStop {
    state: Rc<ConnectionState>,
    cancel: Arc<Cancel>,
}

impl CancelOnStop {
    fn new(state: &Rc<ConnectionState>) -> CancelOnStop {
        let cancel = Arc::new(Cancel::default());
        state.runs.borrow_mut().push(cancel.clone());
        CancelOnStop { state: state.clone(), cancel }
    }
}

impl Drop for CancelOnStop {
    fn drop(&mut self) {
        self.state.runs.borrow_mut().retain(|run| !Arc::ptr_eq(run, &self.cancel));
    }
}
