//! The body of an answer, as the protocol takes it: its bytes count as unread until they are written, or the connection is gone.

use crate::connection_state::ConnectionState;
use crate::loop_state::LoopState;
use crate::unread_answers::cost;
use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use rankd_engine::clock::Instant;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

pub(crate) struct AnswerBody(Option<AnswerBytes>);

impl AnswerBody {
    /// Counts an answer that is handed over now.
    pub(crate) fn new(
        bytes: Bytes,
        loop_state: &Rc<LoopState>,
        state: &Rc<ConnectionState>,
        now: Instant,
    ) -> AnswerBody {
        if bytes.is_empty() {
            return AnswerBody(None);
        }
        let cost = cost(bytes.len());
        loop_state.count_unread(|all| all + cost);
        let number = state.unread.add(cost, now);
        AnswerBody(Some(AnswerBytes { bytes, cost, number, loop_state: loop_state.clone(), state: state.clone() }))
    }
}

impl Body for AnswerBody {
    type Data = AnswerBytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<AnswerBytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |piece| piece.bytes.len() as u64))
    }
}

/// The bytes of an answer. The protocol keeps them until they are written, or until the connection is gone.
pub(crate) struct AnswerBytes {
    bytes: Bytes,
    cost: usize,
    number: u64,
    loop_state: Rc<LoopState>,
    state: Rc<ConnectionState>,
}

impl Buf for AnswerBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.state.unread.note(self.number, count);
    }
}

impl Drop for AnswerBytes {
    fn drop(&mut self) {
        self.state.unread.remove(self.cost, self.number);
        self.loop_state.count_unread(|all| all - self.cost);
    }
}
