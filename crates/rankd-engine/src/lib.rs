//! Everything that waits or decides when: how a linked plan becomes an answer.
//!
//! Names no task and no HTTP. Reading order: [`codes`] and [`error`], [`request`], [`task`] (what a task is to the engine), [`link`] (a checked
//! plan made ready), `defaults` (what is written where there is no value) and `fuse` (what of it is done in one go), [`steps`] and
//! `progress` (how it is walked), [`cost`] (what a step takes), [`store`] (where reads go), [`clock`], `exact` (a loop's timers) and [`deadline`], [`pool`], [`place`] (where a step
//! runs), [`loop_context`] (what the runs of a loop share), [`run`] (the heart: one request on its event loop), `turn` (what it computes
//! there), `job` (what leaves it), `timeouts` (its timer), `usage` (its
//! share of the processor), [`trace`] and `expand_passes`, the other two schedulers [`sequential`] and
//! [`thread_pools`], [`loop_handle`] (a place on a loop for what brings requests), and [`engine`], which owns the threads.

mod call;
pub mod clock;
pub mod codes;
pub mod cost;
pub mod deadline;
mod defaults;
pub mod engine;
pub mod error;
#[cfg(target_os = "linux")]
mod exact;
mod expand_passes;
mod fuse;
pub mod link;
pub mod loop_context;
pub mod loop_handle;
pub mod place;
pub mod pool;
mod progress;
pub mod request;
pub mod run;
pub mod sequential;
mod settle;
pub mod stats;
pub mod steps;
pub mod store;
pub mod task;
pub mod tasks;
pub mod thread_pools;
pub mod trace;

pub use codes::{ErrorCode, ErrorKind};
pub use engine::{Engine, Settings};
pub use error::RunError;
pub use link::Linked;
pub use loop_handle::LoopHandle;
pub use place::{Policy, Scheduler};
pub use request::Request;
pub use run::Outcome;
pub use tasks::Tasks;
