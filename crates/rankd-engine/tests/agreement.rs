//! All three schedulers give the same rows for the same plan and request, byte for byte, and blame the same node.
//!
//! On random plans of tasks that take no time. The threads are real here: loops, CPU pool and IO pool. To run one seed again:
//! `RANKD_SEED=<seed> cargo test -p rankd-engine --test agreement`.
#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "scripted/plan.rs"]
mod plan;
#[path = "scripted/rng.rs"]
mod rng;
#[path = "agreement/tasks.rs"]
mod tasks;

use plan::Tasks;
use rankd_column::{RowSet, Value};
use rankd_engine::{Engine, Linked, Outcome, Policy, Request, Scheduler, Settings};
use rng::Rng;
use std::sync::Arc;
use tasks::{FIRST, NEXT};

const PLANS: u64 = 10_000;
/// How many requests the event loops have at once.
const WAVE: usize = 100;

/// A plan of up to 24 nodes; one in eight has a node that fails, and only one, so that there is one first failure.
fn random_plan(tasks: &Tasks, seed: u64) -> Arc<Linked> {
    let rng = &mut Rng::new(seed);
    let count = 1 + rng.below(24);
    let fails = (count > 1 && rng.percent(12)).then(|| 1 + rng.below(count - 1));
    let sources = [0, 20, 40][rng.below(3)];
    let mut read = vec![false; count];
    let mut nodes = Vec::new();
    for at in 0..count {
        let amount = 1 + rng.below(1000);
        let (op, mut inputs) = match fails == Some(at) {
            true => ("fail", 1),
            false if at == 0 || rng.percent(sources) => (FIRST[rng.below(FIRST.len())], 0),
            false => (NEXT[rng.below(NEXT.len())], 1),
        };
        inputs += usize::from(op == "concat");
        let inputs: Vec<usize> = (0..inputs).map(|_| at - 1 - rng.below(at.min(6))).collect();
        inputs.iter().for_each(|input| read[*input] = true);
        let first: Vec<String> = inputs.iter().take(1).map(|input| format!("\"n{input}\"")).collect();
        let rhs = inputs.get(1).map(|input| format!(r#","rhs":"n{input}""#)).unwrap_or_default();
        let (first, params) = (first.join(","), format!(r#"{{"amount":{amount}{rhs}}}"#));
        nodes.push(format!(r#"{{"node_id":"n{at}","op":"{op}","inputs":[{first}],"params":{params}}}"#));
    }
    let outputs: Vec<String> =
        (0..count).filter(|at| !read[*at] || rng.percent(10)).map(|at| format!("n{at}")).collect();
    tasks.link(&nodes, &outputs)
}

/// Everything that an answer says, as bytes; floats by their bits.
fn bytes(outcome: Outcome) -> Vec<u8> {
    let mut bytes = Vec::new();
    match outcome.result {
        Ok(outputs) => outputs.iter().for_each(|rows| write_rows(rows, &mut bytes)),
        Err(error) => bytes.extend(format!("{error:?}").into_bytes()),
    }
    bytes
}

fn write_rows(rows: &RowSet, bytes: &mut Vec<u8>) {
    bytes.extend(rows.len().to_le_bytes());
    rows.ids().for_each(|id| bytes.extend(id.to_le_bytes()));
    for (key, column) in rows.batch().columns() {
        bytes.extend(format!("{key:?}{}", column.type_of()).into_bytes());
        for at in 0..rows.len() {
            match rows.value(*key, at) {
                Value::Int(value) => bytes.extend(value.to_le_bytes()),
                Value::Float(value) => bytes.extend(value.to_bits().to_le_bytes()),
                other => bytes.extend(format!("{other:?}").into_bytes()),
            }
        }
    }
}

fn start(scheduler: Scheduler, inline: bool, chaining: bool) -> Engine {
    let policy = Policy { inline, chaining, ..Policy::default() };
    let settings = Settings { scheduler, loops: 3, cpu_threads: 2, policy, ..Settings::default() };
    Engine::start(settings, Vec::new()).unwrap()
}

#[test]
fn ten_thousand_random_plans_give_the_same_answers_on_all_schedulers() {
    let tasks = Tasks::new(&tasks::DEFINITIONS);
    let on_loops = start(Scheduler::Async, true, true);
    let others = [
        ("pools", start(Scheduler::Pools, true, true)),
        ("async, chaining only", start(Scheduler::Async, false, true)),
        ("async, inline only", start(Scheduler::Async, true, false)),
        ("async, neither", start(Scheduler::Async, false, false)),
    ];
    let in_sequence = start(Scheduler::Sequential, true, true);
    let asked = std::env::var_os("RANKD_SEED").map(|seed| vec![seed.to_string_lossy().parse().unwrap()]);
    let seeds: Vec<u64> = asked.unwrap_or_else(|| (0..PLANS).collect());
    let (mut rows, mut failures) = (0, 0);
    for wave in seeds.chunks(WAVE) {
        let request = |seed: u64| Request { user_id: ((seed % 100) as i64).into(), ..Request::default() };
        let under_way: Vec<_> = wave
            .iter()
            .map(|&seed| {
                let plan = random_plan(&tasks, seed);
                let ticket = on_loops.start_run(&plan, request(seed));
                (seed, plan, ticket)
            })
            .collect();
        for (seed, plan, ticket) in under_way {
            let expected = in_sequence.run(&plan, request(seed));
            match &expected.result {
                Ok(outputs) => rows += outputs.iter().map(RowSet::len).sum::<usize>(),
                Err(_) => failures += 1,
            }
            let expected = bytes(expected);
            // The one of the others changes from plan to plan.
            let (name, other) = &others[seed as usize % others.len()];
            for (name, outcome) in [(*name, other.run(&plan, request(seed))), ("async", ticket.wait())] {
                let told = format!("{:?}", outcome.result);
                let again = format!("again: RANKD_SEED={seed} cargo test -p rankd-engine --test agreement");
                assert!(bytes(outcome) == expected, "seed {seed}: {name} gives something else: {told}\n{again}");
            }
        }
    }
    // Agreeing on nothing would be easy.
    assert!(seeds.len() == 1 || (rows > 100_000 && failures > 500), "{rows} rows and {failures} failures");
}

#[test]
fn each_failure_is_settled_once_on_every_scheduler() {
    let tasks = Tasks::new(&tasks::DEFINITIONS);
    let engines = [
        start(Scheduler::Async, true, true),
        start(Scheduler::Async, false, true),
        start(Scheduler::Async, true, false),
        start(Scheduler::Async, false, false),
        start(Scheduler::Pools, true, true),
        start(Scheduler::Sequential, true, true),
    ];
    let mut failures = 0;
    for seed in 0..400 {
        let plan = random_plan(&tasks, seed);
        for engine in &engines {
            let outcome = engine.run(&plan, Request { trace: true, ..Request::default() });
            let blamed = outcome.result.err().map(|error| error.node.unwrap().id);
            let settled = outcome.trace.unwrap().failures;
            let settled: Vec<&str> = settled.iter().map(|ix| &*plan.node(*ix).id).collect();
            assert_eq!(settled, blamed.as_deref().into_iter().collect::<Vec<_>>(), "seed {seed}");
            failures += settled.len();
        }
    }
    assert!(failures > 100, "{failures} failures");
}
