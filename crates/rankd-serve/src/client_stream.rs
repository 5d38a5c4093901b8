//! A client's socket as HTTP sees it. It notes in the connection's state when bytes are read and written, and refuses requests that HTTP
//! never sees: while the server is overloaded, reading and answering them there would cost it most of what they are refused for.

use crate::connection_state::ConnectionState;
use crate::loop_state::LoopState;
use crate::unread_request;
use rankd_engine::clock::Timer;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

pub(crate) struct ClientStream {
    stream: TcpStream,
    loop_state: Rc<LoopState>,
    state: Rc<ConnectionState>,
    /// A request that was refused and whose client is told a little later.
    held: Option<Timer>,
}

impl ClientStream {
    pub(crate) fn new(stream: TcpStream, loop_state: Rc<LoopState>, state: Rc<ConnectionState>) -> ClientStream {
        ClientStream { stream, loop_state, state, held: None }
    }

    fn wrote<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.state.note_written(polled.is_pending());
        polled
    }

    /// Whether what has just come is a request that is refused. If it is, its client is told now, or when `held` is over.
    fn refuses(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if !self.state.is_between_requests() {
            return Ok(false);
        }
        let Some((now, refusal)) = self.loop_state.refuses_unread_on(&self.state) else { return Ok(false) };
        let Some(plan) = unread_request::plan_of(bytes) else { return Ok(false) };
        self.state.begin();
        if let Some(at) = self.loop_state.count_unread_refusal(plan, now, refusal) {
            self.held = Some(Timer::new(at));
            return Ok(true);
        }
        self.send_refusal().map(|()| true)
    }

    fn send_refusal(&self) -> io::Result<()> {
        self.state.end();
        let answer = &self.loop_state.refusal_answer.http1;
        match self.stream.try_write(answer) {
            Ok(count) if count == answer.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            // The client has read every answer that HTTP gave it, but none of many refusals.
            Err(error) => Err(error),
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Some(held) = &mut this.held {
                ready!(Pin::new(held).poll(cx));
                this.held = None;
                this.send_refusal()?;
            }
            let before = buf.filled().len();
            let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
            if !matches!(polled, Poll::Ready(Ok(()))) {
                return polled;
            }
            let bytes = &buf.filled()[before..];
            if bytes.is_empty() {
                return if this.state.hold_back_close() { Poll::Pending } else { polled };
            }
            if this.refuses(bytes)? {
                buf.set_filled(before);
                continue;
            }
            this.state.note_read();
            return polled;
        }
    }
}

impl AsyncWrite for ClientStream {
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
