//! What the runtime knows before a plan runs: the tasks, the names of the registry, the operations, the limits.

use crate::operations;
use rankd_column::Key;
use rankd_plan::Registry;
use rankd_plan::json::Writer;
use rankd_plan::limits::{EXPRESSION_DEPTH_MAX, EXPRESSION_NODES_MAX, NODES_MAX, PLAN_EXPRESSION_NODES_MAX};
use rankd_plan::registry::{Entry, Named};
use rankd_plan::signature::{Inputs, Need, Param, ParamKind, Signature};

/// Problems that the runtime keeps; more would not help.
const PROBLEMS_MAX: i64 = 100;

/// The fields of a node beside its parameters, which every task takes as options: as the artifact has them, in its order, and what reads
/// them.
pub(crate) const NODE_OPTIONS: &[(&str, &str)] = &[
    ("scheduling", "scheduling"),
    ("timeout_ms", "int"),
    ("fallback", "substitute"),
    ("fail_open", "text"),
    ("when", "pred"),
    ("otherwise", "substitute"),
    ("log", "keys"),
];

/// The longest list that the engine's own functions are given.
const LIST_ITEMS_MAX: i64 = 1_000_000;

/// What the language has and plans keep. Whatever else a JavaScript engine brings is removed.
pub(crate) const GLOBALS: &[&str] = &[
    "globalThis",
    "undefined",
    "NaN",
    "Infinity",
    "Object",
    "Array",
    "String",
    "Number",
    "Boolean",
    "Symbol",
    "BigInt",
    "Math",
    "JSON",
    "RegExp",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "ReferenceError",
    "EvalError",
    "URIError",
    "AggregateError",
    "Reflect",
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
];

/// `out_key` as authors write it: `outKey`.
pub(crate) fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |camel, part| {
        let mut chars = part.chars();
        let head = chars.next().map(|c| c.to_ascii_uppercase());
        camel + &head.into_iter().chain(chars).collect::<String>()
    })
}

/// The runtime's configuration as JSON.
pub(crate) fn config(tasks: &[Signature], registry: &Registry) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("tasks").array(|w| tasks.iter().for_each(|signature| task(w, signature)));
        w.field("nodeOptions").array(|w| {
            for (name, reader) in NODE_OPTIONS {
                w.object(|w| {
                    w.field("name").string(name);
                    w.field("option").string(&camel(name));
                    w.field("kind").string(reader);
                });
            }
        });
        w.field("keys").array(|w| entries(w, &registry.keys));
        w.field("params").array(|w| entries(w, &registry.params));
        w.field("idType").string(&registry.key(Key::ID).type_of.to_string());
        w.field("endpoints").array(|w| {
            for endpoint in registry.endpoints.list() {
                w.object(|w| {
                    w.field("name").string(&endpoint.name);
                    w.field("kind").string(&endpoint.kind);
                });
            }
        });
        w.field("models").array(|w| {
            for model in registry.models.list() {
                w.string(&model.name);
            }
        });
        operations::config(w);
        w.field("globals").array(|w| {
            for name in GLOBALS {
                w.string(name);
            }
        });
        w.field("limits").object(|w| {
            w.field("nodes").int(NODES_MAX as i64);
            w.field("depth").int(EXPRESSION_DEPTH_MAX as i64);
            w.field("size").int(EXPRESSION_NODES_MAX as i64);
            w.field("planSize").int(PLAN_EXPRESSION_NODES_MAX as i64);
            w.field("problems").int(PROBLEMS_MAX);
            w.field("list").int(LIST_ITEMS_MAX);
        });
    });
    writer.finish()
}

fn entries(writer: &mut Writer, entries: &Named<Entry>) {
    for entry in entries.list() {
        writer.object(|w| {
            w.field("name").string(&entry.name);
            w.field("type").string(&entry.type_of.to_string());
        });
    }
}

fn task(writer: &mut Writer, signature: &Signature) {
    let params = signature.contract.params;
    writer.object(|w| {
        w.field("op").string(signature.op);
        w.field("method").string(&camel(signature.op));
        w.field("starts").bool(signature.contract.inputs.is_on_context());
        w.field("follows").bool(signature.contract.inputs.is_on_rows());
        w.field("several").bool(signature.contract.inputs == Inputs::Several);
        w.field("usage").string(&usage(signature));
        w.field("params").array(|w| {
            for param in params {
                w.object(|w| {
                    w.field("name").string(param.name);
                    w.field("option").string(&camel(param.name));
                    w.field("kind").string(param.kind.row().reader);
                    w.field("required").bool(is_required(param));
                    if let ParamKind::Choice(choices) = param.kind {
                        w.field("choices").array(|w| {
                            for choice in choices {
                                w.string(choice);
                            }
                        });
                    }
                });
            }
        });
    });
}

pub(crate) fn is_required(param: &Param) -> bool {
    matches!(param.need, Need::Required)
}

/// The task's options in a line: `vm({ outKey, expr })`.
fn usage(signature: &Signature) -> String {
    let inputs = (signature.contract.inputs == Inputs::Several).then(|| "inputs".to_owned());
    let options = signature.contract.params.iter().map(|param| {
        let optional = if is_required(param) { "" } else { "?" };
        camel(param.name) + optional
    });
    format!("{}({{ {} }})", camel(signature.op), inputs.into_iter().chain(options).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_underscores() {
        assert_eq!(camel("out_key"), "outKey");
        assert_eq!(camel("fail_after_sleep"), "failAfterSleep");
        assert_eq!(camel("endpoint"), "endpoint");
    }
}
