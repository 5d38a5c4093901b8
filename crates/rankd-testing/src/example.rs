//! The example in a task's header, and the plan that runs it.

use crate::given;
use rankd_plan::json::{Kind, Reader};
use rankd_plan::signature::{Inputs, ParamKind, Signature};
use std::ops::Range;

const JSON: &str = "what stands after `with` is a JSON object";

#[derive(Default)]
pub(crate) struct Example {
    /// The parameters, as JSON.
    with: String,
    /// What the store holds, a line for each key.
    pub(crate) store: String,
    /// What the table endpoint holds, as the lines of a table.
    pub(crate) table: Vec<String>,
    /// What a service answers: paths and bodies.
    pub(crate) answers: Vec<(String, String)>,
    /// The inputs, as the lines of tables.
    pub(crate) given: Vec<Vec<String>>,
    /// What must come out, as the lines of a table.
    pub(crate) gives: Vec<String>,
}

impl Example {
    /// The examples in the header of a task's file: one at least.
    pub(crate) fn in_header(op: &str, text: &str) -> Vec<Example> {
        let header = text.lines().map_while(|line| line.strip_prefix("//!"));
        let mut header = header.map(|line| line.strip_prefix(' ').unwrap_or(line));
        let mut examples = Vec::new();
        while header.any(|line| line == "```text") {
            examples.push(Example::read(op, header.by_ref().take_while(|line| *line != "```")));
        }
        assert!(!examples.is_empty(), "the header of {op} has no example with the lines `with` and `gives`");
        examples
    }

    fn read<'l>(op: &str, block: impl Iterator<Item = &'l str>) -> Example {
        let (mut example, mut gives, mut in_table) = (Example::default(), false, false);
        for line in block {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("with", params) => example.with = params.to_owned(),
                ("store", entry) => example.store += &format!("{entry}\n"),
                ("given", _) => {
                    in_table = false;
                    example.given.push(Vec::new());
                }
                ("table", _) => in_table = true,
                ("answer", rest) => {
                    let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
                    example.answers.push((path.to_owned(), body.to_owned()));
                }
                ("gives", _) => gives = true,
                ("|", _) if gives => example.gives.push(line.to_owned()),
                ("|", _) if in_table => example.table.push(line.to_owned()),
                ("|", _) => match example.given.last_mut() {
                    Some(table) => table.push(line.to_owned()),
                    None => panic!("{op}: a table stands after given or gives"),
                },
                _ => panic!("{op}: an example has with, store, answer, table, given, gives and tables, not {line:?}"),
            }
        }
        assert!(
            !example.with.is_empty() && !example.gives.is_empty(),
            "the header of {op} has no example with the lines `with` and `gives`"
        );
        assert!(example.given.iter().all(|table| !table.is_empty()), "{op}: a table has at least its head");
        example
    }

    /// A plan with the task on the tables, which are kept at these places.
    pub(crate) fn plan(&self, task: Signature, tables: &Range<usize>) -> String {
        let op = task.op;
        let (mut params, mut exprs, mut preds) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = Reader::new(&self.with, 64);
        let mut fields = reader.open_object().expect(JSON);
        while let Some((name, _)) = reader.field(&mut fields).expect(JSON) {
            let in_place = reader.peek().expect(JSON) == Kind::Object;
            let value = reader.raw().expect(JSON);
            let kind = task.contract.params.iter().find(|param| param.name == name).map(|param| param.kind);
            let table = match kind {
                Some(ParamKind::Expr { .. }) if in_place => Some(&mut exprs),
                Some(ParamKind::Pred | ParamKind::TablePred) if in_place => Some(&mut preds),
                _ => None,
            };
            if let (Some(ParamKind::Exprs), true) = (kind, in_place) {
                let mut of_keys = Vec::new();
                let mut reader = Reader::new(value, 64);
                let mut fields = reader.open_object().expect(JSON);
                while let Some((key, _)) = reader.field(&mut fields).expect(JSON) {
                    exprs.push(format!("{key:?}:{}", reader.raw().expect(JSON)));
                    of_keys.push(format!("{key:?}:{key:?}"));
                }
                params.push(format!("{name:?}:{{{}}}", of_keys.join(",")));
                continue;
            }
            params.push(match (table, kind) {
                (Some(table), _) => {
                    table.push(format!("{name:?}:{value}"));
                    format!("{name:?}:{name:?}")
                }
                (None, Some(ParamKind::Node)) => format!("{name:?}:\"given{value}\""),
                // Tables by their numbers: `[1, 2]`, and `{"rows": 1, …}`.
                (None, Some(ParamKind::Reserves)) => format!("{name:?}:{}", name_tables(value, "")),
                (None, Some(ParamKind::Fills)) => format!("{name:?}:{}", name_tables(value, "\"rows\": ")),
                (None, _) => format!("{name:?}:{value}"),
            });
        }
        let mut nodes: Vec<String> = tables
            .clone()
            .enumerate()
            .map(|(at, table)| {
                format!(r#"{{"node_id":"given{at}","op":"{}","params":{{"table":{table}}}}}"#, given::OP)
            })
            .collect();
        let several: Vec<String> = (0..self.given.len()).map(|at| format!("\"given{at}\"")).collect();
        let several = several.join(",");
        let inputs = match task.contract.inputs {
            Inputs::Optional if self.given.is_empty() => "",
            Inputs::None => "",
            Inputs::One | Inputs::Optional => r#""given0""#,
            Inputs::Several => &several,
        };
        let params = params.join(",");
        nodes.push(format!(r#"{{"node_id":"task","op":"{op}","inputs":[{inputs}],"params":{{{params}}}}}"#));
        format!(
            r#"{{"schema_version":1,"plan_name":"example","outputs":["task"],"nodes":[{}],"expr_table":{{{}}},"pred_table":{{{}}}}}"#,
            nodes.join(","),
            exprs.join(","),
            preds.join(",")
        )
    }
}

/// The same JSON with the nodes that give the tables in place of their numbers, wherever a number follows `after`.
fn name_tables(json: &str, after: &str) -> String {
    let (mut named, mut rest) = (String::new(), json);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at);
        let (before, number) = (&rest[..at], &rest[at..at + length]);
        let is_table = before.ends_with(after);
        named += before;
        named += &if is_table { format!("\"given{number}\"") } else { number.to_owned() };
        rest = &rest[at + length..];
    }
    named + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "//! Do it.\n//!\n//! ```text\n//! with {\"a\": 1}\n//! given\n//! | id |\n//! | 1 |\n\
                          //! gives\n//! | id |\n//! ```\n\nuse x;\n";

    #[test]
    fn an_example_is_read_from_the_header_and_may_give_no_rows() {
        let mut examples = Example::in_header("do_it", HEADER);
        let example = examples.remove(0);
        assert!(examples.is_empty());
        assert_eq!(example.with, "{\"a\": 1}");
        assert_eq!(
            (example.given, example.gives),
            (vec![vec!["| id |".into(), "| 1 |".into()]], vec!["| id |".into()])
        );
    }

    #[test]
    #[should_panic(expected = "the header of do_it has no example")]
    fn a_header_without_an_example_fails() {
        Example::in_header("do_it", "//! Do it.\n");
    }

    #[test]
    #[should_panic(expected = "not \"takes\"")]
    fn a_line_that_means_nothing_fails() {
        Example::in_header("do_it", &HEADER.replace("//! given", "//! takes"));
    }
}
