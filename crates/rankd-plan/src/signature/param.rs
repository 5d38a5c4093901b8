//! A task's parameters: their kinds, what they refer to, and what holds when one is not given.

use rankd_column::{Type, Value};

/// One parameter of a task.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub need: Need,
    /// One sentence for authors.
    pub doc: &'static str,
    /// Where it goes together with other parameters: one of these must hold where it is given. Empty where it always may be.
    pub uses: &'static [ParamUse],
}

/// A use of a parameter: what other parameters of the node must be, and what then holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamUse {
    /// All of these.
    pub when: &'static [When],
    /// Whether it must be given then.
    pub needed: bool,
    /// Which types its keys may have then.
    pub types: KeyTypes,
}

/// What another parameter must be, or whether the node has an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Any parameter, or [`ParamRef::INPUT`].
    pub param: ParamRef,
    /// The words of a choice, the kinds of an endpoint, or "given" for all others; the empty text where it is not given.
    pub words: &'static [&'static str],
}

/// The types that a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTypes {
    Any,
    /// What can be compared: no lists and no vectors.
    Scalars,
    /// The type of the ids: their values are looked for among ids.
    LikeIds,
    /// Int or float.
    Numbers,
    Ints,
    Floats,
    Texts,
    /// Lists of any elements.
    Lists,
    /// Vectors of any dimension.
    Vectors,
}

impl KeyTypes {
    /// Whether a key of a type fits, in a registry whose ids are of another.
    pub fn takes(self, type_of: Type, id_type: Type) -> bool {
        match self {
            KeyTypes::LikeIds => type_of == id_type,
            KeyTypes::Any => true,
            KeyTypes::Scalars => type_of.is_scalar(),
            KeyTypes::Numbers => type_of.is_number(),
            KeyTypes::Ints => type_of == Type::Int,
            KeyTypes::Floats => type_of == Type::Float,
            KeyTypes::Texts => type_of == Type::Str,
            KeyTypes::Lists => matches!(type_of, Type::List(_)),
            KeyTypes::Vectors => matches!(type_of, Type::Vector(_)),
        }
    }

    /// What has one of these types, for messages and listings: `key of type int or float`.
    pub fn of(self, what: &str) -> String {
        let types = match self {
            KeyTypes::Any => return what.to_owned(),
            KeyTypes::LikeIds => return format!("{what} of the type that ids have"),
            KeyTypes::Scalars => "int, float, bool or string",
            KeyTypes::Numbers => "int or float",
            KeyTypes::Ints => "int",
            KeyTypes::Floats => "float",
            KeyTypes::Texts => "string",
            KeyTypes::Lists => "list",
            KeyTypes::Vectors => "vector",
        };
        format!("{what} of type {types}")
    }
}

/// A word for what is made of the values of a key: which types the key may have, and what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    pub word: &'static str,
    pub of: KeyTypes,
    pub gives: Gives,
    /// Whether it can be made of the rows themselves, without a key.
    pub alone: bool,
}

/// The type of what is made of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// That of the values.
    Same,
    Int,
    Float,
}

impl Gives {
    pub fn type_of(self, values: Type) -> Type {
        match self {
            Gives::Same => values,
            Gives::Int => Type::Int,
            Gives::Float => Type::Float,
        }
    }
}

impl Param {
    /// The same parameter, with a value that holds when it is not given.
    pub const fn or(self, default: Literal) -> Param {
        Param { need: Need::Default(default), ..self }
    }
}

/// A parameter of the same task, as another part of its contract refers to it.
///
/// The macro `params!` makes one for each field, so that a name that no field has does not compile. Where one is written by
/// hand, the contract's check finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamRef(&'static str);

impl ParamRef {
    /// Stands for the rows that a node works on, where a parameter goes together with them. No parameter has this name.
    pub const INPUT: ParamRef = ParamRef("input");

    pub const fn named(name: &'static str) -> ParamRef {
        ParamRef(name)
    }

    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Whether a parameter must be given, and what holds when it is not.
#[derive(Clone, Copy, Debug)]
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
    Float(f64),
    Bool(bool),
    Text(&'static str),
}

impl Literal {
    pub fn value(self) -> Value {
        match self {
            Literal::Int(v) => Value::Int(v),
            Literal::Float(v) => Value::Float(v),
            Literal::Bool(v) => Value::Bool(v),
            Literal::Text(v) => Value::str(v),
        }
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// An endpoint of one of these kinds.
    Endpoint(&'static [&'static str]),
    Int {
        min: i64,
        max: i64,
    },
    /// An int that may follow the load: a first value and a least one in place of a number.
    Dial {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
        max: f64,
    },
    Bool,
    /// Text of letters, digits, `_`, `:` and `-`.
    Text,
    /// A list of such texts.
    Texts,
    /// Text that a run fills in.
    Template,
    /// The same, as what follows the url of a service: it starts with a slash, and has only characters that urls have.
    Path,
    /// A place in a JSON document: the name of a member, or a JSON pointer, which begins with a slash or is empty.
    Pointer,
    Choice(&'static [&'static str]),
    /// A model. The keys that its features are, are read; it gives as many numbers as the task writes keys, raw ones where a choice of the
    /// task is "raw".
    Model,
    /// A key of one of these types that is read or written, as `reads` and `writes` say.
    Key(KeyTypes),
    /// Such keys, each once.
    Keys(KeyTypes),
    /// Keys by any names, such as those of a store's fields.
    KeyMap,
    /// Keys of the rows at hand, each by the key of other rows that its values come from. Both have the same type.
    KeyPairs,
    /// One of these words for each of several keys, which have a type that goes with the word.
    KeyChoices(&'static [(&'static str, KeyTypes)]),
    /// Keys that are written, each with what is made of the values of another key.
    Aggregates(&'static [Made]),
    /// A key of one of these types for each input, each once.
    KeyPerInput(KeyTypes),
    /// Keys that are written, each with the expression that is computed for it. All of them read the rows as they came in.
    Exprs,
    /// A parameter of the request that is a list of ids.
    IdsParam,
    /// A parameter of the request, by name, that is the cursor of an earlier page. The task that pages is an output; others may look at it.
    Cursor {
        pages: bool,
    },
    /// A number for each input, which may have to be whole.
    PerInput {
        whole: bool,
    },
    /// What rows are sorted by, the most important first: keys, each with its order and where nulls come.
    SortKeys,
    /// How many rows of a group may be near each other: rules, the most important first.
    Rules,
    /// How rows are matched with other rows: a key of both. Both keys are of one type, int or string.
    On,
    /// An expression whose result is written to the key that the parameter `into` gives.
    Expr {
        into: Option<ParamRef>,
    },
    Pred,
    /// A key of one of these types that is read of the rows of the table that the node names.
    TableKey(KeyTypes),
    /// A condition on the rows of the table that the node names.
    TablePred,
    /// A vector that rows are compared with: a parameter of the request, or a key of the rows at hand, one vector for each.
    AskedVector,
    /// A condition on the rows that the task gives. It is a node of its own, a `filter` after the task, and so it is written in
    /// TypeScript only.
    Where,
    /// A node: a dependency, and its rows are an input.
    Node,
    /// Nodes whose rows are the last inputs, each run and read only when the task asks for it: `["n9", "n14"]`.
    Reserves,
    /// What is done to the rows of each reserve. It is nodes of its own, and so it is written in TypeScript only.
    Then,
    /// Nodes whose rows are inputs and get places among others: `[{"rows": "n4", "at": [3]}]`.
    Fills,
    /// Ids of rows: as many as the parameter `rows` says, where a plan gives both; where it gives none, `rows` follows from them.
    Ids {
        rows: Option<ParamRef>,
    },
    /// Columns of literal data by key name, of as many rows as the parameter `rows` says, if one does.
    Columns {
        rows: Option<ParamRef>,
    },
}

/// What `params!` adds to a kind.
#[expect(clippy::panic, reason = "this is how a mistake in a declaration becomes an error of the build")]
impl ParamKind {
    /// The same kind, with other bounds. For ints.
    pub const fn within(self, min: i64, max: i64) -> ParamKind {
        match self {
            ParamKind::Int { .. } => ParamKind::Int { min, max },
            ParamKind::Dial { .. } => ParamKind::Dial { min, max },
            ParamKind::Float { .. } => panic!("the range of a float is written with floats, such as 0.0..=1.0"),
            _ => panic!("only a number has a range"),
        }
    }

    /// The same kind, with other bounds. For floats.
    pub const fn within_floats(self, min: f64, max: f64) -> ParamKind {
        match self {
            ParamKind::Float { .. } => ParamKind::Float { min, max },
            ParamKind::Int { .. } | ParamKind::Dial { .. } => {
                panic!("the range of an int is written with ints, such as 1..=10")
            }
            _ => panic!("only a number has a range"),
        }
    }

    /// The same kind, written to the key that another parameter gives. For expressions.
    pub const fn into_param(self, param: ParamRef) -> ParamKind {
        match self {
            ParamKind::Expr { .. } => ParamKind::Expr { into: Some(param) },
            _ => panic!("only an expression is written into another parameter's key"),
        }
    }

    /// The same kind, with as many rows as another parameter says. For columns.
    pub const fn of_rows(self, param: ParamRef) -> ParamKind {
        match self {
            ParamKind::Columns { .. } => ParamKind::Columns { rows: Some(param) },
            ParamKind::Ids { .. } => ParamKind::Ids { rows: Some(param) },
            _ => panic!("only columns have as many rows as another parameter says"),
        }
    }
}

/// The parameter that every task takes: a label for the trace.
pub const TRACE: &str = "trace";
