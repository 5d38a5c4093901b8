//! How often the fallbacks of a plan were taken or an anytime node was cut short. Only such nodes are counted, so that others cost nothing and the metrics have no
//! more labels than the plans in service have fallbacks.

use rankd_engine::Linked;
use rankd_engine::degraded::Reason;
use rankd_plan::plan::NodeIx;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one version of a plan.
#[derive(Debug, Default)]
pub(crate) struct DegradedCounts {
    /// In order of their positions in the plan.
    nodes: Box<[NodeCounts]>,
}

#[derive(Debug)]
struct NodeCounts {
    node: NodeIx,
    id: Arc<str>,
    /// By reason. Versions share them, so that no count is lost or goes back when a plan changes.
    counts: Arc<[AtomicU64; Reason::ALL.len()]>,
}

impl DegradedCounts {
    /// For a plan that comes after another version of it, if there was one.
    pub(crate) fn new(plan: &Linked, before: Option<&DegradedCounts>) -> DegradedCounts {
        let before = before.iter().flat_map(|before| &before.nodes);
        let known: HashMap<&str, _> = before.map(|node| (&*node.id, &node.counts)).collect();
        let with_fallback = (0..).zip(&plan.nodes).filter(|(_, node)| node.fallback.is_some() || node.is_anytime);
        let nodes = with_fallback.map(|(node, linked)| {
            let counts = known.get(&*linked.id).map(|counts| Arc::clone(counts)).unwrap_or_default();
            NodeCounts { node, id: linked.id.clone(), counts }
        });
        DegradedCounts { nodes: nodes.collect() }
    }

    /// Counts a fallback that was taken.
    pub(crate) fn add(&self, node: NodeIx, reason: Reason) {
        if let Ok(at) = self.nodes.binary_search_by_key(&node, |counts| counts.node) {
            self.nodes[at].counts[position(reason)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Every node with a fallback, or that is anytime, by its id, and how often less than its rows were given for each reason.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Reason, u64)> {
        self.nodes.iter().flat_map(|node| {
            let of = |reason: &Reason| (&*node.id, *reason, node.counts[position(*reason)].load(Ordering::Relaxed));
            Reason::ALL.iter().map(of)
        })
    }
}

fn position(reason: Reason) -> usize {
    reason as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{plan, tasks};
    use rankd_plan::plan::Substitute;

    #[test]
    fn nodes_with_a_fallback_are_counted_and_keep_their_counts_in_the_next_version() {
        let (_, _, mut linked) = plan(&tasks());
        assert_eq!(DegradedCounts::new(&linked, None).all().count(), 0);
        linked.nodes[1].fallback = Some(Substitute::FirstInput);
        let first = DegradedCounts::new(&linked, None);
        first.add(1, Reason::Timeout);
        first.add(1, Reason::NoTime);
        // This one has no fallback, so there is nothing to count.
        first.add(0, Reason::Timeout);
        linked.nodes[0].fallback = Some(Substitute::NoRows);
        let second = DegradedCounts::new(&linked, Some(&first));
        // A run that began with the first version may end after the second has come.
        first.add(1, Reason::Timeout);
        second.add(0, Reason::Upstream);
        let all: Vec<_> = second.all().map(|(node, reason, count)| (node, reason.name(), count)).collect();
        let of_r = [("r", "timeout", 0), ("r", "upstream", 1), ("r", "no_time", 0)];
        let of_w = [("w", "timeout", 2), ("w", "upstream", 0), ("w", "no_time", 1)];
        assert_eq!(all, [of_r, of_w].concat());
    }
}
