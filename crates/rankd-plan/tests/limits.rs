//! Every limit means what it says: what is just as large is accepted, and one more is refused.

use rankd_plan::json::Reader;
use rankd_plan::limits::*;
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Registry, Signatures, check};

const fn contract(inputs: Inputs, rows: RowEffect, writes: Writes, params: &'static [Param]) -> Contract {
    Contract { inputs, rows, reads: &[], writes, params, cost: Cost::Unknown }
}

const fn required(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, need: Need::Required, doc: "", uses: &[] }
}

static SOURCE: Contract = contract(Inputs::None, RowEffect::Source, Writes::Nothing, &[]);
static DATA: Contract = contract(
    Inputs::None,
    RowEffect::Source,
    Writes::AnyKey,
    &[required("columns", ParamKind::Columns { rows: None })],
);
static VM: Contract = contract(
    Inputs::One,
    RowEffect::Same,
    Writes::Params(&[ParamRef::named("out_key")]),
    &[
        required("out_key", ParamKind::Key(KeyTypes::Any)),
        required("expr", ParamKind::Expr { into: Some(ParamRef::named("out_key")) }),
    ],
);
static FILTER: Contract =
    contract(Inputs::One, RowEffect::Fewer, Writes::Nothing, &[required("pred", ParamKind::Pred)]);
fn tasks() -> Signatures {
    Signatures::new(TASKS.iter().copied()).expect("each op is there once")
}

static TASKS: &[Signature] = &[
    Signature { op: "source", summary: "", contract: &SOURCE },
    Signature { op: "data", summary: "", contract: &DATA },
    Signature { op: "vm", summary: "", contract: &VM },
    Signature { op: "filter", summary: "", contract: &FILTER },
];

fn registry() -> Registry {
    let keys = "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n\
                [[key]]\nkey_id = 2\nname = \"score\"\ntype = \"float\"\nnullable = true\ndoc = \"\"\n\
                [[key]]\nkey_id = 3\nname = \"visits\"\ntype = \"list<int>\"\nnullable = true\ndoc = \"\"\n";
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(keys), text(""), text(""));
    assert!(problems.is_empty());
    registry
}

/// The codes of the errors in a plan, each once.
fn errors(plan: &str) -> Vec<&'static str> {
    let checked = check(plan.as_bytes(), &registry(), &tasks());
    let found = checked.diagnostics.list().iter().filter(|found| found.code.severity().name() == "error");
    let mut codes: Vec<&'static str> = found.map(|found| found.code.id()).collect();
    codes.dedup();
    assert_eq!(checked.plan.is_some(), codes.is_empty());
    codes
}

fn plan(nodes: &str, outputs: &str, tables: &str) -> String {
    format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}],"outputs":[{outputs}]{tables}}}"#)
}

/// A plan whose one expression this is.
fn with_expression(expression: &str) -> String {
    let nodes = r#"{"node_id":"a","op":"source"},{"node_id":"b","op":"vm","inputs":["a"],"params":{"out_key":"score","expr":"e"}}"#;
    plan(nodes, r#""b""#, &format!(r#","expr_table":{{"e":{expression}}}"#))
}

fn with_predicate(predicate: &str) -> String {
    let nodes = r#"{"node_id":"a","op":"source"},{"node_id":"b","op":"filter","inputs":["a"],"params":{"pred":"e"}}"#;
    plan(nodes, r#""b""#, &format!(r#","pred_table":{{"e":{predicate}}}"#))
}

const LEAF: &str = r#"{"op":"key_ref","key":"id"}"#;

/// An expression of so many operations, as flat as it can be.
fn operations(count: usize) -> String {
    match count {
        1 => LEAF.to_owned(),
        2 => format!(r#"{{"op":"neg","x":{LEAF}}}"#),
        _ => {
            let left = (count - 1) / 2;
            format!(r#"{{"op":"add","a":{},"b":{}}}"#, operations(left), operations(count - 1 - left))
        }
    }
}

#[test]
fn an_expression_has_at_most_so_many_operations_and_list_items() {
    assert_eq!(errors(&with_expression(&operations(EXPRESSION_NODES_MAX))), [""; 0]);
    assert_eq!(errors(&with_expression(&operations(EXPRESSION_NODES_MAX + 1))), ["P204"]);
    let list = |items: usize| {
        let items = vec!["1"; items].join(",");
        with_predicate(&format!(r#"{{"op":"in","lhs":{LEAF},"list":[{items}]}}"#))
    };
    // The two operations count, too.
    assert_eq!(errors(&list(EXPRESSION_NODES_MAX - 2)), [""; 0]);
    assert_eq!(errors(&list(EXPRESSION_NODES_MAX - 1)), ["P204"]);
}

#[test]
fn an_expression_is_at_most_so_deep() {
    let nested = |depth: usize| r#"{"op":"neg","x":"#.repeat(depth - 1) + LEAF + &"}".repeat(depth - 1);
    assert_eq!(errors(&with_expression(&nested(EXPRESSION_DEPTH_MAX))), [""; 0]);
    assert_eq!(errors(&with_expression(&nested(EXPRESSION_DEPTH_MAX + 1))), ["P203"]);
}

#[test]
fn all_expressions_together_are_at_most_so_large() {
    let all = |last: usize| {
        let whole = PLAN_EXPRESSION_NODES_MAX / EXPRESSION_NODES_MAX;
        let sizes = std::iter::repeat_n(EXPRESSION_NODES_MAX, whole - 1).chain([EXPRESSION_NODES_MAX - 1, last]);
        let (mut nodes, mut table) = (r#"{"node_id":"n","op":"source"}"#.to_owned(), Vec::new());
        for (at, size) in sizes.enumerate() {
            let before = if at == 0 { "n".to_owned() } else { format!("n{}", at - 1) };
            nodes.push_str(&format!(
                r#",{{"node_id":"n{at}","op":"vm","inputs":["{before}"],"params":{{"out_key":"score","expr":"e{at}"}}}}"#
            ));
            table.push(format!(r#""e{at}":{}"#, operations(size)));
        }
        plan(&nodes, &format!(r#""n{whole}""#), &format!(r#","expr_table":{{{}}}"#, table.join(",")))
    };
    assert_eq!(errors(&all(1)), [""; 0]);
    assert_eq!(errors(&all(2)), ["P204"]);
}

#[test]
fn a_table_has_at_most_so_many_entries() {
    let entries = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!(r#""e{at}":{LEAF}"#)).collect();
        plan(r#"{"node_id":"a","op":"source"}"#, r#""a""#, &format!(r#","expr_table":{{{}}}"#, all.join(",")))
    };
    assert_eq!(errors(&entries(TABLE_ENTRIES_MAX)), [""; 0]);
    assert_eq!(errors(&entries(TABLE_ENTRIES_MAX + 1)), ["P204"]);
}

#[test]
fn a_plan_has_at_most_so_many_nodes_and_outputs_and_a_node_so_many_inputs() {
    let sources = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!(r#"{{"node_id":"n{at}","op":"source"}}"#)).collect();
        all.join(",")
    };
    let names = |count: usize| (0..count).map(|at| format!("\"n{at}\"")).collect::<Vec<_>>().join(",");
    assert_eq!(errors(&plan(&sources(NODES_MAX), r#""n0""#, "")), [""; 0]);
    assert_eq!(errors(&plan(&sources(NODES_MAX + 1), r#""n0""#, "")), ["P201"]);
    assert_eq!(errors(&plan(&sources(OUTPUTS_MAX), &names(OUTPUTS_MAX), "")), [""; 0]);
    assert_eq!(errors(&plan(&sources(OUTPUTS_MAX + 1), &names(OUTPUTS_MAX + 1), "")), ["P202"]);
    let named = |count: usize| {
        let outputs: Vec<String> = (0..count).map(|at| format!(r#""o{at}":"n{at}""#)).collect();
        let (nodes, outputs) = (sources(count), outputs.join(","));
        errors(&format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}],"outputs":{{{outputs}}}}}"#))
    };
    assert_eq!((named(OUTPUTS_MAX), named(OUTPUTS_MAX + 1)), (vec![], vec!["P202"]));
    // No task here takes that many inputs, which is another error; the limit itself is what counts.
    let many = |count: usize| {
        let filter = format!(r#",{{"node_id":"f","op":"filter","inputs":[{}],"params":{{"pred":"p"}}}}"#, names(count));
        let pred = r#","pred_table":{"p":{"op":"const_bool","value":true}}"#;
        errors(&plan(&(sources(count) + &filter), r#""f""#, pred))
    };
    assert!(!many(INPUTS_MAX).contains(&"P202"));
    assert!(many(INPUTS_MAX + 1).contains(&"P202"));
}

#[test]
fn a_name_has_at_most_so_many_bytes() {
    let named = |bytes: usize| {
        let name = "é".repeat(bytes / 2) + &"x".repeat(bytes % 2);
        plan(&format!(r#"{{"node_id":"{name}","op":"source"}}"#), &format!("\"{name}\""), "")
    };
    assert_eq!(errors(&named(NAME_BYTES_MAX)), [""; 0]);
    assert_eq!(errors(&named(NAME_BYTES_MAX + 1)), ["P105"]);
}

#[test]
fn data_in_a_plan_has_at_most_so_many_rows() {
    let data = |rows: usize| {
        let values = vec!["1"; rows].join(",");
        let node = format!(r#"{{"node_id":"a","op":"data","params":{{"columns":{{"score":[{values}]}}}}}}"#);
        errors(&plan(&node, r#""a""#, ""))
    };
    assert_eq!(data(LITERAL_ROWS_MAX), [""; 0]);
    assert_eq!(data(LITERAL_ROWS_MAX + 1).len(), 1);
}

#[test]
fn a_list_has_at_most_so_many_elements_and_all_of_them_are_values_of_the_plan() {
    let data = |lists: &[usize]| {
        let lists: Vec<String> = lists.iter().map(|len| format!("[{}]", vec!["1"; *len].join(","))).collect();
        let lists = lists.join(",");
        let node = format!(r#"{{"node_id":"a","op":"data","params":{{"columns":{{"visits":[{lists}]}}}}}}"#);
        errors(&plan(&node, r#""a""#, ""))
    };
    assert_eq!(data(&[LIST_ELEMENTS_MAX]), [""; 0]);
    assert_eq!(data(&[LIST_ELEMENTS_MAX + 1]), ["P404"]);
    // A list is a value, too.
    let whole = LITERAL_VALUES_MAX / (LIST_ELEMENTS_MAX + 1);
    let rest = LITERAL_VALUES_MAX - whole * (LIST_ELEMENTS_MAX + 1) - 1;
    let lists = |last: usize| [vec![LIST_ELEMENTS_MAX; whole], vec![last]].concat();
    assert_eq!(data(&lists(rest)), [""; 0]);
    assert_eq!(data(&lists(rest + 1)), ["P405"]);
}

#[test]
fn a_file_has_at_most_so_many_bytes() {
    let text = plan(r#"{"node_id":"a","op":"source"}"#, r#""a""#, "");
    let filled = |bytes: usize| text.clone() + &" ".repeat(bytes - text.len());
    assert_eq!(errors(&filled(FILE_BYTES_MAX)), [""; 0]);
    assert_eq!(errors(&filled(FILE_BYTES_MAX + 1)), ["P001"]);
}

#[test]
fn so_many_diagnostics_are_kept_and_the_others_counted() {
    let wrong = |count: usize| {
        let nodes: Vec<String> = (0..count).map(|at| format!(r#"{{"node_id":"n{at}","op":"nothing"}}"#)).collect();
        let checked = check(plan(&nodes.join(","), r#""n0""#, "").as_bytes(), &registry(), &tasks());
        let kept = checked.diagnostics.list().iter().filter(|found| found.code.id() == "P301").count();
        (kept, checked.diagnostics.list().len())
    };
    assert_eq!(wrong(DIAGNOSTICS_MAX).1, DIAGNOSTICS_MAX);
    assert_eq!(wrong(DIAGNOSTICS_MAX + 1).1, DIAGNOSTICS_MAX);
}

#[test]
fn json_is_nested_and_has_fields_up_to_the_limit() {
    let nested = |depth: usize| {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        Reader::new(&text, 64).skip().is_ok()
    };
    assert!(nested(64) && !nested(65));
    let fields = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!("\"{at}\":0")).collect();
        let text = format!("{{{}}}", all.join(","));
        let mut reader = Reader::new(&text, 1);
        let mut open = reader.open_object().unwrap();
        while let Some(field) = reader.field(&mut open).transpose() {
            if field.is_err() {
                return false;
            }
            reader.skip().unwrap();
        }
        true
    };
    assert!(fields(100_000) && !fields(100_001));
}

#[test]
fn a_reason_has_at_most_so_many_bytes() {
    let with_reason = |bytes: usize| {
        let reason = "x".repeat(bytes);
        plan(&format!(r#"{{"node_id":"a","op":"source","fallback":"none","fail_open":"{reason}"}}"#), r#""a""#, "")
    };
    assert_eq!(errors(&with_reason(REASON_BYTES_MAX)), [""; 0]);
    assert_eq!(errors(&with_reason(REASON_BYTES_MAX + 1)), ["P802"]);
}
