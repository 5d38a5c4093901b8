//! Whether steps are let through to a server. Opens when the connection is lost or the server keeps refusing, lets one attempt
//! through after a growing, jittered pause, and closes when that goes well.

use crate::clock::{self, Instant};
use crate::store::StoreError;
use crate::store::health::{self, Health};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The pause before the first new attempt, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// The number of steps in a row that a server refuses because of its own state before the breaker opens.
const REFUSALS_MAX: u32 = 5;

pub(super) struct Breaker {
    state: RefCell<State>,
    refusals: Cell<u32>,
    /// The next pause, and how many there have been.
    pause: Cell<Duration>,
    pauses: Cell<u64>,
    /// The state has changed.
    changed: Notify,
    health: Arc<Health>,
}

enum State {
    /// An attempt to connect is running and worth waiting for.
    Connecting,
    Closed,
    Open {
        why: StoreError,
        next: Instant,
    },
    HalfOpen {
        why: StoreError,
    },
    /// As open, but with a connection: the server answers, and refuses.
    Refusing {
        why: StoreError,
        next: Instant,
    },
    /// One step was let through to a server that refuses. If it is lost, the next may go at that time.
    Trying {
        why: StoreError,
        next: Instant,
    },
}

impl State {
    fn shown(&self) -> health::BreakerState {
        match self {
            State::Connecting | State::Closed => health::BreakerState::Closed,
            State::Open { .. } | State::Refusing { .. } => health::BreakerState::Open,
            State::HalfOpen { .. } | State::Trying { .. } => health::BreakerState::HalfOpen,
        }
    }
}

impl Breaker {
    pub(super) fn new(health: Arc<Health>) -> Breaker {
        health.move_connection(None, Some(health::BreakerState::Closed));
        Breaker {
            state: RefCell::new(State::Connecting),
            refusals: Cell::new(0),
            pause: Cell::new(PAUSE_FIRST),
            pauses: Cell::new(0),
            changed: Notify::new(),
            health,
        }
    }

    /// Lets a step through, at once or when the connection is there, or says why not.
    pub(super) async fn pass(&self) -> Result<(), StoreError> {
        let mut gave_way = false;
        loop {
            // Registered before looking, so that a change in between is not missed.
            let changed = self.changed.notified();
            match self.look() {
                Some(Ok(())) => return Ok(()),
                None => changed.await,
                Some(Err(why)) if gave_way => return Err(why),
                // On a thread that runs only while a read is waiting, the driver gets its turn here or never.
                Some(Err(_)) => {
                    gave_way = true;
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Waits for the end of an attempt to connect, and says whether it went well.
    pub(super) async fn settled(&self) -> bool {
        loop {
            // Registered before looking, so that a change in between is not missed.
            let changed = self.changed.notified();
            if !matches!(*self.state.borrow(), State::Connecting) {
                return self.is_closed();
            }
            changed.await;
        }
    }

    /// Passed, refused, or worth waiting for.
    pub(super) fn look(&self) -> Option<Result<(), StoreError>> {
        let try_anew = match &*self.state.borrow() {
            State::Closed => return Some(Ok(())),
            State::Connecting => return None,
            // The driver is overdue: nothing ran on this thread since the last request. It tries as soon as we wait.
            State::Open { next, .. } if *next <= clock::now() => return None,
            State::Refusing { why, next } | State::Trying { why, next } if *next <= clock::now() => why.clone(),
            State::Open { why, .. }
            | State::HalfOpen { why }
            | State::Refusing { why, .. }
            | State::Trying { why, .. } => return Some(Err(why.clone())),
        };
        self.enter(State::Trying { why: try_anew, next: clock::now() + PAUSE_MAX });
        Some(Ok(()))
    }

    /// A step was answered, or refused for a reason that lies in the state of the server.
    pub(super) fn answered(&self, refusal: Option<StoreError>) {
        match refusal {
            None => {
                self.refusals.set(0);
                let tried = matches!(*self.state.borrow(), State::Trying { .. } | State::Refusing { .. });
                if tried {
                    self.close();
                }
            }
            Some(why) => {
                self.refusals.set(self.refusals.get() + 1);
                let tried = matches!(*self.state.borrow(), State::Trying { .. });
                let full = matches!(*self.state.borrow(), State::Closed) && self.refusals.get() >= REFUSALS_MAX;
                if tried || full {
                    let next = self.next_attempt();
                    self.enter(State::Refusing { why, next });
                }
            }
        }
    }

    /// No step can get through, and there is no driver that tries again: the next step to be let through does.
    pub(super) fn refuse(&self, why: StoreError) {
        let next = self.next_attempt();
        self.enter(State::Refusing { why, next });
    }

    /// The connection is up and has been tried.
    pub(super) fn close(&self) {
        self.pause.set(PAUSE_FIRST);
        self.refusals.set(0);
        self.enter(State::Closed);
    }

    /// The connection is gone, but an attempt at once is worthwhile.
    pub(super) fn connect(&self) {
        self.enter(State::Connecting);
    }

    /// The connection was closed although the server answers; returns when the next attempt may begin. It is worth waiting for.
    pub(super) fn connect_soon(&self) -> Instant {
        self.enter(State::Connecting);
        self.next_attempt()
    }

    /// Whether steps pass without a second look.
    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.state.borrow(), State::Closed)
    }

    /// The connection is gone; returns when the next attempt may begin.
    pub(super) fn open(&self, why: StoreError) -> Instant {
        let next = self.next_attempt();
        self.enter(State::Open { why, next });
        next
    }

    /// An attempt to connect begins.
    pub(super) fn half_open(&self) {
        let why = match &*self.state.borrow() {
            State::Open { why, .. } => why.clone(),
            _ => return,
        };
        self.enter(State::HalfOpen { why });
    }

    fn next_attempt(&self) -> Instant {
        let pause = self.pause.get();
        self.pause.set((pause * 2).min(PAUSE_MAX));
        self.pauses.set(self.pauses.get() + 1);
        clock::now() + jittered(pause, self.pauses.get())
    }

    fn enter(&self, state: State) {
        let (before, after) = (self.state.borrow().shown(), state.shown());
        *self.state.borrow_mut() = state;
        self.health.move_connection(Some(before), Some(after));
        self.changed.notify_waiters();
    }
}

impl Drop for Breaker {
    fn drop(&mut self) {
        self.health.move_connection(Some(self.state.borrow().shown()), None);
    }
}

/// The pause, up to a fifth longer, differently each time.
pub(super) fn jittered(pause: Duration, number: u64) -> Duration {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    pause + pause * (spread as u32) / (5 * 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why() -> StoreError {
        StoreError::Unavailable("it is sick".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_keeps_refusing_is_left_alone_and_tried_by_one_step() {
        let health = Arc::new(Health::default());
        let breaker = Breaker::new(health.clone());
        breaker.close();
        for _ in 0..REFUSALS_MAX {
            assert_eq!(breaker.look(), Some(Ok(())));
            breaker.answered(Some(why()));
        }
        assert_eq!(breaker.look(), Some(Err(why())));
        assert_eq!(health.snapshot().breaker(), health::BreakerState::Open);
        tokio::time::advance(Duration::from_millis(61)).await;
        assert_eq!((breaker.look(), breaker.look()), (Some(Ok(())), Some(Err(why()))), "one is let through");
        assert_eq!(health.snapshot().breaker(), health::BreakerState::HalfOpen);
        breaker.answered(Some(why()));
        tokio::time::advance(Duration::from_millis(61)).await;
        assert_eq!(breaker.look(), Some(Err(why())), "the second pause is longer");
        tokio::time::advance(Duration::from_millis(61)).await;
        assert_eq!(breaker.look(), Some(Ok(())));
        tokio::time::advance(PAUSE_MAX).await;
        assert_eq!(breaker.look(), Some(Ok(())), "the one let through was lost, so another is");
        breaker.answered(None);
        assert_eq!(breaker.look(), Some(Ok(())));
        assert_eq!(health.snapshot().opened, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_connection_nothing_passes_and_the_driver_is_waited_for_only_when_it_is_overdue() {
        let breaker = Breaker::new(Arc::default());
        assert_eq!(breaker.look(), None);
        let next = breaker.open(why());
        assert_eq!(breaker.pass().await, Err(why()));
        tokio::time::advance(next - clock::now()).await;
        assert_eq!(breaker.look(), None);
        breaker.half_open();
        assert_eq!(breaker.look(), Some(Err(why())));
        breaker.answered(None);
        assert_eq!(breaker.look(), Some(Err(why())), "an answer from before means nothing");
        breaker.close();
        assert_eq!(breaker.pass().await, Ok(()));
    }
}
