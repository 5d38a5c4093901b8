//! An expression or predicate as a flat list of nodes, children before parents, the root last.
//!
//! Nothing is checked here but the order. Several nodes may read the same one. A tree of a million nodes is a vector of a
//! million nodes: no recursion anywhere.

use crate::batch::Key;
use crate::expr::operation::Operation;
use crate::expr::operations::{Binary, Call, Special, Unary};
use crate::value::Value;
use std::sync::Arc;

/// A node's position in its tree.
pub type Ix = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    pub const ALL: [Compare; 6] = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

    /// How plans write it.
    pub fn symbol(self) -> &'static str {
        match self {
            Compare::Eq => "==",
            Compare::Ne => "!=",
            Compare::Lt => "<",
            Compare::Le => "<=",
            Compare::Gt => ">",
            Compare::Ge => ">=",
        }
    }
}

/// Where a regular expression comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Literal(String),
    /// A string parameter, by its position in the registry; compiled once a run.
    Param(u32),
}

/// What a node does. The first group gives values, the second (from `Truth` on) gives true or false. What each operation means to
/// a row is in the table of [`crate::expr::operations`].
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Const(Value),
    Key(Key),
    Param(u32),
    NowMs,
    UserId,
    Unary(Unary, Ix),
    Binary(Binary, Ix, Ix),
    Clamp {
        x: Ix,
        lo: Ix,
        hi: Ix,
    },
    Coalesce(Ix, Ix),
    If {
        cond: Ix,
        then: Ix,
        other: Ix,
    },
    /// A function of one or two values; hashes have a salt. Some of these give true or false.
    Call {
        call: Call,
        a: Ix,
        b: Option<Ix>,
        salt: Option<Arc<str>>,
    },

    Truth(bool),
    And(Ix, Ix),
    Or(Ix, Ix),
    Not(Ix),
    Compare(Compare, Ix, Ix),
    In(Ix, Vec<Value>),
    Null {
        x: Ix,
        negated: bool,
    },
    Match {
        key: Key,
        pattern: Pattern,
        ignore_case: bool,
    },
}

impl Op {
    /// The nodes that this one reads, at most three.
    pub fn children(&self) -> impl Iterator<Item = Ix> {
        let (a, b, c) = match *self {
            Op::Const(_) | Op::Key(_) | Op::Param(_) | Op::NowMs | Op::UserId | Op::Truth(_) | Op::Match { .. } => {
                (None, None, None)
            }
            Op::Call { a, b, .. } => (Some(a), b, None),
            Op::Unary(_, x) | Op::Not(x) | Op::In(x, _) | Op::Null { x, .. } => (Some(x), None, None),
            Op::Binary(_, a, b) | Op::Coalesce(a, b) | Op::And(a, b) | Op::Or(a, b) | Op::Compare(_, a, b) => {
                (Some(a), Some(b), None)
            }
            Op::Clamp { x, lo, hi } => (Some(x), Some(lo), Some(hi)),
            Op::If { cond, then, other } => (Some(cond), Some(then), Some(other)),
        };
        [a, b, c].into_iter().flatten()
    }

    pub fn is_predicate(&self) -> bool {
        match self {
            Op::Const(_)
            | Op::Key(_)
            | Op::Param(_)
            | Op::NowMs
            | Op::UserId
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Clamp { .. }
            | Op::Coalesce(..)
            | Op::If { .. } => false,
            Op::Truth(_)
            | Op::And(..)
            | Op::Or(..)
            | Op::Not(_)
            | Op::Compare(..)
            | Op::In(..)
            | Op::Null { .. }
            | Op::Match { .. } => true,
            Op::Call { call, .. } => call.operation().is_truth(),
        }
    }

    /// The row of the table that describes it.
    pub fn operation(&self) -> &'static Operation {
        let special = match self {
            Op::Unary(op, _) => return op.operation(),
            Op::Binary(op, ..) => return op.operation(),
            Op::Call { call, .. } => return call.operation(),
            // No operation writes a list or vector; only the default of a key puts one here, and like null it cannot fail.
            Op::Const(Value::Null | Value::List(_) | Value::Vector(_)) => Special::ConstNull,
            Op::Const(Value::Int(_) | Value::Float(_)) => Special::ConstNumber,
            Op::Const(Value::Bool(_)) | Op::Truth(_) => Special::ConstBool,
            Op::Const(Value::Str(_)) => Special::ConstString,
            Op::Key(_) => Special::KeyRef,
            Op::Param(_) => Special::ParamRef,
            Op::NowMs => Special::NowMs,
            Op::UserId => Special::UserId,
            Op::Clamp { .. } => Special::Clamp,
            Op::Coalesce(..) => Special::Coalesce,
            Op::If { .. } => Special::If,
            Op::And(..) => Special::And,
            Op::Or(..) => Special::Or,
            Op::Not(_) => Special::Not,
            Op::Compare(..) => Special::Cmp,
            Op::In(..) => Special::In,
            Op::Null { negated: false, .. } => Special::IsNull,
            Op::Null { negated: true, .. } => Special::NotNull,
            Op::Match { .. } => Special::Regex,
        };
        special.operation()
    }
}

/// One operation, and where its author wrote it (an index into a table of places that only the author's tools know).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub op: Op,
    pub source: Option<u32>,
}

/// A whole expression or predicate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Adds a node and gives its position. Panics when a child does not stand before it: a bug in the builder.
    pub fn push(&mut self, op: Op, source: Option<u32>) -> Ix {
        let ix = self.nodes.len() as Ix;
        assert!(op.children().all(|child| child < ix), "a child must stand before its parent");
        self.nodes.push(Node { op, source });
        ix
    }

    /// Puts another operation in a node's place, under the same rule.
    pub fn replace(&mut self, ix: Ix, op: Op) {
        assert!(op.children().all(|child| child < ix), "a child must stand before its parent");
        self.nodes[ix as usize].op = op;
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn op(&self, ix: Ix) -> &Op {
        &self.nodes[ix as usize].op
    }

    /// The keys that the tree reads, each once, in key order.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .nodes
            .iter()
            .filter_map(|node| match node.op {
                Op::Key(key) | Op::Match { key, .. } => Some(key),
                _ => None,
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}
