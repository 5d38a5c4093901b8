//! A value and what it was made of, for one row: down from a key or a predicate to what a store, a table, the request or a model gave.
//!
//! The parts are a list, each below the last one before it that is less deep. There are at most [`PARTS_MAX`] of them, however large an
//! expression is or however often it reads the same part.

use super::scored::scored;
use super::trail::{RowAt, Walked};
use super::words::{key_name, words};
use crate::task::ModelScore;
use rankd_column::expr::{EvalError, Op, Program, row};
use rankd_column::{Key, Value};
use rankd_plan::Registry;
use rankd_plan::plan::{Arg, Node, NodeIx};
use rankd_plan::signature::{ParamKind, RowEffect, Writes};
use std::sync::Arc;

/// The most parts of one value.
pub const PARTS_MAX: usize = 2_000;
/// Parts that are deeper are left out.
pub const DEPTH_MAX: usize = 64;

/// One part of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub depth: usize,
    /// As the plan's author wrote it.
    pub text: String,
    pub kind: PartKind,
    /// Nothing where there is none: an int left its range, or it cannot be computed by itself.
    pub value: Option<Value>,
    /// Whether it makes the predicate false.
    pub is_culprit: bool,
    /// Where it was written, when the artifact knows.
    pub at: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartKind {
    /// A key of the row, and the node that gave it its value.
    Key { key: Key, by: Option<NodeIx> },
    /// A parameter of the request.
    Param(u32),
    /// A number or text of the plan.
    Literal,
    /// What another part was made of.
    Operation(&'static str),
    /// The raw score that a model of the registry gave the row. Where it is not known what features add to it, why.
    RawScore { model: u32, why_not: Option<String> },
    /// What a model expects of any row.
    Expected,
    /// A feature of a model, which is a key of the row, and what it adds to the raw score.
    Feature { name: String, key: Key, by: Option<NodeIx>, contribution: f64 },
    /// There are more than are shown.
    More,
}

/// Parts while they are found.
pub(super) struct Parts<'a> {
    walked: &'a Walked<'a>,
    registry: &'a Registry,
    /// The way of the row.
    places: &'a [RowAt],
    found: Vec<Part>,
    /// The keys that were taken apart, and where: once is enough.
    taken_apart: Vec<(Key, usize)>,
    /// What is still to be looked at, the next last.
    open: Vec<OpenPart<'a>>,
}

enum OpenPart<'a> {
    /// A key of the row at one of its places.
    Key { key: Key, place: usize, depth: usize, follows: bool },
    /// The same, with the feature of a model that it is and what that adds to the raw score.
    Feature { key: Key, place: usize, depth: usize, name: String, contribution: f64 },
    /// A node of a tree, with the values of all nodes, read at a place.
    Node { of: Arc<Evaluated<'a>>, ix: u32, depth: usize },
}

/// An expression with its values on a row.
struct Evaluated<'a> {
    program: &'a Program,
    values: Vec<Option<Value>>,
    texts: Vec<String>,
    culprits: Vec<u32>,
    /// Where the row was read.
    place: usize,
    /// Whether what its keys were made of is shown, too.
    follows_keys: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn new(walked: &'a Walked<'a>, registry: &'a Registry, places: &'a [RowAt]) -> Parts<'a> {
        Parts { walked, registry, places, found: Vec::new(), taken_apart: Vec::new(), open: Vec::new() }
    }

    /// A key of the row at one of its places, with all that it was made of.
    pub(super) fn of_key(mut self, key: Key, place: usize) -> Vec<Part> {
        self.open.push(OpenPart::Key { key, place, depth: 0, follows: true });
        self.run()
    }

    /// A predicate on the row at one of its places, with the parts that make it false. Its keys are not followed.
    pub(super) fn of_predicate(mut self, program: &'a Program, place: usize) -> Result<Vec<Part>, EvalError> {
        let mut evaluated = self.evaluate(program, place, false)?;
        evaluated.culprits = row::culprits(program.tree(), &evaluated.values);
        self.push_root(evaluated, 0);
        Ok(self.run())
    }

    fn evaluate(&self, program: &'a Program, place: usize, follows_keys: bool) -> Result<Evaluated<'a>, EvalError> {
        let at = self.places[place];
        let values = match self.walked.rows(at.node) {
            Some(rows) => row::values(program, rows, at.position, self.walked.request.values())?,
            None => Vec::new(),
        };
        let texts = words(program.tree(), self.registry);
        Ok(Evaluated { program, values, texts, culprits: Vec::new(), place, follows_keys })
    }

    fn push_root(&mut self, evaluated: Evaluated<'a>, depth: usize) {
        if let Some(root) = evaluated.values.len().checked_sub(1) {
            self.open.push(OpenPart::Node { of: Arc::new(evaluated), ix: root as u32, depth });
        }
    }

    fn run(mut self) -> Vec<Part> {
        while let Some(open) = self.open.pop() {
            if self.found.len() + 1 >= PARTS_MAX {
                let more = Part {
                    depth: 0,
                    text: "…".to_owned(),
                    kind: PartKind::More,
                    value: None,
                    is_culprit: false,
                    at: None,
                };
                self.found.push(more);
                break;
            }
            match open {
                OpenPart::Key { key, place, depth, follows } => self.key(key, place, depth, follows, None),
                OpenPart::Feature { key, place, depth, name, contribution } => {
                    self.key(key, place, depth, true, Some((name, contribution)));
                }
                OpenPart::Node { of, ix, depth } => self.node(&of, ix, depth),
            }
        }
        self.found
    }

    fn key(&mut self, key: Key, place: usize, depth: usize, follows: bool, feature: Option<(String, f64)>) {
        let walked = self.walked;
        let at = self.places[place];
        let value = walked.rows(at.node).map(|rows| rows.value(key, at.position));
        let giver = self.giver(key, place);
        let by = giver.map(|place| self.places[place].node);
        self.found.push(Part {
            depth,
            text: key_name(key, self.registry).to_owned(),
            kind: match feature {
                Some((name, contribution)) => PartKind::Feature { name, key, by, contribution },
                None => PartKind::Key { key, by },
            },
            value,
            is_culprit: false,
            at: by.and_then(|node| walked.linked.node(node).at().map(str::to_owned)),
        });
        let Some(place) = giver.filter(|place| *place > 0 && depth < DEPTH_MAX && follows) else { return };
        if self.taken_apart.contains(&(key, place)) {
            return;
        }
        self.taken_apart.push((key, place));
        let node = walked.node(self.places[place].node);
        let task = &walked.linked.written.step(self.places[place].node).task;
        if let Some(score) = task.scored_by(key, &walked.request.dials) {
            return self.scored(score, place, depth + 1);
        }
        if let Some(program) = expression(node, key) {
            // The run has computed it, so it can be computed.
            if let Ok(evaluated) = self.evaluate(program, place - 1, true) {
                self.push_root(evaluated, depth + 1);
            }
            return;
        }
        // What a store or a service gave is not made of the row's keys.
        let reads_elsewhere = node.args.iter().any(|arg| arg.endpoint().is_some());
        if !reads_elsewhere && !matches!(node.rows(), RowEffect::FanOut | RowEffect::Grouped) {
            let read = read_keys(node).into_iter().filter(|read| *read != Key::ID).rev();
            self.open.extend(read.map(|key| OpenPart::Key { key, place: place - 1, depth: depth + 1, follows }));
        }
    }

    /// The raw score that a model gave the row at this place, and what it was made of.
    fn scored(&mut self, score: ModelScore, place: usize, depth: usize) {
        let RowAt { node, position } = self.places[place];
        let Some(scored) = scored(self.walked, node, position, score) else { return };
        let part = |depth: usize, text: String, kind: PartKind, value: Option<f64>| Part {
            depth,
            text,
            kind,
            value: value.map(Value::Float),
            is_culprit: false,
            at: None,
        };
        let text = format!("raw score of {}", self.registry.models.get(score.model).name);
        let kind = PartKind::RawScore { model: score.model, why_not: scored.why_not };
        self.found.push(part(depth, text, kind, scored.raw));
        if depth >= DEPTH_MAX {
            return;
        }
        let (depth, place) = (depth + 1, place - 1);
        if let Some(expected) = scored.expected {
            self.found.push(part(depth, "expected of any row".to_owned(), PartKind::Expected, Some(expected)));
        }
        self.open.extend(scored.features.into_iter().rev().map(|(name, key, contribution)| match contribution {
            Some(contribution) => OpenPart::Feature { key, place, depth, name, contribution },
            None => OpenPart::Key { key, place, depth, follows: true },
        }));
    }

    fn node(&mut self, of: &Arc<Evaluated<'a>>, ix: u32, depth: usize) {
        let tree = of.program.tree();
        let op = tree.op(ix);
        let at = of.program.source(ix).and_then(|at| self.walked.plan.sources.span(at));
        if let Op::Key(key) = op {
            return self.key(*key, of.place, depth, of.follows_keys, None);
        }
        self.found.push(Part {
            depth,
            text: of.texts[ix as usize].clone(),
            kind: match op {
                Op::Key(key) => PartKind::Key { key: *key, by: None },
                Op::Param(param) => PartKind::Param(*param),
                Op::Const(_) | Op::Truth(_) => PartKind::Literal,
                Op::NowMs
                | Op::UserId
                | Op::Unary(..)
                | Op::Binary(..)
                | Op::Clamp { .. }
                | Op::Coalesce(..)
                | Op::If { .. }
                | Op::Call { .. }
                | Op::And(..)
                | Op::Or(..)
                | Op::Not(_)
                | Op::Compare(..)
                | Op::In(..)
                | Op::Null { .. }
                | Op::Match { .. } => PartKind::Operation(op.operation().name),
            },
            value: of.values[ix as usize].clone(),
            is_culprit: of.culprits.binary_search(&ix).is_ok(),
            at: at.map(|span| span.at()),
        });
        if depth >= DEPTH_MAX {
            return;
        }
        let holds = |ix: u32| of.values[ix as usize] == Some(Value::Bool(true));
        let mut children: Vec<u32> = op.children().collect();
        // What was not chosen has no part in it.
        if let Op::If { cond, then, other } = *op {
            children = vec![cond, if holds(cond) { then } else { other }];
        }
        children.reverse();
        self.open.extend(children.into_iter().map(|ix| OpenPart::Node { of: of.clone(), ix, depth: depth + 1 }));
        // A pattern is matched with a key that is no node of its own.
        if let Op::Match { key, .. } = op {
            self.open.push(OpenPart::Key { key: *key, place: of.place, depth: depth + 1, follows: of.follows_keys });
        }
    }

    /// The place at which the row got its value of a key that it has at this place.
    fn giver(&self, key: Key, place: usize) -> Option<usize> {
        if key == Key::ID {
            return None;
        }
        let has = |place: usize| {
            self.walked.rows(self.places[place].node).is_some_and(|rows| rows.batch().column(key).is_some())
        };
        (0..=place).rev().find(|place| {
            let ix = self.places[*place].node;
            let writes =
                || self.walked.call(ix).is_some() && written_keys(self.walked.node(ix), self.registry).contains(&key);
            *place == 0 || writes() || (has(*place) && !has(*place - 1))
        })
    }
}

/// The expression that a node writes to a key.
fn expression(node: &Node, key: Key) -> Option<&Program> {
    for (param, arg) in node.signature.contract.params.iter().zip(&node.args) {
        match (param.kind, arg) {
            (ParamKind::Expr { into: Some(into) }, Arg::Expr(program)) if node.arg(into).keys() == [key] => {
                return Some(program);
            }
            (_, Arg::Exprs(list)) => {
                if let Some((_, program)) = list.iter().find(|(of, _)| *of == key) {
                    return Some(program);
                }
            }
            _ => {}
        }
    }
    None
}

/// The keys that a node reads of its rows.
pub(super) fn read_keys(node: &Node) -> Vec<Key> {
    let named = node.signature.contract.reads.iter().flat_map(|param| node.arg(*param).keys());
    let mut keys: Vec<Key> = Vec::new();
    for key in named.chain(node.args.iter().flat_map(Arg::own_reads)) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The keys that a node writes, as far as its plan says.
pub(super) fn written_keys(node: &Node, registry: &Registry) -> Vec<Key> {
    let (names, params): (&[&str], _) = match node.signature.contract.writes {
        Writes::Nothing | Writes::AnyKey | Writes::Table(_) => return Vec::new(),
        Writes::Params(params) => (&[], params),
        Writes::Named(names, params) => (names, params),
    };
    let named = names.iter().filter_map(|name| registry.keys.named(name)).map(Key);
    named.chain(params.iter().flat_map(|param| node.arg(*param).keys())).collect()
}
