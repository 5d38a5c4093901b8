//! A task's parameters as a struct: each field is declared once, with its kind, its range, its default and its documentation.
//!
//! [`params!`](crate::params) makes from it what the contract declares and what reads a node's arguments when a plan is linked.
//! A field's type is a [`ParamType`]: it says what the parameter takes, and what the task gets. What a type has checked, the
//! task does not check again.

use super::{KeyTypes, Literal, Param, ParamKind, ParamRef};
use crate::plan::{Arg, ColumnData, Fill, GroupRule, KeyPair, KeyPrograms, NamedKeys};
pub use crate::plan::{AskedVector, Dial};
use crate::template::Template;
use rankd_column::expr::Program;
use rankd_column::kernel::sort::SortKey;
use rankd_column::{Id, Key};
use std::ops::{RangeFrom, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

/// A type that a field of [`params!`](crate::params) can have.
pub trait ParamType {
    /// What the field holds.
    type Value;
    const KIND: ParamKind;
    /// Whether a plan may leave it out.
    const OPTIONAL: bool = false;

    /// The value of an argument; `None` where the argument is of another kind, which the checks do not let happen.
    fn read(arg: &Arg) -> Option<Self::Value>;
}

/// The parameters of a task.
pub trait Params: Sized {
    /// In the order in which a node's arguments are.
    const LIST: &'static [Param];

    /// The parameters of a node.
    fn read(args: &[Arg]) -> Self;
}

/// Declares a task's parameters as a struct.
///
/// ```
/// use rankd_column::Key;
/// use rankd_plan::params;
/// use rankd_plan::signature::typed::{Count, Expr};
///
/// params! {
///     pub struct Task {
///         /// The key to write
///         out_key: Key,
///         /// The expression to compute
///         #[into(out_key)]
///         expr: Expr,
///         /// How many rows to look at
///         #[range(1..=1_000)]
///         count: Count = 100,
///     }
/// }
///
/// assert_eq!(Task::PARAMS[2].doc, "How many rows to look at");
/// // How a contract refers to a parameter.
/// assert_eq!(Task::out_key.name(), "out_key");
/// ```
///
/// A reference to a field that is not there does not compile:
///
/// ```compile_fail
/// rankd_plan::params! {
///     pub struct Task {
///         /// The expression to compute
///         #[into(out_key)]
///         expr: rankd_plan::signature::typed::Expr,
///     }
/// }
/// ```
///
/// A field is required, unless its type is an `Option` or it has a default. `#[needed(from: "list" | "set")]` on an `Option` says that it
/// must be given where the parameter `from` is one of these words, and must not be given elsewhere; with `only`, it may be given there. Of
/// several such lines one has to hold; of several parameters in one line, separated by commas, all. The word of an endpoint is its
/// kind, and that of a parameter that is not given is empty; `input: "given"` is where the node has an input. `; Numbers` at the end of a line says which types the keys have.
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $(
        $(#[doc = $doc:literal])+
        $(#[range($range:expr)])?
        $(#[into($into:ident)])?
        $(#[rows($rows:ident)])?
        $(#[needed($($needs:ident: $($need:literal)|+),+ $(; $need_types:ident)?)])*
        $(#[only($($onlys:ident: $($only:literal)|+),+ $(; $only_types:ident)?)])*
        $field:ident: $type:ty $(= $default:literal)?
    ),* $(,)? }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $doc])+ $vis $field: <$type as $crate::signature::typed::ParamType>::Value,)*
        }

        #[allow(dead_code, non_upper_case_globals, reason = "a contract uses those that it needs; they are named as fields")]
        impl $name {
            $vis const PARAMS: &'static [$crate::signature::Param] =
                <$name as $crate::signature::typed::Params>::LIST;
            $($vis const $field: $crate::signature::ParamRef =
                $crate::signature::ParamRef::named($crate::signature::typed::plain(stringify!($field)));)*
            /// For `needed` and `only`: whether the node has rows to work on.
            $vis const input: $crate::signature::ParamRef = $crate::signature::ParamRef::INPUT;
        }

        impl $crate::signature::typed::Params for $name {
            const LIST: &'static [$crate::signature::Param] = &[$({
                let kind = <$type as $crate::signature::typed::ParamType>::KIND;
                $(let kind = $crate::signature::typed::Written($range).bound(kind);)?
                $(let kind = kind.into_param($name::$into);)?
                $(let kind = kind.of_rows($name::$rows);)?
                let param = $crate::signature::Param {
                    name: $crate::signature::typed::plain(stringify!($field)),
                    kind,
                    need: $crate::signature::typed::need::<$type>(),
                    doc: concat!($($doc),+).trim_ascii(),
                    uses: &[
                        $($crate::signature::ParamUse {
                            when: &[$($crate::signature::When { param: $name::$needs, words: &[$($need),+] }),+],
                            needed: true,
                            types: $crate::key_types!($($need_types)?),
                        },)*
                        $($crate::signature::ParamUse {
                            when: &[$($crate::signature::When { param: $name::$onlys, words: &[$($only),+] }),+],
                            needed: false,
                            types: $crate::key_types!($($only_types)?),
                        },)*
                    ],
                };
                $(let param = param.or($crate::signature::typed::Written($default).literal());)?
                param
            }),*];

            fn read(args: &[$crate::plan::Arg]) -> $name {
                let mut _args = args.iter();
                // The fields are read in the order of the arguments.
                $name { $($field: $crate::signature::typed::next::<$type>(&mut _args, $name::$field)),* }
            }
        }
    };
}

/// What `params!` expands to uses this: the types of keys as they were written.
#[doc(hidden)]
#[macro_export]
macro_rules! key_types {
    () => {
        $crate::signature::KeyTypes::Any
    };
    ($types:ident) => {
        $crate::signature::KeyTypes::$types
    };
}

/// Declares a parameter that takes one of several words.
///
/// ```
/// use rankd_plan::choices;
/// use rankd_plan::signature::typed::ParamType;
///
/// choices! {
///     /// Which end comes first.
///     pub enum Side -> bool { "left" => true, "right" => false }
/// }
///
/// assert_eq!(Side::read(&rankd_plan::plan::Arg::Text("right".into())), Some(false));
/// ```
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $name:ident -> $value:ty { $($word:literal => $choice:expr),+ $(,)? }) => {
        $(#[$meta])*
        $vis enum $name {}

        impl $crate::signature::typed::ParamType for $name {
            type Value = $value;
            const KIND: $crate::signature::ParamKind = $crate::signature::ParamKind::Choice(&[$($word),+]);

            fn read(arg: &$crate::plan::Arg) -> Option<$value> {
                let $crate::plan::Arg::Text(word) = arg else { return None };
                match &**word {
                    $($word => Some($choice),)+
                    _ => None,
                }
            }
        }
    };
}

/// Declares a parameter that takes one of several words for each of several keys. After each word stands which types its keys have.
///
/// ```
/// use rankd_column::Key;
/// use rankd_plan::key_choices;
/// use rankd_plan::signature::typed::ParamType;
///
/// key_choices! {
///     /// What is made of several values.
///     pub enum How -> bool { "max": Numbers => true, "first": Any => false }
/// }
///
/// let arg = rankd_plan::plan::Arg::KeyChoices(vec![(Key(3), "first".into())]);
/// assert_eq!(How::read(&arg), Some(vec![(Key(3), false)]));
/// ```
#[macro_export]
macro_rules! key_choices {
    ($(#[$meta:meta])* $vis:vis enum $name:ident -> $value:ty { $($word:literal: $types:ident => $choice:expr),+ $(,)? }) => {
        $(#[$meta])*
        $vis enum $name {}

        impl $crate::signature::typed::ParamType for $name {
            type Value = Vec<($crate::signature::typed::ChosenKey, $value)>;
            const KIND: $crate::signature::ParamKind =
                $crate::signature::ParamKind::KeyChoices(&[$(($word, $crate::signature::KeyTypes::$types)),+]);

            fn read(arg: &$crate::plan::Arg) -> Option<Self::Value> {
                let $crate::plan::Arg::KeyChoices(chosen) = arg else { return None };
                let choice = |word: &str| match word {
                    $($word => Some($choice),)+
                    _ => None,
                };
                chosen.iter().map(|(key, word)| Some((*key, choice(word)?))).collect()
            }
        }
    };
}

/// What `key_choices!` and `aggregates!` expand to uses this.
#[doc(hidden)]
pub type ChosenKey = Key;

/// Declares a parameter that makes something of the values of keys, by a word, and writes it to other keys. After each word stands which types
/// the key has and what comes out, `Same` for the key's own type; and `alone` where the word may stand without a key.
///
/// ```
/// use rankd_column::Key;
/// use rankd_plan::aggregates;
/// use rankd_plan::plan::{Arg, MadeOf};
/// use rankd_plan::signature::typed::{Aggregated, ParamType};
///
/// aggregates! {
///     /// What is made of several values.
///     pub enum How -> bool { "sum": Numbers -> Same => true, "count": Any -> Int, alone => false }
/// }
///
/// let arg = Arg::Aggregates(vec![MadeOf { into: Key(3), word: "count".into(), of: None }]);
/// assert_eq!(How::read(&arg), Some(vec![Aggregated { into: Key(3), how: false, of: None }]));
/// ```
#[macro_export]
macro_rules! aggregates {
    ($(#[$meta:meta])* $vis:vis enum $name:ident -> $value:ty { $($word:literal: $of:ident -> $gives:ident $(, $alone:ident)? => $choice:expr),+ $(,)? }) => {
        $(#[$meta])*
        $vis enum $name {}

        impl $crate::signature::typed::ParamType for $name {
            type Value = Vec<$crate::signature::typed::Aggregated<$value>>;
            const KIND: $crate::signature::ParamKind = $crate::signature::ParamKind::Aggregates(&[$($crate::signature::Made {
                word: $word,
                of: $crate::signature::KeyTypes::$of,
                gives: $crate::signature::Gives::$gives,
                alone: false $(|| !stringify!($alone).is_empty())?,
            }),+]);

            fn read(arg: &$crate::plan::Arg) -> Option<Self::Value> {
                let $crate::plan::Arg::Aggregates(list) = arg else { return None };
                let choice = |word: &str| match word {
                    $($word => Some($choice),)+
                    _ => None,
                };
                let read = |made: &$crate::plan::MadeOf| {
                    Some($crate::signature::typed::Aggregated { into: made.into, how: choice(&made.word)?, of: made.of })
                };
                list.iter().map(read).collect()
            }
        }
    };
}

/// What is made of the values of a key, or of the rows where there is none, and the key that gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregated<T> {
    pub into: Key,
    pub how: T,
    pub of: Option<Key>,
}

/// What `params!` expands to uses this: the name of a field, which may be a word of the language with `r#` before it.
#[doc(hidden)]
pub const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', rest @ ..] => match std::str::from_utf8(rest) {
            Ok(name) => name,
            Err(_) => name,
        },
        _ => name,
    }
}

/// What `params!` expands to uses this: the next argument, as a field's type has it.
#[doc(hidden)]
#[expect(clippy::panic, reason = "arguments that are not of the declaration are a bug, which link catches")]
pub fn next<T: ParamType>(args: &mut std::slice::Iter<'_, Arg>, param: ParamRef) -> T::Value {
    let arg = args.next().and_then(T::read);
    arg.unwrap_or_else(|| panic!("the argument {:?} is not of the kind that was declared", param.name()))
}

/// What `params!` expands to uses this: whether a type may be left out.
#[doc(hidden)]
pub const fn need<T: ParamType>() -> super::Need {
    if T::OPTIONAL { super::Need::Optional } else { super::Need::Required }
}

/// What `params!` expands to uses this: a range or a default as it was written. What it means follows from its type.
#[doc(hidden)]
pub struct Written<T>(pub T);

impl Written<RangeFrom<i64>> {
    pub const fn bound(self, kind: ParamKind) -> ParamKind {
        kind.within(self.0.start, i64::MAX)
    }
}

impl Written<RangeInclusive<i64>> {
    pub const fn bound(self, kind: ParamKind) -> ParamKind {
        kind.within(*self.0.start(), *self.0.end())
    }
}

impl Written<RangeFrom<f64>> {
    pub const fn bound(self, kind: ParamKind) -> ParamKind {
        kind.within_floats(self.0.start, f64::MAX)
    }
}

impl Written<RangeInclusive<f64>> {
    pub const fn bound(self, kind: ParamKind) -> ParamKind {
        kind.within_floats(*self.0.start(), *self.0.end())
    }
}

impl Written<i64> {
    pub const fn literal(self) -> Literal {
        Literal::Int(self.0)
    }
}

impl Written<f64> {
    pub const fn literal(self) -> Literal {
        Literal::Float(self.0)
    }
}

impl Written<bool> {
    pub const fn literal(self) -> Literal {
        Literal::Bool(self.0)
    }
}

impl Written<&'static str> {
    pub const fn literal(self) -> Literal {
        Literal::Text(self.0)
    }
}

/// Not given is `None`.
impl<T: ParamType> ParamType for Option<T> {
    type Value = Option<T::Value>;
    const KIND: ParamKind = T::KIND;
    const OPTIONAL: bool = true;

    fn read(arg: &Arg) -> Option<Option<T::Value>> {
        match arg {
            Arg::Absent => Some(None),
            arg => T::read(arg).map(Some),
        }
    }
}

/// An int that is not negative and may follow the load: what it is, is known in a run.
impl ParamType for Dial {
    type Value = Dial;
    const KIND: ParamKind = ParamKind::Dial { min: 0, max: i64::MAX };

    fn read(arg: &Arg) -> Option<Dial> {
        match arg {
            Arg::Int(value) => Some(Dial::new(*value, None)),
            Arg::Dial(dial) => Some(*dial),
            _ => None,
        }
    }
}

/// An int that is not negative, as a `usize`.
pub enum Count {}

/// A number of milliseconds, as a `Duration`.
pub enum Millis {}

/// Letters, digits, `_`, `:` and `-`.
pub enum PlainText {}

/// A list of such texts.
pub enum Texts {}

/// A whole number for each input.
pub enum CountPerInput {}

/// A number for each input.
pub enum WeightPerInput {}

/// A key that is no list or vector.
pub enum ScalarKey {}

/// Keys that are no lists or vectors.
pub enum ScalarKeys {}

/// Keys of the type of the ids.
pub enum KeysLikeIds {}

/// A key that is an int or a float.
pub enum NumberKey {}

/// A key that is an int.
pub enum IntKey {}

/// A key that is a vector.
pub enum VectorKey {}

/// A key that is a text.
pub enum TextKey {}

/// A key that is a float.
pub enum FloatKey {}

/// Text that a run fills in.
pub enum TemplateText {}

/// The same, as what follows the url of a service.
pub enum PathTemplate {}

/// The name of a member of a JSON document, or a JSON pointer.
pub enum Pointer {}

/// Keys by any names, such as those of a store's fields.
pub enum KeyMap {}

/// Keys of the rows at hand, each by the key of other rows that its values come from.
pub enum KeyPairs {}

/// How many rows of a group may be near each other.
pub enum Rules {}

/// What rows are sorted by.
pub enum SortKeys {}

/// How rows are matched with other rows.
pub enum On {}

/// An expression whose result is written to a key: `#[into(out_key)]`.
pub enum Expr {}

/// A condition on rows.
pub enum Predicate {}

/// A condition on the rows of the table that the node names.
pub enum TablePredicate {}

/// A key of those rows that is a vector.
pub enum TableVectorKey {}

/// A condition on the rows that the task gives, which becomes a `filter` after it: an option of plans in TypeScript.
pub enum Where {}

/// A node whose rows are an input: its position among the inputs.
pub enum Input {}

/// Nodes whose rows are the last inputs, each there only once the task has asked for it: how many there are.
pub enum Reserves {}

/// Nodes whose rows are inputs and get places.
pub enum Fills {}

/// What is done to the rows of each reserve: an option of plans in TypeScript, called once for each.
pub enum Then {}

/// Ids of rows; `#[rows(row_count)]` says how many, and follows from them where a plan does not give it.
pub enum IdList {}

/// A key that is an int for each input.
pub enum IntKeyPerInput {}

/// A key that is a float for each input.
pub enum FloatKeyPerInput {}

/// Keys with the expressions that are written to them.
pub enum Exprs {}

/// A parameter of the request that is a list of ids: its position in the registry.
pub enum IdsParam {}

/// The parameter with the cursor of an earlier page, of the task that pages.
pub enum PageCursor {}

/// The same, of a task that goes by what earlier pages had.
pub enum SeenCursor {}

/// Columns of literal data; `#[rows(row_count)]` says how many rows they have.
pub enum Columns {}

/// Keys that are floats.
pub enum FloatKeys {}

/// A model that scores rows: its position in the registry.
pub enum ModelName {}

/// One row for each type: what a field holds, what the parameter takes, how it is read.
macro_rules! types {
    ($($type:ty as $value:ty: $kind:expr, $arg:pat => $read:expr;)*) => {$(
        impl ParamType for $type {
            type Value = $value;
            const KIND: ParamKind = $kind;

            fn read(arg: &Arg) -> Option<$value> {
                match arg {
                    $arg => Some($read),
                    _ => None,
                }
            }
        }
    )*};
}

types! {
    bool as bool: ParamKind::Bool, Arg::Bool(value) => *value;
    i64 as i64: ParamKind::Int { min: i64::MIN, max: i64::MAX }, Arg::Int(value) => *value;
    f64 as f64: ParamKind::Float { min: f64::MIN, max: f64::MAX }, Arg::Float(value) => *value;
    Count as usize: FROM_0, Arg::Int(value) => usize::try_from(*value).unwrap_or(usize::MAX);
    Millis as Duration: FROM_0, Arg::Int(value) => Duration::from_millis(value.unsigned_abs());
    PlainText as Arc<str>: ParamKind::Text, Arg::Text(value) => value.clone();
    Texts as Vec<Arc<str>>: ParamKind::Texts, Arg::Texts(value) => value.clone();
    CountPerInput as Vec<usize>: ParamKind::PerInput { whole: true }, Arg::Numbers(value) => value.iter().map(|n| *n as usize).collect();
    WeightPerInput as Vec<f64>: ParamKind::PerInput { whole: false }, Arg::Numbers(value) => value.clone();
    TemplateText as Arc<Template>: ParamKind::Template, Arg::Template(value) => value.clone();
    PathTemplate as Arc<Template>: ParamKind::Path, Arg::Template(value) => value.clone();
    Pointer as Arc<str>: ParamKind::Pointer, Arg::Text(value) => value.clone();
    Key as Key: ParamKind::Key(KeyTypes::Any), Arg::Key(value) => *value;
    ScalarKey as Key: ParamKind::Key(KeyTypes::Scalars), Arg::Key(value) => *value;
    NumberKey as Key: ParamKind::Key(KeyTypes::Numbers), Arg::Key(value) => *value;
    IntKey as Key: ParamKind::Key(KeyTypes::Ints), Arg::Key(value) => *value;
    VectorKey as Key: ParamKind::Key(KeyTypes::Vectors), Arg::Key(value) => *value;
    TextKey as Key: ParamKind::Key(KeyTypes::Texts), Arg::Key(value) => *value;
    FloatKey as Key: ParamKind::Key(KeyTypes::Floats), Arg::Key(value) => *value;
    Vec<Key> as Vec<Key>: ParamKind::Keys(KeyTypes::Any), Arg::Keys(value) => value.clone();
    KeysLikeIds as Vec<Key>: ParamKind::Keys(KeyTypes::LikeIds), Arg::Keys(value) => value.clone();
    ScalarKeys as Vec<Key>: ParamKind::Keys(KeyTypes::Scalars), Arg::Keys(value) => value.clone();
    FloatKeys as Vec<Key>: ParamKind::Keys(KeyTypes::Floats), Arg::Keys(value) => value.clone();
    ModelName as u32: ParamKind::Model, Arg::Model(value) => value.model;
    KeyMap as NamedKeys: ParamKind::KeyMap, Arg::KeyMap(value) => value.clone();
    KeyPairs as Vec<KeyPair>: ParamKind::KeyPairs, Arg::KeyPairs(value) => value.clone();
    Rules as Vec<GroupRule>: ParamKind::Rules, Arg::Rules(value) => value.clone();
    SortKeys as Vec<SortKey>: ParamKind::SortKeys, Arg::SortKeys(value) => value.clone();
    On as KeyPair: ParamKind::On, Arg::On(value) => *value;
    Expr as Arc<Program>: ParamKind::Expr { into: None }, Arg::Expr(value) => value.clone();
    Predicate as Arc<Program>: ParamKind::Pred, Arg::Pred(value) => value.clone();
    TablePredicate as Arc<Program>: ParamKind::TablePred, Arg::TablePred(value) => value.clone();
    TableVectorKey as Key: ParamKind::TableKey(KeyTypes::Vectors), Arg::TableKey(value) => *value;
    AskedVector as AskedVector: ParamKind::AskedVector, Arg::AskedVector(value) => *value;
    Where as (): ParamKind::Where, Arg::Absent => ();
    Input as usize: ParamKind::Node, Arg::Node(value) => *value;
    Reserves as usize: ParamKind::Reserves, Arg::Reserves(value) => *value;
    Then as (): ParamKind::Then, Arg::Absent => ();
    Fills as Vec<Fill>: ParamKind::Fills, Arg::Fills(value) => value.clone();
    IdList as Vec<Id>: ParamKind::Ids { rows: None }, Arg::Ids(value) => value.clone();
    IntKeyPerInput as Vec<Key>: ParamKind::KeyPerInput(KeyTypes::Ints), Arg::Keys(value) => value.clone();
    FloatKeyPerInput as Vec<Key>: ParamKind::KeyPerInput(KeyTypes::Floats), Arg::Keys(value) => value.clone();
    Exprs as KeyPrograms: ParamKind::Exprs, Arg::Exprs(value) => value.clone();
    IdsParam as u32: ParamKind::IdsParam, Arg::Param(value) => *value;
    PageCursor as u32: ParamKind::Cursor { pages: true }, Arg::Param(value) => *value;
    SeenCursor as u32: ParamKind::Cursor { pages: false }, Arg::Param(value) => *value;
    Columns as Vec<(Key, ColumnData)>: ParamKind::Columns { rows: None }, Arg::Columns(value) => value.clone();
}

const FROM_0: ParamKind = ParamKind::Int { min: 0, max: i64::MAX };
