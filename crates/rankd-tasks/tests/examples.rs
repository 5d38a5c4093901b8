//! The example in each task's header, run as it is written there.
//!
//! `with` gives the parameters (an expression or predicate is written in place), `store` lines what the store holds, each
//! `given` table an input and `gives` the rows that must come out.

#![expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test reads the repository and says what is wrong with it"
)]

use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, Key, RowSet, Type, Value};
use rankd_engine::request::Candidates;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::json::{Kind, Reader};
use rankd_plan::registry::Text;
use rankd_plan::{Registry, check};
use rankd_tasks::tasks;
use std::path::Path;
use std::sync::Arc;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn registry() -> Registry {
    let [keys, params, endpoints] =
        ["keys", "params", "endpoints.local"].map(|name| read(&format!("../../registry/{name}.toml")));
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(&keys), text(&params), text(&endpoints));
    assert!(problems.is_empty(), "the registry is good");
    registry
}

/// The example block of a header.
#[derive(Default)]
struct Example {
    with: String,
    store: String,
    given: Vec<Vec<String>>,
    gives: Vec<String>,
}

impl Example {
    fn of(op: &str) -> Example {
        let text = read(&format!("src/tasks/{op}.rs"));
        let header = text.lines().map_while(|line| line.strip_prefix("//!"));
        let header = header.map(|line| line.strip_prefix(' ').unwrap_or(line));
        let block = header.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```");
        let mut example = Example::default();
        for line in block {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("with", params) => example.with = params.to_owned(),
                ("store", entry) => example.store += &format!("{entry}\n"),
                ("given", _) => example.given.push(Vec::new()),
                ("gives", _) => example.gives = vec![String::new()],
                ("|", _) if !example.gives.is_empty() => example.gives.push(line.to_owned()),
                ("|", _) => example.given.last_mut().expect("a table follows given").push(line.to_owned()),
                _ => panic!("{op}: an example has with, store, given, gives and tables, not {line:?}"),
            }
        }
        assert!(!example.with.is_empty() && example.gives.len() > 1, "{op} has an example in its header");
        example.gives.remove(0);
        example
    }

    /// A plan with the task on what the request's candidates give.
    fn plan(&self, op: &str) -> String {
        let (mut params, mut tables) = (Vec::new(), Vec::new());
        let mut reader = Reader::new(&self.with, 64);
        let mut fields = reader.open_object().expect("with is an object");
        while let Some((name, _)) = reader.field(&mut fields).expect("JSON") {
            let written_in_place = matches!(&*name, "expr" | "pred") && reader.peek().expect("JSON") == Kind::Object;
            let value = reader.raw().expect("JSON");
            if written_in_place {
                tables.push(format!(r#""{name}_table":{{"t":{value}}}"#));
            }
            let value = match &*name {
                _ if written_in_place => r#""t""#,
                "rhs" => r#""right""#,
                _ => value,
            };
            params.push(format!("{name:?}:{value}"));
        }
        let mut nodes = match self.given.len() {
            0 => Vec::new(),
            1 => vec![r#"{"node_id":"left","op":"candidates"}"#.to_owned()],
            _ => {
                tables.push(format!(r#""pred_table":{{"left":{},"right":{}}}"#, is_side(0), is_side(1)));
                let side = |id: &str| {
                    format!(r#"{{"node_id":"{id}","op":"filter","inputs":["all"],"params":{{"pred":"{id}"}}}}"#)
                };
                vec![r#"{"node_id":"all","op":"candidates"}"#.to_owned(), side("left"), side("right")]
            }
        };
        let tasks = tasks();
        let signature = tasks.signatures().get(op).expect("the task is declared");
        let inputs = if signature.contract.inputs.count() == 1 { r#"["left"]"# } else { "[]" };
        let params = params.join(",");
        nodes.push(format!(r#"{{"node_id":"task","op":"{op}","inputs":{inputs},"params":{{{params}}}}}"#));
        tables.push(format!(r#""nodes":[{}]"#, nodes.join(",")));
        format!(r#"{{"schema_version":1,"plan_name":"example","outputs":["task"],{}}}"#, tables.join(","))
    }

    /// The given rows. Two tables come as one, each row marked with its side.
    fn candidates(&self, registry: &Registry) -> Option<RowSet> {
        let tables: Vec<RowSet> = self.given.iter().map(|table| rows(table, registry)).collect();
        let [left, right] = &tables[..] else { return tables.into_iter().next() };
        let side = Key(registry.keys.named("parent_id").expect("a key"));
        let marked = |rows: &RowSet, of: i64| {
            let mut column = ColumnBuilder::new(Type::Int, rows.len());
            (0..rows.len()).for_each(|_| assert!(column.push(&Value::Int(of))));
            rows.with(side, Arc::new(column.finish()))
        };
        Some(marked(left, 0).concat(&marked(right, 1)))
    }
}

fn is_side(of: i64) -> String {
    let (key, number) = (r#"{"op":"key_ref","key":"parent_id"}"#, format!(r#"{{"op":"const_number","value":{of}}}"#));
    format!(r#"{{"op":"cmp","cmp":"==","a":{key},"b":{number}}}"#)
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// A table as rows; an empty cell is null.
fn rows(table: &[String], registry: &Registry) -> RowSet {
    let ids = table[1..].iter().map(|line| cells(line)[0].parse().expect("an id")).collect();
    let mut batch = Batch::new(ids);
    for (at, name) in cells(&table[0]).iter().enumerate().skip(1) {
        let key = Key(registry.keys.named(name).unwrap_or_else(|| panic!("there is no key {name}")));
        let mut column = ColumnBuilder::new(registry.key(key).type_of, 0);
        for line in &table[1..] {
            match cells(line)[at] {
                "" => column.push_null(),
                text => assert!(column.push_text(text.as_bytes()), "{text} is a {name}"),
            }
        }
        batch = batch.with(key, Arc::new(column.finish()));
    }
    RowSet::new(batch)
}

/// The rows as a table with the columns of `head`.
fn table(rows: &RowSet, head: &str, registry: &Registry) -> Vec<String> {
    let keys: Vec<Key> = cells(head).iter().map(|name| Key(registry.keys.named(name).expect("a key"))).collect();
    let line = |cells: Vec<String>| {
        let cells: Vec<String> =
            cells.into_iter().map(|cell| if cell.is_empty() { " ".into() } else { format!(" {cell} ") }).collect();
        format!("|{}|", cells.join("|"))
    };
    let mut lines = vec![line(cells(head).iter().map(|name| name.to_string()).collect())];
    for position in 0..rows.len() {
        let cell = |key: &Key| match rows.value(*key, position) {
            Value::Null => String::new(),
            Value::Str(text) => text.to_string(),
            Value::Float(value) => format!("{value:?}"),
            other => other.to_string(),
        };
        lines.push(line(keys.iter().map(cell).collect()));
    }
    lines
}

#[test]
fn every_example_gives_what_its_header_says() {
    let registry = registry();
    let tasks = tasks();
    for task in tasks.signatures().iter() {
        let example = Example::of(task.op);
        let checked = check(example.plan(task.op).as_bytes(), &registry, tasks.signatures());
        let Some(plan) = checked.plan else { panic!("{}: {:?}", task.op, checked.diagnostics.list()) };
        let linked = Linked::link(&plan, &tasks, &registry).expect("a checked plan links");
        let data = Data::parse(&example.store).expect("store lines are data");
        let endpoints: Vec<Arc<dyn Open>> = vec![Arc::new(MemoryEndpoint::new(Arc::new(data), Vec::new()))];
        let settings = Settings { scheduler: Scheduler::Async, loops: 1, cpu_threads: 1, ..Settings::default() };
        let engine = Engine::start(settings, endpoints).expect("an engine starts");
        let request = Request {
            user_id: 1,
            candidates: example.candidates(&registry).map(Candidates::new),
            ..Request::new(&registry)
        };
        let outcome = engine.run(&Arc::new(linked), request);
        let outputs = outcome.result.unwrap_or_else(|error| panic!("{}: {error}", task.op));
        assert_eq!(table(&outputs[0], &example.gives[0], &registry), example.gives, "the example of {}", task.op);
    }
}
