//! A checked plan: what was names is positions, what was text is values and programs. Nothing in it can be wrong any more.

use crate::diagnostic::SourceSpan;
use crate::registry::RegistryId;
use crate::signature::{ParamRef, RowEffect, Signature};
use crate::template::Template;
use crate::wire::{Scheduling, Sources};
use rankd_column::expr::Program;
use rankd_column::kernel::slots::SlotPlaces;
use rankd_column::kernel::sort::SortKey;
use rankd_column::{Id, Key, Value};
use std::sync::Arc;

/// A node's position in its plan.
pub type NodeIx = u32;

#[derive(Clone, Debug)]
pub struct Plan {
    pub name: String,
    /// The SHA-256 of its artifact.
    pub sha256: Arc<str>,
    pub nodes: Vec<Node>,
    /// In the order in which their rows are answered.
    pub outputs: Vec<NodeIx>,
    /// By output: what the answer calls it. Nothing where the plan lists its outputs without names.
    pub output_names: Option<Arc<[String]>>,
    /// Every node after all that it waits for; ties in the order of the artifact.
    pub order: Vec<NodeIx>,
    /// The numbers that follow the load, by their position in [`Dial`].
    pub dials: Vec<PlanDial>,
    pub sources: Sources,
    /// The registry whose positions the plan has.
    pub registry: RegistryId,
}

impl Plan {
    /// The expressions and predicates of needed nodes.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let needed = || self.nodes.iter().filter(|node| node.needed);
        let args = needed().flat_map(|node| &node.args);
        let of_args = args.flat_map(Arg::programs).map(|program| &**program);
        of_args.chain(needed().filter_map(|node| Some(&*node.condition.as_ref()?.pred)))
    }

    /// The parameters that needed nodes read, in their order and each once.
    pub fn params(&self) -> Vec<u32> {
        let args = self.nodes.iter().filter(|node| node.needed).flat_map(|node| &node.args);
        let mut read: Vec<u32> = self.programs().flat_map(Program::params).chain(args.flat_map(Arg::params)).collect();
        read.sort_unstable();
        read.dedup();
        read
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    pub id: Arc<str>,
    pub signature: Signature,
    /// All row sets that the node works on: its inputs in order, then its node-valued parameters.
    pub inputs: Vec<NodeIx>,
    /// How many of the last of them are reserves: each is read only when the task asks for it.
    pub reserves: usize,
    /// One for each parameter of the signature, in its order.
    pub args: Vec<Arg>,
    /// The label that the author gave it for the trace.
    pub label: Option<String>,
    pub scheduling: Scheduling,
    pub timeout_ms: Option<u32>,
    pub source: Option<SourceSpan>,
    /// What its readers get when weather strikes it.
    pub fallback: Option<Substitute>,
    /// Why its fallback may let rows past a filter, in the author's words.
    pub fail_open: Option<Arc<str>>,
    /// When it runs; nothing where it always does.
    pub condition: Option<Condition>,
    /// The keys of its rows that go into the feature log, in this order; nothing where its rows do not.
    pub log: Option<Arc<[Key]>>,
    /// Whether some output needs it, or may need it in place of another node.
    pub needed: bool,
    /// Whether it is needed in place of other nodes, or as a reserve, only: it runs when the first of those cannot do without it.
    pub lazy: bool,
}

/// What the readers of a node get in place of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    NoRows,
    /// The rows of its first input, as they are.
    FirstInput,
    /// The rows of this node.
    Node(NodeIx),
}

/// When a node runs, decided once at the start of a run.
#[derive(Clone, Debug)]
pub struct Condition {
    /// A predicate without keys.
    pub pred: Arc<Program>,
    /// What readers get where it is false.
    pub otherwise: Substitute,
}

impl Node {
    /// What becomes of the rows, given the node's parameters: never "where".
    pub fn rows(&self) -> RowEffect {
        self.signature.contract.rows_with(|param| match self.arg(param) {
            Arg::Text(word) => Some(word),
            _ => None,
        })
    }

    /// The argument of a parameter that the node's contract refers to.
    pub fn arg(&self, param: ParamRef) -> &Arg {
        self.signature.contract.param(param).map_or(&Arg::Absent, |(at, _)| &self.args[at])
    }
}

/// Keys by the names that the plan gives them, in its order.
pub type NamedKeys = Vec<(Arc<str>, Key)>;

/// A key of the rows at hand, and the key of other rows that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPair {
    pub left: Key,
    pub right: Key,
}

/// A number of a node that follows the load: `first` at rest, `min` under full load. A number that does not is a dial, too, as far as
/// its task is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dial {
    first: i64,
    /// Its position among the plan's dials; none where it stays as it is.
    position: Option<u32>,
}

impl Dial {
    pub(crate) fn new(first: i64, position: Option<u32>) -> Dial {
        Dial { first, position }
    }

    /// The value in a run whose dials are at these values: the first one where the run does not say.
    pub fn at(&self, dials: &[i64]) -> i64 {
        let turned = self.position.and_then(|at| dials.get(at as usize));
        turned.copied().unwrap_or(self.first)
    }

    /// The same as a number of rows.
    pub fn count(&self, dials: &[i64]) -> usize {
        usize::try_from(self.at(dials).max(0)).unwrap_or(usize::MAX)
    }

    /// The same, where it is the same in all runs.
    pub fn fixed(&self) -> Option<usize> {
        self.position.is_none().then(|| self.count(&[]))
    }
}

/// A dial of a plan: where it is, and how far it goes. `min` is at most `first`, and both are in the parameter's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanDial {
    pub node: NodeIx,
    /// The parameter's name.
    pub param: &'static str,
    pub first: i64,
    pub min: i64,
}

/// A word for each of several keys.
pub type ChosenWords = Vec<(Key, Arc<str>)>;

/// Keys with the expressions that are written to them.
pub type KeyPrograms = Vec<(Key, Arc<Program>)>;

/// What is made of the values of a key, or of the rows where there is none, and the key that gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeOf {
    pub into: Key,
    pub word: Arc<str>,
    pub of: Option<Key>,
}

/// At most `max` rows with the same key among `window` neighbours, or in the whole list where that is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRule {
    pub by: Key,
    pub max: usize,
    pub window: usize,
}

/// Rows that get places among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Its rows are the input at this position of `Node::inputs`.
    pub input: usize,
    pub places: SlotPlaces,
    /// The most rows of it that get a place.
    pub max: usize,
}

/// A model that a node scores rows with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelArg {
    /// Position in the registry.
    pub model: u32,
    /// The keys that its features are, as far as somebody has read its file.
    pub reads: Vec<Key>,
    /// The keys that the rows of the node can have: a model that takes this one's place reads no others.
    pub present: Vec<Key>,
}

/// A vector that rows are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedVector {
    /// A parameter of the request, by its position in the registry.
    Param(u32),
    /// A key of the rows at hand: a vector for each.
    Key(Key),
}

/// A task parameter's value, of the type that its declaration says.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Optional and not given.
    Absent,
    Int(i64),
    /// In place of an int.
    Dial(Dial),
    Float(f64),
    Bool(bool),
    Text(Arc<str>),
    Texts(Vec<Arc<str>>),
    Numbers(Vec<f64>),
    Template(Arc<Template>),
    /// Position in the registry.
    Endpoint(u32),
    Model(ModelArg),
    Key(Key),
    Keys(Vec<Key>),
    KeyMap(NamedKeys),
    KeyPairs(Vec<KeyPair>),
    KeyChoices(ChosenWords),
    Aggregates(Vec<MadeOf>),
    Rules(Vec<GroupRule>),
    SortKeys(Vec<SortKey>),
    On(KeyPair),
    Expr(Arc<Program>),
    Exprs(KeyPrograms),
    Pred(Arc<Program>),
    AskedVector(AskedVector),
    /// A key of the rows of the table that the node names.
    TableKey(Key),
    /// A condition on those rows.
    TablePred(Arc<Program>),
    /// The node's rows are the input at this position of `Node::inputs`.
    Node(usize),
    /// The rows of so many nodes, the last of `Node::inputs`, for when the task asks for them.
    Reserves(usize),
    Fills(Vec<Fill>),
    Ids(Vec<Id>),
    /// A parameter of the request, by its position in the registry.
    Param(u32),
    Columns(Vec<(Key, ColumnData)>),
}

impl Arg {
    /// The keys that it names, of the rows at hand. Those inside an expression or a template are its own.
    pub fn keys(&self) -> Vec<Key> {
        match self {
            Arg::Key(key) | Arg::AskedVector(AskedVector::Key(key)) => vec![*key],
            Arg::Keys(keys) => keys.clone(),
            Arg::KeyMap(keys) => keys.iter().map(|(_, key)| *key).collect(),
            Arg::KeyPairs(pairs) => pairs.iter().map(|pair| pair.left).collect(),
            Arg::KeyChoices(choices) => choices.iter().map(|(key, _)| *key).collect(),
            Arg::Aggregates(list) => list.iter().map(|made| made.into).collect(),
            Arg::Exprs(list) => list.iter().map(|(key, _)| *key).collect(),
            Arg::SortKeys(keys) => keys.iter().map(|by| by.key).collect(),
            Arg::Rules(rules) => rules.iter().map(|rule| rule.by).collect(),
            Arg::On(pair) => vec![pair.left],
            Arg::Columns(columns) => columns.iter().map(|(key, _)| *key).collect(),
            Arg::Absent
            | Arg::Int(_)
            | Arg::Dial(_)
            | Arg::Float(_)
            | Arg::Bool(_)
            | Arg::Text(_)
            | Arg::Texts(_)
            | Arg::Numbers(_)
            | Arg::Template(_)
            | Arg::Endpoint(_)
            | Arg::Model(_)
            | Arg::Expr(_)
            | Arg::Pred(_)
            | Arg::AskedVector(AskedVector::Param(_))
            | Arg::TableKey(_)
            | Arg::TablePred(_)
            | Arg::Node(_)
            | Arg::Reserves(_)
            | Arg::Fills(_)
            | Arg::Ids(_)
            | Arg::Param(_) => Vec::new(),
        }
    }

    /// The keys that it reads of the rows at hand, whatever the contract says of the parameter.
    pub fn own_reads(&self) -> Vec<Key> {
        match self {
            Arg::Expr(program) | Arg::Pred(program) => program.keys(),
            Arg::Exprs(list) => list.iter().flat_map(|(_, program)| program.keys()).collect(),
            Arg::Template(template) => template.keys(),
            Arg::Aggregates(list) => list.iter().filter_map(|made| made.of).collect(),
            Arg::Model(model) => model.reads.clone(),
            Arg::Absent
            | Arg::Int(_)
            | Arg::Dial(_)
            | Arg::Float(_)
            | Arg::Bool(_)
            | Arg::Text(_)
            | Arg::Texts(_)
            | Arg::Numbers(_)
            | Arg::Endpoint(_)
            | Arg::Key(_)
            | Arg::Keys(_)
            | Arg::KeyMap(_)
            | Arg::KeyPairs(_)
            | Arg::KeyChoices(_)
            | Arg::Rules(_)
            | Arg::SortKeys(_)
            | Arg::On(_)
            | Arg::AskedVector(_)
            | Arg::TableKey(_)
            | Arg::TablePred(_)
            | Arg::Node(_)
            | Arg::Reserves(_)
            | Arg::Fills(_)
            | Arg::Ids(_)
            | Arg::Param(_)
            | Arg::Columns(_) => Vec::new(),
        }
    }

    /// The keys that it names of other rows.
    pub fn right_keys(&self) -> Vec<Key> {
        match self {
            Arg::KeyPairs(pairs) => pairs.iter().map(|pair| pair.right).collect(),
            Arg::On(pair) => vec![pair.right],
            Arg::TableKey(key) => vec![*key],
            Arg::TablePred(program) => program.keys(),
            Arg::Absent
            | Arg::Int(_)
            | Arg::Dial(_)
            | Arg::Float(_)
            | Arg::Bool(_)
            | Arg::Text(_)
            | Arg::Texts(_)
            | Arg::Numbers(_)
            | Arg::Template(_)
            | Arg::Endpoint(_)
            | Arg::Model(_)
            | Arg::Key(_)
            | Arg::Keys(_)
            | Arg::KeyMap(_)
            | Arg::KeyChoices(_)
            | Arg::Aggregates(_)
            | Arg::Rules(_)
            | Arg::SortKeys(_)
            | Arg::Expr(_)
            | Arg::Exprs(_)
            | Arg::Pred(_)
            | Arg::AskedVector(_)
            | Arg::Node(_)
            | Arg::Reserves(_)
            | Arg::Fills(_)
            | Arg::Ids(_)
            | Arg::Param(_)
            | Arg::Columns(_) => Vec::new(),
        }
    }

    /// The parameters of a request that it reads, but for those inside an expression.
    pub fn params(&self) -> Vec<u32> {
        match self {
            Arg::Template(template) => template.params(),
            Arg::Param(param) | Arg::AskedVector(AskedVector::Param(param)) => vec![*param],
            _ => Vec::new(),
        }
    }

    /// The endpoint that it names.
    pub fn endpoint(&self) -> Option<u32> {
        if let Arg::Endpoint(at) = self { Some(*at) } else { None }
    }

    /// The model that it names.
    pub fn model(&self) -> Option<&ModelArg> {
        if let Arg::Model(model) = self { Some(model) } else { None }
    }

    /// The expressions and predicates that it is.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        let one = match self {
            Arg::Expr(program) | Arg::Pred(program) | Arg::TablePred(program) => Some(program),
            _ => None,
        };
        let several = if let Arg::Exprs(list) = self { list.as_slice() } else { &[] };
        one.into_iter().chain(several.iter().map(|(_, program)| program))
    }

    /// The parameters of a request that are regular expressions here.
    pub fn pattern_params(&self) -> impl Iterator<Item = u32> + '_ {
        self.programs().flat_map(|program| program.pattern_params())
    }
}

/// The data of one literal column.
#[derive(Clone, Debug)]
pub enum ColumnData {
    Values(Vec<Value>),
    /// A named deterministic generator.
    Generated(Generator),
}

/// How a column's cells follow from their position, counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// `start + step × position`
    Sequence { start: i64, step: i64 },
    /// A well-mixed number in `0.0..1.0`, or in `0..modulus` for ints, that depends on the seed and the position only.
    Hash { seed: u64, modulus: i64 },
    /// The listed values over and over.
    Cycle { values: Vec<Value> },
}
