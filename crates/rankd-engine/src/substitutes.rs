//! What stands in for the rows of nodes: fallbacks, conditions and lazy nodes, made ready when a plan is linked.
//!
//! A plan without any of them has none of this. What becomes of them in a run is in [`crate::progress`].

use crate::error::TaskError;
use rankd_column::expr::{RunValues, Scratch, select};
use rankd_column::{Batch, Column, Key, RowSet, Stop, Value};
use rankd_plan::Registry;
use rankd_plan::plan::{Condition, Node, NodeIx, Plan, Substitute};
use rankd_plan::registry::Absent;
use rankd_plan::signature::Writes;
use std::sync::Arc;

pub(crate) struct Substitutes {
    /// By node.
    nodes: Vec<NodeSubstitutes>,
    pub(crate) has_conditions: bool,
    pub(crate) has_fallbacks: bool,
}

#[derive(Default)]
pub(crate) struct NodeSubstitutes {
    pub(crate) fallback: Option<Substitute>,
    pub(crate) condition: Option<Condition>,
    pub(crate) lazy: bool,
    /// Whether its rows, or what is made of them, are reserves and nothing else: where weather strikes it, those are without rows.
    pub(crate) feeds_reserves: bool,
    /// The keys that it writes and that have a default: where its input stands in for it, they have that.
    defaults: Vec<(Key, Value)>,
    /// No rows, with the columns that it is known to write.
    no_rows: Option<RowSet>,
}

impl NodeSubstitutes {
    /// Whether it must stay a step of its own: what becomes of it is decided for it alone.
    pub(crate) fn is_border(&self) -> bool {
        self.fallback.is_some() || self.condition.is_some()
    }

    pub(crate) fn no_rows(&self) -> RowSet {
        self.no_rows.clone().unwrap_or_else(RowSet::empty)
    }

    /// The rows of the first input in this node's place.
    pub(crate) fn with_defaults(&self, rows: RowSet) -> RowSet {
        let missing = self.defaults.iter().filter(|(key, _)| rows.batch().column(*key).is_none());
        let columns: Vec<(Key, Column)> = missing
            .filter_map(|(key, value)| {
                let type_of = value.type_of()?;
                // Nothing stops it.
                let filled = Column::nulls(type_of, rows.batch().len()).filled(value, Stop::default());
                Some((*key, filled.ok()??))
            })
            .collect();
        columns.into_iter().fold(rows, |rows, (key, column)| rows.with(key, Arc::new(column)))
    }
}

/// The node whose rows a substitute is, if it is one's.
pub(crate) fn source(substitute: Substitute, inputs: &[NodeIx]) -> Option<NodeIx> {
    match substitute {
        Substitute::NoRows => None,
        Substitute::FirstInput => inputs.first().copied(),
        Substitute::Node(node) => Some(node),
    }
}

impl Substitutes {
    /// Nothing where the plan has no substitutes.
    pub(crate) fn of(plan: &Plan, registry: &Registry) -> Option<Arc<Substitutes>> {
        let fed = feeding_reserves(plan);
        let nodes = plan.nodes.iter().zip(fed).map(|(node, feeds_reserves)| of_node(node, feeds_reserves, registry));
        let nodes: Vec<NodeSubstitutes> = nodes.collect();
        let has_fallbacks = nodes.iter().any(|node| node.fallback.is_some() || node.feeds_reserves);
        let has_conditions = nodes.iter().any(|node| node.condition.is_some());
        let has_reserves = plan.nodes.iter().any(|node| node.reserves > 0);
        (has_fallbacks || has_conditions || has_reserves)
            .then(|| Arc::new(Substitutes { nodes, has_conditions, has_fallbacks }))
    }

    pub(crate) fn of_node(&self, node: NodeIx) -> &NodeSubstitutes {
        &self.nodes[node as usize]
    }

    /// The nodes whose conditions do not hold in this run. An error is that of the node.
    pub(crate) fn skipped(
        &self,
        values: RunValues<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<NodeIx>, (NodeIx, TaskError)> {
        let one_row = RowSet::new(Batch::new(vec![0]));
        let mut skipped = Vec::new();
        for (node, condition) in (0..).zip(&self.nodes).filter_map(|(at, node)| Some((at, node.condition.as_ref()?))) {
            let pred = &*condition.pred;
            match select(pred, &one_row, values, scratch, Stop::default()) {
                Ok(kept) if kept.is_empty() => skipped.push(node),
                Ok(_) => {}
                Err(error) => return Err((node, TaskError::eval(error, pred))),
            }
        }
        Ok(skipped)
    }
}

/// By node: whether it is lazy and all that may need it are reserves, or nodes that feed reserves alone.
fn feeding_reserves(plan: &Plan) -> Vec<bool> {
    let mut feeds: Vec<bool> = plan.nodes.iter().map(|node| node.lazy).collect();
    // Readers come after what they read.
    for &ix in plan.order.iter().rev().filter(|ix| plan.nodes[**ix as usize].needed) {
        let (node, feeds_reserves) = (&plan.nodes[ix as usize], feeds[ix as usize]);
        let awaited = &node.inputs[..node.inputs.len() - node.reserves];
        let others = [node.fallback, node.condition.as_ref().map(|condition| condition.otherwise)];
        let others = others.into_iter().flatten().filter_map(|of| source(of, &node.inputs));
        if !feeds_reserves {
            awaited.iter().copied().chain(others).for_each(|input| feeds[input as usize] = false);
        }
    }
    feeds
}

fn of_node(node: &Node, feeds_reserves: bool, registry: &Registry) -> NodeSubstitutes {
    let Node { fallback, condition, lazy, .. } = node;
    let substitutes = [*fallback, condition.as_ref().map(|condition| condition.otherwise)];
    if substitutes == [None, None] && !feeds_reserves {
        return NodeSubstitutes { lazy: *lazy, ..NodeSubstitutes::default() };
    }
    let written = written(node, registry);
    let default = |key: &Key| match registry.key(*key).absent() {
        Absent::Default(value) => Some((*key, value.clone())),
        Absent::Null | Absent::Refused => None,
    };
    let no_rows = written
        .iter()
        .fold(RowSet::empty(), |rows, key| rows.with(*key, Arc::new(Column::nulls(registry.key(*key).type_of, 0))));
    NodeSubstitutes {
        fallback: *fallback,
        condition: condition.clone(),
        lazy: *lazy,
        feeds_reserves,
        defaults: written.iter().filter_map(default).collect(),
        no_rows: Some(no_rows),
    }
}

/// The keys that a node writes, as far as its plan says.
pub(crate) fn written(node: &Node, registry: &Registry) -> Vec<Key> {
    let (names, params): (&[&str], _) = match node.signature.contract.writes {
        Writes::Nothing | Writes::AnyKey | Writes::Table(_) => return Vec::new(),
        Writes::Params(params) => (&[], params),
        Writes::Named(names, params) => (if node.inputs.is_empty() { &[] } else { names }, params),
    };
    let named = names.iter().filter_map(|name| registry.keys.named(name)).map(Key);
    let mut keys: Vec<Key> = named.chain(params.iter().flat_map(|param| node.arg(*param).keys())).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}
