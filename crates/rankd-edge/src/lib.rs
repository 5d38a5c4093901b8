//! Requests in, answers out: what a program needs around the engine. No HTTP, no arguments, no terminal, no signals.
//!
//! Reading order: [`files`], [`project`], [`registry_files`] and [`library`] (plans and registries on disk), [`endpoints`], [`table_file`],
//! [`tables`] and [`late_data`] (stores for the engine), [`models`] and [`model_list`] (trained models), [`sample`] (what stores hold),
//! [`input`], [`request_id`], [`experiments`] and [`prepare`] (a request's JSON in, and the arms that it is in), [`answer`] and [`arrow`] (rows out, as JSON or as an Arrow stream), [`outputs`] (which nodes give them), [`explain`] (how a
//! plan runs), [`layout`] (where boxes of a picture go), [`experiment_list`] (what experiments there are), [`why`] (what became of an item), [`diff`] (two plans beside each other), [`pii`] (values about persons), [`stream_files`] (what writes files while requests are answered), [`capture`] (requests that can be run again), [`feature_log`] (rows to learn from), [`perfetto`] (traces for a viewer), [`task_list`] (what tasks declare), [`listing`] (tables for people), [`date`] and
//! [`process`] (what the system says).

#![warn(missing_docs)]

/// The version of rankd, which captures name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod answer;
pub mod arrow;
pub mod capture;
pub mod date;
pub mod diff;
pub mod endpoints;
pub mod experiment_list;
pub mod experiments;
pub mod explain;
pub mod feature_log;
pub mod files;
pub mod input;
pub mod late_data;
pub mod layout;
pub mod library;
pub mod listing;
pub mod model_list;
pub mod models;
pub mod outputs;
pub mod perfetto;
pub mod pii;
pub mod prepare;
pub mod process;
pub mod project;
pub mod registry_files;
pub mod request_id;
pub mod sample;
pub mod stream_files;
pub mod table_file;
pub mod tables;
pub mod task_list;
#[cfg(test)]
mod test_plan;
pub mod why;
