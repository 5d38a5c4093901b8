//! Tables: loading their files, what a plan that reads one costs beside columns that are at hand, and what requests hold.
//!
//! Reading order: [`counting`] (what is allocated), [`files`], [`scan`], [`hydrate`], [`at_once`] (against the server).

pub mod at_once;
pub mod counting;
pub mod files;
pub mod hydrate;
pub mod scan;
