//! How an endpoint is doing, counted by all threads that use it and read by whatever shows it. Decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whether reads are let through to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// They are.
    Closed,
    /// The server failed and is being tried: one attempt decides.
    HalfOpen,
    /// They fail at once, until the next attempt.
    Open,
}

impl BreakerState {
    pub const ALL: &[BreakerState] = &[BreakerState::Closed, BreakerState::HalfOpen, BreakerState::Open];

    pub fn name(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::HalfOpen => "half_open",
            BreakerState::Open => "open",
        }
    }
}

/// Upper bounds of the latency buckets, in microseconds; one more bucket holds what is above the last.
pub const LATENCY_BOUNDS_US: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000];

/// The live counters of one endpoint, from all of its connections.
#[derive(Debug, Default)]
pub struct Health {
    pub(crate) steps: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) shared: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) connects: AtomicU64,
    pub(crate) refreshes: AtomicU64,
    opened: AtomicU64,
    connections: [AtomicU64; 3],
    latency_us: AtomicU64,
    latency_buckets: [AtomicU64; LATENCY_BOUNDS_US.len() + 1],
}

/// What the counters said at one moment. All but `connections` only ever grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Pipelines that were sent: all reads of a node, or its part for one server.
    pub steps: u64,
    /// Commands in them.
    pub commands: u64,
    /// Steps that were not sent, because an identical one was in flight.
    pub shared: u64,
    /// Steps that failed, whether sent or not.
    pub errors: u64,
    /// Commands that were sent a second time.
    pub retries: u64,
    /// Attempts to connect.
    pub connects: u64,
    /// Times that the layout of a cluster was asked for.
    pub refreshes: u64,
    /// Times that a breaker opened.
    pub opened: u64,
    /// Connections in each state, in the order of [`BreakerState::ALL`].
    pub connections: [u64; 3],
    /// The time from sending a step to its whole answer, summed up.
    pub latency_us: u64,
    /// Answered steps by that time, as [`LATENCY_BOUNDS_US`] says; not cumulative.
    pub latency_buckets: [u64; LATENCY_BOUNDS_US.len() + 1],
}

impl Snapshot {
    /// The worst state of the endpoint's connections.
    pub fn breaker(&self) -> BreakerState {
        match self.connections {
            [_, _, open] if open > 0 => BreakerState::Open,
            [_, trying, _] if trying > 0 => BreakerState::HalfOpen,
            _ => BreakerState::Closed,
        }
    }

    /// Steps that were answered.
    pub fn answered(&self) -> u64 {
        self.latency_buckets.iter().sum()
    }
}

impl Health {
    pub fn snapshot(&self) -> Snapshot {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Snapshot {
            steps: read(&self.steps),
            commands: read(&self.commands),
            shared: read(&self.shared),
            errors: read(&self.errors),
            retries: read(&self.retries),
            connects: read(&self.connects),
            refreshes: read(&self.refreshes),
            opened: read(&self.opened),
            connections: std::array::from_fn(|at| read(&self.connections[at])),
            latency_us: read(&self.latency_us),
            latency_buckets: std::array::from_fn(|at| read(&self.latency_buckets[at])),
        }
    }

    pub(crate) fn count(&self, counter: impl FnOnce(&Health) -> &AtomicU64, by: u64) {
        counter(self).fetch_add(by, Ordering::Relaxed);
    }

    /// A connection goes from one state to another; `None` is before it is made and after it is dropped.
    pub(crate) fn move_connection(&self, from: Option<BreakerState>, to: Option<BreakerState>) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.connections[from as usize].fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(to) = to {
            self.connections[to as usize].fetch_add(1, Ordering::Relaxed);
        }
        if to == Some(BreakerState::Open) && from != Some(BreakerState::HalfOpen) {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn record_latency(&self, took: Duration) {
        let us = took.as_micros() as u64;
        let bucket = LATENCY_BOUNDS_US.iter().position(|bound| us <= *bound).unwrap_or(LATENCY_BOUNDS_US.len());
        self.latency_us.fetch_add(us, Ordering::Relaxed);
        self.latency_buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_connection_is_the_endpoints_state_and_a_failed_attempt_is_no_new_opening() {
        let health = Health::default();
        assert_eq!(health.snapshot().breaker(), BreakerState::Closed);
        health.move_connection(None, Some(BreakerState::Closed));
        health.move_connection(None, Some(BreakerState::Closed));
        health.move_connection(Some(BreakerState::Closed), Some(BreakerState::Open));
        assert_eq!(health.snapshot().breaker(), BreakerState::Open);
        health.move_connection(Some(BreakerState::Open), Some(BreakerState::HalfOpen));
        assert_eq!(health.snapshot().breaker(), BreakerState::HalfOpen);
        health.move_connection(Some(BreakerState::HalfOpen), Some(BreakerState::Open));
        health.move_connection(Some(BreakerState::Open), None);
        let now = health.snapshot();
        assert_eq!((now.breaker(), now.opened, now.connections), (BreakerState::Closed, 1, [1, 0, 0]));
    }

    #[test]
    fn a_latency_goes_into_the_first_bucket_that_holds_it() {
        let health = Health::default();
        for us in [0, 100, 101, 500_000, 500_001] {
            health.record_latency(Duration::from_micros(us));
        }
        let now = health.snapshot();
        assert_eq!((now.latency_buckets[0], now.latency_buckets[1], now.latency_buckets[11]), (2, 1, 1));
        assert_eq!((now.latency_buckets[12], now.answered()), (1, 5));
    }
}
