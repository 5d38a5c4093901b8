//! `POST /rank`: a request's JSON in, a plan run on this loop, rows out, as JSON or as Arrow.

use crate::accept_header;
use crate::acceptor::Desk;
use crate::admission::Permit;
use crate::body::RequestBody;
use crate::catalog::Shelved;
use crate::connection_state::Vitals;
use crate::content_headers;
use crate::off_loop::{self, Asked};
use crate::readiness::Phase;
use crate::reply::Reply;
use crate::request_scope::Visit;
use crate::spans::Run;
use crate::traced_run;
use hyper::http::request::Parts;
use rankd_edge::input::{Input, Refused as Unreadable};
use rankd_engine::clock::{self, nanos_between};
use rankd_engine::run::Cancel;
use rankd_engine::{ErrorKind, Linked, Outcome, RunError, codes};
use rankd_plan::diagnostic::quoted;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) async fn rank(visit: &mut Visit, named: Option<&str>, head: &Parts, body: &mut RequestBody) -> Reply {
    visit.ranks = true;
    visit.sample();
    if let Err(error) = content_headers::check(&head.headers, visit.desk.app.settings.lenient) {
        return Reply::error(visit.id(), None, &error);
    }
    let (input, plan, linked) = match prepare(visit, named, body).await {
        Ok(prepared) => prepared,
        Err(reply) => return *reply,
    };
    let Input { mut request, output_keys, .. } = input;
    let with_trace = request.trace;
    let traced = visit.desk.metrics.traced_next(visit.desk.app.settings.trace_every);
    request.trace = with_trace || traced || visit.desk.app.log.audit || visit.sampled;
    let deadline = visit.desk.loop_handle.deadline(visit.since, request.deadline);
    let outcome = run(visit, &linked, request).await;
    traced_run::tell(visit, &linked, &outcome);
    if let Ok(outputs) = &outcome.result {
        visit.rows = outputs.iter().map(|rows| rows.len() as u64).sum();
    }
    if let Err(error) = &outcome.result {
        if error.code.kind == ErrorKind::Bug {
            let message = format!("bug: plan {}, request {}: {error}", linked.name, visit.request_id);
            visit.desk.app.log.event("error", &message);
        }
        if let Some(detail) = error.detail.as_ref().filter(|_| visit.desk.tells_of_a_store()) {
            let message = format!("plan {}, request {}: {detail}", linked.name, visit.request_id);
            visit.desk.app.log.event("warn", &message);
        }
    }
    let arrow = accept_header::arrow(&head.headers);
    let asked = Asked { plan: &linked, registry: &plan.registry, output_keys, with_trace, arrow, deadline };
    let (reply, outcome) = off_loop::write(visit, asked, outcome).await;
    if outcome.is_none() {
        visit.rows = 0;
    }
    let trace = outcome.and_then(|outcome| outcome.trace);
    visit.run = trace.map(|trace| Run { plan: linked, trace, began_ns: visit.began_ns });
    reply
}

/// Everything up to the run: the body, the request in it, the plan that it is for.
async fn prepare(
    visit: &mut Visit,
    named: Option<&str>,
    body: &mut RequestBody,
) -> Result<(Input, Arc<Shelved>, Arc<Linked>), Box<Reply>> {
    let failed = |id: &str, plan: Option<&str>, error: &RunError| Box::new(Reply::error(id, plan, error));
    let read = body.read().await.map_err(|error| failed(visit.id(), named, &error))?;
    visit.bytes_in = read.bytes.len();
    let desk = visit.desk.clone();
    let shelf = desk.app.shelf.load();
    let input = match off_loop::read(visit, &read.bytes, &shelf.registry).await {
        Ok(input) => input,
        Err(Unreadable { request_id, error }) => {
            visit.request_id = request_id;
            return Err(failed(&visit.request_id, named, &error));
        }
    };
    visit.request_id.clone_from(&input.request.request_id);
    let id = &visit.request_id;
    let name = match (named, &input.plan) {
        (Some(path), Some(plan)) if path != plan => {
            let message = format!("the path names plan {}, but the request names {}", quoted(path), quoted(plan));
            return Err(failed(id, Some(path), &RunError::new(codes::OTHER_PLAN, message)));
        }
        (Some(name), _) => name,
        (None, Some(name)) => name,
        (None, None) => {
            let message = "which plan? Name it in \"plan\", or use /rank/{plan}";
            return Err(failed(id, None, &RunError::new(codes::NO_PLAN_NAMED, message)));
        }
    };
    let Some(plan) = shelf.get(name) else {
        if desk.app.readiness.phase() == Phase::Loading {
            let message = "the server is still loading its plans; try again";
            return Err(failed(id, None, &RunError::new(codes::STILL_LOADING, message)));
        }
        let hint = shelf.nearest(name).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        let message = format!("there is no plan {}{hint}", quoted(name));
        let error = RunError::new(codes::UNKNOWN_PLAN, message);
        return Err(failed(id, None, &error));
    };
    visit.plan = Some(plan.clone());
    match &plan.good {
        Some(good) => Ok((input, plan.clone(), good.linked.clone())),
        None => {
            let why = plan.problem.as_ref().map_or("it was never loaded", |problem| &problem.message);
            let message = format!("the plan {name:?} cannot run: {why}");
            Err(failed(id, Some(name), &RunError::new(codes::NO_GOOD_VERSION, message)))
        }
    }
}

/// Runs a plan on this loop, if it may run now.
pub(crate) async fn run(visit: &mut Visit, linked: &Arc<Linked>, request: rankd_engine::Request) -> Outcome {
    let overloaded = |code, message: &str| Outcome {
        result: Err(Box::new(RunError::new(code, message))),
        trace: None,
        took: std::time::Duration::ZERO,
        cpu: rankd_engine::run::Cpu::default(),
    };
    let desk = visit.desk.clone();
    let deadline = desk.loop_handle.deadline(visit.since, request.deadline).map(|deadline| deadline.at);
    let _admitted = match desk.admission.enter(&*desk, deadline).await {
        Ok((permit, queued_ns)) => {
            visit.queued_ns = queued_ns;
            Admitted::new(permit, &desk)
        }
        Err(refused) => {
            desk.metrics.rejected[refused as usize].add(1);
            return overloaded(codes::OVERLOADED, "the server is overloaded; try again");
        }
    };
    let Some(_under_way) = visit.plan.as_ref().map(|plan| plan.standing.enter()).unwrap_or_default() else {
        desk.metrics.plan_limit_rejected.add(1);
        return overloaded(codes::PLAN_LIMIT, "this plan has reached its concurrency limit; try again");
    };
    desk.metrics.queued.add(visit.queued_ns);
    let listed = Listed::new(&visit.vitals);
    let outcome = desk.admission.run(desk.loop_handle.run(linked, request, visit.since, listed.cancel.clone())).await;
    drop(listed);
    if visit.sampled {
        let took_ns = u64::try_from(outcome.took.as_nanos()).unwrap_or(u64::MAX);
        visit.began_ns = nanos_between(visit.since, clock::now()).saturating_sub(took_ns);
    }
    outcome
}

/// A permit that the metrics are told about, also when the caller goes away.
struct Admitted {
    permit: Option<Permit>,
    desk: Rc<Desk>,
}

impl Admitted {
    fn new(permit: Permit, desk: &Rc<Desk>) -> Admitted {
        desk.note_admission();
        Admitted { permit: Some(permit), desk: desk.clone() }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.permit = None;
        self.desk.note_admission();
    }
}

/// A run that can be stopped when the process stops; no longer listed when dropped.
struct Listed {
    vitals: Rc<Vitals>,
    cancel: Arc<Cancel>,
}

impl Listed {
    fn new(vitals: &Rc<Vitals>) -> Listed {
        let cancel = Arc::new(Cancel::default());
        vitals.runs.borrow_mut().push(cancel.clone());
        Listed { vitals: vitals.clone(), cancel }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.vitals.runs.borrow_mut().retain(|run| !Arc::ptr_eq(run, &self.cancel));
    }
}
