//! One connection: HTTP/1.1 or HTTP/2 on a socket, closed when its client is silent or stuck, when it is evicted, and when the process stops.
//!
//! There is one timer per connection and none per request: it checks now and then how long the current wait has lasted.

use crate::client_stream::ClientStream;
use crate::connection_state::{CloseReason, ConnectionClass, ConnectionState};
use crate::loop_state::{LoopState, ShutdownStage};
use crate::responder::Responder;
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

/// How often a connection checks its timeouts, at least: it may be closed this much late.
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
pub(crate) struct LoopExecutor(LoopHandle);

impl<F: Future<Output = ()> + 'static> Executor<F> for LoopExecutor {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// How connections speak HTTP; made once for each loop.
pub(crate) fn protocol(loop_handle: &LoopHandle) -> auto::Builder<LoopExecutor> {
    let mut protocol = auto::Builder::new(LoopExecutor(loop_handle.clone()));
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
    loop_state: Rc<LoopState>,
    state: Rc<ConnectionState>,
    http: Pin<Box<auto::Connection<'static, TokioIo<ClientStream>, Responder, LoopExecutor>>>,
    timer: Pin<Box<Sleep>>,
    closing: bool,
}

impl Connection {
    pub(crate) fn new(
        loop_state: &Rc<LoopState>,
        protocol: &auto::Builder<LoopExecutor>,
        stream: TcpStream,
        class: ConnectionClass,
    ) -> Connection {
        let now = clock::now();
        let state = Rc::new(ConnectionState::new(class, now));
        loop_state.register(&state);
        let responder = Responder { loop_state: loop_state.clone(), state: state.clone() };
        let io = TokioIo::new(ClientStream::new(stream, loop_state.clone(), state.clone()));
        let http = Box::pin(protocol.serve_connection(io, responder).into_owned());
        let timer = Box::pin(sleep_until(now + LOOK));
        Connection { loop_state: loop_state.clone(), state, http, timer, closing: false }
    }

    /// Once the process stops, lets requests in flight finish and no new one begin.
    fn begin_shutdown(&mut self) {
        let close = match self.loop_state.stage.get() {
            ShutdownStage::Open => false,
            // HTTP/2 tells the client which of its requests still count. With HTTP/1.1 the next answer says so, since a client that
            // is just sending a request would find the connection closed.
            ShutdownStage::Closing => self.state.multiplexed.get(),
            ShutdownStage::LastCall | ShutdownStage::Over => true,
        };
        if close && !self.closing {
            self.closing = true;
            self.http.as_mut().graceful_shutdown();
        }
    }

    /// Whether to close the connection now, and why.
    fn close_reason(&mut self, cx: &mut Context<'_>) -> Option<CloseReason> {
        match self.loop_state.stage.get() {
            _ if self.state.evicted.get() => return Some(CloseReason::Evicted),
            ShutdownStage::Over => return Some(CloseReason::Stopping),
            // What has not even asked by now will not be answered.
            ShutdownStage::LastCall if self.state.is_half_sent() => return Some(CloseReason::Stopping),
            _ => {}
        }
        if let Some(at) = self.state.gone_at()
            && at < self.timer.deadline()
            && clock::now() < at
        {
            self.timer.as_mut().reset(at);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = clock::now();
            let limit = self.state.limit(now, &self.loop_state.app.settings.timeouts);
            if let Some((at, reason)) = limit
                && now >= at
            {
                return Some(reason);
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
        let known = this.state.waker.borrow().as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if !known {
            *this.state.waker.borrow_mut() = Some(cx.waker().clone());
        }
        if this.loop_state.stage.get() != ShutdownStage::Open {
            this.begin_shutdown();
        }
        // Before timeouts are checked: a request that is already here is answered.
        if this.http.as_mut().poll(cx).is_ready() {
            // Errors of a connection are its client's; what became of its requests has been recorded.
            return Poll::Ready(());
        }
        match this.close_reason(cx) {
            Some(reason) => {
                this.loop_state.metrics.count_close(reason);
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.loop_state.unregister(&self.state);
    }
}
