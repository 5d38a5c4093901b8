//! One request on one connection, from its head to its answer: routed, answered, counted and logged, whatever happens.

use crate::acceptor::{Desk, Stage};
use crate::body::RequestBody;
use crate::catalog::Shelved;
use crate::connection_state::{Place, Vitals};
use crate::reply::Reply;
use crate::routes::{Answers, Audience, Found, Listener, ROUTES, find};
use crate::spans::{Run, Told};
use crate::trace_context::TraceContext;
use crate::unread_answers::Outgoing;
use crate::{explain, pages, rank};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::service::Service;
use hyper::{Method, Request, Response, Version};
use rankd_edge::date;
use rankd_edge::request_id;
use rankd_engine::clock::{self, Instant, nanos_between};
use rankd_engine::{ErrorKind, RunError, codes};
use rankd_plan::diagnostic::quoted;
use rankd_plan::json::Writer;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// What answers the requests of one connection.
pub(crate) struct Exchange {
    pub(crate) desk: Rc<Desk>,
    pub(crate) vitals: Rc<Vitals>,
}

impl Service<Request<Incoming>> for Exchange {
    type Response = Response<Outgoing>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if request.version() == Version::HTTP_2 {
            self.vitals.multiplexed.set(true);
        }
        let mut visit = Visit::new(self, &request);
        Box::pin(async move {
            let answered = AssertUnwindSafe(answer(&mut visit, request)).catch_unwind().await;
            let reply = answered.unwrap_or_else(|_| visit.panicked());
            let reply = visit.fitting(reply);
            visit.finish(&reply);
            let close = visit.desk.stage.get() != Stage::Open || visit.vitals.place == Place::Health;
            let only_head = visit.method == Method::HEAD;
            let now = visit.vitals.end();
            Ok(reply.into_response(close, only_head, |bytes| Outgoing::new(bytes, &visit.desk, &visit.vitals, now)))
        })
    }
}

async fn answer(visit: &mut Visit, request: Request<Incoming>) -> Reply {
    let (head, body) = request.into_parts();
    let mut body = RequestBody::new(&visit.desk, &visit.vitals, &head.headers, body);
    let reply = route(visit, &head, &mut body).await;
    body.discard().await;
    reply
}

async fn route(visit: &mut Visit, head: &Parts, body: &mut RequestBody) -> Reply {
    let path = head.uri.path();
    let app = visit.desk.app.clone();
    let (listener, hosts) = app.listener(visit.vitals.place);
    let found = find(listener, &head.method, path);
    let probe = matches!(found, Found::Route(at, _) if ROUTES[at].audience == Audience::Probes);
    if let Err(error) = hosts.check(head, probe) {
        return Reply::error(visit.id(), None, &error);
    }
    if visit.vitals.place == Place::Health && !probe {
        return visit.no_place();
    }
    match found {
        Found::Route(at, name) => {
            visit.route = Some(at);
            let route = &ROUTES[at];
            match route.answers {
                Answers::Rank => rank::rank(visit, None, head, body).await,
                Answers::RankPlan => rank::rank(visit, Some(name), head, body).await,
                Answers::Explain => explain::explain(visit, head, body).await,
                other => pages::page(visit, other, name).await,
            }
        }
        Found::OtherMethod(methods) => {
            let message = format!("{} takes {methods}, not {}", quoted(path), quoted(head.method.as_str()));
            let error = RunError::new(codes::WRONG_METHOD, message);
            Reply::error(visit.id(), None, &error).allowing(methods)
        }
        Found::OtherListener | Found::Nowhere => {
            let hint = match (found, listener) {
                (Found::OtherListener, Listener::Admin) => "; it is served on the address of --listen",
                (Found::OtherListener, Listener::Public | Listener::Only) => "; it is served on the address of --admin",
                _ => "",
            };
            let message = format!("there is no path {} here{hint}", quoted(path));
            let error = RunError::new(codes::UNKNOWN_PATH, message);
            Reply::error(visit.id(), None, &error)
        }
    }
}

/// A request while it is here, and what the metrics and the log will say about it. One that is dropped before it is finished
/// was given up by its client.
pub(crate) struct Visit {
    pub(crate) desk: Rc<Desk>,
    pub(crate) vitals: Rc<Vitals>,
    /// When the first byte of it was read.
    pub(crate) since: Instant,
    method: Method,
    route: Option<usize>,
    pub(crate) trace_context: Option<TraceContext>,
    /// Empty as long as it is not known.
    pub(crate) request_id: String,
    pub(crate) plan: Option<Arc<Shelved>>,
    /// Whether it is counted with the plans' requests.
    pub(crate) ranks: bool,
    pub(crate) bytes_in: usize,
    pub(crate) rows: u64,
    pub(crate) queued_ns: u64,
    /// Whether a collector is told about it.
    pub(crate) sampled: bool,
    /// When its run began, in nanoseconds from `since`.
    pub(crate) began_ns: u64,
    /// Its run, once that is over, if it was traced.
    pub(crate) run: Option<Run>,
    finished: bool,
}

impl Visit {
    fn new(exchange: &Exchange, request: &Request<Incoming>) -> Visit {
        Visit {
            desk: exchange.desk.clone(),
            vitals: exchange.vitals.clone(),
            since: exchange.vitals.begin(),
            method: request.method().clone(),
            route: None,
            trace_context: TraceContext::of(request.headers()),
            request_id: String::new(),
            plan: None,
            ranks: false,
            bytes_in: 0,
            rows: 0,
            queued_ns: 0,
            sampled: false,
            began_ns: 0,
            run: None,
            finished: false,
        }
    }

    /// The request's id, made up where it did not bring one.
    pub(crate) fn id(&mut self) -> &str {
        if self.request_id.is_empty() {
            self.request_id = request_id::make();
        }
        &self.request_id
    }

    /// Decides whether a collector is told: about those that the caller records, and one in so many.
    pub(crate) fn sample(&mut self) {
        let Some(collector) = &self.desk.app.collector else { return };
        let one_of_many = self.desk.metrics.spanned_next(collector.sample);
        self.sampled = one_of_many || self.trace_context.is_some_and(|context| context.sampled);
    }

    /// The answer, or a refusal where the client has not taken the answers that it was given before.
    fn fitting(&mut self, reply: Reply) -> Reply {
        if self.desk.fits(reply.bytes(), &self.vitals) {
            return reply;
        }
        self.desk.metrics.untaken_rejected.add(1);
        let kept = self.vitals.untaken.bytes();
        let message =
            format!("{kept} bytes of answers on this connection have not been read yet: read them, then try again");
        Reply::error(self.id(), None, &RunError::new(codes::UNREAD_ANSWERS, message))
    }

    /// Connections are so many that this one got a place where only health is answered.
    fn no_place(&mut self) -> Reply {
        self.desk.metrics.place_rejected.add(1);
        let message = "the connection limit is reached and all connections are busy; try again";
        Reply::error(self.id(), None, &RunError::new(codes::NO_CONNECTION, message))
    }

    fn panicked(&mut self) -> Reply {
        self.desk.metrics.panics.add(1);
        self.desk.app.log.event("error", &format!("bug: a panic while answering request {:?}", self.request_id));
        let error = RunError::bug("the server failed while answering this request");
        Reply::error(self.id(), None, &error)
    }

    fn finish(&mut self, reply: &Reply) {
        self.finished = true;
        self.tell(reply.status.as_u16(), reply.failure, reply.bytes());
    }

    fn tell(&mut self, status: u16, failure: Option<ErrorKind>, bytes_out: usize) {
        let took_ns = nanos_between(self.since, clock::now());
        let metrics = &self.desk.metrics;
        metrics.count_response(self.route, status);
        if self.ranks {
            let counts = match &self.plan {
                Some(plan) => &plan.standing.metrics.loops[self.desk.loop_handle.number()],
                None => &metrics.no_plan,
            };
            counts.count(failure, took_ns);
            counts.rows.add(self.rows);
        }
        if self.desk.app.log.access {
            self.desk.app.log.request(self.line(status, failure, bytes_out, took_ns));
        }
        if self.sampled {
            self.tell_collector(status, failure, took_ns);
        }
    }

    fn tell_collector(&mut self, status: u16, failure: Option<ErrorKind>, took_ns: u64) {
        let told = Told {
            context: self.trace_context,
            start_ns: date::nanos().saturating_sub(took_ns),
            took_ns,
            route: self.route.map_or("", |at| ROUTES[at].path),
            status,
            failure,
            request_id: std::mem::take(&mut self.request_id),
            rows: self.rows,
            run: self.run.take(),
        };
        if let Some(collector) = &self.desk.app.collector {
            collector.tell(told);
        }
    }

    fn line(&self, status: u16, failure: Option<ErrorKind>, bytes_out: usize, took_ns: u64) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("at").string(&date::now());
            w.field("method").string(self.method.as_str());
            w.field("route").string(self.route.map_or("", |at| ROUTES[at].path));
            w.field("status").int(status.into());
            w.field("outcome").string(failure.map_or("ok", ErrorKind::name));
            if !self.request_id.is_empty() {
                w.field("request_id").string(&self.request_id);
            }
            if let Some(context) = &self.trace_context {
                w.field("trace_id").string(&context.trace_id());
            }
            if let Some(plan) = &self.plan {
                w.field("plan").string(&plan.name);
                w.field("version").int(plan.good.as_ref().map_or(0, |good| good.version) as i64);
                w.field("rows").int(self.rows as i64);
            }
            w.field("took_ms").float(took_ns as f64 / 1e6);
            w.field("queued_ms").float(self.queued_ns as f64 / 1e6);
            w.field("bytes_in").int(self.bytes_in as i64);
            w.field("bytes_out").int(bytes_out as i64);
            w.field("loop").int(self.desk.loop_handle.number() as i64);
        });
        writer.finish()
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.finished {
            self.tell(crate::status::CLIENT_CLOSED_REQUEST, Some(ErrorKind::Cancelled), 0);
            self.vitals.end();
        }
    }
}
