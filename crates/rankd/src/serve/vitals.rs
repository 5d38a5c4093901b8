//! What is known of one connection while it lives: whether a request is under way on it, what it waits for and since when.
//!
//! Touched by its loop's thread only. The bytes that come and go are noted here by [`Io`]; what follows from it, that a silent
//! or stuck client is cut, is decided in `connection`.

use rankd_engine::clock::{self, Instant};
use rankd_engine::run::Cancel;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// So long a client that has closed its side is taken for one that waits for its answer.
const MAYBE_THERE: Duration = Duration::from_millis(50);

/// How long each kind of silence may last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// From the first byte of a request to the end of its head.
    pub(crate) head: Duration,
    /// From the end of the head to the end of the body.
    pub(crate) body: Duration,
    /// Between requests, and before the first byte of the first one.
    pub(crate) idle: Duration,
    /// While we have something to say and the client does not take it.
    pub(crate) stall: Duration,
}

pub(crate) struct Vitals {
    /// Requests whose head is here and whose answer is not yet given to the connection.
    pub(crate) serving: Cell<u32>,
    /// When the connection was made, or its last answer given.
    waiting_since: Cell<Instant>,
    /// When the first byte of the next request came.
    head_since: Cell<Option<Instant>>,
    /// Since when the client has not taken what we have for it.
    stalled_since: Cell<Option<Instant>>,
    /// When the client closed its side, if that was while it had an answer to come.
    closed_since: Cell<Option<Instant>>,
    /// Several requests at once, and frames that belong to none of them.
    pub(crate) multiplexed: Cell<bool>,
    /// The room is needed for somebody else.
    pub(crate) evicted: Cell<bool>,
    /// Stops the runs under way.
    pub(crate) runs: RefCell<Vec<Arc<Cancel>>>,
    /// Of the connection's task.
    pub(crate) waker: RefCell<Option<Waker>>,
}

impl Vitals {
    pub(crate) fn new(now: Instant) -> Vitals {
        Vitals {
            serving: Cell::new(0),
            waiting_since: Cell::new(now),
            head_since: Cell::new(None),
            stalled_since: Cell::new(None),
            closed_since: Cell::new(None),
            multiplexed: Cell::new(false),
            evicted: Cell::new(false),
            runs: RefCell::default(),
            waker: RefCell::default(),
        }
    }

    /// A request's head is complete. Gives the moment at which it began to come in.
    pub(crate) fn begin(&self) -> Instant {
        self.serving.set(self.serving.get() + 1);
        self.head_since.take().unwrap_or_else(clock::now)
    }

    /// The answer is given, or nobody wants it any more.
    pub(crate) fn end(&self) {
        self.serving.set(self.serving.get().saturating_sub(1));
        self.waiting_since.set(clock::now());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Since when nothing has been under way here; `None` while something is.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.serving.get() == 0).then(|| self.waiting_since.get())
    }

    /// Whether a request has begun to come in and its head is not complete.
    pub(crate) fn half_sent(&self) -> bool {
        self.serving.get() == 0 && self.head_since.get().is_some()
    }

    /// Whether the protocol shall not know yet that the client has closed its side. To us, a client that is gone is the same as one
    /// that has said all it had to say: only what is written to it tells. So runs are given a moment before they are stopped.
    fn keeps_from_closing(&self) -> bool {
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

    /// When patience ends, and with what. Nothing is said while a request is served: that has limits of its own.
    pub(crate) fn limit(&self, patience: &Patience) -> Option<(Instant, Cut)> {
        if let Some(since) = self.stalled_since.get() {
            return Some((since + patience.stall, Cut::Stalled));
        }
        if self.serving.get() > 0 {
            return None;
        }
        match self.head_since.get() {
            // Between the requests of such a connection other frames come, so that bytes do not mean a head.
            Some(since) if !self.multiplexed.get() => Some((since + patience.head, Cut::SlowHead)),
            _ => Some((self.waiting_since.get() + patience.idle, Cut::Idle)),
        }
    }
}

/// Why a connection was closed from our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Idle,
    SlowHead,
    Stalled,
    Evicted,
    Stopping,
}

impl Cut {
    pub(crate) const ALL: [Cut; 5] = [Cut::Idle, Cut::SlowHead, Cut::Stalled, Cut::Evicted, Cut::Stopping];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Cut::Idle => "idle",
            Cut::SlowHead => "slow_head",
            Cut::Stalled => "stalled",
            Cut::Evicted => "evicted",
            Cut::Stopping => "stopping",
        }
    }
}

/// A socket whose comings and goings are noted.
pub(crate) struct Io {
    stream: TcpStream,
    vitals: Rc<Vitals>,
}

impl Io {
    pub(crate) fn new(stream: TcpStream, vitals: Rc<Vitals>) -> Io {
        Io { stream, vitals }
    }

    fn wrote<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match polled {
            Poll::Pending if self.vitals.stalled_since.get().is_none() => {
                self.vitals.stalled_since.set(Some(clock::now()));
            }
            Poll::Ready(_) => self.vitals.stalled_since.set(None),
            Poll::Pending => {}
        }
        polled
    }
}

impl AsyncRead for Io {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let vitals = &self.vitals;
        if matches!(polled, Poll::Ready(Ok(()))) && buf.filled().len() == before && vitals.keeps_from_closing() {
            return Poll::Pending;
        }
        if polled.is_ready() && vitals.serving.get() == 0 && vitals.head_since.get().is_none() {
            vitals.head_since.set(Some(clock::now()));
        }
        polled
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(polled)
    }
}
