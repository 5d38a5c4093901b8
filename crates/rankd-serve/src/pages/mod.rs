//! The pages of the server, one file each. A page names its path and its schema and answers requests; `routes` lists them.

pub(crate) mod console;
pub(crate) mod explain;
pub(crate) mod healthz;
pub(crate) mod metrics;
pub(crate) mod models;
pub(crate) mod openapi;
pub(crate) mod pin;
pub(crate) mod plan;
pub(crate) mod plans;
pub(crate) mod rank;
pub(crate) mod readyz;
pub(crate) mod rollback;
mod switching;
pub(crate) mod tasks;
pub(crate) mod version;
pub(crate) mod why;
