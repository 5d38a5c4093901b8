//! Models that run out of time: rows that were scored have the whole score of the model, the others are as they came in, and the answer says how many
//! were scored. Never a part of a score.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

use rankd_column::{Key, RowSet, Value};
use rankd_engine::degraded::{Degraded, Reason, StandIn};
use rankd_engine::{Engine, Linked, Outcome, Request, Scheduler, Settings};
use rankd_plan::model::{Format, UsedModel, read};
use rankd_plan::registry::{AsWritten, Text};
use rankd_plan::{Registry, check};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const EVERY: [Scheduler; 3] = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential];

/// Far more than can be scored in any time limit here.
const ROWS: usize = 600_000;
const TREES: usize = 12_000;
/// A node that has not even begun after this long, on a machine that does other things, is tried again.
const LIMIT_MS: u64 = 200;
const TRIES: usize = 20;

/// One feature, with a leaf for each of the values 1 to 5 in every tree. All sums are exact.
fn model() -> String {
    let mut text = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\nobjective=regression\nfeature_names=quality\nfeature_infos=[0:9]\ntree_sizes=1\n\n".to_owned();
    for tree in 0..TREES {
        let step = 1 + tree % 3;
        let leaves: Vec<String> = (0..5).map(|leaf| (leaf * step + 1).to_string()).collect();
        write!(
            text,
            "Tree={tree}\nnum_leaves=5\nnum_cat=0\nsplit_feature=0 0 0 0\nsplit_gain=1 1 1 1\nthreshold=1.5 2.5 3.5 4.5\ndecision_type=10 10 10 10\nleft_child=-1 -2 -3 -4\nright_child=1 2 3 -5\nleaf_value={}\nleaf_weight=1 1 1 1 1\nleaf_count=1 1 1 1 1\ninternal_value=0 0 0 0\ninternal_weight=5 4 3 2\ninternal_count=5 4 3 2\nis_linear=0\nshrinkage=1\n\n\n",
            leaves.join(" ")
        )
        .unwrap();
    }
    text + "end of trees\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\npandas_categorical:null\n"
}

/// What the model gives a row, by the value of its feature.
fn whole_score(quality: usize) -> f64 {
    (0..TREES).map(|tree| ((quality - 1) * (1 + tree % 3) + 1) as f64).sum()
}

fn registry() -> Registry {
    let mut keys = String::from("[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n");
    for (name, nullable) in [
        ("quality", "nullable = true"),
        ("empty", "nullable = true"),
        ("filled", "nullable = false\ndefault = 0.25"),
        ("known", "nullable = true"),
    ] {
        write!(keys, "[[key]]\nname = {name:?}\ntype = \"float\"\n{nullable}\n").unwrap();
    }
    let models = "[[model]]\nname = \"m\"\nfile = \"m\"\nformat = \"lightgbm\"\n";
    let texts = [keys.as_str(), "", "", models].map(|text| Text { file: "", text });
    let (registry, problems) = Registry::parse_files(&AsWritten, texts);
    assert!(problems.is_empty(), "the registry is good");
    let read = read(Format::LightGbm, model().as_bytes(), None).unwrap();
    registry.models_in_use().swap(0, UsedModel::bind(0, read, String::new(), &registry).ok().unwrap());
    registry
}

fn plan(registry: &Registry, out_key: &str, own: &str) -> Arc<Linked> {
    let text = format!(
        r#"{{"schema_version":1,"plan_name":"p","outputs":["m"],"nodes":[{{"node_id":"s","op":"fixed_source","params":{{"row_count":{ROWS},"columns":{{"quality":{{"cycle":[1,5,3,4,2]}},"known":{{"cycle":[-1,-5,-3]}}}}}}}},{{"node_id":"m","op":"model","inputs":["s"],"params":{{"model":"m","output":"raw","out_key":"{out_key}"}}{own}}}]}}"#
    );
    let checked = check(text.as_bytes(), registry, rankd_tasks::tasks().signatures());
    let plan = checked.plan.unwrap_or_else(|| unreachable!("{:?}", checked.diagnostics.list()));
    Arc::new(Linked::link(&plan, &rankd_tasks::tasks(), registry).unwrap())
}

fn engine(scheduler: Scheduler) -> Engine {
    Engine::start(Settings { scheduler, loops: 1, cpu_threads: 2, ..Settings::default() }, Vec::new()).unwrap()
}

/// Runs it until the node has begun within its limit.
fn cut(engine: &Engine, plan: &Arc<Linked>, request: impl Fn() -> Request) -> (RowSet, usize, Degraded) {
    for _ in 0..TRIES {
        let Outcome { result, degraded, .. } = engine.run(plan, request());
        let rows = result.unwrap()[0].clone();
        assert_eq!(degraded.len(), 1, "one node, one entry: {degraded:?}");
        match degraded[0].fallback {
            StandIn::Finished(finished) if finished > 0 => return (rows, finished, degraded[0].clone()),
            StandIn::Finished(_) | StandIn::Substitute(_) => {}
            StandIn::Prefix(_) => unreachable!("a model picks nothing: {degraded:?}"),
        }
    }
    unreachable!("the node never scored a block of rows within {LIMIT_MS} ms");
}

#[test]
fn rows_that_were_scored_in_time_keep_their_scores() {
    let registry = registry();
    let whole: Vec<f64> = [1, 5, 3, 4, 2].map(whole_score).to_vec();
    for scheduler in EVERY {
        let engine = engine(scheduler);
        for out_key in ["empty", "filled", "known"] {
            let plan = plan(&registry, out_key, &format!(r#","timeout_ms":{LIMIT_MS},"fallback":"input""#));
            let (rows, finished, degraded) = cut(&engine, &plan, || Request::new(&registry));
            assert_eq!((degraded.reason, degraded.code), (Reason::NoTime, None), "{scheduler:?}");
            assert!(finished < ROWS && finished.is_multiple_of(256), "{finished} rows");
            let key = Key(registry.keys.named(out_key).unwrap());
            for position in 0..ROWS {
                let wanted = match (position < finished, out_key) {
                    (true, _) => Value::Float(whole[position % 5]),
                    (false, "filled") => Value::Float(0.25),
                    (false, "known") => Value::Float([-1.0, -5.0, -3.0][position % 3]),
                    (false, _) => Value::Null,
                };
                assert_eq!(rows.value(key, position), wanted, "{out_key} at {position} of {finished} rows");
            }
        }
    }
}

/// Only the event loop learns limits.
#[test]
fn a_deadline_leaves_a_model_with_a_fallback_its_part() {
    let (registry, engine) = (registry(), engine(Scheduler::Async));
    let deadline = || Request { deadline: Some(Duration::from_millis(1_000)), ..Request::new(&registry) };
    let with_fallback = plan(&registry, "empty", r#","fallback":"input""#);
    let (rows, finished, degraded) = cut(&engine, &with_fallback, deadline);
    assert_eq!((degraded.reason, degraded.code), (Reason::NoTime, None));
    let key = Key(registry.keys.named("empty").unwrap());
    assert_eq!(rows.value(key, finished - 1), Value::Float(whole_score([1, 5, 3, 4, 2][(finished - 1) % 5])));
    assert_eq!(rows.value(key, finished), Value::Null);
    // In a strict run no fallback is taken and no limit is learned.
    let strict = Request { strict: true, ..deadline() };
    assert_eq!(engine.run(&with_fallback, strict).result.unwrap_err().code.id, "E301");
}

#[test]
fn without_a_fallback_a_model_fails_at_its_limit() {
    let registry = registry();
    for scheduler in EVERY {
        let engine = engine(scheduler);
        let limited = plan(&registry, "empty", &format!(r#","timeout_ms":{LIMIT_MS}"#));
        assert_eq!(engine.run(&limited, Request::new(&registry)).result.unwrap_err().code.id, "E302");
        let with_fallback = plan(&registry, "empty", &format!(r#","timeout_ms":{LIMIT_MS},"fallback":"input""#));
        let strict = Request { strict: true, ..Request::new(&registry) };
        assert_eq!(engine.run(&with_fallback, strict).result.unwrap_err().code.id, "E302");
    }
}
