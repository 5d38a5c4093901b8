//! What all connections to one server have noticed of it together: when it was last heard, how long it usually takes to answer,
//! and whether it hangs. Sends nothing.
//!
//! One connection alone cannot distinguish a server that hangs from a packet that was lost: in both cases nothing comes for a
//! while. Where the same server is heard on another connection, it was the packet.

use crate::clock::{self, Instant};
use crate::store::StoreError;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The least time after which an answer is overdue. Much more than a server on the same network takes, much less than TCP waits
/// before it sends a lost packet again.
const OVERDUE_MIN: Duration = Duration::from_millis(20);
/// How far one answer moves the usual time.
const STEP: f64 = 0.05;
const USUAL_MIN_US: f64 = 10.0;

pub(super) struct Pulse {
    heard: Cell<Instant>,
    /// Half of the answers take longer than this, in microseconds.
    usual_us: Cell<f64>,
    /// Why the server is considered hung: it is silent on all connections.
    hangs: RefCell<Option<StoreError>>,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse { heard: Cell::new(clock::now()), usual_us: Cell::new(USUAL_MIN_US), hangs: RefCell::default() }
    }
}

impl Pulse {
    /// Something came from the server, on any connection.
    pub(super) fn mark_heard(&self, now: Instant) {
        self.heard.set(now);
        if self.hangs.borrow().is_some() {
            *self.hangs.borrow_mut() = None;
        }
    }

    pub(super) fn last_heard(&self) -> Instant {
        self.heard.get()
    }

    /// Nothing has come on any connection for as long as the endpoint allows.
    pub(super) fn mark_hanging(&self, why: StoreError) {
        *self.hangs.borrow_mut() = Some(why);
    }

    pub(super) fn hanging_because(&self) -> Option<StoreError> {
        self.hangs.borrow().clone()
    }

    /// An answer took this long: the median moves up or down a little. A few that were held up do not move it far.
    pub(super) fn record_latency(&self, took: Duration) {
        let (usual, took) = (self.usual_us.get(), took.as_secs_f64() * 1e6);
        let moved = if took > usual { usual * (1.0 + STEP) } else { usual / (1.0 + STEP) };
        self.usual_us.set(moved.max(USUAL_MIN_US));
    }

    pub(super) fn usual(&self) -> Duration {
        Duration::from_secs_f64(self.usual_us.get() / 1e6)
    }

    /// After this time an answer is worth asking for on another connection.
    pub(super) fn overdue(&self) -> Duration {
        (2 * self.usual()).max(OVERDUE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_follows_the_middle_and_not_the_few_that_were_held_up() {
        let pulse = Pulse::default();
        let answers = |count: usize, ms: u64, held_up_every: usize| {
            for number in 1..=count {
                let ms = if number % held_up_every == 0 { 200 } else { ms };
                pulse.record_latency(Duration::from_millis(ms));
            }
            pulse.overdue()
        };
        assert_eq!(answers(1000, 1, 5), OVERDUE_MIN, "a fifth of the answers was held up");
        let far = answers(1000, 50, 1001);
        assert!((90..=110).contains(&far.as_millis()), "{far:?}");
        assert_eq!(answers(1000, 1, 1001), OVERDUE_MIN);
    }
}
