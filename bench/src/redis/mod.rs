//! The reads of a real plan from a real Redis: a hand-written floor, a library client, and rankd.
//!
//! The shape: a viewer, ten they follow and ten recommendations, ten media of each: 23 commands and 200 rows in three round trips.
//! Hydrated, each of the twenty is also read by two fields: 43 commands. Reading order: [`server`], [`floor`], [`engine`],
//! `library` (behind the feature `redis-rs`), [`measure`], [`delay`].

pub mod delay;
pub mod engine;
pub mod floor;
#[cfg(feature = "redis-rs")]
pub mod library;
pub mod measure;
pub mod server;

/// How many each user follows, how many are recommended, and how many media each of those has.
pub const FANOUT: usize = 10;
pub const USERS: i64 = 2_000;

/// Something that reads for many users, so many of them at a time.
pub trait Reader {
    /// Reads for all these users and says how many rows there were.
    fn read(&mut self, users: &[i64], in_flight: usize) -> usize;
}

/// Users in an order that never changes; only the first few of them where `hot` says so.
pub fn users(count: usize, hot: Option<i64>) -> Vec<i64> {
    let mut state = 20_260_101_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    (0..count).map(|_| 1 + next() % hot.unwrap_or(USERS)).collect()
}
