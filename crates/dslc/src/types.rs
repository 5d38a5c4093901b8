//! Declarations for editors: what plans may write, so that `tsc --strict` accepts what the compiler accepts, without a plug-in.
//!
//! A key of a single value is a number, a string or a boolean with a brand: it can be computed with and compared like what it
//! stands for. The brand is optional, so that `s += 1` and `reduce` work on variables that start as a key; where a task wants a key,
//! a conditional type looks whether the brand is declared. A key of lists or vectors is opaque: it has none of the methods of arrays.

use crate::config::{camel, is_required};
use crate::operations;
use rankd_column::expr::Special;
use rankd_column::expr::operation::Home;
use rankd_column::{Element, Type};
use rankd_plan::Registry;
use rankd_plan::registry::{Entry, Status};
use rankd_plan::signature::{Contract, Inputs, KeyTypes, Literal, Need, Param, ParamKind, Signature};
use std::fmt::Write;

/// How the file of declarations is called.
pub const FILE: &str = "ranking-dsl.d.ts";

/// Settings with which `tsc` and editors look at plans.
pub const TSCONFIG: &str = include_str!("tsconfig.json");

/// What does not depend on tasks and registry, with lines in the places of what comes from the table of operations.
const HEAD: &str = include_str!("types_head.d.ts");

/// The declarations for these tasks and this registry.
pub fn declarations(tasks: &[Signature], registry: &Registry) -> String {
    let mut out = HEAD
        .replace("// (globals)\n", &operations::globals())
        .replace("  // (functions)\n", &operations::signatures(Home::Global, "  "))
        .replace("    // (E)\n", &operations::signatures(Home::E, "    "))
        .replace("    // (Pred)\n", &operations::signatures(Home::Pred, "    "));
    out.push_str("  /** What a plan starts from: the tasks that need no rows. */\n  export interface Context {\n");
    methods(&mut out, tasks, Inputs::is_on_context);
    out.push_str(
        "  }\n\n  /** The rows that a task gives, and the tasks that work on rows. */\n  export interface Rows {\n",
    );
    out.push_str("    readonly [rowsBrand]: true;\n");
    methods(&mut out, tasks, Inputs::is_on_rows);
    out.push_str("  }\n\n  /** The columns that rows can have. */\n  export const Key: {\n");
    for entry in registry.keys.list() {
        entry_line(&mut out, entry, if entry.allow_write { "KeyOf" } else { "ReadOnlyKeyOf" });
    }
    out.push_str("  };\n\n  /** The parameters that a request may set. */\n  export const P: {\n");
    for entry in registry.params.list() {
        entry_line(&mut out, entry, "ParamOf");
    }
    let id = registry.key(rankd_column::Key::ID).type_of;
    let _ = writeln!(
        out,
        "  }};\n\n  /** The user that a request is for. */\n  export const U: {{\n    /** {} */\n    readonly id: {};",
        operations::sentence(Special::UserId.operation()),
        plain(id)
    );
    out.push_str("  };\n\n  /** Where tasks read from, by what it speaks. */\n  export const EP: {\n");
    let mut kinds: Vec<&str> = registry.endpoints.list().iter().map(|endpoint| endpoint.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "    readonly {kind}: {{");
        for endpoint in registry.endpoints.list().iter().filter(|endpoint| endpoint.kind == kind) {
            let _ = writeln!(out, "      readonly {}: Endpoint<\"{kind}\">;", endpoint.name);
        }
        out.push_str("    };\n");
    }
    out.push_str("  };\n\n  /** The trained models that rows are scored with. */\n  export const M: {\n");
    for model in registry.models.list() {
        if !model.doc.is_empty() {
            let _ = writeln!(out, "    /** {} */", comment(&model.doc));
        }
        let _ = writeln!(out, "    readonly {}: Model;", model.name);
    }
    out.push_str("  };\n}\n");
    out
}

fn methods(out: &mut String, tasks: &[Signature], takes: fn(Inputs) -> bool) {
    for task in tasks.iter().filter(|task| takes(task.contract.inputs)) {
        let params = task.contract.params;
        let several = task.contract.inputs == Inputs::Several;
        let optional = if several || params.iter().any(is_required) { "" } else { "?" };
        let _ = writeln!(out, "    /** {} */", comment(task.summary));
        let _ = writeln!(out, "    {}{}(options{optional}: {{", camel(task.op), variables(params));
        if several {
            out.push_str("      /** The rows that flow in, in this order */\n      inputs: readonly Rows[];\n");
        }
        for param in params {
            let mark = if is_required(param) { "" } else { "?" };
            let _ = writeln!(out, "      /** {} */", comment(&about(param)));
            let _ = writeln!(out, "      {}{mark}: {};", camel(param.name), option_type(param, task.contract));
        }
        out.push_str("    } & TaskOptions): Rows;\n");
    }
}

fn about(param: &Param) -> String {
    match param.need {
        Need::Default(Literal::Int(value)) => format!("{} (default {value})", param.doc),
        Need::Default(Literal::Float(value)) => format!("{} (default {value:?})", param.doc),
        Need::Default(Literal::Bool(value)) => format!("{} (default {value})", param.doc),
        Need::Default(Literal::Text(value)) => format!("{} (default {value:?})", param.doc),
        Need::Required | Need::Optional => param.doc.to_owned(),
    }
}

/// A type variable for each option that takes keys.
fn variables(params: &[Param]) -> String {
    let keys = params.iter().filter(|param| param.kind.row().typescript.contains(KEY));
    let takes = |param: &Param| match param.kind {
        ParamKind::Key(types) | ParamKind::Keys(types) | ParamKind::KeyPerInput(types) | ParamKind::TableKey(types) => {
            match types {
                KeyTypes::Any => "Expr | AnyArray",
                KeyTypes::Scalars
                | KeyTypes::LikeIds
                | KeyTypes::Numbers
                | KeyTypes::Ints
                | KeyTypes::Floats
                | KeyTypes::Texts => "Expr",
                KeyTypes::Lists | KeyTypes::Vectors => "AnyArray",
            }
        }
        _ => "Expr | AnyArray",
    };
    let list: Vec<String> = keys.map(|param| format!("{} extends {}", variable(param.name), takes(param))).collect();
    if list.is_empty() { String::new() } else { format!("<{}>", list.join(", ")) }
}

/// `out_key` as the name of a type: `OutKey`.
fn variable(param: &str) -> String {
    camel(&format!("_{param}"))
}

/// What stands for the type of a key in the row of a kind, and for the key that an expression is written to.
const KEY: &str = "{key}";
const INTO: &str = "{into}";

fn option_type(param: &Param, contract: &Contract) -> String {
    let key = match contract.writes_to(param) {
        true => format!("OutKeyArg<{}>", variable(param.name)),
        false => format!("KeyArg<{}>", variable(param.name)),
    };
    let into = match param.kind {
        ParamKind::Expr { into: Some(into) } => variable(into.name()),
        _ => String::new(),
    };
    param.kind.row().typescript.replace(KEY, &key).replace(INTO, &into)
}

/// What a value of a type is in TypeScript.
fn plain(type_of: Type) -> String {
    match type_of {
        Type::Int | Type::Float => "number".to_owned(),
        Type::Bool => "boolean".to_owned(),
        Type::Str => "string".to_owned(),
        Type::List(Element::Int | Element::Float) => "List<number>".to_owned(),
        Type::List(Element::Str) => "List<string>".to_owned(),
        Type::Vector(dimension) => format!("Vector<{dimension}>"),
    }
}

fn entry_line(out: &mut String, entry: &Entry, brand: &str) {
    // What plans may not use is not there.
    if entry.status == Status::Blocked {
        return;
    }
    let value = plain(entry.type_of);
    // Those that most plans use have names that are easy to read in an editor.
    let type_of = match (brand, entry.type_of) {
        ("KeyOf", Type::List(_) | Type::Vector(_)) => value.replacen('<', "Key<", 1),
        (brand, _) => format!("{brand}<{value}>"),
    };
    let deprecated = match (&entry.status, &entry.replaced_by) {
        (Status::Active, _) => String::new(),
        (_, Some(name)) => format!(" @deprecated use {name}"),
        (_, None) => " @deprecated".to_owned(),
    };
    let _ = writeln!(out, "    /** {}{deprecated} */", comment(&entry.doc));
    let _ = writeln!(out, "    readonly {}: {type_of};", entry.name);
}

/// Text that cannot end the comment that it stands in.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace('\n', " ")
}
