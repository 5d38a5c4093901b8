//! What runs on the loop and in one job: how far, how deep, and that time is noticed there, too. Real threads and a real clock, so
//! limits on time are coarse.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "scripted/plan.rs"]
mod plan;
#[path = "turns/tasks.rs"]
mod tasks;

use rankd_engine::clock;
use rankd_engine::deadline::Limits;
use rankd_engine::loop_context::LoopContext;
use rankd_engine::pool::Pool;
use rankd_engine::run;
use rankd_engine::store::Stores;
use rankd_engine::trace::Where;
use rankd_engine::{Engine, ErrorKind, Linked, Outcome, Policy, Request, Settings};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Builder;

/// A chain of nodes with this op, after a first one.
fn chain(op: &str, nodes: usize) -> Arc<Linked> {
    let tasks = plan::Tasks::new(&tasks::DEFINITIONS);
    let node = |at: usize| match at {
        0 => r#"{"node_id":"n0","op":"first"}"#.to_owned(),
        at => format!(r#"{{"node_id":"n{at}","op":"{op}","inputs":["n{}"]}}"#, at - 1),
    };
    let nodes: Vec<String> = (0..nodes).map(node).collect();
    tasks.link(&nodes, &[format!("n{}", nodes.len() - 1)])
}

fn engine(policy: Policy) -> Engine {
    Engine::start(Settings { cpu_threads: 2, policy, ..Settings::default() }, Vec::new()).unwrap()
}

fn traced() -> Request {
    Request { trace: true, ..Request::default() }
}

#[test]
fn ten_thousand_nodes_follow_each_other_on_a_small_stack() {
    let plan = chain("pass", 10_000);
    let on_a_small_stack = move || {
        let pool = Arc::new(Pool::start(1).unwrap());
        let context = Rc::new(LoopContext::new(Stores::open(&[]), pool, Arc::default(), Policy::default()));
        let runtime = Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
        runtime.block_on(async {
            let request = Arc::new(traced());
            let outcome = run::run(plan, request, context, Limits::default(), Arc::default()).await;
            let trace = outcome.trace.unwrap();
            assert_eq!(outcome.result.unwrap()[0].len(), 3);
            assert!(trace.nodes.iter().all(|node| node.inlined.is_some() && node.queue_ns().is_none()));
            assert_eq!(trace.nodes.last().and_then(|node| node.inlined).map(|inlined| inlined.depth), Some(10_000));
        });
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(on_a_small_stack);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_depth_that_is_reached_sends_one_node_away_and_begins_anew() {
    let engine = engine(Policy { max_inline_depth: 3, chaining: false, ..Policy::default() });
    let outcome = engine.run(&chain("pass", 9), traced());
    let depths: Vec<Option<u32>> =
        outcome.trace.unwrap().nodes.iter().map(|node| node.inlined.map(|inlined| inlined.depth)).collect();
    let three = [Some(1), Some(2), Some(3), None];
    assert_eq!(depths, [&three[..], &three[..], &[Some(1)]].concat());
}

/// A step may be interrupted between its beginning and telling of it.
const LATE_MAX: usize = 2;

/// Runs a chain of steps of one ms each with a deadline of 20 ms; how many of them began after the deadline.
fn late_starts(policy: Policy) -> (Outcome, usize) {
    tasks::STARTS.lock().unwrap().clear();
    let (engine, plan) = (engine(policy), chain("spin", 300));
    let asked = clock::now();
    let deadline = Duration::from_millis(20);
    let outcome = engine.run(&plan, Request { deadline: Some(deadline), ..traced() });
    assert!(clock::now() - asked < Duration::from_millis(200), "answered long after the deadline");
    engine.stop(Duration::from_secs(5));
    let late = tasks::STARTS.lock().unwrap().iter().filter(|start| **start > asked + deadline).count();
    (outcome, late)
}

#[test]
fn a_deadline_is_noticed_where_it_passes() {
    // On the loop: they say that they are cheap, and are not.
    let (outcome, late) = late_starts(Policy { chaining: false, ..Policy::default() });
    let error = outcome.result.unwrap_err();
    assert_eq!(error.code.kind, ErrorKind::Timeout, "{error}");
    assert!(error.node.is_some() && late <= LATE_MAX, "{late} steps began after the deadline");
    // In one job on the pool.
    let (outcome, late) = late_starts(Policy { inline: false, ..Policy::default() });
    let error = outcome.result.unwrap_err();
    assert_eq!((error.code.kind, error.code.id), (ErrorKind::Timeout, "E301"));
    assert!(late <= LATE_MAX, "{late} steps began after the deadline");
    // The node that is named is the one that it was at, not the head of the job.
    let trace = outcome.trace.unwrap();
    assert!(error.node.unwrap().id != "n1" && trace.nodes.len() > 2, "{} nodes", trace.nodes.len());
}

#[test]
fn a_node_that_becomes_slow_leaves_the_loop_after_a_few_requests() {
    let engine = engine(Policy::default());
    let plan = chain("moody", 3);
    let slow_nodes_place = || {
        let trace = engine.run(&plan, traced()).trace.unwrap();
        trace.nodes.iter().find(|node| node.node == 1).map(|node| node.on)
    };
    for _ in 0..50 {
        slow_nodes_place();
    }
    let before = engine.stats().offloads();
    (0..50).for_each(|_| drop(engine.run(&plan, Request::default())));
    let interrupted = engine.stats().offloads() - before;
    assert!(interrupted < 50, "{interrupted} of 50 requests left the loop while all was cheap");
    tasks::SLOW.store(true, Ordering::Relaxed);
    let places: Vec<Option<Where>> = (0..12).map(|_| slow_nodes_place()).collect();
    let on_the_loop = places.iter().filter(|place| **place == Some(Where::Loop)).count();
    assert!(on_the_loop <= 4, "{places:?}");
    assert!(places[6..].iter().all(|place| matches!(place, Some(Where::Pool(_)))), "{places:?}");
    // And it comes back when it is cheap again.
    tasks::SLOW.store(false, Ordering::Relaxed);
    let back = (0..200).any(|_| slow_nodes_place() == Some(Where::Loop));
    assert!(back, "a node that is cheap again stays away");
}
