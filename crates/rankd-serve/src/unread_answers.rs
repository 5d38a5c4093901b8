//! Answers that were handed to the protocol and that their clients have not read yet. Each is counted with its bytes, for its
//! connection and for its loop, from the moment it is handed over until its last byte is written to the socket.
//!
//! A client that announces no window for its answers, or that does not read, makes the server keep them. What follows from the
//! counts is decided elsewhere: `connection` closes one whose client does not read in time, `loop_state` bounds all of them together.

use rankd_engine::clock::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// What an answer costs besides its bytes: its head, its stream and its entries in tables.
const ANSWER_COST: usize = 2 << 10;
/// How much of an answer, or the rest of it, has to be read for that to count as progress.
const PROGRESS: usize = 16 << 10;

/// What an answer of this many bytes counts for.
pub(crate) fn cost(bytes: usize) -> usize {
    bytes + ANSWER_COST
}

/// The answers that one client has not read.
#[derive(Default)]
pub(crate) struct UnreadAnswers {
    answers: RefCell<VecDeque<UnreadAnswer>>,
    bytes: Cell<usize>,
    next: Cell<u64>,
}

struct UnreadAnswer {
    number: u64,
    /// When it was handed over, or progress was last noted.
    since: Instant,
    taken: usize,
    /// How much of it had been taken at that moment.
    noted: usize,
}

impl UnreadAnswers {
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

    pub(crate) fn add(&self, cost: usize, since: Instant) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.bytes.set(self.bytes.get() + cost);
        self.answers.borrow_mut().push_back(UnreadAnswer { number, since, taken: 0, noted: 0 });
        number
    }

    pub(crate) fn note(&self, number: u64, taken: usize) {
        // There are at most as many as a connection may have requests in flight, and mostly one.
        if let Some(answer) = self.answers.borrow_mut().iter_mut().find(|answer| answer.number == number) {
            answer.taken += taken;
        }
    }

    pub(crate) fn remove(&self, cost: usize, number: u64) {
        self.bytes.set(self.bytes.get() - cost);
        let mut answers = self.answers.borrow_mut();
        if let Some(at) = answers.iter().position(|answer| answer.number == number) {
            answers.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_engine::clock;
    use std::time::Duration;

    #[test]
    fn the_slowest_answer_counts_and_a_trickle_is_no_progress() {
        let (unread, start) = (UnreadAnswers::default(), clock::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(unread.stuck_since(start), None);
        let first = unread.add(cost(100_000), at(0));
        let second = unread.add(cost(10), at(1));
        assert_eq!(unread.stuck_since(at(2)), Some(at(0)));
        unread.note(first, PROGRESS - 1);
        assert_eq!(unread.stuck_since(at(2)), Some(at(0)));
        unread.note(first, 1);
        assert_eq!(unread.stuck_since(at(3)), Some(at(1)));
        unread.remove(cost(10), second);
        assert_eq!((unread.stuck_since(at(4)), unread.bytes()), (Some(at(3)), cost(100_000)));
        unread.remove(cost(100_000), first);
        assert_eq!((unread.stuck_since(at(4)), unread.bytes()), (None, 0));
    }
}
