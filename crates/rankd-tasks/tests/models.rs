//! Models of every library through a whole plan: on all schedulers, raw scores have the bits that the library gave.

#[path = "../../rankd-plan/tests/models/rows.rs"]
#[allow(dead_code, reason = "the comparison in it goes without a plan")]
#[expect(clippy::unwrap_used, clippy::panic, reason = "what tests call fails the test, as an assertion would")]
mod golden;

use golden::Golden;
use rankd_column::{Batch, Column, Key, RowSet, Type, Value};
use rankd_engine::request::Candidates;
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::model::{Format, UsedModel, read};
use rankd_plan::registry::{AsWritten, Text};
use rankd_plan::{Registry, check};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn models() -> Vec<(Format, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rankd-plan/tests/models");
    let paths = files_in(&folder);
    let format = |path: &Path| match (path.file_name()?.to_str()?.split_once('_')?.0, path.extension()?.to_str()?) {
        ("lgb", "txt") => Some(Format::LightGbm),
        ("xgb", "json" | "ubj") => Some(Format::XgBoost),
        ("cb", "json") => Some(Format::CatBoost),
        _ => None,
    };
    paths.into_iter().filter_map(|path| Some((format(&path)?, path))).collect()
}

#[expect(clippy::disallowed_methods, reason = "the files of a test")]
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the models are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    paths
}

#[expect(clippy::disallowed_methods, reason = "the files of a test")]
fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("it can be read")
}

fn type_of(column: &Column) -> Type {
    match column {
        Column::Float(_) => Type::Float,
        Column::Int(_) => Type::Int,
        Column::Bool(_) => Type::Bool,
        Column::Str(..) => Type::Str,
        Column::List(..) | Column::Vector(..) => unreachable!("no model reads these"),
    }
}

/// A registry with a key for each column, `f0` and so on, one for each output, `o0` and so on, and the model.
fn registry(golden: &Golden, format: Format) -> Registry {
    let mut keys = String::from("[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n");
    let mut key = |name: String, type_of: Type| {
        keys += &format!("[[key]]\nname = {name:?}\ntype = \"{type_of}\"\nnullable = true\n");
        name
    };
    let features = golden.columns.iter().enumerate().map(|(at, column)| key(format!("f{at}"), type_of(column)));
    let features: Vec<String> = features.collect();
    (0..golden.raw_outputs).for_each(|at| drop(key(format!("o{at}"), Type::Float)));
    let format = format.name();
    let models = format!("[[model]]\nname = \"m\"\nfile = \"m\"\nformat = \"{format}\"\nfeatures = {features:?}\n");
    let texts = [keys.as_str(), "", "", models.as_str()].map(|text| Text { file: "", text });
    let (registry, problems) = Registry::parse_files(&AsWritten, texts);
    assert!(problems.is_empty(), "the registry is good");
    registry
}

fn key(registry: &Registry, name: &str) -> Key {
    Key(registry.keys.named(name).expect("it is there"))
}

#[test]
fn raw_scores_of_a_plan_have_the_bits_of_the_library_on_all_schedulers() {
    let models = models();
    assert!(models.len() >= 21, "{} models", models.len());
    let engines = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential].map(|scheduler| {
        let settings = Settings { scheduler, loops: 1, cpu_threads: 2, ..Settings::default() };
        Engine::start(settings, Vec::new()).expect("threads can be started")
    });
    for (format, path) in models {
        let golden = Golden::read(&bytes(&path.with_extension("rows")));
        let registry = registry(&golden, format);
        let model = read(format, &bytes(&path)).expect("it is a model");
        let used = UsedModel::bind(0, model, String::new(), &registry);
        registry.models_in_use().swap(0, used.unwrap_or_else(|found| panic!("{:?}", found.list())));
        let outputs: Vec<String> = (0..golden.raw_outputs).map(|at| format!("o{at}")).collect();
        let plan = format!(
            r#"{{"schema_version":1,"plan_name":"p","outputs":["b"],"nodes":[{{"node_id":"a","op":"candidates","params":{{}}}},{{"node_id":"b","op":"model","inputs":["a"],"params":{{"model":"m","output":"raw","out_keys":{outputs:?}}}}}]}}"#
        );
        let checked = check(plan.as_bytes(), &registry, rankd_tasks::tasks().signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{}: {:?}", path.display(), checked.diagnostics.list()));
        let linked = Arc::new(Linked::link(&plan, &rankd_tasks::tasks(), &registry).expect("it links"));
        let mut batch = Batch::new((0..golden.rows as i64).collect());
        for (at, column) in golden.columns.iter().enumerate() {
            batch = batch.with(key(&registry, &format!("f{at}")), Arc::new(column.clone()));
        }
        // Backwards, so that the rows are not the batch as it is.
        let rows = RowSet::new(batch).looking_at((0..golden.rows as u32).rev().collect());
        for engine in &engines {
            let candidates = Some(Candidates::new(rows.clone()));
            let request = Request { user_id: 1.into(), candidates, ..Request::new(&registry) };
            let given = engine.run(&linked, request).result.expect("it runs");
            for (position, row) in (0..golden.rows).rev().enumerate() {
                for (at, name) in outputs.iter().enumerate() {
                    let theirs = golden.raw[row * golden.raw_outputs + at];
                    let Value::Float(ours) = given[0].value(key(&registry, name), position) else {
                        panic!("{}: row {row} has no score", path.display());
                    };
                    assert_eq!(ours.to_bits(), theirs.to_bits(), "{}: row {row}, {name}", path.display());
                }
            }
        }
        assert_eq!(registry.known_model(0).map(|model| model.rows()), Some(3 * golden.rows as u64));
    }
}
