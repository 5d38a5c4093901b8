//! The weather of a run: the nodes that failed, were not started or were cut short, and how each of them ended.
//!
//! A replay has no time limits. Each node that weather struck gets its recorded end instead, so that degraded answers come out again. Mistakes are
//! recorded, too, but not handed out: a node that made one makes it again. Where the recorded run ended in a failure, it had left off other nodes
//! at some point, and which they were depends on the scheduler. There a node that has no recorded failure of its own cannot end the replay: it has
//! no rows instead.

use crate::codes::{Cause, ErrorCode};
use crate::degraded::Reason;
use crate::link::Linked;
use rankd_plan::plan::NodeIx;
use std::time::Duration;

/// How a node ended.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEnd {
    /// The node's id in its plan.
    pub node: String,
    pub how: Ending,
    /// How long after the start of the run.
    pub after: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It failed, or was not started.
    Failed { code: &'static ErrorCode, message: String, reason: Option<Reason> },
    /// It is anytime, and handed over this many picks.
    Cut { picked: usize },
}

/// What struck the nodes of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weather {
    /// In order of time.
    pub ends: Vec<NodeEnd>,
    /// Whether the last of them ended the run.
    pub ended_run: bool,
    /// The nodes that had fewer rows than they wanted, in order of time.
    pub short: Vec<String>,
}

/// The weather of a recorded run as a run on another plan gets it: by node of that plan.
#[derive(Debug, Default)]
pub struct Struck {
    ends: Vec<(NodeIx, NodeEnd)>,
    ended_run: bool,
    short: Vec<NodeIx>,
}

impl Struck {
    pub(crate) fn of(weather: &Weather, plan: &Linked) -> Struck {
        let named = |id: &str| (0..).zip(&plan.nodes).find(|(_, node)| &*node.id == id).map(|(ix, _)| ix);
        Struck {
            ends: weather.ends.iter().filter_map(|end| Some((named(&end.node)?, end.clone()))).collect(),
            ended_run: weather.ended_run,
            short: weather.short.iter().filter_map(|id| named(id)).collect(),
        }
    }

    /// Whether it has nothing to say about any node.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn of_node(&self, node: NodeIx) -> impl Iterator<Item = &NodeEnd> {
        self.ends.iter().filter(move |(of, _)| *of == node).map(|(_, end)| end)
    }

    /// The failure that a node gets in place of being called.
    pub(crate) fn failure(&self, node: NodeIx) -> Option<&NodeEnd> {
        self.of_node(node).find(|end| matches!(&end.how, Ending::Failed { code, .. } if code.cause == Cause::Weather))
    }

    /// After how many picks a node hands over what it has.
    pub(crate) fn picks(&self, node: NodeIx) -> Option<usize> {
        self.of_node(node).find_map(|end| match end.how {
            Ending::Cut { picked } => Some(picked),
            Ending::Failed { .. } => None,
        })
    }

    /// How long after the start the node ended.
    pub(crate) fn after(&self, node: NodeIx) -> Option<Duration> {
        self.of_node(node).next().map(|end| end.after)
    }

    /// Whether the recorded run failed elsewhere, so that it may have left off this node.
    pub(crate) fn has_left_off(&self, node: NodeIx) -> bool {
        let has_failed = self.of_node(node).any(|end| matches!(end.how, Ending::Failed { .. }));
        self.ended_run && !has_failed
    }

    /// Where a node that is short of rows comes among those that are.
    pub(crate) fn short_place(&self, node: NodeIx) -> usize {
        self.short.iter().position(|of| *of == node).unwrap_or(usize::MAX)
    }
}
