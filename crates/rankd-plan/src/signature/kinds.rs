//! The kinds of parameters, a row each: what a kind is called, how it is written in JSON and in TypeScript, and what reads it.
//!
//! The checks, listings, generated types and the runtime of plans in TypeScript go by these rows. A new kind is a row here, an arm
//! in `check/args.rs` that reads it, a type in `typed.rs`, and where no function of the runtime reads its like, one in
//! `dslc/src/runtime/options.js`; the compiler or a test names each that is missing.

use super::ParamKind;
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
            ParamKind::Template => row("template", &[Text], "string", "text"),
            ParamKind::Path => row("path template", &[Text], "string", "text"),
            ParamKind::Pointer => row("member or JSON pointer", &[Text], "string", "text"),
            ParamKind::Choice(choices) => {
                let types: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
                row(&choices.join(" | "), &[Text], &types.join(" | "), "text")
            }
            ParamKind::Key => row("key", &[Text, Number], "{key}", "key"),
            ParamKind::ScalarKey => row("scalar key", &[Text, Number], "{key}", "key"),
            ParamKind::Keys => row("list of keys", &[Array], "readonly {key}[]", "keys"),
            ParamKind::KeyMap => row("keys by name", &[Object], "{ readonly [name: string]: {key} }", "key_map"),
            ParamKind::KeyPairs => {
                row("keys by key", &[Object], "{ readonly [name in keyof typeof Key]?: {key} }", "key_map")
            }
            ParamKind::On => {
                let types = "{key} | { readonly left: {key}; readonly right: {key} }";
                row("key, or left and right key", &[Text, Number, Object], types, "on")
            }
            ParamKind::Expr { .. } => row("expression", &[Text], "ValueOf<{into}> | null", "expr"),
            ParamKind::Pred => row("predicate", &[Text], "boolean", "pred"),
            ParamKind::Where => row("predicate of a filter after it", &[], "boolean", "where"),
            ParamKind::Node => row("node", &[Text], "Rows", "node"),
            ParamKind::Ids { .. } => row("list of ids", &[Array], "readonly (number | bigint | string)[]", "ids"),
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
        ParamKind::Template,
        ParamKind::Path,
        ParamKind::Pointer,
        ParamKind::Choice(&["asc", "desc"]),
        ParamKind::Key,
        ParamKind::ScalarKey,
        ParamKind::Keys,
        ParamKind::KeyMap,
        ParamKind::KeyPairs,
        ParamKind::On,
        ParamKind::Expr { into: None },
        ParamKind::Pred,
        ParamKind::Where,
        ParamKind::Node,
        ParamKind::Ids { rows: None },
        ParamKind::Columns { rows: None },
    ];
}

fn int_in(min: i64, max: i64) -> String {
    match max {
        i64::MAX => format!("int ≥ {min}"),
        max => format!("int {min}..={max}"),
    }
}
