//! The one clock. It stands still under a paused runtime, which is how the simulation moves time.

use std::time::Duration;
pub use tokio::time::Instant;

pub fn now() -> Instant {
    Instant::now()
}

/// Waits on the event loop without holding it.
pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Nanoseconds from one moment to a later one; 0 if it is not later.
pub fn nanos_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}
