//! Everything that waits or decides when: how a linked plan becomes an answer.
//!
//! Names no task and no HTTP. Reading order: [`error`], [`request`], [`task`] (what a task is to the engine), [`link`] (a checked
//! plan made ready), `settle` (what is written where there is no value) and `fuse` (what of it is done in one go), [`steps`] and
//! `progress` (how it is walked), [`cost`] (what a step takes), [`store`] (where reads go), [`clock`], `exact` (a loop's timers) and [`deadline`], [`pool`], [`place`] (where a step
//! runs), [`host`] (what the runs of a loop share), [`run`] (the heart: one request on its event loop), `turn` (what it computes
//! there), `flight` (what leaves it), `watch` (its timer), `usage` (its
//! share of the processor), [`trace`] and `unfold`, the other two schedulers [`sequential`] and
//! [`pools`], [`seat`] (a place on a loop for what brings requests), and [`engine`], which owns the threads.

pub mod clock;
pub mod cost;
pub mod deadline;
pub mod engine;
pub mod error;
#[cfg(target_os = "linux")]
mod exact;
mod flight;
mod fuse;
pub mod host;
pub mod link;
pub mod place;
pub mod pool;
pub mod pools;
mod progress;
pub mod request;
pub mod run;
pub mod seat;
pub mod sequential;
mod settle;
pub mod stats;
pub mod steps;
pub mod store;
pub mod task;
pub mod trace;
mod turn;
mod unfold;
mod usage;
mod watch;

pub use engine::{Engine, Scheduler, Settings};
pub use error::{ErrorKind, RunError};
pub use link::Linked;
pub use place::Policy;
pub use request::Request;
pub use run::Outcome;
pub use seat::Seat;
