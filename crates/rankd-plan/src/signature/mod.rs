//! What a task declares about itself, as data: what it takes, reads, writes and does to rows.
//!
//! Checks, documentation, generated types and the scheduler all read the same declaration. The task's code is elsewhere.

use rankd_column::Value;

/// A task as the rest of the program sees it.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub op: &'static str,
    /// One imperative sentence.
    pub summary: &'static str,
    pub contract: &'static Contract,
}

/// The declaration that stands in the task's file.
#[derive(Debug)]
pub struct Contract {
    pub inputs: Inputs,
    pub rows: RowEffect,
    /// Parameters whose keys are read. Keys inside expressions and predicates count by themselves.
    pub reads: &'static [&'static str],
    pub writes: Writes,
    pub params: &'static [Param],
    pub runs: Runs,
    pub cost: Cost,
}

/// What a call costs before anyone has measured it. The scheduler learns the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// So little, whatever the rows, that it never pays to move it to another thread.
    Trivial,
    /// About so much for a call and for each row of its inputs.
    About { fixed_ns: f32, per_row_ns: f32 },
    /// It may be anything, or it is a wait.
    Unknown,
}

/// How many row sets flow in through `inputs`. Node-valued parameters come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    None,
    One,
}

impl Inputs {
    pub fn count(self) -> usize {
        match self {
            Inputs::None => 0,
            Inputs::One => 1,
        }
    }
}

/// What becomes of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEffect {
    /// New rows out of nothing.
    Source,
    /// New rows for each input row; input columns do not come along.
    FanOut,
    /// The same rows in the same order.
    Same,
    /// Some of the rows, in order.
    Fewer,
    /// All rows in another order.
    Reordered,
    /// The rows of the input, then those of the node-valued parameter.
    Appended,
}

impl RowEffect {
    pub fn name(self) -> &'static str {
        match self {
            RowEffect::Source => "source",
            RowEffect::FanOut => "fan-out",
            RowEffect::Same => "same",
            RowEffect::Fewer => "fewer",
            RowEffect::Reordered => "reordered",
            RowEffect::Appended => "appended",
        }
    }

    /// Whether the columns of the input are still there afterwards.
    pub fn keeps_columns(self) -> bool {
        !matches!(self, RowEffect::Source | RowEffect::FanOut)
    }
}

/// Which keys have a column afterwards that may not have had one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    Nothing,
    /// Any registered key: what is there is known only when it is read.
    AnyKey,
    /// The key or keys that this parameter names.
    Param(&'static str),
    /// These keys, by name.
    Named(&'static [&'static str]),
}

/// Where the task's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// On the event loop, waiting without blocking it.
    Loop,
    /// Computing: on the pool, or on the loop when that is cheaper.
    Cpu,
}

impl Runs {
    pub fn name(self) -> &'static str {
        match self {
            Runs::Loop => "loop",
            Runs::Cpu => "cpu",
        }
    }
}

/// One parameter of a task.
#[derive(Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub need: Need,
    /// One sentence for authors.
    pub doc: &'static str,
}

/// Whether a parameter must be given, and what holds when it is not.
#[derive(Debug)]
pub enum Need {
    Required,
    /// Absent when not given.
    Optional,
    Default(Literal),
}

/// A default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    Int(i64),
    Bool(bool),
    Text(&'static str),
}

impl Literal {
    pub fn value(self) -> Value {
        match self {
            Literal::Int(v) => Value::Int(v),
            Literal::Bool(v) => Value::Bool(v),
            Literal::Text(v) => Value::str(v),
        }
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// An endpoint of this kind.
    Endpoint(&'static str),
    Int {
        min: i64,
        max: i64,
    },
    Bool,
    /// Text of letters, digits, `_`, `:` and `-`.
    Text,
    Choice(&'static [&'static str]),
    /// A key that is read or written, as `reads` and `writes` say.
    Key,
    Keys,
    /// An expression whose result is written to the key that the named parameter gives.
    Expr {
        into: &'static str,
    },
    Pred,
    /// A node: a dependency, and its rows are an input.
    Node,
    /// Columns of literal data by key name.
    Columns,
}

impl ParamKind {
    /// The kind in a word or two, for listings.
    pub fn name(self) -> String {
        match self {
            ParamKind::Endpoint(kind) => format!("{kind} endpoint"),
            ParamKind::Int { min, max } if max == i64::MAX => format!("int ≥ {min}"),
            ParamKind::Int { min, max } => format!("int {min}..={max}"),
            ParamKind::Bool => "bool".into(),
            ParamKind::Text => "text".into(),
            ParamKind::Choice(choices) => choices.join(" | "),
            ParamKind::Key => "key".into(),
            ParamKind::Keys => "list of keys".into(),
            ParamKind::Expr { .. } => "expression".into(),
            ParamKind::Pred => "predicate".into(),
            ParamKind::Node => "node".into(),
            ParamKind::Columns => "columns".into(),
        }
    }
}

/// The parameter that every task takes: a label for the trace.
pub const TRACE: &str = "trace";
