//! What the tests of a crate with tasks need: [`run_examples`] runs the examples in each task's header, [`stop_computations`] stops
//! them on many rows, [`registry_in`] reads a registry to run them with. No part of any program.
//!
//! `example` is what a header says, `table` its tables as rows. What is wrong is said by a panic, which fails the test.

#![expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "it runs in tests only, reads their files, and says what is wrong with them"
)]

mod example;
mod given;
mod service;
mod stopping;
mod table;

use example::Example;
use given::GIVEN;
use rankd_column::RowSet;
use rankd_engine::request::Candidates;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::store::table::{OpenTable, TableData, TableIds};
use rankd_engine::store::{Open, TableEndpoint, Tables};
use rankd_engine::task::Definition;
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings, Tasks};
use rankd_plan::model::{self, Format, UsedModel};
use rankd_plan::registry::{AsWritten, Endpoint, EndpointSettings, Text};
use rankd_plan::signature::Signature;
use rankd_plan::{Registry, check};
use service::Service;
use std::path::Path;
use std::sync::Arc;

pub use stopping::stop_computations;

/// Runs the examples in the header of each of these tasks, whose files are in a folder, and fails unless it gives what the header
/// says.
///
/// An example is a block ` ```text ` with these lines: `with` and the parameters as JSON, where an expression or predicate is
/// written in place and a node is the number of a `given` table; `store` and a line of data, for each key that a read needs;
/// `answer`, a path and JSON, for each call of the endpoint `service`; `table` and a table, which the endpoint `example_table` has;
/// `given` and a table, for each input; `gives` and the table that must come out. Every endpoint of the registry has the data.
pub fn run_examples(definitions: impl IntoIterator<Item = Definition>, folder: impl AsRef<Path>, registry: &Registry) {
    let definitions: Vec<Definition> = definitions.into_iter().collect();
    assert!(!definitions.is_empty(), "there are no tasks");
    let tasks =
        Tasks::new(definitions.iter().copied().chain([GIVEN])).unwrap_or_else(|duplicate| panic!("{duplicate}"));
    for Definition { signature, .. } in definitions {
        for example in read_examples(signature, folder.as_ref()) {
            run_example(&example, signature, &tasks, registry);
        }
    }
}

/// The examples in the header of a task's file.
fn read_examples(task: Signature, folder: &Path) -> Vec<Example> {
    let path = folder.join(format!("{}.rs", task.op));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Example::in_header(task.op, &text)
}

/// The plan of an example, on these rows.
fn link(example: &Example, task: Signature, tasks: &Tasks, registry: &Registry, given: &[RowSet]) -> Linked {
    let op = task.op;
    let plan = example.plan(task, &given::keep(given));
    let checked = check(plan.as_bytes(), registry, tasks.signatures());
    let Some(plan) = checked.plan else { panic!("{op}: {:?}", checked.diagnostics.list()) };
    Linked::link(&plan, tasks, registry).unwrap_or_else(|error| panic!("{op}: {error}"))
}

/// What the table endpoint holds.
fn tables(example: &Example, op: &str, registry: &Registry) -> Arc<Tables> {
    let tables = Arc::new(Tables::default());
    if let (false, Some(at)) = (example.table.is_empty(), registry.endpoints.named(TABLE)) {
        let data = table_data(&table::read(&example.table, registry));
        tables.swap(TableEndpoint(at), data).unwrap_or_else(|fault| panic!("{op}: {fault}"));
    }
    tables
}

/// Rows as those of a table.
fn table_data(rows: &RowSet) -> TableData {
    let (ids, columns) = (TableIds::Ints(rows.batch().ids().to_vec()), rows.batch().columns().to_vec());
    TableData { ids, columns, sha256: None }
}

fn run_example(example: &Example, signature: Signature, tasks: &Tasks, registry: &Registry) {
    let op = signature.op;
    let given: Vec<RowSet> = example.given.iter().map(|table| table::read(table, registry)).collect();
    let linked = link(example, signature, tasks, registry, &given);
    let data =
        Data::parse(&example.store).unwrap_or_else(|bad| panic!("{op}: store line {}: {}", bad.line, bad.message));
    let (data, tables) = (Arc::new(data), tables(example, op, registry));
    let open = |endpoint: &Endpoint| -> Arc<dyn Open> {
        match &endpoint.settings {
            EndpointSettings::Table(_) => Arc::new(OpenTable::new(&endpoint.name, tables.clone())),
            EndpointSettings::Http(_) => Arc::new(Service::new(&endpoint.name, example.answers.clone())),
            EndpointSettings::Redis(_) => Arc::new(MemoryEndpoint::new(&endpoint.name, data.clone(), Vec::new())),
        }
    };
    let endpoints = registry.endpoints.list().iter().map(open).collect();
    let settings = Settings { scheduler: Scheduler::Async, loops: 1, cpu_threads: 1, ..Settings::default() };
    let engine = Engine::start(settings, endpoints).unwrap_or_else(|error| panic!("{op}: {error}"));
    let request = Request {
        user_id: 1.into(),
        candidates: given.first().cloned().map(Candidates::new),
        ..Request::new(registry)
    };
    let outputs = engine.run(&Arc::new(linked), request).result.unwrap_or_else(|error| panic!("{op}: {error}"));
    assert_eq!(table::write(&outputs[0], &example.gives[0], registry), example.gives, "the example of {op}");
}

/// The table that examples can read from.
const TABLE: &str = "example_table";

/// The model that examples can score with: `quality` above 0.5, then `age_hours` up to 24 and `quality` again.
const MODEL: &str = include_str!("example_model.txt");

/// A key for vectors of three numbers.
const VECTOR: &str = "example_vector";

/// A parameter that is such a vector: `[1, 0, 0]`.
const QUERY: &str = "example_query";

/// The registry in a folder, with the endpoints of the environment `local` one that is a table, `example_table`, and
/// one that is an HTTP service, `service`; with a key `example_vector` and a parameter `example_query`, of type `vector<3>`; and with a
/// model `example_model` of the keys `quality` and `age_hours`, where there are such keys. One with mistakes fails the test.
pub fn registry_in(folder: impl AsRef<Path>) -> Registry {
    let [keys, params, endpoints] = ["keys.toml", "params.toml", "endpoints.local.toml"].map(|name| {
        let path = folder.as_ref().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    let table = format!(
        "[[endpoint]]\nendpoint_id = \"ep_{TABLE}\"\nname = \"{TABLE}\"\nkind = \"table\"\nurl = \"file:x.csv\"\n"
    );
    let endpoints = format!("{endpoints}\n{table}{}", service::ENDPOINT);
    // An id that no registry has by accident.
    let keys =
        format!("{keys}\n[[key]]\nkey_id = 2000000000\nname = \"{VECTOR}\"\ntype = \"vector<3>\"\nnullable = true\n");
    let params = format!(
        "{params}\n[[param]]\nparam_id = 2000000000\nname = \"{QUERY}\"\ntype = \"vector<3>\"\nnullable = true\ndefault = [1, 0, 0]\n"
    );
    let text = |text| Text { file: "", text };
    let has_features = ["quality", "age_hours"].iter().all(|name| keys.contains(&format!("name = {name:?}")));
    let models = "[[model]]\nname = \"example_model\"\nfile = \"example_model.txt\"\nformat = \"lightgbm\"\n";
    let models = if has_features { models } else { "" };
    let texts = [text(&keys), text(&params), text(&endpoints), text(models)];
    let (registry, problems) = Registry::parse_files(&AsWritten, texts);
    let found: Vec<_> = problems.iter().flat_map(|file| file.diagnostics.list()).collect();
    assert!(found.is_empty(), "{found:?}");
    if has_features {
        let model = model::read(Format::LightGbm, MODEL.as_bytes(), None).unwrap_or_else(|problem| panic!("{problem}"));
        let bound = UsedModel::bind(0, model, String::new(), &registry);
        registry.models_in_use().swap(0, bound.unwrap_or_else(|found| panic!("{:?}", found.list())));
    }
    registry
}
