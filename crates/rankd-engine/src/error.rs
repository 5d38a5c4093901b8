//! Why a request got no rows: one struct for callers and for whoever is on call.

use crate::codes::{self, ErrorCode};
use crate::deadline::{Deadline, Limit};
use crate::store::StoreError;
use rankd_column::expr::{EvalError, Fault, Program};
use rankd_column::model::ScoreError;
use rankd_column::{Id, Stopped};
use rankd_plan::diagnostic::SourceSpan;
use rankd_plan::plan::NodeIx;
use std::fmt;
use std::time::Duration;

/// A failed run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    pub code: &'static ErrorCode,
    pub message: String,
    /// For the log only and not for callers, such as a store's address.
    pub detail: Option<Box<str>>,
    /// The first node that failed.
    pub node: Option<Box<FailedNode>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FailedNode {
    pub id: String,
    pub op: &'static str,
    /// Where the plan's author wrote it, when the artifact knows.
    pub at: Option<String>,
    /// The whole of what failed there, where it is a part of an expression.
    pub source: Option<Box<SourceSpan>>,
}

impl RunError {
    pub fn new(code: &'static ErrorCode, message: impl Into<String>) -> RunError {
        RunError { code, message: message.into(), detail: None, node: None }
    }

    pub fn timeout(deadline: &Deadline) -> RunError {
        let ms = match deadline.limit {
            Limit::Request | Limit::Node => deadline.allowed.as_secs_f64() * 1e3,
            // It was not chosen by anybody, and has no round figure.
            Limit::Learned => (deadline.allowed.as_secs_f64() * 1e4).round() / 10.0,
        };
        let (code, which) = match deadline.limit {
            Limit::Request => (codes::REQUEST_DEADLINE, "request deadline"),
            Limit::Node => (codes::NODE_TIMEOUT, "node timeout"),
            Limit::Learned => (codes::LEARNED_LIMIT, "learned limit"),
        };
        RunError::new(code, format!("{which} of {ms} ms exceeded"))
    }

    /// A node that was not started because time was up.
    pub fn too_late_to_start(deadline: &Deadline) -> RunError {
        let ms = deadline.allowed.as_secs_f64() * 1e3;
        RunError::new(codes::TOO_LATE_TO_START, format!("deadline before start: the request's {ms} ms had passed"))
    }

    /// A node that was not started because it would hardly have ended in time.
    pub fn no_time(left: Duration, usual: Duration) -> RunError {
        let [left, usual] = [left, usual].map(|time| (time.as_secs_f64() * 1e4).round() / 10.0);
        let message =
            format!("learned limit: {left} ms are left, and it usually takes {usual} ms, so it was not started");
        RunError::new(codes::LEARNED_LIMIT, message)
    }

    pub fn cancelled() -> RunError {
        RunError::new(codes::CANCELLED, "the run was cancelled")
    }

    /// A panic in a task, or a promise inside the engine that did not hold.
    pub fn bug(message: impl Into<String>) -> RunError {
        RunError::new(codes::BUG, message)
    }
}

impl std::error::Error for RunError {}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.code.kind.name(), self.message)?;
        match &self.node {
            Some(node) => write!(f, " (node {}, {})", node.id, node.op),
            None => Ok(()),
        }
    }
}

/// Why a task has no rows. What calls the task adds where it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskError {
    pub code: &'static ErrorCode,
    pub message: String,
    /// For the log only and not for callers.
    pub detail: Option<Box<str>>,
    /// The operation of an expression that it came from: a place in the plan's sources.
    pub source: Option<u32>,
    /// The node at fault, where one call does the work of several.
    pub(crate) node: Option<NodeIx>,
}

impl TaskError {
    pub fn new(code: &'static ErrorCode, message: impl Into<String>) -> TaskError {
        TaskError { code, message: message.into(), detail: None, source: None, node: None }
    }

    /// The run is over and nothing waits for this result any more.
    pub fn stopped() -> TaskError {
        TaskError::new(codes::CANCELLED, "the run was cancelled")
    }

    /// A promise inside the engine that did not hold.
    pub(crate) fn bug(message: impl Into<String>) -> TaskError {
        TaskError::new(codes::BUG, message)
    }

    /// The run holds more than it may.
    pub(crate) fn too_large(bytes_max: usize) -> TaskError {
        let message = format!("the rows of the run take more than {bytes_max} bytes, the limit of --run_bytes_max");
        TaskError::new(codes::RUN_TOO_LARGE, message)
    }

    /// A row without a value for a key that has to have one.
    pub(crate) fn no_value(key: &str, id: &Id) -> TaskError {
        let message = format!("the key {key:?} has no value at row id {id}: it is not nullable and has no default");
        TaskError::new(codes::NO_VALUE, message)
    }

    /// A store's error: callers know the endpoint by its name.
    pub fn store(endpoint: &str, error: &StoreError) -> TaskError {
        let failed = TaskError::new(error.code(), error.for_callers(endpoint));
        TaskError { detail: error.detail().map(Into::into), ..failed }
    }

    /// An evaluation's error, with the place of the operation at fault.
    pub fn eval(error: EvalError, program: &Program) -> TaskError {
        let row = error.id.as_ref().map(|id| format!(" at row id {id}")).unwrap_or_default();
        let source = error.node.and_then(|node| program.source(node));
        let error = match error.fault {
            Fault::Stopped => return TaskError::stopped(),
            Fault::Overflow => TaskError::new(codes::INT_OVERFLOW, format!("an int overflows 64 bits{row}")),
            fault @ (Fault::TextTooLong | Fault::TextsTooLarge) => {
                TaskError::new(codes::TEXT_TOO_LONG, format!("{fault}{row}"))
            }
            Fault::NotFinite(value) => TaskError::new(codes::NOT_FINITE, format!("the result is {value}{row}")),
            // The whole expression has no value, so no operation is at fault.
            Fault::Null { column } => TaskError::no_value(&column, &error.id.unwrap_or_default()),
            Fault::BadRegex { why } => {
                let message = format!("the regular expression in a parameter cannot be used: {why}");
                TaskError::new(codes::BAD_PATTERN, message)
            }
        };
        TaskError { source, ..error }
    }
}

/// A kernel that was stopped has no other reason.
impl From<Stopped> for TaskError {
    fn from(_: Stopped) -> TaskError {
        TaskError::stopped()
    }
}

impl From<ScoreError> for TaskError {
    fn from(error: ScoreError) -> TaskError {
        match error {
            ScoreError::Stopped => TaskError::stopped(),
            ScoreError::Failed(fault) => {
                TaskError::new(codes::MODEL_FAILED, format!("the model could not score the rows: {fault}"))
            }
        }
    }
}

impl std::error::Error for TaskError {}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.code.kind.name(), self.message)
    }
}
