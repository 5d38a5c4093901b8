//! The operations of expressions as plans in TypeScript meet them: names, JavaScript and declarations, all from the table of
//! `rankd_column::expr::operations`. What an operation means is not decided here.

use rankd_column::expr::operation::{Function, Gives, Holds, Home, Rule, names_in};
use rankd_column::expr::{Compare, Form, OPERATIONS, Operation};
use rankd_plan::json::Writer;
use rquickjs::{Ctx, Function as Native, Object};
use std::fmt::Write;

/// What plans find beside the functions.
const NAMES: &[&str] = &["definePlan", "Key", "P", "U", "EP", "M", "E", "Pred", "dial"];

/// Every name that plans can import.
pub(crate) fn exports() -> Vec<&'static str> {
    let mut names = NAMES.to_vec();
    names.extend(names_in(Home::Global));
    names
}

/// What the runtime knows of the operations whose functions it makes.
pub(crate) fn config(writer: &mut Writer) {
    writer.field("operations").array(|w| {
        for operation in OPERATIONS {
            let takes = match operation.script.function {
                Function::Exact(_) | Function::Computed => "exact",
                Function::Folded(_) => "folded",
                Function::SpeltOut => "spelt_out",
                Function::Built(_) => "built",
                Function::ByHand(_) => continue,
            };
            w.object(|w| {
                w.field("name").string(operation.name);
                w.field("takes").string(takes);
                w.field("fields").array(|w| strings(w, operation.fields.iter().map(|field| field.name)));
                if let (Function::Built(built), Rule::Call { gives, .. }) = (&operation.script.function, operation.rule)
                {
                    let literals = operation.fields.iter().filter(|field| field.holds == Holds::Salt);
                    w.field("call").string(built.name);
                    w.field("literals").array(|w| strings(w, literals.map(|field| field.name)));
                    w.field("gives").string(match gives {
                        Gives::Int | Gives::Float => "number",
                        Gives::Text => "string",
                        Gives::Element => "element",
                        Gives::Truth => "truth",
                    });
                }
            });
        }
    });
    writer.field("comparisons").array(|w| strings(w, Compare::ALL.iter().map(|compare| compare.symbol())));
}

fn strings(writer: &mut Writer, list: impl Iterator<Item = &'static str>) {
    for text in list {
        writer.string(text);
    }
}

/// The global under which the runtime, and nothing else, finds what the host computes: it is gone before plan code runs.
const HOST_NUMBERS: &str = "$numbers";

/// Gives the engine the functions of numbers whose results must have the bits of a run. They take numbers and give a number, and
/// nothing else: the host has no other function for the engine.
pub(crate) fn give_numbers(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let numbers = Object::new(ctx.clone())?;
    for operation in OPERATIONS.iter().filter(|operation| matches!(operation.script.function, Function::Computed)) {
        match operation.form {
            Form::Unary(op) => numbers.set(operation.name, Native::new(ctx.clone(), move |x: f64| op.float(x))?)?,
            Form::Binary(op) => {
                numbers.set(operation.name, Native::new(ctx.clone(), move |a: f64, b: f64| op.float(a, b))?)?;
            }
            // Their rows have no function of numbers.
            Form::Call(_) | Form::Special(_) => {}
        }
    }
    ctx.globals().set(HOST_NUMBERS, numbers)
}

/// The code of a module: by name, the functions that compute with numbers that are known when a plan is compiled.
pub(crate) fn natives() -> String {
    let mut code = "export const natives = {\n  __proto__: null,\n".to_owned();
    let mut computed = Vec::new();
    for operation in OPERATIONS {
        // Writing to a string cannot fail.
        match operation.script.function {
            Function::Exact(native) | Function::Folded(native) => {
                let _ = writeln!(code, "  {}: {native},", operation.name);
            }
            Function::Computed => {
                let _ = writeln!(code, "  {0}: {HOST_NUMBERS}.{0},", operation.name);
                computed.push(format!("{:?}", operation.name));
            }
            Function::SpeltOut | Function::Built(_) | Function::ByHand(_) => {}
        }
    }
    let _ = writeln!(code, "}};\n// Those that the host computes.\nexport const computed = [{}];", computed.join(", "));
    code
}

/// The declarations of the functions that are globals.
pub(crate) fn globals() -> String {
    names_in(Home::Global).iter().fold(String::new(), |mut out, name| {
        let _ = writeln!(out, "declare const {name}: typeof import(\"@ranking-dsl/runtime\").{name};");
        out
    })
}

/// The signatures of the functions that are found in one place, each line after `indent` and a keyword.
pub(crate) fn signatures(home: Home, indent: &str) -> String {
    let keyword = if home == Home::Global { "export function " } else { "" };
    let mut out = String::new();
    for operation in OPERATIONS {
        for (name, types) in typed_names(operation, home) {
            let _ = writeln!(out, "{indent}/** {} */", sentence(operation));
            for signature in types {
                let _ = writeln!(out, "{indent}{keyword}{name}{signature};");
            }
        }
    }
    out
}

fn typed_names(operation: &Operation, home: Home) -> Vec<(&'static str, Vec<String>)> {
    let numbers = match operation.script.function {
        Function::ByHand(exports) => {
            let here = exports.iter().filter(|export| export.home == home);
            let types = |types: &[&str]| types.iter().map(|signature| (*signature).to_owned()).collect();
            return here.map(|export| (export.name, types(export.types))).collect();
        }
        Function::Built(built) => {
            let is_here = operation.names().contains(&(home, built.name));
            let types = built.types.iter().map(|signature| (*signature).to_owned()).collect();
            return is_here.then_some((built.name, types)).into_iter().collect();
        }
        Function::Folded(_) => "...values: number[]".to_owned(),
        Function::Exact(_) | Function::Computed | Function::SpeltOut => {
            operation.fields.iter().map(|field| format!("{}: number", field.name)).collect::<Vec<_>>().join(", ")
        }
    };
    let is_here = operation.names().contains(&(home, operation.name));
    is_here.then(|| (operation.name, vec![format!("({numbers}): number")])).into_iter().collect()
}

/// A line of documentation as a comment has it.
pub(crate) fn sentence(operation: &Operation) -> String {
    if operation.is_truth() {
        return format!("True where {}.", operation.doc);
    }
    let mut chars = operation.doc.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    format!("{}.", first.into_iter().chain(chars).collect::<String>())
}
