//! Answers that were handed to the protocol and that their clients have not taken yet. Each is counted with its bytes, for its
//! connection and for its loop, from the moment that it is handed over until its last byte is written to the socket.
//!
//! A client that announces no window for its answers, or that does not read, makes the server keep them. What follows from the
//! counts is decided elsewhere: `connection` cuts a client that does not take an answer in time, `acceptor` bounds all of them together.

use crate::acceptor::Desk;
use crate::connection_state::Vitals;
use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use rankd_engine::clock::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What an answer costs besides its bytes: its head, its stream and its entries in tables.
const ANSWER_COST: usize = 2 << 10;
/// So much of an answer, or the rest of it, has to be taken for the client to count as one that takes it.
const PROGRESS: usize = 16 << 10;

/// What an answer of so many bytes counts for.
pub(crate) fn cost(bytes: usize) -> usize {
    bytes + ANSWER_COST
}

/// The answers that one connection has not taken.
#[derive(Default)]
pub(crate) struct Untaken {
    answers: RefCell<VecDeque<Answer>>,
    bytes: Cell<usize>,
    next: Cell<u64>,
}

struct Answer {
    number: u64,
    /// When it was handed over, or progress was last noted.
    since: Instant,
    taken: usize,
    /// How much of it had been taken at that moment.
    noted: usize,
}

impl Untaken {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Since when the slowest answer has made no progress. Looked at now and then, so that progress itself costs no look at the clock.
    pub(crate) fn stuck_since(&self, now: Instant) -> Option<Instant> {
        let mut answers = self.answers.borrow_mut();
        let since = answers.iter_mut().map(|answer| {
            if answer.taken - answer.noted >= PROGRESS {
                (answer.noted, answer.since) = (answer.taken, now);
            }
            answer.since
        });
        since.min()
    }

    fn add(&self, cost: usize, since: Instant) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.bytes.set(self.bytes.get() + cost);
        self.answers.borrow_mut().push_back(Answer { number, since, taken: 0, noted: 0 });
        number
    }

    fn note(&self, number: u64, taken: usize) {
        // There are as many as one connection may have requests under way, and mostly one.
        if let Some(answer) = self.answers.borrow_mut().iter_mut().find(|answer| answer.number == number) {
            answer.taken += taken;
        }
    }

    fn remove(&self, cost: usize, number: u64) {
        self.bytes.set(self.bytes.get() - cost);
        let mut answers = self.answers.borrow_mut();
        if let Some(at) = answers.iter().position(|answer| answer.number == number) {
            answers.remove(at);
        }
    }
}

/// The body of an answer.
pub(crate) struct Outgoing(Option<Piece>);

impl Outgoing {
    /// Counts an answer that is handed over now.
    pub(crate) fn new(bytes: Bytes, desk: &Rc<Desk>, vitals: &Rc<Vitals>, now: Instant) -> Outgoing {
        if bytes.is_empty() {
            return Outgoing(None);
        }
        let cost = cost(bytes.len());
        desk.count_untaken(|all| all + cost);
        let number = vitals.untaken.add(cost, now);
        Outgoing(Some(Piece { bytes, cost, number, desk: desk.clone(), vitals: vitals.clone() }))
    }
}

impl Body for Outgoing {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
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
pub(crate) struct Piece {
    bytes: Bytes,
    cost: usize,
    number: u64,
    desk: Rc<Desk>,
    vitals: Rc<Vitals>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.vitals.untaken.note(self.number, count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.vitals.untaken.remove(self.cost, self.number);
        self.desk.count_untaken(|all| all - self.cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_engine::clock;
    use std::time::Duration;

    #[test]
    fn the_slowest_answer_counts_and_a_trickle_is_no_progress() {
        let (untaken, start) = (Untaken::default(), clock::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(untaken.stuck_since(start), None);
        let first = untaken.add(cost(100_000), at(0));
        let second = untaken.add(cost(10), at(1));
        assert_eq!(untaken.stuck_since(at(2)), Some(at(0)));
        untaken.note(first, PROGRESS - 1);
        assert_eq!(untaken.stuck_since(at(2)), Some(at(0)));
        untaken.note(first, 1);
        assert_eq!(untaken.stuck_since(at(3)), Some(at(1)));
        untaken.remove(cost(10), second);
        assert_eq!((untaken.stuck_since(at(4)), untaken.bytes()), (Some(at(3)), cost(100_000)));
        untaken.remove(cost(100_000), first);
        assert_eq!((untaken.stuck_since(at(4)), untaken.bytes()), (None, 0));
    }
}
