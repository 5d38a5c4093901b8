//! The one clock, and waiting by it. It stands still under a paused runtime, which is how the simulation moves time.
//!
//! A runtime's own timers tick in whole milliseconds. On an event loop a [`Timer`] is exact instead (`exact`); where no exact timers
//! are installed, as in virtual time or on a system without them, it is the runtime's.

#[cfg(target_os = "linux")]
use crate::exact::{Exact, current};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;
pub use tokio::time::Instant;
use tokio::time::Sleep;

#[cfg(target_os = "linux")]
pub(crate) use crate::exact::with_exact_timers;

/// Elsewhere the runtime's timers have to do.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn with_exact_timers<T>(inner: impl Future<Output = T>) -> T {
    inner.await
}

pub fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since a moment of this process: for what lies between two readings.
pub(crate) fn nanos() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    nanos_between(*FIRST.get_or_init(now), now())
}

/// Milliseconds since 1970, by the system's clock: for what a plan computes, never for limits.
pub fn since_1970_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "a run that asks for the date gets it once, here")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Waits on the event loop without holding it. No time at all is not waited for.
pub async fn sleep(duration: Duration) {
    if duration.is_zero() {
        return;
    }
    match now().checked_add(duration) {
        Some(at) => Timer::new(at).await,
        // Beyond what the clock can express.
        None => std::future::pending().await,
    }
}

/// What a future gives, unless this moment comes first. What is there in the same moment wins.
pub async fn timeout_at<F: Future>(at: Instant, future: F) -> Option<F::Output> {
    let (mut future, mut timer) = (pin!(future), Timer::new(at));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Pin::new(&mut timer).poll(cx).map(|()| None),
    })
    .await
}

/// Nanoseconds from one moment to a later one; 0 if it is not later.
pub fn nanos_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

/// How long this thread has worked in all: what others did on its core meanwhile is not in it. Asking costs a system call. Nothing
/// where the system does not say.
pub fn thread_cpu_ns() -> Option<u64> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
    }
    #[cfg(not(unix))]
    None
}

/// Comes back when a moment has come. Belongs to the loop that it was made on.
pub struct Timer {
    at: Instant,
    kind: Kind,
}

enum Kind {
    #[cfg(target_os = "linux")]
    Exact(Exact),
    Runtime(Pin<Box<Sleep>>),
}

impl Timer {
    pub fn new(at: Instant) -> Timer {
        #[cfg(target_os = "linux")]
        if let Some(timers) = current() {
            return Timer { at, kind: Kind::Exact(Exact::new(timers)) };
        }
        Timer { at, kind: Kind::Runtime(Box::pin(tokio::time::sleep_until(at))) }
    }

    /// Nothing waits for it, until it is polled again.
    pub(crate) fn unset(&mut self) {
        match &mut self.kind {
            #[cfg(target_os = "linux")]
            Kind::Exact(exact) => exact.unset(),
            // It wakes nothing once its task is gone.
            Kind::Runtime(_) => {}
        }
    }

    /// Waits for this moment instead, if it is another one.
    pub fn set(&mut self, at: Instant) {
        if std::mem::replace(&mut self.at, at) == at {
            return;
        }
        match &mut self.kind {
            #[cfg(target_os = "linux")]
            Kind::Exact(exact) => exact.unset(),
            Kind::Runtime(sleep) => sleep.as_mut().reset(at),
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        match &mut self.kind {
            #[cfg(target_os = "linux")]
            Kind::Exact(exact) => exact.poll(at, cx),
            Kind::Runtime(sleep) => sleep.as_mut().poll(cx),
        }
    }
}
