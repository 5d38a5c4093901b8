//! The kinds of parameters, a row each: what a kind is called, how it is written in JSON and in TypeScript, and what reads it.
//!
//! The checks, listings, generated types and the runtime of plans in TypeScript go by these rows. A new kind is a row here, an arm
//! in `check/args.rs` that reads it, a type in `typed.rs`, and where no function of the runtime reads its like, one in
//! `dslc/src/runtime/options.js`; the compiler or a test names each that is missing.

use super::{Gives, KeyTypes, Made, ParamKind};
use crate::json;

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindRow {
    /// The kind in a word or two, for listings and messages.
    pub name: String,
    /// The JSON types that it is written as.
    pub json: &'static [json::Kind],
    /// Its type in TypeScript, in which `{key}` stands for the type of a key that is read or written, as the contract says, and
    /// `{into}` for the key that it is written to.
    pub typescript: String,
    /// The function of the runtime that reads it in plans in TypeScript.
    pub reader: &'static str,
}

impl ParamKind {
    pub fn row(self) -> KindRow {
        use json::Kind::{Array, Bool, Number, Object, String as Text};
        let row = |name: &str, json, typescript: &str, reader| KindRow {
            name: name.to_owned(),
            json,
            typescript: typescript.to_owned(),
            reader,
        };
        match self {
            ParamKind::Endpoint(kinds) => {
                let types: Vec<String> = kinds.iter().map(|kind| format!("Endpoint<{kind:?}>")).collect();
                row(&format!("{} endpoint", kinds.join(" or ")), &[Text], &types.join(" | "), "endpoint")
            }
            ParamKind::Int { min, max } => row(&int_in(min, max), &[Number], "number | bigint", "int"),
            ParamKind::Dial { min, max } => {
                let name = format!("{} or a dial", int_in(min, max));
                row(&name, &[Number, Object], "number | bigint | Dial", "dial")
            }
            ParamKind::Float { min, max } => {
                let name = match (min == f64::MIN, max == f64::MAX) {
                    (true, true) => "float".to_owned(),
                    (false, true) => format!("float ≥ {min}"),
                    (true, false) => format!("float ≤ {max}"),
                    (false, false) => format!("float {min}..={max}"),
                };
                row(&name, &[Number], "number", "float")
            }
            ParamKind::Bool => row("bool", &[Bool], "boolean", "bool"),
            ParamKind::Text => row("text", &[Text], "string", "text"),
            ParamKind::Texts => row("list of texts", &[Array], "readonly string[]", "texts"),
            ParamKind::PerInput { whole: true } => {
                row("whole number for each input", &[Array], "readonly number[]", "numbers")
            }
            ParamKind::PerInput { whole: false } => {
                row("number for each input", &[Array], "readonly number[]", "numbers")
            }
            ParamKind::Template => row("template", &[Text], "string", "text"),
            ParamKind::Path => row("path template", &[Text], "string", "text"),
            ParamKind::Pointer => row("member or JSON pointer", &[Text], "string", "text"),
            ParamKind::Choice(choices) => {
                let types: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
                row(&choices.join(" | "), &[Text], &types.join(" | "), "text")
            }
            ParamKind::Model => row("model", &[Text], "Model", "model"),
            ParamKind::Key(types) => row(&types.of("key"), &[Text, Number], "{key}", "key"),
            ParamKind::Keys(types) => row(&types.of("list of keys"), &[Array], "readonly {key}[]", "keys"),
            ParamKind::KeyMap => row("keys by name", &[Object], "{ readonly [name: string]: {key} }", "key_map"),
            ParamKind::KeyPairs => {
                row("keys by key", &[Object], "{ readonly [name in keyof typeof Key]?: {key} }", "key_map")
            }
            ParamKind::KeyChoices(choices) => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                let types: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                let types = format!("{{ readonly [name in keyof typeof Key]?: {} }}", types.join(" | "));
                row(&format!("{} by key", words.join(" | ")), &[Object], &types, "key_choices")
            }
            ParamKind::Aggregates(words) => {
                let list = |alone: bool| {
                    let words = words.iter().filter(|made| made.alone || !alone);
                    words.map(|made| format!("{:?}", made.word)).collect::<Vec<String>>().join(" | ")
                };
                let alone = if list(true).is_empty() { String::new() } else { format!(" | readonly [{}]", list(true)) };
                let types =
                    format!("{{ readonly [name in keyof typeof Key]?: readonly [{}, AnyKey]{alone} }}", list(false));
                let words: Vec<&str> = words.iter().map(|made| made.word).collect();
                row(&format!("[{}, key] by key", words.join(" | ")), &[Object], &types, "aggregates")
            }
            ParamKind::SortKeys => {
                let types = "readonly { readonly key: AnyScalarKey; readonly order?: \"asc\" | \"desc\"; readonly nulls?: \"first\" | \"last\" }[]";
                row("list of keys with their order", &[Array], types, "sort_keys")
            }
            ParamKind::Rules => {
                let types = "readonly ({ readonly by: AnyScalarKey; readonly max: number; readonly window?: number } | { readonly by: AnyScalarKey; readonly gap: number })[]";
                row("list of rules", &[Array], types, "rules")
            }
            ParamKind::On => {
                let types = "{key} | { readonly left: {key}; readonly right: {key} }";
                row("key, or left and right key", &[Text, Number, Object], types, "on")
            }
            ParamKind::Expr { .. } => row("expression", &[Text], "ValueOf<{into}> | null", "expr"),
            ParamKind::Pred => row("predicate", &[Text], "boolean", "pred"),
            ParamKind::TableKey(types) => {
                row(&format!("{} of the table", types.of("key")), &[Text, Number], "{key}", "key")
            }
            ParamKind::TablePred => row("predicate on the table's rows", &[Text], "boolean", "pred"),
            ParamKind::AskedVector => row(
                "key or parameter of type vector",
                &[Text, Number, Object],
                "ReadOnlyKeyOf<Vector<number>> | ParamOf<Vector<number>>",
                "vector",
            ),
            ParamKind::Where => row("predicate of a filter after it", &[], "boolean", "where"),
            ParamKind::Node => row("node", &[Text], "Rows", "node"),
            ParamKind::Reserves => row("list of nodes", &[Array], "readonly Rows[]", "reserves"),
            ParamKind::Fills => {
                let types = "readonly { readonly rows: Rows; readonly at?: readonly number[]; readonly every?: number; readonly max?: number }[]";
                row("list of rows with their places", &[Array], types, "fills")
            }
            ParamKind::Then => row("what is done to the rows of each reserve", &[], "(rows: Rows) => Rows", "then"),
            ParamKind::Ids { .. } => row("list of ids", &[Array], "readonly (number | bigint | string)[]", "ids"),
            ParamKind::KeyPerInput(types) => {
                row(&format!("{} for each input", types.of("key")), &[Array], "readonly {key}[]", "keys")
            }
            ParamKind::Exprs => {
                let types = "{ readonly [name in keyof typeof Key]?: ValueOf<(typeof Key)[name]> | null }";
                row("expressions by key", &[Object], types, "exprs")
            }
            ParamKind::IdsParam => row(
                "parameter that is a list of ids",
                &[Object],
                "ParamOf<List<number>> | ParamOf<List<string>>",
                "param",
            ),
            ParamKind::Cursor { .. } => row("parameter that is a cursor", &[Object], "ParamOf<string>", "param"),
            ParamKind::Columns { .. } => row("columns", &[Object], "Columns", "columns"),
        }
    }

    /// The kind in a word or two, for listings.
    pub fn name(self) -> String {
        self.row().name
    }

    /// A kind of each row, for tests that look at all of them.
    pub const EACH: &[ParamKind] = &[
        ParamKind::Endpoint(&["redis"]),
        ParamKind::Int { min: 0, max: 9 },
        ParamKind::Dial { min: 0, max: 9 },
        ParamKind::Float { min: 0.0, max: 1.0 },
        ParamKind::Bool,
        ParamKind::Text,
        ParamKind::Texts,
        ParamKind::PerInput { whole: true },
        ParamKind::Template,
        ParamKind::Path,
        ParamKind::Pointer,
        ParamKind::Choice(&["asc", "desc"]),
        ParamKind::Model,
        ParamKind::Key(KeyTypes::Any),
        ParamKind::Key(KeyTypes::Scalars),
        ParamKind::Keys(KeyTypes::Any),
        ParamKind::KeyMap,
        ParamKind::KeyPairs,
        ParamKind::KeyChoices(&[("first", KeyTypes::Any), ("max", KeyTypes::Numbers)]),
        ParamKind::Aggregates(&[Made { word: "count", of: KeyTypes::Any, gives: Gives::Int, alone: true }]),
        ParamKind::Rules,
        ParamKind::SortKeys,
        ParamKind::On,
        ParamKind::Expr { into: None },
        ParamKind::Pred,
        ParamKind::TableKey(KeyTypes::Vectors),
        ParamKind::TablePred,
        ParamKind::AskedVector,
        ParamKind::Where,
        ParamKind::Node,
        ParamKind::Reserves,
        ParamKind::Then,
        ParamKind::Fills,
        ParamKind::Ids { rows: None },
        ParamKind::KeyPerInput(KeyTypes::Ints),
        ParamKind::Exprs,
        ParamKind::IdsParam,
        ParamKind::Cursor { pages: true },
        ParamKind::Columns { rows: None },
    ];
}

fn int_in(min: i64, max: i64) -> String {
    match max {
        i64::MAX => format!("int ≥ {min}"),
        max => format!("int {min}..={max}"),
    }
}
