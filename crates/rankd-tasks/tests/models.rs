//! Models of every library through a whole plan: on all schedulers, raw scores have the bits that the library gave.

#[path = "../../rankd-plan/tests/models/rows.rs"]
#[allow(dead_code, reason = "the comparison in it goes without a plan")]
#[expect(clippy::unwrap_used, clippy::panic, reason = "what tests call fails the test, as an assertion would")]
mod golden;

use golden::Golden;
use rankd_column::{Batch, Column, Id, Key, RowSet, Type, Value};
use rankd_engine::request::Candidates;
use rankd_engine::why::{AskedPlan, Part, PartKind};
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

/// The rows, backwards, so that they are not the batch as it is.
fn rows(golden: &Golden, registry: &Registry) -> RowSet {
    let mut batch = Batch::new((0..golden.rows as i64).collect());
    for (at, column) in golden.columns.iter().enumerate() {
        batch = batch.with(key(registry, &format!("f{at}")), Arc::new(column.clone()));
    }
    RowSet::new(batch).looking_at((0..golden.rows as u32).rev().collect())
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
        let model = read(format, &bytes(&path), None).expect("it is a model");
        let used = UsedModel::bind(0, model, String::new(), &registry);
        registry.models_in_use().swap(0, used.unwrap_or_else(|found| panic!("{:?}", found.list())));
        let outputs: Vec<String> = (0..golden.raw_outputs).map(|at| format!("o{at}")).collect();
        let plan = format!(
            r#"{{"schema_version":1,"plan_name":"p","outputs":["b"],"nodes":[{{"node_id":"a","op":"candidates","params":{{}}}},{{"node_id":"b","op":"model","inputs":["a"],"params":{{"model":"m","output":"raw","out_keys":{outputs:?}}}}}]}}"#
        );
        let checked = check(plan.as_bytes(), &registry, rankd_tasks::tasks().signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{}: {:?}", path.display(), checked.diagnostics.list()));
        let linked = Arc::new(Linked::link(&plan, &rankd_tasks::tasks(), &registry).expect("it links"));
        let rows = rows(&golden, &registry);
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

/// What is below the raw score of the first model: what it expects and what features add, and why that is not known where it is not.
fn explained(score: &[Part]) -> (Option<f64>, Vec<f64>, Option<&str>) {
    let Some(PartKind::RawScore { why_not, .. }) = score.get(1).map(|part| &part.kind) else {
        unreachable!("the score is a model's: {score:?}")
    };
    let expected = score.iter().find(|part| part.kind == PartKind::Expected).and_then(|part| match part.value {
        Some(Value::Float(expected)) => Some(expected),
        _ => None,
    });
    let adds = score.iter().filter_map(|part| match part.kind {
        PartKind::Feature { contribution, .. } => Some(contribution),
        _ => None,
    });
    (expected, adds.collect(), why_not.as_deref())
}

#[test]
fn what_features_add_to_a_score_adds_up_to_it() {
    let engine = Engine::start(Settings { loops: 1, cpu_threads: 1, ..Settings::default() }, Vec::new());
    let engine = engine.expect("threads can be started");
    let (mut with, mut without) = (0, Vec::new());
    for (format, path) in models() {
        let golden = Golden::read(&bytes(&path.with_extension("rows")));
        let registry = registry(&golden, format);
        let model = read(format, &bytes(&path), None).expect("it is a model");
        let used = UsedModel::bind(0, model, String::new(), &registry);
        registry.models_in_use().swap(0, used.unwrap_or_else(|found| panic!("{:?}", found.list())));
        let outputs: Vec<String> = (0..golden.raw_outputs).map(|at| format!("o{at}")).collect();
        // The last class decides.
        let last = golden.raw_outputs - 1;
        let plan = format!(
            r#"{{"schema_version":1,"plan_name":"p","outputs":["c"],"nodes":[{{"node_id":"a","op":"candidates","params":{{}}}},{{"node_id":"b","op":"model","inputs":["a"],"params":{{"model":"m","output":"raw","out_keys":{outputs:?}}}}},{{"node_id":"c","op":"sort","inputs":["b"],"params":{{"key":"o{last}","order":"desc"}}}}]}}"#
        );
        let checked = check(plan.as_bytes(), &registry, rankd_tasks::tasks().signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{}: {:?}", path.display(), checked.diagnostics.list()));
        let asked = AskedPlan::link(&plan, &rankd_tasks::tasks(), &registry).expect("it links");
        let candidates = Some(Candidates::new(rows(&golden, &registry)));
        let request = asked.request(Request { user_id: 1.into(), candidates, ..Request::new(&registry) });
        let outcome = engine.run(asked.linked(), request.clone());
        let ids = [0, golden.rows as i64 / 2, golden.rows as i64 - 1];
        let (items, _) = asked.items(&plan, &registry, &request, &outcome, &ids.map(Id::Int));
        for (id, item) in ids.iter().zip(&items) {
            let score = &item.rows[0].score;
            let raw = golden.raw[*id as usize * golden.raw_outputs + last];
            assert_eq!(score[0].value, Some(Value::Float(raw)), "{}", path.display());
            assert_eq!(score[1].value, Some(Value::Float(raw)), "{}: scored again", path.display());
            let (expected, adds, why_not) = explained(score);
            let Some(expected) = expected else {
                assert!(adds.is_empty());
                without.push(format!("{}: {}", format.name(), why_not.expect("it says why there are none")));
                continue;
            };
            assert_eq!(why_not, None);
            let sum = adds.iter().sum::<f64>() + expected;
            let slack = 1e-5 * raw.abs().max(1.0);
            assert!((sum - raw).abs() <= slack, "{}: {sum} is not {raw}", path.display());
            assert!(adds.is_sorted_by(|a, b| a.abs() >= b.abs()), "the largest comes first: {adds:?}");
            with += 1;
        }
    }
    without.sort();
    without.dedup();
    assert_eq!(without, ["lightgbm: trees with linear leaves have no contributions"]);
    assert!(with > 90, "{with} rows");
}

#[test]
fn a_class_is_explained_by_its_own_sum() {
    let engine = Engine::start(Settings { loops: 1, cpu_threads: 1, ..Settings::default() }, Vec::new());
    let engine = engine.expect("threads can be started");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rankd-plan/tests/models");
    let path = folder.join("xgb_softmax.ubj");
    let golden = Golden::read(&bytes(&path.with_extension("rows")));
    let registry = registry(&golden, Format::XgBoost);
    let model = read(Format::XgBoost, &bytes(&path), None).expect("it is a model");
    let used = UsedModel::bind(0, model, String::new(), &registry);
    registry.models_in_use().swap(0, used.unwrap_or_else(|found| panic!("{:?}", found.list())));
    let plan = r#"{"schema_version":1,"plan_name":"p","outputs":["c"],"nodes":[{"node_id":"a","op":"candidates","params":{}},{"node_id":"b","op":"model","inputs":["a"],"params":{"model":"m","out_key":"o0"}},{"node_id":"c","op":"sort","inputs":["b"],"params":{"key":"o0"}}]}"#;
    let checked = check(plan.as_bytes(), &registry, rankd_tasks::tasks().signatures());
    let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
    let asked = AskedPlan::link(&plan, &rankd_tasks::tasks(), &registry).expect("it links");
    let candidates = Some(Candidates::new(rows(&golden, &registry)));
    let request = asked.request(Request { user_id: 1.into(), candidates, ..Request::new(&registry) });
    let outcome = engine.run(asked.linked(), request.clone());
    let ids: Vec<Id> = (0..golden.rows.min(20) as i64).map(Id::Int).collect();
    for (row, item) in asked.items(&plan, &registry, &request, &outcome, &ids).0.iter().enumerate() {
        let score = &item.rows[0].score;
        let raw = &golden.raw[row * golden.raw_outputs..][..golden.raw_outputs];
        let largest = raw.iter().copied().fold(f64::MIN, f64::max);
        assert_eq!(score[1].value, Some(Value::Float(largest)), "row {row}");
        let (expected, adds, _) = explained(score);
        let sum = adds.iter().sum::<f64>() + expected.expect("it has contributions");
        assert!((sum - largest).abs() <= 1e-5 * largest.abs().max(1.0), "row {row}: {sum} is not {largest}");
    }
}
