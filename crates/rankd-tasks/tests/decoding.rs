//! What a read brings is decoded where that costs the least: here and now if it is little, on the pool if it is much, and with the
//! same rows and counts either way.

mod rig;

use rankd_column::Value;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rig::{link, registry_with};
use std::fmt::Write;
use std::sync::Arc;

const DOCUMENTS: usize = 1_000;

fn engine(scheduler: Scheduler) -> Engine {
    let mut data = String::new();
    for id in 1..=DOCUMENTS {
        let title = if id % 100 == 0 { "5".to_owned() } else { format!("\\\"title {id}\\\"") };
        let _ = writeln!(
            data,
            "{{\"key\":\"doc:{id}\",\"string\":\"{{\\\"body\\\":\\\"{}\\\",\\\"title\\\":{title}}}\"}}",
            "x".repeat(4_000)
        );
    }
    let data = Arc::new(Data::parse(&data).expect("it is a data file"));
    let endpoint: Arc<dyn Open> = Arc::new(MemoryEndpoint::new("redis_default", data, Vec::new()));
    let settings = Settings { scheduler, loops: 1, cpu_threads: 1, ..Settings::default() };
    Engine::start(settings, vec![endpoint]).expect("threads can be started")
}

/// The titles that a plan reads for its first rows.
fn titles(engine: &Engine, plan: &Arc<Linked>) -> Vec<Value> {
    let request = Request { registry: Some(plan.registry()), ..Request::new(&registry_with(|keys| keys)) };
    let rows = engine.run(plan, request).result.expect("there are rows").swap_remove(0);
    let title = registry_with(|keys| keys).keys.named("title").map(rankd_column::Key).expect("it is registered");
    (0..rows.len()).map(|row| rows.value(title, row)).collect()
}

fn plan(rows: usize) -> Arc<Linked> {
    let read = r#""endpoint":"redis_default","key":"doc:{id}","from":"json","fields":{"title":"title"}"#;
    let nodes = format!(
        r#"{{"node_id":"n0","op":"fixed_source","params":{{"row_count":{rows}}}}},{{"node_id":"n1","op":"hydrate","inputs":["n0"],"params":{{{read}}}}}"#
    );
    let text = format!(r#"{{"schema_version":1,"plan_name":"intent","nodes":[{nodes}],"outputs":["n1"]}}"#);
    link(&text, &registry_with(|keys| keys))
}

#[test]
fn many_documents_are_decoded_on_the_pool_and_give_the_same_rows_everywhere() {
    let plan = plan(DOCUMENTS);
    let mut all = Vec::new();
    for scheduler in [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential] {
        let engine = engine(scheduler);
        all.push(titles(&engine, &plan));
        let on_the_pool = if scheduler == Scheduler::Async { 1 } else { 0 };
        assert_eq!(engine.stats().offloads(), on_the_pool, "{}", scheduler.name());
        assert_eq!(engine.stats().unread(), [(0, "title".into(), 10)], "{}", scheduler.name());
    }
    assert_eq!(all[0][0], Value::str("title 1"));
    assert_eq!(all[0].iter().filter(|title| **title == Value::Null).count(), 10);
    assert!(all.iter().all(|titles| *titles == all[0]));
}

#[test]
fn a_document_is_decoded_on_the_loop() {
    // A little one costs less than the way to the pool, also when costs are learned on a crowded machine.
    let read = r#""endpoint":"redis_default","key":"doc:{id}","from":"string","out_key":"title""#;
    let nodes = format!(
        r#"{{"node_id":"n0","op":"fixed_source"}},{{"node_id":"n1","op":"hydrate","inputs":["n0"],"params":{{{read}}}}}"#
    );
    let text = format!(r#"{{"schema_version":1,"plan_name":"intent","nodes":[{nodes}],"outputs":["n1"]}}"#);
    let (engine, plan) = (engine(Scheduler::Async), link(&text, &registry_with(|keys| keys)));
    assert_eq!(titles(&engine, &plan).len(), 1);
    assert_eq!(engine.stats().offloads(), 0);
}

#[test]
fn a_node_that_must_not_be_inlined_is_decoded_on_the_pool() {
    let read = r#""endpoint":"redis_default","key":"none:{id}","from":"string","out_key":"title""#;
    let nodes = format!(
        r#"{{"node_id":"n0","op":"fixed_source"}},{{"node_id":"n1","op":"hydrate","inputs":["n0"],"scheduling":{{"inline":false}},"params":{{{read}}}}}"#
    );
    let text = format!(r#"{{"schema_version":1,"plan_name":"intent","nodes":[{nodes}],"outputs":["n1"]}}"#);
    let (engine, plan) = (engine(Scheduler::Async), link(&text, &registry_with(|keys| keys)));
    assert_eq!(titles(&engine, &plan), [Value::Null]);
    assert_eq!(engine.stats().offloads(), 1);
}
