//! What is the same on all rows of a run and known only when it begins: the request's parameters, its time and its user.

use crate::id::Id;
use crate::value::Value;

/// The values of one run. Small and borrowed, so that handing them on costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct RunValues<'a> {
    /// By position in the parameter registry; a missing one is null.
    pub params: &'a [Value],
    /// The request's time in milliseconds since 1970.
    pub now_ms: i64,
    pub user_id: &'a Id,
}

impl<'a> RunValues<'a> {
    /// A run that has parameters and nothing else of interest.
    pub fn of(params: &'a [Value]) -> RunValues<'a> {
        RunValues { params, now_ms: 0, user_id: &Id::Int(0) }
    }
}

impl Default for RunValues<'_> {
    fn default() -> Self {
        RunValues::of(&[])
    }
}
