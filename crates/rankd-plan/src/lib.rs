//! From text to a checked plan, or to everything that is wrong with it.
//!
//! Knows no task's code and nothing that runs: tasks are described by [`signature`]s, which are data. Reading order:
//! [`limits`], [`digest`], [`codes`] and [`diagnostic`] (how problems are reported), [`json`] (the strict reader), [`registry`] (keys,
//! parameters, endpoints), [`signature`], [`signatures`], [`wire`] (the artifact as written), [`mod@check`] (the passes), [`plan`] (the result),
//! [`model`] (readers of trained models), [`source`] (what compiles plans), [`template`] (text that a run fills in) and [`render`] (diagnostics for people and programs).

pub mod check;
pub mod codes;
pub mod diagnostic;
pub mod digest;
pub mod json;
pub mod limits;
pub mod model;
pub mod plan;
pub mod registry;
pub mod render;
pub mod signature;
pub mod signatures;
pub mod source;
pub mod template;
pub mod wire;

pub use check::{Checked, check};
pub use codes::{Code, Severity};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use plan::Plan;
pub use registry::Registry;
pub use signatures::Signatures;
