//! Tasks that hand over what they have when their time is up: what they had picked is right, the rest is as it came in, and the answer
//! says so. Also what traced runs count besides rows.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

mod rig;

use rankd_engine::degraded::{Reason, StandIn};
use rankd_engine::{Linked, Outcome, Request, Scheduler};
use rig::*;
use std::sync::Arc;
use std::time::Duration;

const ROWS: usize = 200_000;

/// Tasks that pick rows, with their own parameters.
const PICKING: [(&str, &str); 2] = [("mmr", r#""lambda":0.5"#), ("dpp", r#""alpha":1,"window":8"#)];

/// Picks so many rows of a list that is far too long to be done with soon.
fn picks((op, own): (&str, &str), count: usize, timeout_ms: Option<u64>) -> Vec<String> {
    let timeout = timeout_ms.map(|ms| format!(r#","timeout_ms":{ms}"#)).unwrap_or_default();
    let source = r#"{"node_id":"s","op":"fixed_source","inputs":[],"params":{"row_count":ROWS,"columns":{"score":{"cycle":[1,5,3,4,2]},"example_vector":{"cycle":[[1,0]]}}}}"#;
    vec![
        source.replace("ROWS", &ROWS.to_string()),
        format!(
            r#"{{"node_id":"m","op":"{op}","inputs":["s"],"params":{{"score":"score","vector":"example_vector","k":{count},{own}}}{timeout}}}"#
        ),
    ]
}

fn run(rig: &Rig, plan: &Arc<Linked>, deadline_ms: Option<u64>, strict: bool) -> Outcome {
    let deadline = deadline_ms.map(Duration::from_millis);
    rig.engine.run(plan, Request { deadline, strict, trace: true, ..Request::new(&rig.registry) })
}

fn ids(outcome: &Outcome) -> Vec<i64> {
    outcome.result.as_ref().unwrap()[0].ids().collect()
}

/// The rows are those of a run that was to pick no more than this one had picked.
fn assert_is_prefix(rig: &Rig, task: (&str, &str), outcome: &Outcome) {
    let [degraded] = &outcome.degraded[..] else { unreachable!("one node was cut short: {outcome:?}") };
    let StandIn::Prefix(picked) = degraded.fallback else { unreachable!("{degraded:?}") };
    assert_eq!((degraded.reason, degraded.code, picked < 10_000), (Reason::NoTime, None, true));
    let wanted = match picked {
        0 => (1..=ROWS as i64).collect(),
        picked => ids(&run(rig, &rig.plan(&picks(task, picked, None)), None, false)),
    };
    assert!(ids(outcome) == wanted, "{picked} picks, and then the others as they came in");
}

#[test]
fn a_node_that_is_out_of_time_hands_over_its_picks() {
    Rig::on(EVERY, 2, |rig| {
        for task in PICKING {
            let plan = rig.plan(&picks(task, 10_000, Some(50)));
            assert_is_prefix(rig, task, &run(rig, &plan, None, false));
            assert_eq!(run(rig, &plan, None, true).result.unwrap_err().code.id, "E302");
        }
    });
}

/// Only the event loop learns limits.
#[test]
fn a_deadline_leaves_time_for_what_follows() {
    Rig::on(&[Scheduler::Async], 2, |rig| {
        for task in PICKING {
            let plan = rig.plan(&picks(task, 10_000, None));
            assert_is_prefix(rig, task, &run(rig, &plan, Some(1_000), false));
            assert_eq!(run(rig, &plan, Some(1_000), true).result.unwrap_err().code.id, "E304");
        }
    });
}

#[test]
fn a_node_that_has_time_is_not_cut() {
    Rig::on(EVERY, 2, |rig| {
        for task in PICKING {
            let outcome = run(rig, &rig.plan(&picks(task, 2, None)), Some(60_000), false);
            assert!(outcome.degraded.is_empty());
            assert_eq!(ids(&outcome)[..4], [2, 7, 1, 3]);
        }
    });
}

/// What a traced run counts of the last node, by name.
fn counted(rig: &Rig, op: &str, params: &str) -> Vec<(&'static str, u64)> {
    let columns = r#""columns":{"country":["US","US",null,"US"],"score":[1,null,null,2],"parent_id":[1,null,null,8],"example_vector":[[1,0],null,null,[0,1]]}"#;
    let nodes = [
        format!(r#"{{"node_id":"s","op":"fixed_source","inputs":[],"params":{{"row_count":4,{columns}}}}}"#),
        format!(r#"{{"node_id":"x","op":"{op}","inputs":["s"],"params":{params}}}"#),
    ];
    let trace = run(rig, &rig.plan(&nodes), None, false).trace.unwrap();
    let last = trace.nodes.iter().find(|record| record.node == 1).unwrap();
    assert_eq!(last.rows_in, if params.contains("\"s\"") { 8 } else { 4 }, "{op}");
    last.noted_rows().collect()
}

#[test]
fn a_trace_counts_what_became_of_rows() {
    Rig::on(EVERY, 2, |rig| {
        for (op, params, counts) in [
            ("dedup", r#"{"by":["country"]}"#, vec![("dropped", 2), ("lacking", 1)]),
            ("cap", r#"{"by":"country","max":2}"#, vec![("dropped", 1), ("lacking", 1)]),
            ("diversify", r#"{"rules":[{"by":"country","gap":1}]}"#, vec![("relaxed", 1), ("lacking", 1)]),
            ("normalize", r#"{"key":"score","out_key":"quality","how":"minmax"}"#, vec![("lacking", 2)]),
            ("damp", r#"{"by":"country","score":"score","factor":0.5,"out_key":"quality"}"#, vec![("lacking", 2)]),
            ("take", r#"{"count":3}"#, vec![("dropped", 1)]),
            ("mmr", r#"{"score":"score","vector":"example_vector","k":2,"lambda":1}"#, vec![("lacking", 2)]),
            ("dpp", r#"{"score":"score","vector":"example_vector","k":2,"alpha":1}"#, vec![("lacking", 2)]),
            ("explore", r#"{"score":"score","how":"softmax","tau":1,"k":2}"#, vec![("lacking", 2)]),
            ("sample", r#"{"count":3}"#, vec![("dropped", 1)]),
            ("rank", r#"{"rank_key":"likes","by":"country"}"#, vec![("lacking", 1)]),
            ("group", r#"{"by":["country"],"aggregate":{"likes":["count"]}}"#, vec![("dropped", 2), ("lacking", 1)]),
            ("group", r#"{"by":["country"],"aggregate":{"likes":["count"]},"as":"columns"}"#, vec![("lacking", 1)]),
            ("fuse", r#"{"how":"max","score":"score","out_key":"quality"}"#, vec![("lacking", 2)]),
            ("merge", "{}", vec![]),
            ("exclude", r#"{"list":{"param":"hidden_ids"},"by":["parent_id"]}"#, vec![("lacking", 2)]),
            ("exclude", r#"{"rows":"s","by":["parent_id"]}"#, vec![("dropped", 1), ("lacking", 2)]),
            (
                "only",
                r#"{"endpoint":"redis_default","key":"none","from":"set","by":["parent_id"]}"#,
                vec![("dropped", 4), ("lacking", 2)],
            ),
            ("join", r#"{"rhs":"s","keys":{"score":"quality"},"on":"parent_id"}"#, vec![("lacking", 3)]),
            (
                "join",
                r#"{"rhs":"s","keys":{"score":"quality"},"on":"parent_id","how":"inner"}"#,
                vec![("dropped", 3), ("lacking", 3)],
            ),
            ("only", r#"{"list":{"param":"hidden_ids"}}"#, vec![("dropped", 4)]),
        ] {
            assert_eq!(counted(rig, op, params), counts, "{op}");
        }
    });
}
