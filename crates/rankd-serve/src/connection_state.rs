//! The state of one connection: whether a request is in flight on it, what it waits for and since when.
//!
//! Touched by its loop's thread only. The bytes that come and go are noted here by `client_stream`; what follows from it, that a silent
//! or stuck client is cut, is decided in `connection`.

use crate::unread_answers::UnreadAnswers;
use rankd_engine::clock::{self, Instant};
use rankd_engine::run::Cancel;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// How long a client that has closed its side is assumed to still wait for its answer.
const MAYBE_THERE: Duration = Duration::from_millis(50);

/// How long a client may take for each thing.
#[derive(Clone, Copy, Debug)]
pub struct ClientTimeouts {
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// From the end of the head to the end of the body.
    pub body: Duration,
    /// Between requests, and before the first byte of the first one.
    pub idle: Duration,
    /// While there is an answer that the client does not read.
    pub stall: Duration,
}

/// What a connection is for. Each class has its own limit, and makes room among its own connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionClass {
    Clients,
    /// Accepted when the limit of clients is reached and none of them is idle: only health checks are answered.
    Health,
    /// To the listener for operators.
    Admin,
    /// To the listener of the console.
    Console,
}

impl ConnectionClass {
    pub(crate) const ALL: [ConnectionClass; 4] =
        [ConnectionClass::Clients, ConnectionClass::Health, ConnectionClass::Admin, ConnectionClass::Console];
}

pub(crate) struct ConnectionState {
    pub(crate) class: ConnectionClass,
    /// Requests whose head is here and whose answer is not yet given to the connection.
    pub(crate) serving: Cell<u32>,
    /// When the connection was made, or its last answer given.
    waiting_since: Cell<Instant>,
    /// Of the requests served, those whose body has not come whole.
    receiving: Cell<u32>,
    /// When the first of these began to wait for its body.
    receiving_since: Cell<Instant>,
    /// When the first byte of the next request came.
    head_since: Cell<Option<Instant>>,
    /// Bytes have come while a request was in flight, so that the next read may begin in the middle of one.
    in_pieces: Cell<bool>,
    /// Since when the socket takes no more bytes.
    stalled_since: Cell<Option<Instant>>,
    /// Answers that the client has not read.
    pub(crate) unread: UnreadAnswers,
    /// When the client closed its side, if that was while it had an answer to come.
    closed_since: Cell<Option<Instant>>,
    /// Several requests at once, and frames that belong to none of them.
    pub(crate) multiplexed: Cell<bool>,
    /// It has to make room for another connection.
    pub(crate) evicted: Cell<bool>,
    /// Stops the runs in progress.
    pub(crate) runs: RefCell<Vec<Arc<Cancel>>>,
    /// Of the connection's task.
    pub(crate) waker: RefCell<Option<Waker>>,
}

impl ConnectionState {
    pub(crate) fn new(class: ConnectionClass, now: Instant) -> ConnectionState {
        ConnectionState {
            class,
            serving: Cell::new(0),
            waiting_since: Cell::new(now),
            receiving: Cell::new(0),
            receiving_since: Cell::new(now),
            head_since: Cell::new(None),
            in_pieces: Cell::new(false),
            stalled_since: Cell::new(None),
            unread: UnreadAnswers::default(),
            closed_since: Cell::new(None),
            multiplexed: Cell::new(false),
            evicted: Cell::new(false),
            runs: RefCell::default(),
            waker: RefCell::default(),
        }
    }

    /// A request's head is complete. Returns the moment at which its first byte arrived.
    pub(crate) fn begin(&self) -> Instant {
        self.serving.set(self.serving.get() + 1);
        self.head_since.take().unwrap_or_else(clock::now)
    }

    /// The answer is handed over, or the client has gone. Returns the moment.
    pub(crate) fn end(&self) -> Instant {
        let now = clock::now();
        self.serving.set(self.serving.get().saturating_sub(1));
        self.waiting_since.set(now);
        now
    }

    /// Whether the next byte to come is the first of a request, on a connection that has nothing else to do.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.serving.get() == 0
            && self.head_since.get().is_none()
            && !self.in_pieces.get()
            && !self.multiplexed.get()
            && self.unread.bytes() == 0
            && self.stalled_since.get().is_none()
    }

    /// Bytes have come.
    pub(crate) fn note_read(&self) {
        if self.serving.get() > 0 {
            self.in_pieces.set(true);
        } else if self.head_since.get().is_none() {
            self.head_since.set(Some(clock::now()));
        }
    }

    /// Bytes were written, or could not be.
    pub(crate) fn note_written(&self, is_stalled: bool) {
        match is_stalled {
            true if self.stalled_since.get().is_none() => self.stalled_since.set(Some(clock::now())),
            true => {}
            false => self.stalled_since.set(None),
        }
    }

    /// A request's body is not complete; it is waited for until the result is dropped.
    pub(crate) fn receive(self: &Rc<ConnectionState>) -> ReceivingBody {
        if self.receiving.get() == 0 {
            self.receiving_since.set(clock::now());
        }
        self.receiving.set(self.receiving.get() + 1);
        ReceivingBody(self.clone())
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Since when nothing has been in flight here but bodies that do not arrive; `None` while something is.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        match self.serving.get() {
            0 => Some(self.waiting_since.get()),
            serving => (serving == self.receiving.get()).then(|| self.receiving_since.get()),
        }
    }

    /// Whether a request has begun to come in and its head is not complete.
    pub(crate) fn is_half_sent(&self) -> bool {
        self.serving.get() == 0 && self.head_since.get().is_some()
    }

    /// Whether the protocol shall not know yet that the client has closed its side. To us, a client that is gone is the same as one
    /// that has sent everything: only writing to it shows which it is. So runs are given a moment before they are stopped.
    pub(crate) fn hold_back_close(&self) -> bool {
        if self.stalled_since.get().is_some() {
            return true;
        }
        if self.serving.get() == 0 {
            return false;
        }
        let now = clock::now();
        let since = self.closed_since.get().unwrap_or(now);
        self.closed_since.set(Some(since));
        now < since + MAYBE_THERE
    }

    /// When runs are stopped because their client seems to be gone.
    pub(crate) fn gone_at(&self) -> Option<Instant> {
        self.closed_since.get().map(|since| since + MAYBE_THERE)
    }

    /// When the connection times out, and why. A request in flight has limits of its own; but an answer that is not read counts
    /// whatever else happens on the connection.
    pub(crate) fn limit(&self, now: Instant, timeouts: &ClientTimeouts) -> Option<(Instant, CloseReason)> {
        let stalled = [self.stalled_since.get(), self.unread.stuck_since(now)].into_iter().flatten().min();
        if let Some(since) = stalled {
            return Some((since + timeouts.stall, CloseReason::Stalled));
        }
        if self.serving.get() > 0 {
            return None;
        }
        match self.head_since.get() {
            // Between the requests of such a connection other frames come, so that bytes do not mean a head.
            Some(since) if !self.multiplexed.get() => Some((since + timeouts.head, CloseReason::SlowHead)),
            _ => Some((self.waiting_since.get() + timeouts.idle, CloseReason::Idle)),
        }
    }
}

/// A request whose body is waited for.
pub(crate) struct ReceivingBody(Rc<ConnectionState>);

impl Drop for ReceivingBody {
    fn drop(&mut self) {
        self.0.receiving.set(self.0.receiving.get() - 1);
    }
}

/// Why a connection was closed from our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Idle,
    SlowHead,
    Stalled,
    Evicted,
    Stopping,
}

impl CloseReason {
    pub(crate) const ALL: [CloseReason; 5] =
        [CloseReason::Idle, CloseReason::SlowHead, CloseReason::Stalled, CloseReason::Evicted, CloseReason::Stopping];

    pub(crate) fn name(self) -> &'static str {
        match self {
            CloseReason::Idle => "idle",
            CloseReason::SlowHead => "slow_head",
            CloseReason::Stalled => "stalled",
            CloseReason::Evicted => "evicted",
            CloseReason::Stopping => "stopping",
        }
    }
}
