//! Gives the memory of data that is gone back to the system. Data goes when a table or a model has a new version, or when a file was read in vain.
//!
//! The allocator keeps freed memory for a second and then gives it back, but only when something large is freed after that. A server that rests frees nothing
//! large, so the thread that swaps data does: memory that it asks for and never touches.

use std::time::Duration;
use tokio::time::Instant;

/// Large enough to be memory of its own to the allocator.
const BYTES: usize = 32 << 20;
const EVERY: Duration = Duration::from_millis(500);
/// For so long: runs that began with the data before may still hold it.
const FOR: Duration = Duration::from_secs(5);

/// Whether memory has to be given back, and until when.
#[derive(Default)]
pub(crate) struct GiveBack {
    until: Option<Instant>,
}

impl GiveBack {
    /// Data is gone, or will be soon.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.until = Some(now + FOR);
    }

    /// How long to wait at most before the next [`GiveBack::attempt`].
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.until.map(|_| EVERY)
    }

    pub(crate) fn attempt(&mut self, now: Instant) {
        if let Some(until) = self.until {
            // Unseen by the compiler, which would leave both out.
            drop(std::hint::black_box(Vec::<u8>::with_capacity(BYTES)));
            self.until = Some(until).filter(|until| now < *until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_by_itself_and_begins_anew() {
        let (mut give_back, now) = (GiveBack::default(), rankd_engine::clock::now());
        assert_eq!(give_back.pause(), None);
        give_back.begin(now);
        give_back.attempt(now + FOR / 2);
        assert_eq!(give_back.pause(), Some(EVERY));
        give_back.begin(now + FOR / 2);
        give_back.attempt(now + FOR);
        assert_eq!(give_back.pause(), Some(EVERY));
        give_back.attempt(now + FOR * 2);
        assert_eq!(give_back.pause(), None);
    }
}
