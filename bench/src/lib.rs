//! Measures the work on rows and the reads from Redis: ours, their floors and their peers.
//!
//! Reading order: [`data`], [`harness`], [`floor`], [`rankd`], `peers` (behind the feature of that name), [`redis`].

pub mod data;
pub mod floor;
pub mod harness;
#[cfg(feature = "peers")]
pub mod peers;
pub mod rankd;
pub mod redis;
