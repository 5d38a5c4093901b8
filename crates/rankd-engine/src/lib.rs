//! Everything that waits or decides when: how a linked plan becomes an answer. Names no task and no HTTP server.
//!
//! The files in reading order:
//!
//! | file | what it has |
//! |---|---|
//! | [`codes`], [`error`], [`degraded`] | why a run has no rows; what is missing from an answer |
//! | [`dials`] | numbers of a plan that follow the load |
//! | [`request`], [`seed`], [`cursor`], [`arms`], [`task`] | what a caller asks; what random choices follow from; what a user was served; the experiments that it is in; what a task is to the engine |
//! | [`recorded`] | what a run depended on, recorded; runs on what another one recorded |
//! | [`link`], [`linked_models`], `live` | a checked plan made ready to run; the models that it names; which columns are needed where |
//! | `defaults`, `substitutes`, `fuse`, [`steps`] | what is written where there is no value; what stands in for nodes; nodes joined into passes; the plan as schedulers walk it |
//! | `progress`, `settle` | how far a run has come; what becomes of it when a node has ended |
//! | [`cost`], [`place`], [`learned_times`] | what a step costs; where it runs; how long it takes, and the limits that follow |
//! | [`clock`], `exact`, [`deadline`] | time, a loop's timers, limits |
//! | [`store`], [`decode`], [`pool`] | where reads go; what they bring as cells; the CPU pool |
//! | `call` | how a task's code is called |
//! | [`loop_context`], [`run`] | what the runs of a loop share; one request on its event loop |
//! | [`trace`], `expand_passes`, [`stats`] | how an answer came about; counters |
//! | [`sequential`], [`thread_pools`] | the other two schedulers |
//! | [`run_limit`], [`why`] | what runs may cost that no caller waits for; what became of an item in a run, and why |
//! | [`base64`] | bytes as text |
//! | [`loop_handle`], [`engine`] | a loop as services on it see it; the owner of the threads |

pub mod arms;
pub mod base64;
mod call;
pub mod clock;
pub mod codes;
pub mod cost;
pub mod cursor;
pub mod deadline;
pub mod decode;
mod defaults;
pub mod degraded;
pub mod dials;
pub mod engine;
pub mod error;
#[cfg(target_os = "linux")]
mod exact;
mod expand_passes;
mod fuse;
pub mod learned_times;
pub mod link;
pub mod linked_models;
mod live;
pub mod loop_context;
pub mod loop_handle;
pub mod place;
pub mod pool;
mod progress;
pub mod recorded;
pub mod request;
pub mod run;
pub mod run_limit;
pub mod seed;
pub mod sequential;
mod settle;
pub mod stats;
pub mod steps;
pub mod store;
mod substitutes;
pub mod task;
pub mod tasks;
pub mod thread_pools;
pub mod trace;
pub mod why;

pub use codes::{ErrorCode, ErrorKind};
pub use engine::{Engine, Settings};
pub use error::RunError;
pub use link::Linked;
pub use loop_handle::LoopHandle;
pub use place::{Policy, Scheduler};
pub use pool::Standing;
pub use request::Request;
pub use run::Outcome;
pub use tasks::Tasks;
