//! One request on one connection, from its head to its answer: routed, answered, counted and logged, whatever happens.

use crate::acceptor::{Acceptor, ShutdownStage};
use crate::body::RequestBody;
use crate::catalog::ServedPlan;
use crate::connection_state::{ConnectionClass, ConnectionState};
use crate::reply::Reply;
use crate::routes::{Answers, Audience, Listener, ROUTES, RouteMatch, find};
use crate::spans::{FinishedRequest, TracedRun};
use crate::trace_context::TraceContext;
use crate::unread_answers::AnswerBody;
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
pub(crate) struct Responder {
    pub(crate) acceptor: Rc<Acceptor>,
    pub(crate) state: Rc<ConnectionState>,
}

impl Service<Request<Incoming>> for Responder {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if request.version() == Version::HTTP_2 {
            self.state.multiplexed.set(true);
        }
        let mut scope = RequestScope::new(self, &request);
        Box::pin(async move {
            let answered = AssertUnwindSafe(answer(&mut scope, request)).catch_unwind().await;
            let reply = answered.unwrap_or_else(|_| scope.panic_reply());
            let reply = scope.refuse_if_unread(reply);
            scope.finish(&reply);
            let close =
                scope.acceptor.stage.get() != ShutdownStage::Open || scope.state.class == ConnectionClass::Health;
            let only_head = scope.method == Method::HEAD;
            let now = scope.state.end();
            Ok(reply
                .into_response(close, only_head, |bytes| AnswerBody::new(bytes, &scope.acceptor, &scope.state, now)))
        })
    }
}

async fn answer(scope: &mut RequestScope, request: Request<Incoming>) -> Reply {
    let (head, body) = request.into_parts();
    let mut body = RequestBody::new(&scope.acceptor, &scope.state, &head.headers, body);
    let reply = route(scope, &head, &mut body).await;
    body.discard().await;
    reply
}

async fn route(scope: &mut RequestScope, head: &Parts, body: &mut RequestBody) -> Reply {
    let path = head.uri.path();
    let app = scope.acceptor.app.clone();
    let (listener, hosts) = app.listener(scope.state.class);
    let found = find(listener, &head.method, path);
    let probe = matches!(found, RouteMatch::Route(at, _) if ROUTES[at].audience == Audience::Probes);
    if let Err(error) = hosts.check(head, probe) {
        return Reply::error(scope.id(), None, &error);
    }
    if scope.state.class == ConnectionClass::Health && !probe {
        return scope.no_connection();
    }
    match found {
        RouteMatch::Route(at, name) => {
            scope.route = Some(at);
            let route = &ROUTES[at];
            match route.answers {
                Answers::Rank => rank::rank(scope, None, head, body).await,
                Answers::RankPlan => rank::rank(scope, Some(name), head, body).await,
                Answers::Explain => explain::explain(scope, head, body).await,
                other => pages::page(scope, other, name).await,
            }
        }
        RouteMatch::OtherMethod(methods) => {
            let message = format!("{} takes {methods}, not {}", quoted(path), quoted(head.method.as_str()));
            let error = RunError::new(codes::WRONG_METHOD, message);
            Reply::error(scope.id(), None, &error).allowing(methods)
        }
        RouteMatch::OtherListener | RouteMatch::Nowhere => {
            let hint = match (found, listener) {
                (RouteMatch::OtherListener, Listener::Admin) => "; it is served on the address of --listen",
                (RouteMatch::OtherListener, Listener::Public | Listener::Only) => {
                    "; it is served on the address of --admin"
                }
                _ => "",
            };
            let message = format!("there is no path {} here{hint}", quoted(path));
            let error = RunError::new(codes::UNKNOWN_PATH, message);
            Reply::error(scope.id(), None, &error)
        }
    }
}

/// A request while it is here, and what the metrics and the log will say about it. One that is dropped before it is finished
/// was given up by its client.
pub(crate) struct RequestScope {
    pub(crate) acceptor: Rc<Acceptor>,
    pub(crate) state: Rc<ConnectionState>,
    /// When the first byte of it was read.
    pub(crate) since: Instant,
    method: Method,
    route: Option<usize>,
    pub(crate) trace_context: Option<TraceContext>,
    /// Empty as long as it is not known.
    pub(crate) request_id: String,
    pub(crate) plan: Option<Arc<ServedPlan>>,
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
    pub(crate) run: Option<TracedRun>,
    finished: bool,
}

impl RequestScope {
    fn new(responder: &Responder, request: &Request<Incoming>) -> RequestScope {
        RequestScope {
            acceptor: responder.acceptor.clone(),
            state: responder.state.clone(),
            since: responder.state.begin(),
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
        let Some(collector) = &self.acceptor.app.collector else { return };
        let one_of_many = self.acceptor.metrics.should_sample_next(collector.sample);
        self.sampled = one_of_many || self.trace_context.is_some_and(|context| context.sampled);
    }

    /// The answer, or a refusal where the client has not taken the answers that it was given before.
    fn refuse_if_unread(&mut self, reply: Reply) -> Reply {
        if self.acceptor.has_room_for_answer(reply.bytes(), &self.state) {
            return reply;
        }
        self.acceptor.metrics.unread_rejected.add(1);
        let kept = self.state.unread.bytes();
        let message =
            format!("{kept} bytes of answers on this connection have not been read yet: read them, then try again");
        Reply::error(self.id(), None, &RunError::new(codes::UNREAD_ANSWERS, message))
    }

    /// Refuses a request on a connection that only answers health checks, because there are too many connections.
    fn no_connection(&mut self) -> Reply {
        self.acceptor.metrics.no_connection_rejected.add(1);
        let message = "the connection limit is reached and all connections are busy; try again";
        Reply::error(self.id(), None, &RunError::new(codes::NO_CONNECTION, message))
    }

    fn panic_reply(&mut self) -> Reply {
        self.acceptor.metrics.panics.add(1);
        self.acceptor.app.log.event("error", &format!("bug: a panic while answering request {:?}", self.request_id));
        let error = RunError::bug("the server failed while answering this request");
        Reply::error(self.id(), None, &error)
    }

    fn finish(&mut self, reply: &Reply) {
        self.finished = true;
        self.record(reply.status.as_u16(), reply.failure, reply.bytes());
    }

    fn record(&mut self, status: u16, failure: Option<ErrorKind>, bytes_out: usize) {
        let took_ns = nanos_between(self.since, clock::now());
        let metrics = &self.acceptor.metrics;
        metrics.count_response(self.route, status);
        if self.ranks {
            let counts = match &self.plan {
                Some(plan) => &plan.counters.metrics.loops[self.acceptor.loop_handle.number()],
                None => &metrics.no_plan,
            };
            counts.count(failure, took_ns);
            counts.rows.add(self.rows);
        }
        if self.acceptor.app.log.access {
            self.acceptor.app.log.request(self.access_log_line(status, failure, bytes_out, took_ns));
        }
        if self.sampled {
            self.send_spans(status, failure, took_ns);
        }
    }

    fn send_spans(&mut self, status: u16, failure: Option<ErrorKind>, took_ns: u64) {
        let request = FinishedRequest {
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
        if let Some(collector) = &self.acceptor.app.collector {
            collector.send(request);
        }
    }

    fn access_log_line(&self, status: u16, failure: Option<ErrorKind>, bytes_out: usize, took_ns: u64) -> String {
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
            w.field("loop").int(self.acceptor.loop_handle.number() as i64);
        });
        writer.finish()
    }
}

impl Drop for RequestScope {
    fn drop(&mut self) {
        if !self.finished {
            self.record(crate::status::CLIENT_CLOSED_REQUEST, Some(ErrorKind::Cancelled), 0);
            self.state.end();
        }
    }
}
