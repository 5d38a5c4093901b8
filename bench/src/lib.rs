//! Measures what the engine is made of: ours, its floors and its peers.
//!
//! Reading order: [`harness`]; rows: [`data`], [`floor`], [`rankd`], [`mod@engine`], `peers` (behind the feature of that name);
//! tables: [`tables`], with [`python`] for their peers; models: [`large_model`]; nodes: [`graph`], [`stage`]; reads: [`redis`]; the server: [`http`], [`faults`].

pub mod data;
pub mod engine;
pub mod faults;
pub mod floor;
pub mod graph;
pub mod harness;
pub mod http;
pub mod large_model;
#[cfg(feature = "peers")]
pub mod peers;
pub mod python;
pub mod rankd;
pub mod redis;
pub mod stage;
pub mod tables;
