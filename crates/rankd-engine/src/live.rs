//! Which columns are needed of the rows that come into each node: by the node itself, and by those after it.
//!
//! Known when a plan is linked. Where rows are gathered on their way, the columns that nothing needs are left behind; and a table that
//! lacks a column which a plan reads does not take the place of one that has it. What reaches an output is needed whole, because
//! a request may ask for any key of it.

use crate::substitutes::source;
use rankd_column::Key;
use rankd_plan::plan::{Arg, Node, NodeIx, Plan};
use rankd_plan::signature::{ParamKind, RowEffect, Writes};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is needed of the rows at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Whether whatever columns there are may be asked for.
    pub(crate) all: bool,
    /// The columns that are read by name.
    pub(crate) named: BTreeSet<Key>,
}

impl Live {
    fn add(&mut self, other: &Live) {
        self.all |= other.all;
        self.named.extend(&other.named);
    }

    /// The columns to take along; `None` for all.
    pub(crate) fn keys(&self) -> Option<Arc<[Key]>> {
        (!self.all).then(|| self.named.iter().copied().collect())
    }
}

/// By node: what is needed of the rows that it gives, and of those that it works on.
pub(crate) struct LiveKeys {
    pub(crate) given: Vec<Live>,
    pub(crate) taken: Vec<Live>,
}

impl LiveKeys {
    pub(crate) fn of(plan: &Plan) -> LiveKeys {
        let mut live =
            LiveKeys { given: vec![Live::default(); plan.nodes.len()], taken: vec![Live::default(); plan.nodes.len()] };
        for &output in &plan.outputs {
            live.given[output as usize].all = true;
        }
        for (node, given) in plan.nodes.iter().zip(&mut live.given) {
            given.named.extend(node.log.iter().flat_map(|keys| keys.iter()));
        }
        for &ix in plan.order.iter().rev() {
            let node = &plan.nodes[ix as usize];
            if !node.needed {
                continue;
            }
            let given = live.given[ix as usize].clone();
            let taken = taken(node, &given);
            node.inputs.iter().for_each(|input: &NodeIx| live.given[*input as usize].add(&taken));
            // What stands in for its rows is read as they are.
            let substitutes = [node.fallback, node.condition.as_ref().map(|condition| condition.otherwise)];
            for source in substitutes.into_iter().flatten().filter_map(|of| source(of, &node.inputs)) {
                live.given[source as usize].add(&given);
            }
            live.taken[ix as usize] = taken;
        }
        live
    }
}

/// What a node needs of its input, given what is needed of what it gives.
fn taken(node: &Node, given: &Live) -> Live {
    let contract = node.signature.contract;
    // With several inputs, whose keys are whose is the task's own business.
    if node.inputs.len() != 1 || !contract.inputs.can_follow() {
        let named = if contract.rows == RowEffect::Appended { given.named.clone() } else { BTreeSet::new() };
        return Live { all: true, named };
    }
    let mut taken = Live::default();
    let rows = node.rows();
    if rows.keeps_columns() {
        taken.add(given);
        if let (RowEffect::Same, Writes::Params(params)) = (rows, contract.writes) {
            let written = params.iter().flat_map(|param| node.arg(*param).keys());
            for key in written {
                taken.named.remove(&key);
            }
        }
    }
    for (param, arg) in contract.params.iter().zip(&node.args) {
        taken.named.extend(arg.own_reads());
        if contract.reads_from(param) {
            taken.named.extend(arg.keys());
        }
        taken.all |= !matches!(arg, Arg::Absent) && names_keys_itself(param.kind);
    }
    taken.named.remove(&Key::ID);
    taken
}

/// Whether a parameter of this kind may name keys that its contract does not list as read.
fn names_keys_itself(kind: ParamKind) -> bool {
    match kind {
        ParamKind::Endpoint(_)
        | ParamKind::Int { .. }
        | ParamKind::Dial { .. }
        | ParamKind::Float { .. }
        | ParamKind::Bool
        | ParamKind::Text
        | ParamKind::Texts
        | ParamKind::PerInput { .. }
        | ParamKind::Ids { .. }
        | ParamKind::IdsParam
        | ParamKind::KeyPerInput(_)
        | ParamKind::Exprs
        | ParamKind::Cursor { .. }
        | ParamKind::Template
        | ParamKind::Path
        | ParamKind::Pointer
        | ParamKind::Choice(_)
        | ParamKind::Key(_)
        | ParamKind::Keys(_)
        | ParamKind::KeyMap
        | ParamKind::KeyPairs
        | ParamKind::KeyChoices(_)
        | ParamKind::Aggregates(_)
        | ParamKind::Rules
        | ParamKind::SortKeys
        | ParamKind::On
        | ParamKind::Expr { .. }
        | ParamKind::Pred
        | ParamKind::TableKey(_)
        | ParamKind::TablePred
        | ParamKind::AskedVector
        | ParamKind::Where
        | ParamKind::Then
        | ParamKind::Columns { .. } => false,
        // A model that takes the place of another may read whatever the rows have.
        ParamKind::Model | ParamKind::Node | ParamKind::Reserves | ParamKind::Fills => true,
    }
}
