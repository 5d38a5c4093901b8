//! Runs on what other runs recorded: on every scheduler they give the same rows, miss the same rows and fail in the same way, without a store.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

mod rig;

use rankd_column::Value;
use rankd_engine::recorded::{Reads, Replay, RunRecord, RunRecorder};
use rankd_engine::store::{ClosedEndpoint, Open};
use rankd_engine::{Engine, Linked, Outcome, Request, Scheduler, Settings};
use rankd_plan::Registry;
use rankd_plan::registry::Inject;
use rig::*;
use std::sync::Arc;
use std::time::Duration;

fn request(rig: &Rig, user_id: i64) -> Request {
    let registry = Some(rig.registry.id());
    Request { user_id: user_id.into(), request_id: format!("r{user_id}"), registry, ..Request::new(&rig.registry) }
}

fn record(rig: &Rig, plan: &Arc<Linked>, request: &Request) -> (Outcome, RunRecord) {
    let recorder = Arc::new(RunRecorder::default());
    let outcome = rig.engine.run(plan, Request { reads: Reads::Recorded(recorder.clone()), ..request.clone() });
    (outcome, recorder.take())
}

/// An engine without stores.
fn closed(scheduler: Scheduler, registry: &Registry) -> Engine {
    let endpoints = registry.endpoints.list().iter();
    let endpoints = endpoints.map(|endpoint| Arc::new(ClosedEndpoint(endpoint.name.clone())) as Arc<dyn Open>);
    Engine::start(Settings { scheduler, cpu_threads: 2, ..Settings::default() }, endpoints.collect()).unwrap()
}

fn replay(engine: &Engine, plan: &Arc<Linked>, request: &Request, replay: Replay) -> Outcome {
    engine.run(plan, Request { reads: Reads::Replayed(Arc::new(replay)), ..request.clone() })
}

/// All that an answer says.
fn said(rig: &Rig, outcome: &Outcome) -> String {
    let rows = outcome.result.as_ref().map(|outputs| {
        let row = |rows: &rankd_column::RowSet, at: usize| -> Vec<Value> {
            rows.batch().columns().iter().map(|(key, _)| rows.value(*key, at)).collect()
        };
        let all = |rows: &rankd_column::RowSet| {
            rows.ids().enumerate().map(|(at, id)| (id, row(rows, at))).collect::<Vec<_>>()
        };
        outputs.iter().map(all).collect::<Vec<_>>()
    });
    let rows = rows.map_err(|error| (error.code.id, error.message.clone(), error.node.clone()));
    let cursor = outcome.cursor.as_ref().map(|cursor| &cursor.text);
    let names = rig.registry.keys.list().len();
    format!(
        "{rows:?} {:?} {:?} {:?} {cursor:?} {:?} {names}",
        outcome.degraded, outcome.short, outcome.dials, outcome.seed
    )
}

/// Records runs on each scheduler, and replays each on all of them.
fn same_everywhere(
    inject: Vec<Inject>,
    plan_text: impl Fn(&Rig) -> Arc<Linked>,
    change: impl Fn(&mut Request),
) -> Vec<Outcome> {
    let mut seen = Vec::new();
    for recording in EVERY {
        let rig = Rig::start(*recording, 2, inject.clone());
        let plan = plan_text(&rig);
        let engines: Vec<Engine> = EVERY.iter().map(|scheduler| closed(*scheduler, &rig.registry)).collect();
        for user_id in 1..=20 {
            let mut request = request(&rig, user_id);
            change(&mut request);
            let (outcome, recorded) = record(&rig, &plan, &request);
            let (now_ms, weather) = (recorded.facts.now_ms, recorded.weather.clone());
            request.now_ms = now_ms.or(request.now_ms);
            for engine in &engines {
                let reads = Replay::of(recorded.reads.clone(), recorded.calls.clone()).with_weather(weather.clone());
                let again = replay(engine, &plan, &request, reads);
                let on = engine.settings().scheduler.name();
                assert_eq!(said(&rig, &again), said(&rig, &outcome), "{} on {on}: {weather:?}", recording.name());
            }
            seen.push(outcome);
        }
    }
    seen
}

fn failing(command: &str, every: u32) -> Inject {
    Inject { command: Some(command.to_owned()), latency_us: 0, fail_every: every }
}

#[test]
fn a_feed_replays_with_and_without_faults() {
    let for_you = |rig: &Rig| rig.link(&read("plans/for_you.plan.json"));
    let whole = same_everywhere(Vec::new(), for_you, |_| {});
    assert!(whole.iter().all(|outcome| outcome.result.is_ok() && outcome.degraded.is_empty()));
    let faults = vec![failing("LRANGE", 37), failing("HMGET", 301), failing("SMISMEMBER", 3), failing("HGETALL", 5)];
    let struck = same_everywhere(faults, for_you, |_| {});
    assert!(struck.iter().any(|outcome| outcome.result.is_ok() && !outcome.degraded.is_empty()));
}

#[test]
fn a_node_that_was_cut_is_cut_at_the_same_pick() {
    let plan = |rig: &Rig| {
        rig.plan(&[
            r#"{"node_id":"s","op":"fixed_source","inputs":[],"params":{"row_count":60000,"columns":{"score":{"cycle":[1,5,3,4,2]},"example_vector":{"cycle":[[1,0]]}}}}"#.to_owned(),
            r#"{"node_id":"m","op":"mmr","inputs":["s"],"params":{"score":"score","vector":"example_vector","k":10000,"lambda":0.5},"timeout_ms":5}"#.to_owned(),
            r#"{"node_id":"t","op":"take","inputs":["m"],"params":{"count":50}}"#.to_owned(),
        ])
    };
    let cut = same_everywhere(Vec::new(), plan, |_| {});
    assert!(cut.iter().all(|outcome| outcome.degraded.len() == 1));
}

#[test]
fn time_outs_with_and_without_fallbacks_replay() {
    let slow = |fallback: &str| {
        let with = sleep("slow", "s", LONG_MS)
            .replace(r#""op":"sleep""#, &format!(r#""op":"sleep","timeout_ms":10{fallback}"#));
        vec![source("s", 4), with, vm("v", "s"), concat("all", "v", "slow")]
    };
    for (fallback, is_ok) in [(r#","fallback":"input""#, true), ("", false)] {
        let outcomes = same_everywhere(Vec::new(), |rig| rig.plan(&slow(fallback)), |_| {});
        assert!(outcomes.iter().all(|outcome| outcome.result.is_ok() == is_ok));
    }
    let deadline = |request: &mut Request| request.deadline = Some(Duration::from_millis(10));
    let outcomes =
        same_everywhere(Vec::new(), |rig| rig.plan(&[source("s", 4), sleep("slow", "s", LONG_MS)]), deadline);
    assert!(outcomes.iter().all(|outcome| outcome.result.is_err()));
}

#[test]
fn of_several_nodes_that_fail_the_recorded_one_is_to_blame() {
    let plan = |rig: &Rig| {
        rig.plan(&[
            source("s", 4),
            failing_sleep("first", "s", 1),
            failing_sleep("second", "s", 2),
            concat("all", "first", "second"),
            vm("v", "all"),
        ])
    };
    let outcomes = same_everywhere(Vec::new(), plan, |_| {});
    assert!(outcomes.iter().all(|outcome| outcome.result.is_err()));
}

#[test]
fn what_was_not_recorded_is_missing_or_read_now() {
    let rig = Rig::start(Scheduler::Async, 1, Vec::new());
    let plan = |fanout: usize| {
        rig.plan(&[
            r#"{"node_id":"v","op":"viewer","inputs":[],"params":{"endpoint":"redis_default"}}"#.to_owned(),
            format!(r#"{{"node_id":"f","op":"follow","inputs":["v"],"params":{{"endpoint":"redis_default","fanout":{fanout}}}}}"#),
        ])
    };
    let (five, three, many) = (plan(5), plan(3), plan(8));
    let request = request(&rig, 1);
    let record = || record(&rig, &five, &request).1;
    let live = |plan: &Arc<Linked>| said(&rig, &rig.engine.run(plan, request.clone()));
    let engine = closed(Scheduler::Async, &rig.registry);
    assert_eq!(said(&rig, &replay(&engine, &three, &request, Replay::new(record()))), live(&three));
    let failed = replay(&engine, &many, &request, Replay::new(record())).result.unwrap_err();
    assert_eq!((failed.code.id, failed.node.map(|node| node.id)), ("E423", Some("f".to_owned())));
    let reads = Arc::new(Replay::new(record()).or_live());
    let outcome = rig.engine.run(&many, Request { reads: Reads::Replayed(reads.clone()), ..request.clone() });
    assert_eq!((said(&rig, &outcome), reads.missing()), (live(&many), 1));
}
