//! Where a step runs: decided here and nowhere else.

use crate::steps::Step;
use crate::task::Task;
use rankd_column::Value;

/// What the executor may do, and from which cost on it does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Cheap computations may run on the event loop.
    pub inline: bool,
    /// A line of computations may be one job; nodes may be fused.
    pub chaining: bool,
    /// What is predicted to take this long is not cheap.
    pub inline_threshold_ns: u32,
    /// How many nodes may follow each other on the loop before one has to go to the pool.
    pub max_inline_depth: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { inline: true, chaining: true, inline_threshold_ns: 10_000, max_inline_depth: 10_000 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// Its future, on the event loop.
    Loop,
    /// On the event loop, here and now; it is predicted to take so many nanoseconds.
    Inline(f32),
    /// A job on the CPU pool.
    Pool,
}

/// `depth` is how many nodes would have followed each other on the loop, this one included. `tries` is whether the run is one that
/// measures: there, a step that is nearly cheap is on the loop, too, because only there can be seen whether it is.
pub(crate) fn place(
    step: &Step,
    policy: &Policy,
    params: &[Value],
    depth: u32,
    tries: bool,
    rows_in: impl Fn() -> usize,
) -> Place {
    let inline = policy.inline && depth <= policy.max_inline_depth && !has_pattern(step, params);
    let nearly = || (tries && step.may_inline).then(|| step.cost.near_ns(rows_in(), policy.inline_threshold_ns as f32));
    let cheap = || cheap(step, policy, params, &rows_in).or_else(|| nearly().flatten());
    match (&step.task, inline.then(cheap).flatten()) {
        (_, Some(predicted_ns)) => Place::Inline(predicted_ns),
        (Task::Fetch(_), None) => Place::Loop,
        (Task::Compute(_), None) => Place::Pool,
    }
}

/// How many nanoseconds a step is predicted to take, if it may run on the loop and that is cheap.
#[inline]
pub(crate) fn cheap(step: &Step, policy: &Policy, params: &[Value], rows_in: impl FnOnce() -> usize) -> Option<f32> {
    if !step.may_inline {
        return None;
    }
    if has_pattern(step, params) {
        return None;
    }
    if step.trivial {
        return Some(0.0);
    }
    step.cost.cheap_ns(rows_in(), policy.inline_threshold_ns as f32)
}

/// Whether the run brings a regular expression for the step: what that costs cannot be learned from those before it.
#[inline(always)]
fn has_pattern(step: &Step, params: &[Value]) -> bool {
    !step.patterns.is_empty() && brings_one(&step.patterns, params)
}

/// Kept out of the innermost loop of the engine: hardly any step has a pattern.
#[cold]
#[inline(never)]
fn brings_one(patterns: &[u32], params: &[Value]) -> bool {
    patterns.iter().any(|param| params.get(*param as usize).is_some_and(|value| *value != Value::Null))
}
