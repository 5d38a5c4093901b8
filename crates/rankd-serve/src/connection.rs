//! One connection: HTTP/1.1 or HTTP/2 on a socket, cut when its client is silent, stuck, in the way, or the process stops.
//!
//! One timer a connection, and none a request: it looks now and then at how long what is waited for has lasted.

use crate::acceptor::{Desk, Stage};
use crate::connection_state::{Cut, Io, Place, Vitals};
use crate::request_scope::Exchange;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use rankd_engine::{LoopHandle, clock};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until};

/// How often a connection looks at itself, at least: so much later than promised it may be cut.
const LOOK: Duration = Duration::from_secs(1);

/// What HTTP itself may cost: the bytes and the fields of a head, requests at once on a connection, bytes of bodies on their way in.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEAD_FIELDS_MAX: usize = 100;
const STREAMS_MAX: u32 = 128;
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
const FRAME_BYTES_MAX: u32 = 16 << 10;
/// Streams that a client has reset before they were looked at, and streams that were reset because the client broke the rules:
/// with more, the connection is closed.
const RESETS_MAX: usize = 20;
const ERRORS_MAX: usize = 128;

/// Spawns what a connection needs on its own loop.
#[derive(Clone)]
pub(crate) struct OnThisLoop(LoopHandle);

impl<F: Future<Output = ()> + 'static> Executor<F> for OnThisLoop {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// How connections speak HTTP; made once for each loop.
pub(crate) fn protocol(loop_handle: &LoopHandle) -> auto::Builder<OnThisLoop> {
    let mut protocol = auto::Builder::new(OnThisLoop(loop_handle.clone()));
    // Time is kept here, around all of it, so the protocol's own timers are off.
    protocol.http1().header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX).max_headers(HEAD_FIELDS_MAX);
    let mut http2 = protocol.http2();
    http2.max_concurrent_streams(STREAMS_MAX).max_header_list_size(HEAD_BYTES_MAX as u32);
    http2.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    http2.max_frame_size(FRAME_BYTES_MAX).max_send_buf_size(64 << 10);
    http2.max_pending_accept_reset_streams(RESETS_MAX).max_local_error_reset_streams(ERRORS_MAX);
    protocol
}

/// A connection until its end.
pub(crate) struct Connection {
    desk: Rc<Desk>,
    vitals: Rc<Vitals>,
    http: Pin<Box<auto::Connection<'static, TokioIo<Io>, Exchange, OnThisLoop>>>,
    timer: Pin<Box<Sleep>>,
    closing: bool,
}

impl Connection {
    pub(crate) fn new(desk: &Rc<Desk>, stream: TcpStream, place: Place) -> Connection {
        let now = clock::now();
        let vitals = Rc::new(Vitals::new(place, now));
        desk.came(&vitals);
        let exchange = Exchange { desk: desk.clone(), vitals: vitals.clone() };
        let io = TokioIo::new(Io::new(stream, vitals.clone()));
        let http = desk.protocol.serve_connection(io, exchange);
        let http = Box::pin(http.into_owned());
        let timer = Box::pin(sleep_until(now + LOOK));
        Connection { desk: desk.clone(), vitals, http, timer, closing: false }
    }

    /// Lets what is under way finish and nothing new begin, once the process stops.
    fn heed_stage(&mut self) {
        let close = match self.desk.stage.get() {
            Stage::Open => false,
            // A client that has several requests on the way is told which of them count. Another one is told with its next
            // answer, since one that is just sending a request would find the connection closed.
            Stage::Closing => self.vitals.multiplexed.get(),
            Stage::LastCall | Stage::Over => true,
        };
        if close && !self.closing {
            self.closing = true;
            self.http.as_mut().graceful_shutdown();
        }
    }

    /// Whether it is time to go, and why.
    fn verdict(&mut self, cx: &mut Context<'_>) -> Option<Cut> {
        match self.desk.stage.get() {
            _ if self.vitals.evicted.get() => return Some(Cut::Evicted),
            Stage::Over => return Some(Cut::Stopping),
            // What has not even asked by now will not be answered.
            Stage::LastCall if self.vitals.half_sent() => return Some(Cut::Stopping),
            _ => {}
        }
        if let Some(at) = self.vitals.gone_at()
            && at < self.timer.deadline()
            && clock::now() < at
        {
            self.timer.as_mut().reset(at);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = clock::now();
            let limit = self.vitals.limit(now, &self.desk.app.settings.patience);
            if let Some((at, cut)) = limit
                && now >= at
            {
                return Some(cut);
            }
            let next = limit.map_or(now + LOOK, |(at, _)| at.min(now + LOOK));
            self.timer.as_mut().reset(next);
        }
        None
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let known = this.vitals.waker.borrow().as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if !known {
            *this.vitals.waker.borrow_mut() = Some(cx.waker().clone());
        }
        this.heed_stage();
        // Before patience is looked at: a request that is already here is answered.
        if this.http.as_mut().poll(cx).is_ready() {
            // Errors of a connection are its client's; what became of its requests has been told.
            return Poll::Ready(());
        }
        match this.verdict(cx) {
            Some(cut) => {
                this.desk.metrics.count_cut(cut);
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.desk.went(&self.vitals);
    }
}
