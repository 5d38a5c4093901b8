//! The tables of operations in `docs/expressions.md` are made from the table in the code. `UPDATE=1` rewrites them.

#![expect(clippy::disallowed_methods, reason = "a test reads and writes the documentation")]

use rankd_column::expr::operation::{Finite, Function, Gives, Holds, Home, Nulls, Overflow, Rule};
use rankd_column::expr::{OPERATIONS, Operation};
use std::path::Path;

const BEGIN: &str = "<!-- generated from the table of operations";
const END: &str = "<!-- end -->";

fn fields(operation: &Operation) -> String {
    let field = |field: &rankd_column::expr::operation::Field| {
        let what = match field.holds {
            Holds::Key => ": name or key_id",
            Holds::Param => ": name or param_id",
            Holds::Value | Holds::Predicate | Holds::Literal | Holds::List => "",
            Holds::Comparison | Holds::Pattern | Holds::Flags => "",
            Holds::Salt => ": text",
        };
        format!("`{}`{what}{}", field.name, if field.required { "" } else { ", optional" })
    };
    operation.fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn operands(operation: &Operation) -> String {
    if let Rule::Call { takes, .. } = operation.rule {
        return takes.iter().map(|takes| takes.name()).collect::<Vec<_>>().join(", ");
    }
    of_numbers(operation).to_owned()
}

fn of_numbers(operation: &Operation) -> &'static str {
    match (operation.rule, operation.fields.len()) {
        (Rule::Leaf(_) | Rule::Call { .. }, _) => "",
        (Rule::Number | Rule::Float, 1) => "number",
        (Rule::Number | Rule::Float, _) => "numbers",
        (Rule::Shared, _) => "two of one type",
        (Rule::Truth(of), _) => of,
    }
}

fn result(operation: &Operation) -> &'static str {
    match (operation.rule, operation.fields.len()) {
        (Rule::Leaf(what), _) => what,
        (Rule::Number, 1) => "as `x`",
        (Rule::Number, 2) => "int if both are ints, else float",
        (Rule::Number, _) => "int if all are ints, else float",
        (Rule::Float, _) => "float",
        (Rule::Shared, _) => "that type",
        (Rule::Truth(_), _) => "true or false",
        (Rule::Call { gives, .. }, _) => gives.name(),
    }
}

fn nulls(operation: &Operation) -> &'static str {
    match operation.nulls {
        Nulls::Pass => "null",
        Nulls::Own => "as the meaning says",
        Nulls::False => "false",
        Nulls::Never => "",
    }
}

fn errors(operation: &Operation) -> &'static str {
    match (operation.overflow, operation.finite, operation.rule) {
        (_, _, Rule::Leaf(_)) => "",
        (Overflow::Possible, _, Rule::Call { gives: Gives::Text, .. }) => "too long",
        (Overflow::Never, Finite::Kept, _) => "",
        (Overflow::Possible, Finite::Kept, _) => "overflow",
        (Overflow::Never, Finite::Lost, _) => "NaN, infinity",
        (Overflow::Possible, Finite::Lost, _) => "overflow; NaN, infinity",
    }
}

fn typescript(operation: &Operation) -> String {
    let operands = || operation.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
    let mut ways = Vec::new();
    if !operation.script.syntax.is_empty() {
        ways.push(operation.script.syntax.to_owned());
    }
    match operation.script.function {
        Function::Exact(_) | Function::Computed => ways.push(format!("{}({})", operation.name, operands())),
        Function::Folded(_) => ways.push(format!("{}({}, …)", operation.name, operands())),
        Function::Built(built) => ways.push(format!("{}({})", built.name, operands())),
        Function::SpeltOut => ways.push(format!("E.{}({})", operation.name, operands())),
        Function::ByHand(exports) => {
            let home = |home| match home {
                Home::Global => "",
                Home::E => "E.",
                Home::Pred => "Pred.",
            };
            let spelt_out = exports.iter().map(|export| format!("{}{}(", home(export.home), export.name));
            let first = spelt_out.take(1).filter(|call| !operation.script.syntax.starts_with(call.as_str()));
            ways.extend(first.map(|call| format!("{call}…)")));
        }
    }
    // A bar would end the cell of the table.
    ways.iter().map(|way| format!("`{}`", way.replace('|', "\\|"))).collect::<Vec<_>>().join(", ")
}

fn values() -> String {
    let mut text = String::from(
        "| `op` | TypeScript | fields | operands | result | of null | can become | meaning |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut operations: Vec<&Operation> =
        OPERATIONS.iter().copied().filter(|operation| !operation.is_truth()).collect();
    operations.sort_by_key(|operation| match operation.rule {
        Rule::Leaf(_) => 0,
        Rule::Number | Rule::Float => 1,
        Rule::Call { .. } => 2,
        Rule::Shared | Rule::Truth(_) => 3,
    });
    for operation in operations {
        let (ts, fields, takes) = (typescript(operation), fields(operation), operands(operation));
        let (gives, null, errors) = (result(operation), nulls(operation), errors(operation));
        text += &format!(
            "| `{}` | {ts} | {fields} | {takes} | {gives} | {null} | {errors} | {} |\n",
            operation.name, operation.doc
        );
    }
    text
}

fn truths() -> String {
    let mut text =
        String::from("| `op` | TypeScript | fields | operands | of null | true where |\n|---|---|---|---|---|---|\n");
    for operation in OPERATIONS.iter().filter(|operation| operation.is_truth()) {
        let (ts, fields, takes, null) =
            (typescript(operation), fields(operation), operands(operation), nulls(operation));
        text += &format!("| `{}` | {ts} | {fields} | {takes} | {null} | {} |\n", operation.name, operation.doc);
    }
    text
}

#[test]
fn the_tables_of_operations_in_the_documentation_are_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/expressions.md");
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let mut fresh = String::new();
    let mut rest = text.as_str();
    for table in [values(), truths()] {
        let begin = rest.find(BEGIN).expect("a table begins with its marker");
        let first = begin + rest[begin..].find('\n').expect("a marker is a line") + 1;
        let end = first + rest[first..].find(END).expect("a table ends with its marker");
        fresh += &rest[..first];
        fresh += "\n";
        fresh += &table;
        fresh += "\n";
        rest = &rest[end..];
    }
    fresh += rest;
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &fresh).expect("the page can be written");
    }
    assert!(
        text == fresh || std::env::var_os("UPDATE").is_some(),
        "docs/expressions.md is stale: UPDATE=1 rewrites its tables"
    );
}
