//! What a scheduler promises, with real tasks, real threads and the real clock: branches side by side, limits that hold,
//! failures that end a run and nothing else, and late work that is counted.
//!
//! Each promise is kept by all three schedulers unless its test says otherwise. A node that is to be cut off would work for
//! `LONG_MS`; an answer within `PROMPT` shows that nobody waited for it. What happened in which order is read from the trace.

mod rig;

use rankd_column::{Key, Value};
use rankd_engine::trace::{End, Where};
use rankd_engine::{Engine, ErrorKind, Policy, Request, Scheduler, codes};
use rig::*;

fn three_branches(rig: &Rig) -> std::sync::Arc<rankd_engine::Linked> {
    rig.plan(&[
        source("s", 4),
        sleep("sleep_a", "s", 100),
        sleep("sleep_b", "s", 100),
        sleep("sleep_c", "s", 100),
        vm("vm_a", "sleep_a"),
        vm("vm_b", "sleep_b"),
        vm("vm_c", "sleep_c"),
        concat("ab", "vm_a", "vm_b"),
        concat("abc", "ab", "vm_c"),
    ])
}

const SLEEPS: &[&str] = &["sleep_a", "sleep_b", "sleep_c"];

#[test]
fn three_branch_dag_with_concurrent_sleep_and_vm() {
    Rig::on(EVERY, 2, |rig| {
        let seen = rig.run(&three_branches(rig), without_limits());
        assert_eq!(seen.ids(), [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(seen.value(score(rig), 11), Value::Float(2.0));
        assert_eq!(seen.trace.nodes.len(), 9);
        seen.in_dependency_order();
        // The reference scheduler is the one that does one thing after the other.
        assert_eq!(seen.overlap(SLEEPS), !rig.is(Scheduler::Sequential), "the branches wait at the same time");
    });
}

fn score(rig: &Rig) -> Key {
    Key(rig.registry.keys.named("score").expect("there is a key score"))
}

#[test]
fn fault_injection_has_no_deadlock() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[
            source("s", 3),
            failing_sleep("fails", "s", 20),
            sleep("waits", "s", 60),
            busy("works", "s", 60),
            concat("left", "fails", "waits"),
            concat("all", "left", "works"),
        ]);
        let healthy = three_branches(rig);
        for _ in 0..5 {
            let seen = rig.run(&plan, without_limits());
            let error = seen.error();
            assert_eq!((error.code.kind, error.code.id, seen.blamed()), (ErrorKind::Task, "E504", "fails"));
            assert_eq!(seen.ended("fails"), End::Failed);
            assert!(seen.record("left").is_none() && seen.record("all").is_none(), "nothing starts after a failure");
        }
        assert_eq!(rig.run(&healthy, without_limits()).ids().len(), 12, "the next request is none the worse for it");
        assert_eq!(rig.engine.stats().panics(), 0);
    });
}

/// Only the async scheduler: `pools` sees what is in flight to its end, `sequential` has nothing in flight beside the failure.
#[test]
fn a_failure_is_answered_without_waiting_for_the_other_branches() {
    Rig::on(&[Scheduler::Async], 1, |rig| {
        let plan = rig.plan(&[
            source("s", 1),
            failing_sleep("fails", "s", 20),
            sleep("waits", "s", LONG_MS),
            busy("works", "s", LONG_MS),
            concat("left", "fails", "waits"),
            concat("all", "left", "works"),
        ]);
        let seen = rig.run(&plan, without_limits());
        assert_eq!(seen.error().code.id, "E504");
        seen.answered_promptly();
        assert_eq!((seen.ended("waits"), seen.ended("works")), (End::Abandoned, End::Abandoned));
        rig.drain();
        assert_eq!(rig.late(), 1, "the computation came too late, the read was dropped");
    });
}

#[test]
fn request_deadline_exceeded() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        let seen = rig.run(&plan, deadline(50));
        seen.timed_out("E301", "request deadline of 50 ms exceeded");
        assert_eq!(seen.blamed(), "b");
        assert_ne!(seen.ended("b"), End::Done);
    });
}

#[test]
fn node_timeout_on_cpu_work() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        let seen = rig.run(&plan, node_timeout(50));
        seen.timed_out("E302", "node timeout of 50 ms exceeded");
        assert_eq!(seen.blamed(), "b");
    });
}

#[test]
fn a_node_may_have_a_tighter_timeout_of_its_own() {
    Rig::on(EVERY, 2, |rig| {
        let own = busy("b", "s", LONG_MS).replacen(r#""inputs""#, r#""timeout_ms":30,"inputs""#, 1);
        let plan = rig.plan(&[source("s", 1), own]);
        rig.run(&plan, node_timeout(400)).timed_out("E302", "node timeout of 30 ms exceeded");
    });
}

#[test]
fn deadline_already_expired() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        let seen = rig.run(&plan, deadline(0));
        seen.timed_out("E303", "deadline before start: the request's 0 ms had passed");
        assert_eq!(seen.blamed(), "s");
        assert!(seen.trace.nodes.is_empty(), "nothing was started");
        assert_eq!(rig.engine.stats().offloads(), 0);
    });
}

#[test]
fn very_short_deadline_1ms() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        let seen = rig.run(&plan, deadline(1));
        // A crowded machine may take the millisecond before the first node.
        assert!(matches!(seen.error().code.id, "E301" | "E303"), "{}", seen.error());
        assert_eq!(seen.error().code.kind, ErrorKind::Timeout);
        seen.answered_promptly();
    });
}

#[test]
fn generous_deadline_succeeds() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 3), busy("b", "s", 10)]);
        let seen = rig.run(&plan, deadline(60_000));
        assert_eq!(seen.ids(), [1, 2, 3]);
        assert_eq!(rig.late(), 0);
    });
}

#[test]
fn very_short_node_timeout_1ms() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        let seen = rig.run(&plan, node_timeout(1));
        seen.timed_out("E302", "node timeout of 1 ms exceeded");
    });
}

#[test]
fn generous_node_timeout_succeeds() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 3), busy("b", "s", 10), sleep("z", "b", 10)]);
        let seen = rig.run(&plan, node_timeout(60_000));
        assert_eq!(seen.ids(), [1, 2, 3]);
        assert_eq!(rig.late(), 0);
    });
}

#[test]
fn a_node_timeout_is_for_each_node_and_not_for_the_run() {
    Rig::on(EVERY, 2, |rig| {
        let line = ["s", "a", "b", "c", "d", "e"];
        let sleeps = line.windows(2).map(|pair| sleep(pair[1], pair[0], 100));
        let plan = rig.plan(&std::iter::once(source("s", 1)).chain(sleeps).collect::<Vec<_>>());
        let seen = rig.run(&plan, node_timeout(450));
        assert_eq!(seen.ids(), [1]);
        assert!(seen.trace.total_ns > 450_000_000, "the run took longer than any node may");
    });
}

#[test]
fn both_deadline_and_node_timeout_set() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        let node_first = Allowed { deadline_ms: Some(1000), node_timeout_ms: Some(30) };
        rig.run(&plan, node_first).timed_out("E302", "node timeout of 30 ms exceeded");
        let request_first = Allowed { deadline_ms: Some(60), node_timeout_ms: Some(1000) };
        rig.run(&plan, request_first).timed_out("E301", "request deadline of 60 ms exceeded");
    });
}

#[test]
fn multi_stage_pipeline_timeout() {
    Rig::on(EVERY, 2, |rig| {
        let plan =
            rig.plan(&[source("s", 1), busy("first", "s", 1), busy("second", "first", LONG_MS), vm("v", "second")]);
        let seen = rig.run(&plan, deadline(ROOMY_MS));
        seen.timed_out("E301", &format!("request deadline of {ROOMY_MS} ms exceeded"));
        assert_eq!((seen.blamed(), seen.ended("first")), ("second", End::Done));
        assert!(seen.before("first", "second"));
        assert!(seen.record("v").is_none(), "nothing starts after the deadline");
    });
}

#[test]
fn multi_stage_pipeline_succeeds() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 2), busy("first", "s", 10), busy("second", "first", 10)]);
        let seen = rig.run(&plan, deadline(60_000));
        assert_eq!(seen.ids(), [1, 2]);
        seen.in_dependency_order();
    });
}

#[test]
fn fixed_source_only_with_no_cpu_offload() {
    Rig::on(EVERY, 2, |rig| {
        let seen = rig.run(&rig.plan(&[source("s", 5)]), without_limits());
        assert_eq!(seen.ids(), [1, 2, 3, 4, 5]);
        assert_eq!(rig.engine.stats().offloads(), 0);
        assert!(!matches!(seen.of("s").on, Where::Pool(_)), "{:?}", seen.of("s").on);
    });
}

#[test]
fn repeated_timeout_operations() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        for _ in 0..5 {
            rig.run(&plan, node_timeout(20)).timed_out("E302", "node timeout of 20 ms exceeded");
        }
        cut_off(rig, 5);
    });
}

/// Checks how many cut-off computations were counted as late: all of them, except where the caller's own thread does them.
fn cut_off(rig: &Rig, computations: u64) {
    rig.drain();
    match rig.engine.settings().scheduler {
        Scheduler::Async | Scheduler::Pools => assert_eq!(rig.late(), computations),
        Scheduler::Sequential => assert_eq!(rig.late(), 0),
    }
}

#[test]
fn repeated_success_operations() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 3), sleep("z", "s", 2), busy("b", "z", 2), vm("v", "b")]);
        for _ in 0..10 {
            assert_eq!(rig.run(&plan, deadline(60_000)).ids(), [1, 2, 3]);
        }
        assert_eq!(rig.late(), 0);
    });
}

#[test]
fn alternating_success_and_timeout() {
    Rig::on(EVERY, 1, |rig| {
        let quick = rig.plan(&[source("s", 2), busy("b", "s", 2)]);
        let long = rig.plan(&[source("s", 2), busy("b", "s", LONG_MS)]);
        for round in 0..6 {
            if round % 2 == 0 {
                assert_eq!(rig.run(&quick, deadline(60_000)).ids(), [1, 2]);
            } else {
                rig.run(&long, deadline(60)).timed_out("E301", "request deadline of 60 ms exceeded");
            }
        }
        cut_off(rig, 3);
    });
}

#[test]
fn sleep_respects_the_request_deadline() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.plan(&[source("s", 1), sleep("z", "s", LONG_MS)]);
        let seen = rig.run(&plan, deadline(50));
        seen.timed_out("E301", "request deadline of 50 ms exceeded");
        assert_eq!(seen.blamed(), "z");
        rig.drain();
        assert_eq!(rig.late(), 0, "what waits is dropped and never comes back");
    });
}

#[test]
fn sleep_respects_the_node_timeout() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.plan(&[source("s", 1), sleep("z", "s", LONG_MS)]);
        let seen = rig.run(&plan, node_timeout(50));
        seen.timed_out("E302", "node timeout of 50 ms exceeded");
        assert_eq!(seen.blamed(), "z");
        rig.drain();
        assert_eq!(rig.late(), 0, "what waits is dropped and never comes back");
    });
}

/// Not for `sequential`, where the caller's thread does the work itself and nothing outlives the answer, and not for `pools`,
/// which tells the job to stop as well but may miss its return (see `cut_off`).
#[test]
fn late_completion_increments_the_counter() {
    Rig::on(&[Scheduler::Async, Scheduler::Pools], 1, |rig| {
        let plan = rig.plan(&[source("s", 1), busy("b", "s", LONG_MS)]);
        assert_eq!((rig.late(), rig.engine.stats().wasted_ns()), (0, 0));
        let seen = rig.run(&plan, deadline(60));
        seen.timed_out("E301", "request deadline of 60 ms exceeded");
        assert_eq!(seen.ended("b"), End::Abandoned, "it was at work when the answer went out");
        rig.drain();
        assert_eq!(rig.late(), 1);
        let wasted_ms = rig.engine.stats().wasted_ns() / 1_000_000;
        assert!((1..LONG_MS).contains(&wasted_ms), "it was told to stop, and its {wasted_ms} ms are counted as wasted");
    });
}

#[test]
fn mixed_async_and_cpu_pipeline_timeout_in_the_async_phase() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.plan(&[source("s", 1), sleep("waits", "s", LONG_MS), busy("works", "waits", 1)]);
        let seen = rig.run(&plan, deadline(50));
        seen.timed_out("E301", "request deadline of 50 ms exceeded");
        assert_eq!(seen.blamed(), "waits");
        assert!(seen.record("works").is_none(), "the computation was never started");
    });
}

#[test]
fn mixed_async_and_cpu_pipeline_timeout_in_the_cpu_phase() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.plan(&[source("s", 1), sleep("waits", "s", 5), busy("works", "waits", LONG_MS)]);
        let seen = rig.run(&plan, deadline(ROOMY_MS));
        seen.timed_out("E301", &format!("request deadline of {ROOMY_MS} ms exceeded"));
        assert_eq!((seen.blamed(), seen.ended("waits")), ("works", End::Done));
        cut_off(rig, 1);
    });
}

#[test]
fn mixed_async_and_cpu_pipeline_succeeds() {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[source("s", 2), sleep("waits", "s", 10), busy("works", "waits", 10), vm("v", "works")]);
        let seen = rig.run(&plan, deadline(60_000));
        assert_eq!(seen.ids(), [1, 2]);
        seen.in_dependency_order();
        assert_eq!(rig.late(), 0);
    });
}

/// On `sequential` the two are not parallel: the second is never started.
#[test]
fn parallel_async_tasks_both_respect_the_deadline() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.plan(&[
            source("s", 1),
            sleep("left", "s", LONG_MS),
            sleep("right", "s", LONG_MS),
            concat("both", "left", "right"),
        ]);
        let seen = rig.run(&plan, deadline(50));
        seen.timed_out("E301", "request deadline of 50 ms exceeded");
        if rig.is(Scheduler::Sequential) {
            assert!(seen.record("right").is_none());
        } else {
            assert_eq!((seen.ended("left"), seen.ended("right")), (End::Abandoned, End::Abandoned));
            assert!(seen.overlap(&["left", "right"]), "both were under way");
        }
        assert!(seen.record("both").is_none());
        rig.drain();
        assert_eq!(rig.late(), 0);
    });
}

#[test]
fn four_nodes_on_a_hundred_rows_take_no_trip_or_one_or_four() {
    let plan = |rig: &Rig| {
        let node = |id: &str, op: &str, input: &str, params: &str| {
            format!(r#"{{"node_id":"{id}","op":"{op}","inputs":["{input}"],"params":{{{params}}}}}"#)
        };
        let pred = r#"{"op":"cmp","cmp":">=","a":{"op":"key_ref","key":"score"},"b":{"op":"const_number","value":10}}"#;
        let half = r#"{"op":"mul","a":{"op":"key_ref","key":"id"},"b":{"op":"const_number","value":0.5}}"#;
        let nodes = [
            source("a", 100),
            vm("b", "a"),
            node("c", "filter", "b", r#""pred":"p""#),
            node("d", "sort", "c", r#""key":"score","order":"desc""#),
            node("e", "take", "d", r#""count":10"#),
        ];
        rig.link(&format!(
            r#"{{"schema_version":1,"plan_name":"four","nodes":[{}],"outputs":["e"],"expr_table":{{"half_id":{half}}},"pred_table":{{"p":{pred}}}}}"#,
            nodes.join(",")
        ))
    };
    let run = |inline, chaining| {
        let rig = Rig::with(Policy { inline, chaining, ..Policy::default() });
        let seen = rig.run(&plan(&rig), without_limits());
        let queued = seen.trace.nodes.iter().filter(|record| record.queue_ns().is_some()).count();
        assert_eq!(queued as u64, rig.engine.stats().offloads(), "each trip is in the trace");
        let rows: Vec<(i64, Value)> =
            seen.ids().into_iter().zip((0..10).map(|at| seen.value(score(&rig), at))).collect();
        (rows, queued)
    };
    let (rows, trips) = run(true, true);
    assert_eq!((rows.len(), rows[0].0, trips), (10, 100, 0));
    assert_eq!(run(false, true), (rows.clone(), 1));
    assert_eq!(run(true, false), (rows.clone(), 0));
    assert_eq!(run(false, false), (rows, 4));
}

#[test]
fn an_engine_with_other_endpoints_than_the_plan_s_is_refused() {
    Rig::on(EVERY, 1, |rig| {
        let plan = rig.link(
            r#"{"schema_version":1,"plan_name":"intent","nodes":[{"node_id":"v","op":"viewer","params":{"endpoint":"redis_default"}}],"outputs":["v"]}"#,
        );
        let other = Engine::start(rig.engine.settings().clone(), Vec::new()).expect("threads can be started");
        let code =
            |engine: &Engine| engine.run(&plan, Request::new(&rig.registry)).result.err().map(|error| error.code);
        assert_eq!(code(&rig.engine), None);
        assert_eq!(code(&other), Some(codes::DIFFERENT_REGISTRY));
    });
}

#[test]
fn a_fallback_that_one_run_took_is_no_business_of_the_next() {
    Rig::on(EVERY, 1, |rig| {
        let struck = sleep("n1", "n0", 200).replace("}}", r#"},"timeout_ms":1,"fallback":"input"}"#);
        let seen = rig.run(&rig.plan(&[source("n0", 3), struck]), without_limits());
        assert_eq!(seen.ids(), [1, 2, 3]);
        // The same node of a plan without fallbacks, on the same loop.
        let plain = rig.plan(&[source("n0", 2), sleep("n1", "n0", 0)]);
        assert_eq!(rig.run(&plain, deadline(LONG_MS)).ids(), [1, 2]);
    });
}
