//! What is missing from an answer: the nodes that weather struck and whose fallbacks were taken, and those that had to hand over what
//! they had when their time was up; and the nodes that have fewer rows than they want.

use crate::codes::{self, ErrorCode, ErrorKind};
use crate::link::Linked;
use rankd_plan::plan::{NodeIx, Substitute};
use std::fmt;
use std::time::Duration;

/// A node whose readers got less than its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Degraded {
    pub node: NodeIx,
    pub reason: Reason,
    /// The failure, where there was one: a node that hands over what it has did not fail.
    pub code: Option<&'static ErrorCode>,
    pub fallback: StandIn,
    /// How long after the start of the run.
    pub after: Duration,
}

/// A node that wants more rows than it has, after all that it could ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub node: NodeIx,
    pub wanted: usize,
    pub got: usize,
}

/// What the readers of a node got in place of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    /// Its fallback.
    Substitute(Substitute),
    /// So many picks of an anytime node, and the other rows as they came in.
    Prefix(usize),
    /// So many rows that an anytime node had finished, the first of its input, and the others as its fallback, which is its input, has them.
    Finished(usize),
}

/// Why a fallback was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Timeout,
    Upstream,
    /// It was not started, because it would hardly have ended in time, or had to hand over what it had.
    NoTime,
}

impl Reason {
    pub const ALL: &[Reason] = &[Reason::Timeout, Reason::Upstream, Reason::NoTime];

    pub fn name(self) -> &'static str {
        match self {
            Reason::Timeout => "timeout",
            Reason::Upstream => "upstream",
            Reason::NoTime => "no_time",
        }
    }

    /// The reason that a failure of this code is, where a fallback covers it: weather of a node's own. The request's deadline ends the
    /// run, and a mistake must not be hidden.
    pub fn of(code: &'static ErrorCode) -> Option<Reason> {
        if code.cause != codes::Cause::Weather || code == codes::REQUEST_DEADLINE || code == codes::TOO_LATE_TO_START {
            return None;
        }
        match code.kind {
            ErrorKind::Timeout => Some(Reason::Timeout),
            ErrorKind::Upstream => Some(Reason::Upstream),
            ErrorKind::BadRequest
            | ErrorKind::UnknownPlan
            | ErrorKind::InvalidPlan
            | ErrorKind::Task
            | ErrorKind::Overloaded
            | ErrorKind::Cancelled
            | ErrorKind::Bug => None,
        }
    }
}

/// The fallback as a plan writes it, `none`, `input` or the id of a node; `prefix` where there was none to take.
pub fn fallback_name(plan: &Linked, fallback: StandIn) -> FallbackName<'_> {
    match fallback {
        StandIn::Substitute(Substitute::NoRows) => FallbackName::Word("none"),
        StandIn::Substitute(Substitute::FirstInput) | StandIn::Finished(_) => FallbackName::Word("input"),
        StandIn::Substitute(Substitute::Node(node)) => FallbackName::Node(&plan.node(node).id),
        StandIn::Prefix(_) => FallbackName::Word("prefix"),
    }
}

/// How a plan writes a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackName<'a> {
    /// As a text.
    Word(&'static str),
    /// As `{"node": id}`.
    Node(&'a str),
}

/// As people read it: `none`, `input` or `node n9`.
impl fmt::Display for FallbackName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FallbackName::Word(word) => f.write_str(word),
            FallbackName::Node(id) => write!(f, "node {id}"),
        }
    }
}
