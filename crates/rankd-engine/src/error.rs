//! Why a request got no rows: one struct for callers and for whoever is on call.

use crate::deadline::{Deadline, Limit};
use crate::store::StoreError;
use rankd_column::expr::{EvalError, Fault, Program};
use rankd_plan::diagnostic::SourceSpan;
use rankd_plan::plan::NodeIx;
use std::fmt;

/// What sort of failure it is; callers act on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    BadRequest,
    UnknownPlan,
    InvalidPlan,
    Timeout,
    Upstream,
    Task,
    Overloaded,
    Cancelled,
    Bug,
}

impl ErrorKind {
    pub const ALL: &[ErrorKind] = &[
        ErrorKind::BadRequest,
        ErrorKind::UnknownPlan,
        ErrorKind::InvalidPlan,
        ErrorKind::Timeout,
        ErrorKind::Upstream,
        ErrorKind::Task,
        ErrorKind::Overloaded,
        ErrorKind::Cancelled,
        ErrorKind::Bug,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::UnknownPlan => "unknown_plan",
            ErrorKind::InvalidPlan => "invalid_plan",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Upstream => "upstream",
            ErrorKind::Task => "task",
            ErrorKind::Overloaded => "overloaded",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Bug => "bug",
        }
    }

    /// Whether the same request may succeed when it is sent again.
    pub fn may_be_retried(self) -> bool {
        matches!(self, ErrorKind::Timeout | ErrorKind::Upstream | ErrorKind::Overloaded)
    }
}

/// A failed run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    pub kind: ErrorKind,
    /// Numbered within the kind and never reused.
    pub code: &'static str,
    pub message: String,
    /// What is for the log alone and not for callers, such as a store's address.
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
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> RunError {
        RunError { kind, code, message: message.into(), detail: None, node: None }
    }

    pub fn timeout(deadline: &Deadline) -> RunError {
        let ms = deadline.allowed.as_secs_f64() * 1e3;
        let (code, which) = match deadline.limit {
            Limit::Request => ("E301", "request deadline"),
            Limit::Node => ("E302", "node timeout"),
        };
        RunError::new(ErrorKind::Timeout, code, format!("{which} of {ms} ms exceeded"))
    }

    /// A node that was not started because time was up.
    pub fn too_late_to_start(deadline: &Deadline) -> RunError {
        let ms = deadline.allowed.as_secs_f64() * 1e3;
        RunError::new(ErrorKind::Timeout, "E303", format!("deadline before start: the request's {ms} ms had passed"))
    }

    pub fn cancelled() -> RunError {
        RunError::new(ErrorKind::Cancelled, "E701", "the run was cancelled")
    }

    /// A panic in a task, or a promise inside the engine that did not hold.
    pub fn bug(message: impl Into<String>) -> RunError {
        RunError::new(ErrorKind::Bug, "E901", message)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.kind.name(), self.message)?;
        match &self.node {
            Some(node) => write!(f, " (node {}, {})", node.id, node.op),
            None => Ok(()),
        }
    }
}

/// What a task says when it cannot give rows. Where it happened is added by what called the task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskError {
    pub kind: ErrorKind,
    pub code: &'static str,
    pub message: String,
    /// What is for the log alone and not for callers.
    pub detail: Option<Box<str>>,
    /// The operation of an expression that it came from: a place in the plan's sources.
    pub source: Option<u32>,
    /// The node at fault, where one call does the work of several.
    pub(crate) node: Option<NodeIx>,
}

impl TaskError {
    pub fn failed(code: &'static str, message: impl Into<String>) -> TaskError {
        TaskError { kind: ErrorKind::Task, code, message: message.into(), detail: None, source: None, node: None }
    }

    /// The request is at fault, and its caller can mend it.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> TaskError {
        TaskError { kind: ErrorKind::BadRequest, ..TaskError::failed(code, message) }
    }

    /// The run is over and nobody waits for this result any more.
    pub fn stopped() -> TaskError {
        TaskError { kind: ErrorKind::Cancelled, ..TaskError::failed("E701", "the run was cancelled") }
    }

    /// A row without a value for a key that has to have one.
    pub(crate) fn no_value(key: &str, id: i64) -> TaskError {
        let message = format!("the key {key:?} has no value at row id {id}: it is not nullable and has no default");
        TaskError::failed("E506", message)
    }

    /// A store's error: callers know the endpoint by its name.
    pub fn store(endpoint: &str, error: &StoreError) -> TaskError {
        let failed = TaskError::failed(error.code(), error.for_callers(endpoint));
        TaskError { kind: ErrorKind::Upstream, detail: error.detail().map(Into::into), ..failed }
    }

    /// An evaluation's error, with the place of the operation at fault.
    pub fn eval(error: EvalError, program: &Program) -> TaskError {
        let row = error.id.map(|id| format!(" at row id {id}")).unwrap_or_default();
        let source = error.node.and_then(|node| program.source(node));
        let (code, message) = match error.fault {
            Fault::Stopped => return TaskError::stopped(),
            Fault::Overflow => ("E501", format!("an int overflows 64 bits{row}")),
            Fault::NotFinite(value) => ("E502", format!("the result is {value}{row}")),
            Fault::Null { column } => {
                // The whole expression has no value, so no operation is at fault.
                let id = error.id.unwrap_or_default();
                return TaskError { source, ..TaskError::no_value(&column, id) };
            }
            Fault::BadRegex { why } => {
                let message = format!("the regular expression in a parameter cannot be used: {why}");
                // The request brought it.
                return TaskError { kind: ErrorKind::BadRequest, source, ..TaskError::failed("E503", message) };
            }
        };
        TaskError { source, ..TaskError::failed(code, message) }
    }
}
