//! `POST /rank`: a request's JSON in, a plan run on this loop, rows out, as JSON or as Arrow.

use crate::accept_header;
use crate::acceptor::Acceptor;
use crate::admission::Permit;
use crate::body::RequestBody;
use crate::catalog::ServedPlan;
use crate::connection_state::ConnectionState;
use crate::content_headers;
use crate::off_loop::{self, AnswerSpec};
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::spans::TracedRun;
use crate::traced_run;
use hyper::http::request::Parts;
use rankd_edge::input::RefusedRequest;
use rankd_edge::prepare::{Prepared, Tracing, plan_name};
use rankd_engine::clock::{self, nanos_between};
use rankd_engine::run::Cancel;
use rankd_engine::{ErrorKind, Linked, Outcome, RunError, codes};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) async fn rank(scope: &mut RequestScope, named: Option<&str>, head: &Parts, body: &mut RequestBody) -> Reply {
    scope.ranks = true;
    scope.sample();
    if let Err(error) = content_headers::check(&head.headers, scope.acceptor.app.settings.lenient) {
        return Reply::error(scope.id(), None, &error);
    }
    let (prepared, plan, linked) = match prepare(scope, named, body).await {
        Ok(prepared) => prepared,
        Err(reply) => return *reply,
    };
    let Prepared { request, output_keys, with_trace } = prepared;
    let deadline = scope.acceptor.loop_handle.deadline(scope.since, request.deadline);
    let outcome = run(scope, &linked, request).await;
    traced_run::record(scope, &linked, &outcome);
    if let Ok(outputs) = &outcome.result {
        scope.rows = outputs.iter().map(|rows| rows.len() as u64).sum();
    }
    if let Err(error) = &outcome.result {
        if error.code.kind == ErrorKind::Bug {
            let message = format!("bug: plan {}, request {}: {error}", linked.name, scope.request_id);
            scope.acceptor.app.log.event("error", &message);
        }
        if let Some(detail) = error.detail.as_ref().filter(|_| scope.acceptor.should_log_store_failure()) {
            let message = format!("plan {}, request {}: {detail}", linked.name, scope.request_id);
            scope.acceptor.app.log.event("warn", &message);
        }
    }
    let arrow = accept_header::arrow(&head.headers);
    let spec = AnswerSpec { plan: &linked, registry: &plan.registry, output_keys, with_trace, arrow, deadline };
    let (reply, outcome) = off_loop::write(scope, spec, outcome).await;
    if outcome.is_none() {
        scope.rows = 0;
    }
    let trace = outcome.and_then(|outcome| outcome.trace);
    scope.run = trace.map(|trace| TracedRun { plan: linked, trace, began_ns: scope.began_ns });
    reply
}

/// Everything up to the run: the body, the request in it, the plan that it is for.
async fn prepare(
    scope: &mut RequestScope,
    named: Option<&str>,
    body: &mut RequestBody,
) -> Result<(Prepared, Arc<ServedPlan>, Arc<Linked>), Box<Reply>> {
    let failed = |id: &str, plan: Option<&str>, error: &RunError| Box::new(Reply::error(id, plan, error));
    let read = body.read().await.map_err(|error| failed(scope.id(), named, &error))?;
    scope.bytes_in = read.bytes.len();
    let acceptor = scope.acceptor.clone();
    let catalog = acceptor.app.catalog.load();
    let input = match off_loop::read(scope, &read.bytes, &catalog.registry).await {
        Ok(input) => input,
        Err(RefusedRequest { request_id, error }) => {
            scope.request_id = request_id;
            return Err(failed(&scope.request_id, named, &error));
        }
    };
    scope.request_id.clone_from(&input.request.request_id);
    let id = &scope.request_id;
    let name = plan_name(named, &input).map_err(|error| failed(id, named, &error))?.ok_or_else(|| {
        let message = "which plan? Name it in \"plan\", or use /rank/{plan}";
        failed(id, None, &RunError::new(codes::NO_PLAN_NAMED, message))
    })?;
    let plan = acceptor.app.find_plan(&catalog, name).map_err(|error| failed(id, None, &error))?;
    scope.plan = Some(plan.clone());
    let linked = plan.version().map_err(|error| failed(id, Some(name), &error))?.linked.clone();
    let metrics = &scope.acceptor.metrics;
    let recorded =
        metrics.should_trace_next(acceptor.app.settings.trace_every) || acceptor.app.log.audit || scope.sampled;
    let tracing = if recorded { Tracing::Recorded } else { Tracing::AsAsked };
    Ok((Prepared::new(input, tracing), plan.clone(), linked))
}

/// Runs a plan on this loop, if it may run now.
pub(crate) async fn run(scope: &mut RequestScope, linked: &Arc<Linked>, request: rankd_engine::Request) -> Outcome {
    let overloaded = |code, message: &str| Outcome {
        result: Err(Box::new(RunError::new(code, message))),
        trace: None,
        took: std::time::Duration::ZERO,
        cpu: rankd_engine::run::Cpu::default(),
    };
    let acceptor = scope.acceptor.clone();
    let deadline = acceptor.loop_handle.deadline(scope.since, request.deadline).map(|deadline| deadline.at);
    let _admitted = match acceptor.admission.enter(&*acceptor, deadline).await {
        Ok((permit, queued_ns)) => {
            scope.queued_ns = queued_ns;
            Admitted::new(permit, &acceptor)
        }
        Err(refused) => {
            acceptor.metrics.rejected[refused as usize].add(1);
            return overloaded(codes::OVERLOADED, "the server is overloaded; try again");
        }
    };
    let Some(_under_way) = scope.plan.as_ref().map(|plan| plan.counters.enter()).unwrap_or_default() else {
        acceptor.metrics.plan_limit_rejected.add(1);
        return overloaded(codes::PLAN_LIMIT, "this plan has reached its concurrency limit; try again");
    };
    acceptor.metrics.queued.add(scope.queued_ns);
    let cancel_on_stop = CancelOnStop::new(&scope.state);
    let outcome = acceptor
        .admission
        .run(acceptor.loop_handle.run(linked, request, scope.since, cancel_on_stop.cancel.clone()))
        .await;
    drop(cancel_on_stop);
    if scope.sampled {
        let took_ns = u64::try_from(outcome.took.as_nanos()).unwrap_or(u64::MAX);
        scope.began_ns = nanos_between(scope.since, clock::now()).saturating_sub(took_ns);
    }
    outcome
}

/// A permit that the metrics are told about, also when the caller goes away.
struct Admitted {
    permit: Option<Permit>,
    acceptor: Rc<Acceptor>,
}

impl Admitted {
    fn new(permit: Permit, acceptor: &Rc<Acceptor>) -> Admitted {
        acceptor.publish_admission();
        Admitted { permit: Some(permit), acceptor: acceptor.clone() }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.permit = None;
        self.acceptor.publish_admission();
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
