//! Work of the server's own that grows with the number of plans is done in slices: between two of them the loop serves others.

use rankd_engine::clock::{self, Instant};
use std::time::Duration;

/// How long one slice may take. What cannot be divided comes on top.
const SLICE: Duration = Duration::from_millis(2);

pub(crate) struct Slices {
    began: Instant,
}

impl Slices {
    pub(crate) fn begin() -> Slices {
        Slices { began: clock::now() }
    }

    /// Lets others have the loop if this slice has taken its time. Call it after each piece of work.
    pub(crate) async fn end_of_piece(&mut self) {
        if clock::now().saturating_duration_since(self.began) >= SLICE {
            tokio::task::yield_now().await;
            self.began = clock::now();
        }
    }
}
