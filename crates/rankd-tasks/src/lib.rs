//! What each op does to rows, one file a task under `tasks/`, found by the build script.
//!
//! A task never names itself, checks its inputs' number, logs, measures or reads the clock: what calls it does. Which trait it
//! implements, `Compute` or `Fetch`, is where it runs.

mod cells;
mod data_endpoint;
mod fan_out;
mod json_fields;
mod json_rows;
mod lacking;
mod membership;
mod misread;
mod picked_rows;
mod row_keys;
mod service_call;
mod stored;
mod table_expand;
mod table_fan_out;
mod table_hydrate;
mod table_rows;

use rankd_engine::Tasks;

/// The tasks of this crate and no others.
pub fn tasks() -> Tasks {
    // The build script lists files, and a folder has no two files of one name.
    Tasks::new(definitions()).unwrap_or_else(|duplicate| unreachable!("{duplicate}"))
}

include!(concat!(env!("OUT_DIR"), "/tasks.rs"));
