//! Tasks that choose by chance: the same seed chooses the same rows, on every scheduler; another seed, request or node chooses others.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

mod rig;

use rankd_engine::seed::Seed;
use rankd_engine::{Linked, Request};
use rig::*;
use std::sync::Arc;

fn plan(rig: &Rig, node: &str, op: &str, params: &str) -> Arc<Linked> {
    rig.plan(&[
        r#"{"node_id":"s","op":"fixed_source","inputs":[],"params":{"row_count":500,"columns":{"score":{"cycle":[1,5,3,4,2]}}}}"#.to_owned(),
        format!(r#"{{"node_id":"{node}","op":"{op}","inputs":["s"],"params":{params}}}"#),
    ])
}

fn run(rig: &Rig, plan: &Arc<Linked>, request_id: &str, seed: Option<Seed>) -> (Vec<i64>, Option<Seed>) {
    let request = Request { request_id: request_id.to_owned(), seed, ..Request::new(&rig.registry) };
    let outcome = rig.engine.run(plan, request);
    (outcome.result.unwrap()[0].ids().collect(), outcome.seed)
}

#[test]
fn the_same_seed_chooses_the_same_rows() {
    let (mut chosen, number) = (Vec::new(), Some(Seed::Int(7)));
    for scheduler in EVERY {
        let rig = Rig::start(*scheduler, 2, Vec::new());
        for (op, params) in [
            ("sample", r#"{"count":50}"#),
            ("explore", r#"{"score":"score","how":"softmax","tau":2,"k":50}"#),
            ("explore", r#"{"score":"score","how":"epsilon","epsilon":0.5,"k":50}"#),
        ] {
            let (x, y) = (plan(&rig, "x", op, params), plan(&rig, "y", op, params));
            let (first, seed) = run(&rig, &x, "a", number.clone());
            assert_eq!(seed, number);
            assert_eq!(run(&rig, &x, "b", Some(Seed::Text("7".into()))), (first.clone(), Some(Seed::Text("7".into()))));
            assert_ne!(run(&rig, &x, "a", Some(Seed::Int(8))).0, first, "another seed");
            assert_ne!(run(&rig, &y, "a", number.clone()).0, first, "another node");
            let (of_request, seed) = run(&rig, &x, "a", None);
            assert_eq!(seed, Some(Seed::of_request("a")));
            assert_eq!(run(&rig, &x, "b", seed).0, of_request, "the seed of an answer gives it again");
            assert_ne!(run(&rig, &x, "b", None).0, of_request, "another request");
            chosen.push((op, params, first, of_request));
        }
    }
    let (one, others) = chosen.split_at(chosen.len() / EVERY.len());
    assert!(others.chunks(one.len()).all(|other| other == one), "every scheduler chooses the same");
}

#[test]
fn a_plan_that_leaves_nothing_to_chance_has_no_seed() {
    Rig::on(EVERY, 2, |rig| {
        let take = plan(rig, "x", "take", r#"{"count":5}"#);
        assert_eq!(run(rig, &take, "a", Some(Seed::Int(7))), ((1..=5).collect(), None));
    });
}
