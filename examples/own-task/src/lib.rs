//! The tasks of this program, one file a task under `tasks/`, found by the build script.

include!(concat!(env!("OUT_DIR"), "/tasks.rs"));
