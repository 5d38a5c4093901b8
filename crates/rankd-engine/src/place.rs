//! Where a step runs: decided here and nowhere else.

use crate::steps::Step;
use crate::task::Task;

/// What the executor may do, and from which cost on it does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Cheap computations may run on the event loop.
    pub inline: bool,
    /// A linear stretch of computations may be one job; nodes may be fused.
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

/// `depth` is how many nodes would have followed each other on the loop, this one included.
pub(crate) fn place(step: &Step, policy: &Policy, depth: u32, rows_in: impl FnOnce() -> usize) -> Place {
    if let Task::Fetch(_) = step.task {
        return Place::Loop;
    }
    if !policy.inline || !step.may_inline || depth > policy.max_inline_depth || !step.cost.is_trusted() {
        return Place::Pool;
    }
    let predicted_ns = if step.trivial { 0.0 } else { step.cost.predict_ns(rows_in()) };
    if predicted_ns < policy.inline_threshold_ns as f32 { Place::Inline(predicted_ns) } else { Place::Pool }
}
