//! What each op does to rows, one file a task under `tasks/`, found by the build script.
//!
//! A task never names itself, checks its inputs' number, logs, measures or reads the clock: what calls it does. Which trait it
//! implements, `Compute` or `Fetch`, is where it runs.

mod fan_out;

include!(concat!(env!("OUT_DIR"), "/tasks.rs"));
