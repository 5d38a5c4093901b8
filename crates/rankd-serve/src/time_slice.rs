//! Work of the server itself that grows with the number of plans is done in time slices: between two of them the loop serves requests.

use rankd_engine::clock::{self, Instant};
use std::time::Duration;

/// How long a slice lasts. A piece of work that cannot be divided may exceed it.
const SLICE: Duration = Duration::from_millis(2);

pub(crate) struct TimeSlice {
    began: Instant,
}

impl TimeSlice {
    pub(crate) fn begin() -> TimeSlice {
        TimeSlice { began: clock::now() }
    }

    /// Yields to the loop if this slice is over. Call it after each piece of work.
    pub(crate) async fn yield_if_over(&mut self) {
        if clock::now().saturating_duration_since(self.began) >= SLICE {
            tokio::task::yield_now().await;
            self.began = clock::now();
        }
    }
}
