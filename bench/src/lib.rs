//! Measures the work on rows: ours, its floors and its peers.
//!
//! Reading order: [`data`], [`harness`], [`floor`], [`rankd`], `peers` (behind the feature of that name).

pub mod data;
pub mod floor;
pub mod harness;
#[cfg(feature = "peers")]
pub mod peers;
pub mod rankd;
