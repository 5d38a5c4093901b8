//! What becomes of a run when one of its nodes has ended: decided here and nowhere else, for all three schedulers.
//!
//! Until it gets here, a failure is data: a chain on the pool stops at it and brings it back, and a scheduler hands over whatever
//! it learned, be it an error of the task, a limit that passed or an input that is missing. [`settle`] either puts rows in the
//! node's place, and then the run goes on, or ends the run. Only this file can make a [`RunFailure`], so nothing else can.

use crate::clock;
use crate::codes::ErrorKind;
use crate::deadline::{Deadline, Limits};
use crate::error::{RunError, TaskError};
use crate::link::Linked;
use crate::progress::Progress;
use crate::trace::Recorder;
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;

/// Why a node has no rows.
#[derive(Debug)]
pub(crate) enum NodeFailure {
    /// Its task failed, panicked or was stopped.
    Task(TaskError),
    /// This limit passed before the node had ended.
    TimedOut(Deadline),
    /// The request's deadline had passed when the node was about to start.
    TooLate(Deadline),
    /// The rows of this input are not there, which is a bug in the engine.
    InputMissing(NodeIx),
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

    pub(crate) fn into_error(self) -> Box<RunError> {
        self.0
    }
}

/// Takes in how a node has ended. After `Ok` its rows are there, and the nodes that read them can be counted down.
#[inline(always)]
pub(crate) fn settle(
    plan: &Linked,
    limits: &Limits,
    progress: &mut Progress,
    recorder: &mut Recorder,
    node: NodeIx,
    result: Result<RowSet, impl Into<NodeFailure>>,
) -> Result<(), RunFailure> {
    match result {
        Ok(rows) => match progress.finish(node, rows) || !progress.holds_too_much() {
            true => Ok(()),
            false => {
                let failure = NodeFailure::Task(TaskError::too_large(limits.run_bytes_max));
                Err(end_run(plan, limits, recorder, node, failure))
            }
        },
        Err(failure) => Err(end_run(plan, limits, recorder, node, failure.into())),
    }
}

/// Every failure ends the run.
#[cold]
#[inline(never)]
fn end_run(plan: &Linked, limits: &Limits, recorder: &mut Recorder, node: NodeIx, failure: NodeFailure) -> RunFailure {
    recorder.failure(match &failure {
        // Of the nodes of a pass, the one at fault.
        NodeFailure::Task(error) => error.node.unwrap_or(node),
        NodeFailure::TimedOut(_) | NodeFailure::TooLate(_) | NodeFailure::InputMissing(_) => node,
    });
    RunFailure(Box::new(match failure {
        // A task that was stopped at the deadline has no other reason.
        NodeFailure::Task(error) if error.code.kind == ErrorKind::Cancelled => match limits.request {
            Some(request) if request.has_passed(clock::now()) => plan.at_node(node, RunError::timeout(&request)),
            _ => plan.blame(node, error),
        },
        NodeFailure::Task(error) => plan.blame(node, error),
        NodeFailure::TimedOut(limit) => plan.at_node(node, RunError::timeout(&limit)),
        NodeFailure::TooLate(deadline) => plan.at_node(node, RunError::too_late_to_start(&deadline)),
        NodeFailure::InputMissing(input) => plan.at_node(node, RunError::bug(missing(input))),
    }))
}

pub(crate) fn missing(node: NodeIx) -> String {
    format!("the rows of node {node} were read when they were not there")
}
