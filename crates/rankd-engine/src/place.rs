//! How a run goes through a plan and where each of its steps runs: decided here and nowhere else. Runs ask, jobs ask, and so does
//! whatever explains a plan.

use crate::steps::Step;
use crate::task::{AnyFetch, Task};
use rankd_column::Value;
use rankd_plan::plan::NodeIx;
use std::sync::Arc;

/// Which scheduler runs the nodes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// One event loop for waiting, the CPU pool for computing.
    Async,
    /// A pool for waiting and a pool for computing.
    Pools,
    /// One node after the other on the caller's thread.
    Sequential,
}

impl Scheduler {
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Async => "async",
            Scheduler::Pools => "pools",
            Scheduler::Sequential => "sequential",
        }
    }
}

/// What the async scheduler may do to save trips to the CPU pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Cheap computations may run on the event loop.
    pub inline: bool,
    /// A line of computations may be one job; nodes may be fused.
    pub chaining: bool,
    /// A computation that is predicted to take this long is not cheap.
    pub inline_threshold_ns: u32,
    /// How many nodes may follow each other on the loop before one has to go to the pool.
    pub max_inline_depth: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { inline: true, chaining: true, inline_threshold_ns: 10_000, max_inline_depth: 10_000 }
    }
}

/// Which of the two lists of steps a run takes through its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each node is a step of its own.
    Written,
    /// Nodes that one pass over the rows can do are one step.
    Fused,
}

impl Way {
    /// `limits_nodes`: every node of the run has a time limit.
    pub fn of(scheduler: Scheduler, policy: &Policy, limits_nodes: bool) -> Way {
        match scheduler {
            Scheduler::Async => Way::on_loop(policy, limits_nodes),
            Scheduler::Pools | Scheduler::Sequential => Way::Written,
        }
    }

    /// A limit is a promise about one node alone, so where every node has one, each runs by itself.
    pub(crate) fn on_loop(policy: &Policy, limits_nodes: bool) -> Way {
        if policy.chaining && !limits_nodes { Way::Fused } else { Way::Written }
    }
}

/// The step that continues in the same job where this one is a job.
pub fn chains_into(step: &Step, policy: &Policy) -> Option<NodeIx> {
    step.next.filter(|_| policy.chaining)
}

/// Where a step of a run runs.
pub(crate) enum Place<'s> {
    /// On the event loop, here and now; it is predicted to take this many nanoseconds.
    Inline(f32),
    /// On the event loop, as a future that waits.
    Loop(&'s Arc<dyn AnyFetch>),
    /// On the CPU pool, as a job.
    Pool,
}

/// `depth` is how many nodes would have followed each other on the loop, this one included. `tries` is whether the run is one that
/// measures: there, a step that is nearly cheap runs on the loop as well, because only the loop shows whether it is.
pub(crate) fn place<'s>(
    step: &'s Step,
    policy: &Policy,
    params: &[Value],
    depth: u32,
    tries: bool,
    rows_in: impl Fn() -> usize,
) -> Place<'s> {
    let inline = policy.inline && depth <= policy.max_inline_depth && !has_pattern(step, params);
    let nearly = || (tries && step.may_inline).then(|| step.cost.near_ns(rows_in(), policy.inline_threshold_ns as f32));
    let cheap = || cheap(step, policy, params, &rows_in).or_else(|| nearly().flatten());
    match (&step.task, inline.then(cheap).flatten()) {
        (_, Some(predicted_ns)) => Place::Inline(predicted_ns),
        (Task::Fetch(task), None) => Place::Loop(task),
        (Task::Compute(_), None) => Place::Pool,
    }
}

/// How many nanoseconds a step is predicted to take, if it may run on the loop and that is cheap.
#[inline]
pub(crate) fn cheap(step: &Step, policy: &Policy, params: &[Value], rows_in: impl FnOnce() -> usize) -> Option<f32> {
    if step.always_cheap {
        return Some(0.0);
    }
    if !step.may_inline || has_pattern(step, params) {
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

/// Where a step is expected to run, as long as nothing is known of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The caller's thread, which does everything.
    Caller,
    /// A read on the event loop.
    Loop,
    /// A read on the two-pool scheduler's IO pool.
    IoPool,
    /// The event loop, here and now.
    Inline,
    /// The same for up to this many rows; the CPU pool for more.
    InlineUpTo(u64),
    CpuPool,
}

/// Where [`place`] will put a step, before its rows are known, and what the other two schedulers do.
pub fn expected(step: &Step, scheduler: Scheduler, policy: &Policy) -> Expected {
    match (scheduler, &step.task) {
        (Scheduler::Sequential, _) => Expected::Caller,
        (Scheduler::Pools, Task::Fetch(_)) => Expected::IoPool,
        (Scheduler::Pools, Task::Compute(_)) => Expected::CpuPool,
        (Scheduler::Async, Task::Fetch(_)) => Expected::Loop,
        (Scheduler::Async, Task::Compute(_)) if !policy.inline || !step.may_inline => Expected::CpuPool,
        (Scheduler::Async, Task::Compute(_)) if step.trivial => Expected::Inline,
        (Scheduler::Async, Task::Compute(_)) => match step.cost.cheap_up_to(policy.inline_threshold_ns as f32) {
            None => Expected::CpuPool,
            Some(u64::MAX) => Expected::Inline,
            Some(rows) => Expected::InlineUpTo(rows),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Took;
    use crate::error::TaskError;
    use crate::steps::{StepSpec, Steps};
    use crate::task::{Compute, ComputeContext, InputRows};
    use rankd_column::RowSet;
    use rankd_plan::signature::Cost;
    use rankd_plan::wire::Scheduling;

    struct Same;

    impl Compute for Same {
        fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
            Ok(inputs.take(0))
        }
    }

    fn steps(cost: Cost) -> Steps {
        let spec = StepSpec {
            task: Task::Compute(Arc::new(Same)),
            reserves: 0,
            inputs: Vec::new(),
            nodes: vec![0],
            pass: None,
            timeout: None,
            scheduling: Scheduling::default(),
            cost,
            patterns: Vec::new(),
            live: None,
            runs: true,
        };
        Steps::new(vec![spec], &[0], &[0], None)
    }

    fn is_inline(step: &Step, rows: u64) -> bool {
        let place = place(step, &Policy::default(), &[], 1, false, || rows as usize);
        matches!(place, Place::Inline(_))
    }

    #[test]
    fn what_is_expected_is_what_happens() {
        let policy = Policy::default();
        let costs = [(400.0, 2.0), (500.0, 3.0), (400.0, 20.0), (9_999.0, 0.7), (10_000.0, 1.0), (0.0, 0.001)];
        for (fixed_ns, per_row_ns) in costs {
            let steps = steps(Cost::About { fixed_ns, per_row_ns });
            let step = steps.step(0);
            match expected(step, Scheduler::Async, &policy) {
                Expected::InlineUpTo(rows) => assert!(is_inline(step, rows) && !is_inline(step, rows + 1), "{rows}"),
                other => assert_eq!((other, is_inline(step, 0)), (Expected::CpuPool, false)),
            }
        }
    }

    #[test]
    fn a_step_on_probation_is_expected_on_the_pool() {
        let (policy, steps) = (Policy::default(), steps(Cost::About { fixed_ns: 100.0, per_row_ns: 0.0 }));
        let step = steps.step(0);
        assert_eq!(expected(step, Scheduler::Async, &policy), Expected::Inline);
        let learn = |ns| step.cost.learn(1, Took::exact(ns), policy.inline_threshold_ns as f32);
        // Slow again and again, so that the probation becomes long; then cheap for a few calls, which is not enough.
        for _ in 0..6 {
            (0..2).for_each(|_| learn(1_000_000));
            (0..40).for_each(|_| learn(100));
        }
        (0..2).for_each(|_| learn(1_000_000));
        (0..30).for_each(|_| learn(100));
        assert!(step.cost.line().fixed_ns < 1_000.0, "by its cost alone it would be cheap: {:?}", step.cost.line());
        assert!(!is_inline(step, 1));
        assert_eq!(expected(step, Scheduler::Async, &policy), Expected::CpuPool);
    }
}
