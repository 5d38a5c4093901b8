//! What becomes of a run when one of its nodes has ended: decided here and nowhere else, for all three schedulers.
//!
//! Until it gets here, a failure is data: a chain on the pool stops at it and brings it back, and a scheduler hands over whatever
//! it learned, be it an error of the task, a limit that passed or an input that is missing. [`settle`] either sees to it that there
//! are rows in the node's place, its own or those of its fallback, and then the run goes on, or ends the run. Only this file can
//! make a [`RunFailure`], so nothing else can.

use crate::call;
use crate::clock::{self, Instant};
use crate::codes::ErrorKind;
use crate::deadline::{Deadline, Limits};
use crate::degraded::Reason;
use crate::error::{RunError, TaskError};
use crate::link::Linked;
use crate::progress::{NodeNews, Progress};
use crate::recorded::{Ending, NodeEnd, Reads};
use crate::request::Request;
use crate::stats::Stats;
use crate::steps::{Step, Steps};
use crate::task::RowCounts;
use crate::trace::Recorder;
use rankd_column::{Batch, RowSet};
use rankd_plan::plan::NodeIx;
use std::time::Duration;

/// Why a node has no rows.
#[derive(Debug)]
pub(crate) enum NodeFailure {
    /// Its task failed, panicked or was stopped.
    Task(TaskError),
    /// This limit passed before the node had ended.
    TimedOut(Deadline),
    /// The request's deadline had passed when the node was about to start.
    TooLate(Deadline),
    /// It was not started, because it usually takes longer than this learned limit.
    NoTime { left: Duration, usual: Duration },
    /// The rows of this input are not there, which is a bug in the engine.
    InputMissing(NodeIx),
    /// It ended like this in the run that is replayed.
    Recorded(Box<NodeEnd>),
}

impl From<TaskError> for NodeFailure {
    fn from(error: TaskError) -> NodeFailure {
        NodeFailure::Task(error)
    }
}

/// Why a run is over without rows.
#[derive(Debug)]
pub(crate) struct RunFailure(Box<RunError>);

impl RunFailure {
    /// The request does not fit the plan.
    pub(crate) fn refused(error: RunError) -> RunFailure {
        RunFailure(Box::new(error))
    }

    pub(crate) fn cancelled() -> RunFailure {
        RunFailure(Box::new(RunError::cancelled()))
    }

    /// A bug in the engine that is not about one node.
    pub(crate) fn bug(message: impl Into<String>) -> RunFailure {
        RunFailure(Box::new(RunError::bug(message)))
    }

    /// Nothing is left to answer with: the error that the first fallback was taken for is the answer.
    pub(crate) fn nothing_left(error: RunError) -> RunFailure {
        RunFailure(Box::new(error))
    }

    pub(crate) fn into_error(self) -> Box<RunError> {
        self.0
    }
}

/// What to do when a node was settled.
#[must_use]
pub(crate) enum Settled {
    /// Its rows are there: the nodes that read them can be counted down.
    Rows,
    /// Other nodes may have rows now or have to start, and it may have none yet: [`Progress::next_news`] says which.
    News,
}

/// Takes in how a node has ended, whose step is this one of `steps`.
#[inline(always)]
pub(crate) fn settle(
    plan: &Linked,
    steps: &Steps,
    limits: &Limits,
    progress: &mut Progress,
    recorder: &mut Recorder,
    (node, step): (NodeIx, &Step),
    result: Result<RowSet, impl Into<NodeFailure>>,
) -> Result<Settled, RunFailure> {
    match result {
        Ok(rows) => {
            if !progress.finish(node, rows) && progress.holds_too_much() {
                let failure = NodeFailure::Task(TaskError::too_large(limits.run_bytes_max));
                return fail(plan, steps, limits, progress, recorder, node, failure);
            }
            if step.watched {
                progress.has_rows(steps, node);
                return Ok(Settled::News);
            }
            Ok(Settled::Rows)
        }
        Err(failure) => fail(plan, steps, limits, progress, recorder, node, failure.into()),
    }
}

/// A failure that a fallback covers is covered; every other one ends the run.
#[cold]
#[inline(never)]
fn fail(
    plan: &Linked,
    steps: &Steps,
    limits: &Limits,
    progress: &mut Progress,
    recorder: &mut Recorder,
    node: NodeIx,
    failure: NodeFailure,
) -> Result<Settled, RunFailure> {
    if let Some(no_rows) = progress.left_off(node) {
        return settle(
            plan,
            steps,
            limits,
            progress,
            recorder,
            (node, steps.step(node)),
            Ok::<_, NodeFailure>(no_rows),
        );
    }
    recorder.failure(match &failure {
        // Of the nodes of a pass, the one at fault.
        NodeFailure::Task(error) => error.node.unwrap_or(node),
        NodeFailure::TimedOut(_)
        | NodeFailure::TooLate(_)
        | NodeFailure::NoTime { .. }
        | NodeFailure::InputMissing(_)
        | NodeFailure::Recorded(_) => node,
    });
    let known = match &failure {
        NodeFailure::NoTime { .. } => Some(Reason::NoTime),
        NodeFailure::Recorded(end) => match &end.how {
            Ending::Failed { reason, .. } => *reason,
            Ending::Cut { .. } => None,
        },
        NodeFailure::Task(_) | NodeFailure::TimedOut(_) | NodeFailure::TooLate(_) | NodeFailure::InputMissing(_) => {
            None
        }
    };
    let error = run_error(plan, limits, node, failure);
    let reason = known.or_else(|| Reason::of(error.code));
    match reason.zip(progress.fallback_of(node)) {
        Some(taken) => {
            progress.fall_back(steps, node, taken, error, clock::now());
            Ok(Settled::News)
        }
        None => {
            progress.note_last(node, &error, clock::now());
            Err(RunFailure(Box::new(progress.blame(plan, node, error))))
        }
    }
}

fn run_error(plan: &Linked, limits: &Limits, node: NodeIx, failure: NodeFailure) -> RunError {
    match failure {
        // A task that was stopped at the deadline has no other reason.
        NodeFailure::Task(error) if error.code.kind == ErrorKind::Cancelled => match limits.request {
            Some(request) if request.has_passed(clock::now()) => plan.at_node(node, RunError::timeout(&request)),
            _ => plan.blame(node, error),
        },
        NodeFailure::Task(error) => plan.blame(node, error),
        NodeFailure::TimedOut(limit) => plan.at_node(node, RunError::timeout(&limit)),
        NodeFailure::TooLate(deadline) => plan.at_node(node, RunError::too_late_to_start(&deadline)),
        NodeFailure::NoTime { left, usual } => plan.at_node(node, RunError::no_time(left, usual)),
        NodeFailure::InputMissing(input) => plan.at_node(node, RunError::bug(missing(input))),
        NodeFailure::Recorded(end) => match end.how {
            Ending::Failed { code, message, .. } => plan.at_node(node, RunError::new(code, message)),
            Ending::Cut { .. } => plan.at_node(node, RunError::bug("a node that was cut short has rows")),
        },
    }
}

pub(crate) fn missing(node: NodeIx) -> String {
    format!("the rows of node {node} were read when they were not there")
}

/// Begins a run of a plan that may answer with less: notes the time and, where nodes have substitutes, finds the nodes that are to be skipped, and what stands in for them.
pub(crate) fn begin_substitution(
    plan: &Linked,
    steps: &Steps,
    request: &Request,
    progress: &mut Progress,
    recorder: &mut Recorder,
    stats: &Stats,
) -> Result<(), RunFailure> {
    if let (Some(struck), Reads::Replayed(_)) = (&request.struck, &request.reads) {
        progress.strike(struck.clone(), RowSet::new(Batch::with_ids(Vec::new(), request.id_texts.clone())));
    }
    if steps.times.is_none() && steps.substitutes.is_none() {
        return Ok(());
    }
    let began = clock::now();
    progress.began(began);
    let Some(substitutes) = &steps.substitutes else { return Ok(()) };
    let mut skipped = Vec::new();
    if substitutes.has_conditions {
        let decided = call::with_scratch(stats, |scratch| substitutes.skipped(request.values(), scratch));
        skipped = match decided {
            Ok(Ok(skipped)) => skipped,
            Ok(Err((node, error))) => return Err(RunFailure(Box::new(plan.blame(node, error)))),
            Err(panic) => return Err(RunFailure::bug(panic.message)),
        };
    }
    progress.begin_substitution(steps, &plan.outputs, &skipped, request.strict);
    progress.skipped().for_each(|node| recorder.skipped(node, began));
    Ok(())
}

/// Keeps in mind that an anytime node had to hand over what it had, or that a node wants more rows than it has, before it is settled.
#[inline(always)]
pub(crate) fn note_counts(progress: &mut Progress, node: NodeIx, counts: RowCounts, now: Instant) {
    if let Some(handed_over) = counts.handed_over {
        progress.hand_over(node, handed_over, now);
    }
    if counts.has_more {
        progress.has_more = true;
    }
    if let Some(wanted) = counts.wanted {
        progress.wants(node, wanted);
    }
}

/// The steps that can start because of this.
pub(crate) fn started_by(news: NodeNews, steps: &Steps, progress: &mut Progress) -> Vec<NodeIx> {
    match news {
        NodeNews::HasRows(node) => {
            let readers = steps.step(node).readers.iter().copied();
            readers.filter(|ix| progress.count_down(*ix) && !progress.is_hollow(steps, *ix)).collect()
        }
        NodeNews::Woken(node) => {
            let woken = Some(node).filter(|ix| progress.count_down(*ix) && !progress.is_hollow(steps, *ix));
            woken.into_iter().collect()
        }
    }
}
