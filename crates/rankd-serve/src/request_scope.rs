//! One request, from its head to its answer, and what the metrics, the log and the spans will say about it, whatever happens.

use crate::answer_body::AnswerBody;
use crate::arm_counts::ArmCounts;
use crate::catalog::{Catalog, CatalogEntry, ServedPlan};
use crate::connection_state::{ConnectionClass, ConnectionState};
use crate::console;
use crate::loop_state::{LoopState, ShutdownStage};
use crate::reply::Reply;
use crate::request_outcome::RequestOutcome;
use crate::run_recording::RunRecording;
use crate::spans::{FinishedRequest, TracedRun};
use crate::status;
use crate::trace_context::TraceContext;
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use rankd_edge::answer::{write_arms, write_degraded};
use rankd_edge::date;
use rankd_edge::experiments::Arming;
use rankd_edge::input::Input;
use rankd_edge::request_id;
use rankd_engine::arms::Arms;
use rankd_engine::clock::{self, Instant, Timer, nanos_between};
use rankd_engine::degraded::Degraded;
use rankd_engine::{ErrorKind, RunError, codes};
use rankd_plan::json::Writer;
use std::rc::Rc;
use std::sync::Arc;

/// A request and what is known of it so far. One that is dropped before it is finished was given up by its client.
pub(crate) struct RequestScope {
    pub(crate) loop_state: Rc<LoopState>,
    pub(crate) state: Rc<ConnectionState>,
    /// When the first byte of it was read.
    pub(crate) since: Instant,
    method: Method,
    /// The page's position in the table of routes, and its path.
    pub(crate) route: Option<(usize, &'static str)>,
    pub(crate) trace_context: Option<TraceContext>,
    /// Empty while it is not known.
    pub(crate) request_id: String,
    pub(crate) plan: Option<Arc<ServedPlan>>,
    /// The arms of experiments that it is in, and where they are counted.
    pub(crate) arms: Option<(Arc<Arms>, Arc<ArmCounts>)>,
    /// Whether it is counted with the plans' requests.
    pub(crate) ranks: bool,
    /// Whether it is counted with the questions about items.
    pub(crate) asks: bool,
    pub(crate) bytes_in: usize,
    pub(crate) rows: u64,
    /// The fallbacks that were taken in its run.
    pub(crate) degraded: Vec<Degraded>,
    pub(crate) queued_ns: u64,
    /// Whether its spans are sent.
    pub(crate) sampled: bool,
    /// When its run began, in nanoseconds from `since`.
    pub(crate) began_ns: u64,
    /// Its run, once that is over, if it was traced.
    pub(crate) run: Option<TracedRun>,
    /// What its run depends on, if that is recorded.
    pub(crate) recording: Option<Box<RunRecording>>,
    finished: bool,
}

impl RequestScope {
    pub(crate) fn new(
        loop_state: &Rc<LoopState>,
        state: &Rc<ConnectionState>,
        request: &Request<Incoming>,
    ) -> RequestScope {
        RequestScope {
            loop_state: loop_state.clone(),
            state: state.clone(),
            since: state.begin(),
            method: request.method().clone(),
            route: None,
            trace_context: TraceContext::of(request.headers()),
            request_id: String::new(),
            plan: None,
            arms: None,
            ranks: false,
            asks: false,
            bytes_in: 0,
            rows: 0,
            degraded: Vec::new(),
            queued_ns: 0,
            sampled: false,
            began_ns: 0,
            run: None,
            recording: None,
            finished: false,
        }
    }

    /// The request's id; made up where it did not bring one.
    pub(crate) fn id(&mut self) -> &str {
        if self.request_id.is_empty() {
            self.request_id = request_id::make();
        }
        &self.request_id
    }

    /// This request is counted with the plans' requests. Decides whether its spans are sent: those of requests that the caller records,
    /// and of one in so many others.
    pub(crate) fn begin_ranking(&mut self) {
        self.ranks = true;
        if let Some(collector) = &self.loop_state.app.collector {
            let one_of_many = self.loop_state.metrics.should_sample_next(collector.sample);
            self.sampled = one_of_many || self.trace_context.is_some_and(|context| context.sampled);
        }
    }

    /// Puts a request for a plan into its arms of experiments, and gives the entry of the plan that answers.
    pub(crate) fn take_arms<'c>(
        &mut self,
        catalog: &'c Catalog,
        entry: &'c CatalogEntry,
        input: &mut Input,
    ) -> Result<&'c CatalogEntry, RunError> {
        // A plan that no experiment changes goes past all of this.
        if entry.experiments.is_none() && input.asked_arms.is_empty() {
            return Ok(entry);
        }
        let arming = Arming {
            experiments: Some(&catalog.experiments.all),
            of_plan: entry.experiments.as_ref(),
            // Whoever asks about items may choose: nothing but the answer depends on it.
            may_force: self.loop_state.app.settings.force_arms || self.asks,
        };
        let other = arming.assign_input(input)?;
        self.arms = input.request.arms.clone().map(|arms| (arms, catalog.experiments.counts.clone()));
        let Some(other) = other else { return Ok(entry) };
        let entry = self.loop_state.app.find_entry(catalog, other)?;
        self.plan = Some(entry.plan.clone());
        Ok(entry)
    }

    /// The answer, or a refusal where the client has not read the answers that it was given before.
    fn refuse_if_unread(&mut self, reply: Reply) -> Reply {
        if self.loop_state.has_room_for_answer(reply.bytes(), &self.state) {
            return reply;
        }
        self.loop_state.metrics.unread_rejected.add(1);
        // The answer that it has is not the one that its run gave.
        self.recording = None;
        let kept = self.state.unread.bytes();
        let message =
            format!("{kept} bytes of answers on this connection have not been read yet: read them, then try again");
        Reply::error(self.id(), None, &RunError::new(codes::UNREAD_ANSWERS, message))
    }

    /// Refuses the request before its body is read, if the server is overloaded.
    pub(crate) async fn refuse_unread(&mut self, plan: &str) -> Option<Reply> {
        let loop_state = &self.loop_state;
        let (now, refusal) = loop_state.refuses_unread()?;
        self.plan = loop_state.app.catalog.load().get(plan).cloned();
        if let Some(at) = loop_state.admission.count_refusal(&**loop_state, now, refusal) {
            Timer::new(at).await;
        }
        Some(loop_state.refusal_answer.reply())
    }

    /// Refuses a request on a connection that only answers health checks, because there are too many connections.
    pub(crate) fn no_connection(&mut self) -> Reply {
        self.loop_state.metrics.no_connection_rejected.add(1);
        let message = "the connection limit is reached and all connections are busy; try again";
        Reply::error(self.id(), None, &RunError::new(codes::NO_CONNECTION, message))
    }

    pub(crate) fn panic_reply(&mut self) -> Reply {
        self.loop_state.metrics.panics.add(1);
        self.loop_state.app.log.event("error", &format!("bug: a panic while answering request {:?}", self.request_id));
        let error = RunError::bug("the server failed while answering this request");
        Reply::error(self.id(), None, &error)
    }

    /// Records what became of the request and hands the answer over.
    pub(crate) fn finish(&mut self, reply: Reply) -> Response<AnswerBody> {
        let reply = self.refuse_if_unread(reply);
        self.finished = true;
        if let Some(recording) = self.recording.take() {
            recording.end(&self.loop_state, &self.request_id, reply.body());
        }
        self.record(reply.status.as_u16(), reply.outcome, reply.bytes());
        let RequestScope { loop_state, state, .. } = self;
        let close = loop_state.stage.get() != ShutdownStage::Open || state.class == ConnectionClass::Health;
        let now = state.end();
        let only_head = self.method == Method::HEAD;
        let mut response =
            reply.into_response(close, only_head, |bytes| AnswerBody::new(bytes, loop_state, state, now));
        if state.class == ConnectionClass::Console {
            console::headers::add(response.headers_mut());
        }
        response
    }

    fn record(&mut self, status: u16, outcome: RequestOutcome, bytes_out: usize) {
        let took_ns = nanos_between(self.since, clock::now());
        let metrics = &self.loop_state.metrics;
        metrics.count_response(self.route.map(|(at, _)| at), status);
        if self.ranks || self.asks {
            let counts = match &self.plan {
                Some(plan) => &plan.counters.metrics.loops[self.loop_state.loop_handle.number()],
                None => &metrics.no_plan,
            };
            match self.ranks {
                true => {
                    counts.count(outcome, took_ns);
                    counts.rows.add(self.rows);
                    // Who chose an arm was not drawn into it.
                    if let Some((arms, counts)) = self.arms.as_ref().filter(|(arms, _)| !arms.is_forced) {
                        arms.numbers().for_each(|arm| counts.add(arm));
                    }
                }
                false => counts.count_asked(outcome),
            }
        }
        if self.loop_state.app.log.access {
            self.loop_state.app.log.request(self.access_log_line(status, outcome, bytes_out, took_ns));
        }
        if self.sampled {
            self.send_spans(status, outcome, took_ns);
        }
    }

    fn send_spans(&mut self, status: u16, outcome: RequestOutcome, took_ns: u64) {
        let request = FinishedRequest {
            context: self.trace_context,
            start_ns: date::nanos().saturating_sub(took_ns),
            took_ns,
            route: self.route.map_or("", |(_, path)| path),
            status,
            outcome,
            request_id: std::mem::take(&mut self.request_id),
            rows: self.rows,
            arms: self.arms.take().map(|(arms, _)| arms),
            run: self.run.take(),
        };
        if let Some(collector) = &self.loop_state.app.collector {
            collector.send(request);
        }
    }

    fn access_log_line(&self, status: u16, outcome: RequestOutcome, bytes_out: usize, took_ns: u64) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("at").string(&date::now());
            w.field("method").string(self.method.as_str());
            w.field("route").string(self.route.map_or("", |(_, path)| path));
            w.field("status").int(status.into());
            w.field("outcome").string(outcome.name());
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
                if let Some(good) = plan.good.as_ref().filter(|_| !self.degraded.is_empty()) {
                    write_degraded(&good.linked, &self.degraded, w.field("degraded"));
                }
            }
            write_arms(self.arms.as_ref().map(|(arms, _)| &**arms), w);
            w.field("took_ms").float(took_ns as f64 / 1e6);
            w.field("queued_ms").float(self.queued_ns as f64 / 1e6);
            w.field("bytes_in").int(self.bytes_in as i64);
            w.field("bytes_out").int(bytes_out as i64);
            w.field("loop").int(self.loop_state.loop_handle.number() as i64);
        });
        writer.finish()
    }
}

impl Drop for RequestScope {
    fn drop(&mut self) {
        if !self.finished {
            self.record(status::CLIENT_CLOSED_REQUEST, RequestOutcome::Failed(ErrorKind::Cancelled), 0);
            self.state.end();
        }
    }
}
