//! What the console's page asks for, one file each: its files, and JSON. All of it is on the console's own listener and nowhere else.

pub(crate) mod about;
pub(crate) mod ask;
pub(crate) mod file;
pub(crate) mod index;
pub(crate) mod node_figures;
pub(crate) mod picture;
pub(crate) mod plan;
pub(crate) mod plans;
pub(crate) mod source;
pub(crate) mod stores;
pub(crate) mod why;

use crate::route::{Failures, Schema, Shape};

/// What a page gives that is asked by name of a plan.
const OF_A_PLAN: Schema = Schema {
    takes: None,
    gives: &[(crate::reply::JSON, Shape::Json(r#"{"type":"object"}"#))],
    failures: Failures::OfPages(&[(404, "unknown_plan", Shape::Component("Failure"))]),
    components: &[],
};

/// What any other page gives.
const AN_OBJECT: Schema = Schema { failures: Failures::OfPages(&[]), ..OF_A_PLAN };
