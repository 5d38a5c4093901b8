//! A call from beginning to end: shared where it is the same as one in flight, sent, judged by its status, its body read within
//! bounds, and where that is safe sent once more.
//!
//! A call that was sent goes on until it is answered or its time is up, whether or not anybody still waits for it: so a service that
//! hangs is noticed even where every request gives up earlier.

use crate::clock;
use crate::store::StoreError;
use crate::store::breaker::Breaker;
use crate::store::budget::Budget;
use crate::store::calls::{Call, CallMethod, Called, Calls, PATH_BYTES_MAX};
use crate::store::health::Health;
use crate::store::http::connect::{SendMany, SendOne};
use crate::store::http::pool::{Age, ConnectionPool, Lease, Permit};
use crate::store::http::site::Site;
use crate::store::parcel::{Parcel, Waiting};
use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::{Request, Response, Version, header};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The bytes of an answer without rows that are read, so that its connection can be kept.
const DRAINED_BYTES_MAX: usize = 64 << 10;
/// The bytes of such an answer that are for the log.
const SAID_BYTES_MAX: usize = 200;
/// How long a connection may take to be ready again after an answer, before it is given up.
const READY_WITHIN: Duration = Duration::from_millis(50);

pub(super) struct HttpClient(Rc<ClientState>);

struct ClientState {
    site: Arc<Site>,
    pool: ConnectionPool,
    breaker: Rc<Breaker>,
    budget: Budget,
    health: Arc<Health>,
    /// The GETs in flight, by their paths. Empty where sharing is switched off.
    flying: RefCell<HashMap<String, Parcel<CallOutcome>>>,
}

type CallOutcome = Result<Option<Bytes>, CallFailed>;

#[derive(Clone, Debug)]
struct CallFailed {
    error: StoreError,
    blame: Blame,
    /// Another try may go well.
    may_pass: bool,
}

/// What a failed call says about the service.
#[derive(Clone, Copy, Debug)]
enum Blame {
    /// It cannot answer now.
    Service,
    /// It answers, and does not like what it was asked, or what it says is of no use.
    Caller,
    /// Nothing, or nothing that the breaker has not been told.
    Nobody,
}

impl CallFailed {
    fn new(blame: Blame, error: StoreError) -> CallFailed {
        CallFailed { error, blame, may_pass: false }
    }

    /// The connection was lost before there was an answer.
    fn lost(error: StoreError) -> CallFailed {
        CallFailed { error, blame: Blame::Service, may_pass: true }
    }
}

impl HttpClient {
    pub(super) fn new(site: Arc<Site>, health: Arc<Health>) -> HttpClient {
        let breaker = Rc::new(Breaker::new(health.clone()));
        // Connections are made when they are needed, so there is nothing to wait for.
        breaker.close();
        let pool = ConnectionPool::new(site.clone(), health.clone(), breaker.clone());
        let budget = Budget::new(site.policy.retry_percent);
        HttpClient(Rc::new(ClientState { site, pool, breaker, budget, health, flying: RefCell::default() }))
    }
}

impl Calls for HttpClient {
    fn call(&self, call: Call) -> Called<'_> {
        let inside = self.0.clone();
        Box::pin(async move { inside.ask(call).await })
    }
}

impl ClientState {
    async fn ask(self: Rc<Self>, call: Call) -> Result<Option<Bytes>, StoreError> {
        self.budget.count_first_tries(1);
        let mut outcome = self.attempt(&call).await;
        let is_safe = call.method == CallMethod::Get;
        if is_safe && matches!(&outcome, Err(failed) if failed.may_pass) && self.budget.take(1) {
            self.health.count(|health| &health.retries, 1);
            outcome = self.attempt(&call).await;
        }
        outcome.map_err(|failed| {
            self.health.count(|health| &health.errors, 1);
            failed.error
        })
    }

    async fn attempt(self: &Rc<Self>, call: &Call) -> CallOutcome {
        if let Some(mut answer) = self.join(call) {
            return answer.answer().await;
        }
        let refused = |error| CallFailed::new(Blame::Nobody, error);
        // Where the breaker is open, at most one call is let through, and the others need not wait for anything.
        let is_trial = !self.breaker.is_closed();
        if is_trial {
            self.breaker.pass().await.map_err(refused)?;
        }
        let permit = timeout(self.site.request_timeout(), self.pool.permit()).await;
        let Ok(Some(permit)) = permit else { return Err(refused(self.late())) };
        // While this call waited, the same call may have been sent, or the service may have failed.
        if let Some(mut answer) = self.join(call) {
            return answer.answer().await;
        }
        if !is_trial {
            self.breaker.pass().await.map_err(refused)?;
        }
        let parcel = Parcel::new();
        let mut answer = parcel.wait();
        if self.is_shared(call) {
            self.flying.borrow_mut().insert(call.path.clone(), parcel.clone());
        }
        self.health.count(|health| &health.steps, 1);
        self.health.count(|health| &health.commands, 1);
        tokio::task::spawn_local(self.clone().carry_out(call.clone(), permit, parcel));
        answer.answer().await
    }

    fn is_shared(&self, call: &Call) -> bool {
        self.site.policy.single_flight && call.method == CallMethod::Get
    }

    /// Shares the answer of an identical call in flight. The headers are the endpoint's, so the path is all that differs.
    fn join(&self, call: &Call) -> Option<Waiting<CallOutcome>> {
        if !self.is_shared(call) {
            return None;
        }
        let answer = self.flying.borrow().get(&call.path)?.wait();
        self.health.count(|health| &health.shared, 1);
        Some(answer)
    }

    fn late(&self) -> StoreError {
        StoreError::TimedOut { address: self.site.shown(), ms: self.site.policy.request_timeout_ms.into() }
    }

    fn unavailable(&self, why: &str) -> StoreError {
        StoreError::Unavailable(format!("{}: {why}", self.site.shown()))
    }

    /// Sends a call, tells the breaker how that went, and hands out the answer.
    async fn carry_out(self: Rc<Self>, call: Call, permit: Permit, parcel: Parcel<CallOutcome>) {
        let outcome = self.exchange(&call).await;
        match &outcome {
            Ok(_) | Err(CallFailed { blame: Blame::Caller, .. }) => self.breaker.answered(None),
            Err(CallFailed { blame: Blame::Service, error, .. }) => self.breaker.answered(Some(error.clone())),
            Err(CallFailed { blame: Blame::Nobody, .. }) => {}
        }
        if self.is_shared(&call) {
            self.flying.borrow_mut().remove(&call.path);
        }
        // A second try, or whoever is next, may have it at once.
        drop(permit);
        parcel.deliver(outcome);
    }

    /// Sends a call on a connection, kept or new.
    async fn exchange(&self, call: &Call) -> CallOutcome {
        loop {
            // A failed attempt to connect has told the breaker by itself.
            let lease = self.pool.lease().await;
            let (lease, age) = lease.map_err(|error| CallFailed::new(Blame::Nobody, error))?;
            let started = clock::now();
            let sent = match lease {
                Lease::One(sender) => timeout(self.site.request_timeout(), self.send_first(call, sender)).await,
                Lease::Many(stream) => {
                    let sent = timeout(self.site.request_timeout(), self.send_second(call, stream.sender())).await;
                    if !matches!(&sent, Ok(Sent::Whole(_))) {
                        self.pool.retire(&stream);
                    }
                    sent
                }
            };
            return match sent {
                Err(_) => Err(CallFailed::new(Blame::Service, self.late())),
                // The service had closed the connection before anything was sent; only a new one shows whether it is there.
                Ok(Sent::Nothing) if age == Age::Kept => continue,
                Ok(Sent::Nothing) => Err(CallFailed::lost(self.unavailable("the connection was closed"))),
                Ok(Sent::Lost(failed)) => Err(failed),
                Ok(Sent::Whole(outcome)) => {
                    self.health.record_latency(clock::now().saturating_duration_since(started));
                    outcome
                }
            };
        }
    }

    async fn send_first(&self, call: &Call, mut sender: SendOne) -> Sent {
        let Some(request) = self.site.request(call, Version::HTTP_11) else { return bad_path() };
        let sent = match sender.try_send_request(request).await {
            Ok(response) => self.read(response).await,
            Err(error) => self.not_answered(error),
        };
        // A connection whose answer was not read to its end does not get ready again, and is closed.
        let was_read = match &sent {
            Sent::Whole(Err(failed)) => {
                !matches!(failed.error, StoreError::AnswerTooLarge { .. } | StoreError::Encoded { .. })
            }
            Sent::Whole(Ok(_)) => true,
            Sent::Nothing | Sent::Lost(_) => false,
        };
        if was_read && matches!(timeout(READY_WITHIN, sender.ready()).await, Ok(Ok(()))) {
            self.pool.keep(sender);
        }
        sent
    }

    async fn send_second(&self, call: &Call, mut sender: SendMany) -> Sent {
        let Some(request) = self.site.request(call, Version::HTTP_2) else { return bad_path() };
        match sender.try_send_request(request).await {
            Ok(response) => self.read(response).await,
            Err(error) => self.not_answered(error),
        }
    }

    fn not_answered(&self, mut error: TrySendError<Request<Full<Bytes>>>) -> Sent {
        match error.take_message() {
            Some(_) => Sent::Nothing,
            None => Sent::Lost(self.lost(&error.into_error())),
        }
    }

    fn lost(&self, error: &hyper::Error) -> CallFailed {
        // What a library says of an error is general; what it was made from says more.
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        CallFailed::lost(self.unavailable(&format!("{error}{cause}")))
    }

    /// What an answer says.
    async fn read(&self, response: Response<Incoming>) -> Sent {
        let status = response.status().as_u16();
        let whole = match status {
            // There is nothing under the path.
            204 | 205 | 404 => {
                drop(read_some(response.into_body()).await);
                Ok(None)
            }
            200..=299 => {
                let encoding = response.headers().get(header::CONTENT_ENCODING).filter(|value| *value != "identity");
                if let Some(encoding) = encoding {
                    let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
                    Err(CallFailed::new(Blame::Caller, StoreError::Encoded { encoding }))
                } else {
                    match self.read_whole(response.into_body()).await {
                        Err(failed @ CallFailed { blame: Blame::Service, .. }) => return Sent::Lost(failed),
                        body => body.map(Some),
                    }
                }
            }
            _ => {
                let said = read_some(response.into_body()).await;
                let said = String::from_utf8_lossy(&said).into_owned();
                let error = StoreError::Status { address: self.site.shown(), status, said };
                let blame = if is_the_services(status) { Blame::Service } else { Blame::Caller };
                Err(CallFailed { error, blame, may_pass: matches!(status, 502..=504) })
            }
        };
        Sent::Whole(whole)
    }

    /// The whole body, as long as it is not too large.
    async fn read_whole(&self, mut body: Incoming) -> Result<Bytes, CallFailed> {
        let most = self.site.policy.bytes_max as usize;
        let too_large = || CallFailed::new(Blame::Caller, StoreError::AnswerTooLarge { bytes_max: most });
        if body.size_hint().lower() > most as u64 {
            return Err(too_large());
        }
        let (mut first, mut all) = (Bytes::new(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| self.lost(&error))?.into_data() else { continue };
            if first.len() + all.len() + data.len() > most {
                return Err(too_large());
            }
            // An answer in one piece is not copied.
            if first.is_empty() && all.is_empty() {
                first = data;
                continue;
            }
            if all.is_empty() {
                all.reserve((first.len() + data.len() + body.size_hint().lower() as usize).min(most));
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}

/// How far a request came.
enum Sent {
    /// No byte of it was sent.
    Nothing,
    /// The connection was lost, or its path cannot be sent.
    Lost(CallFailed),
    /// There is an answer.
    Whole(CallOutcome),
}

fn bad_path() -> Sent {
    Sent::Lost(CallFailed::new(Blame::Nobody, StoreError::BadPath { bytes_max: PATH_BYTES_MAX }))
}

/// Whether a status says that the service cannot answer now, rather than that it does not answer this.
pub(crate) fn is_the_services(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// The beginning of a body that is for the log. The rest is read as long as it is short, so that its connection can be kept.
async fn read_some(mut body: Incoming) -> Vec<u8> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        bytes += data.len();
        kept.extend_from_slice(&data[..data.len().min(SAID_BYTES_MAX - kept.len())]);
        if bytes > DRAINED_BYTES_MAX {
            break;
        }
    }
    kept
}
