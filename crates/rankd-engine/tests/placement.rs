//! Where a computation near the threshold ends up: at the same place, wherever it began. Real threads; what a step costs is what its
//! thread works, so it does not matter what else the machine does.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "scripted/plan.rs"]
mod plan;

use rankd_column::{Batch, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, Maker};
use rankd_engine::{Engine, Linked, Request, Settings};
use rankd_plan::signature::*;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;

fn worked_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Works for so many microseconds on a loop, and for as many more as a cold thread takes on the pool.
struct Work {
    on_loop_us: i64,
    on_pool_us: i64,
}

impl Compute for Work {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let began = worked_ns();
        let on_loop = std::thread::current().name().is_some_and(|name| name.starts_with("rankd-loop"));
        let us = if on_loop { self.on_loop_us } else { self.on_pool_us };
        while worked_ns() - began < us * 1000 {}
        let empty = inputs.iter().next().is_none();
        Ok(if empty { RowSet::new(Batch::new(vec![1, 2, 3])) } else { inputs.take(0) })
    }
}

const fn contract(inputs: Inputs, rows: RowEffect, cost: Cost) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: &[], cost }
}

const fn about(fixed_ns: f32) -> Cost {
    Cost::About { fixed_ns, per_row_ns: 0.0 }
}

static FIRST: Contract = contract(Inputs::None, RowEffect::Source, Cost::Trivial);
static SAID_CHEAP: Contract = contract(Inputs::One, RowEffect::Same, about(500.0));
static SAID_DEAR: Contract = contract(Inputs::One, RowEffect::Same, about(20_000.0));
static SAID_NOTHING: Contract = contract(Inputs::One, RowEffect::Same, Cost::Unknown);

macro_rules! definition {
    ($op:literal, $contract:expr, $on_loop_us:literal, $on_pool_us:literal) => {
        Definition {
            signature: Signature { op: $op, summary: "", contract: $contract },
            maker: Maker::Compute(|_| Arc::new(Work { on_loop_us: $on_loop_us, on_pool_us: $on_pool_us })),
        }
    };
}

static DEFINITIONS: [Definition; 7] = [
    definition!("first", &FIRST, 0, 0),
    definition!("light_said_cheap", &SAID_CHEAP, 6, 14),
    definition!("light_said_dear", &SAID_DEAR, 6, 14),
    definition!("light_said_nothing", &SAID_NOTHING, 6, 14),
    definition!("heavy_said_cheap", &SAID_CHEAP, 16, 24),
    definition!("heavy_said_dear", &SAID_DEAR, 16, 24),
    definition!("heavy_said_nothing", &SAID_NOTHING, 16, 24),
];

fn after_first(op: &str) -> Arc<Linked> {
    let nodes =
        [r#"{"node_id":"n0","op":"first"}"#.to_owned(), format!(r#"{{"node_id":"n1","op":"{op}","inputs":["n0"]}}"#)];
    plan::Tasks::new(&DEFINITIONS).link(&nodes, &["n1".to_owned()])
}

/// Trips to the pool for each request, once the engine has had time to learn.
fn trips(op: &str) -> f64 {
    let engine = Engine::start(Settings::default(), Vec::new()).unwrap();
    let plan = after_first(op);
    let run = |count: usize| {
        let before = engine.stats().offloads();
        (0..count).for_each(|_| drop(engine.run(&plan, Request::default()).result.unwrap()));
        (engine.stats().offloads() - before) as f64 / count as f64
    };
    run(640);
    run(320)
}

#[test]
fn a_step_near_the_threshold_ends_at_the_same_place_wherever_it_began() {
    for said in ["cheap", "dear", "nothing"] {
        let light = trips(&format!("light_said_{said}"));
        assert!(light < 0.1, "6 µs on the loop, said to be {said}: {light} trips a request");
        let heavy = trips(&format!("heavy_said_{said}"));
        assert!(heavy > 0.9, "16 µs on the loop, said to be {said}: {heavy} trips a request");
    }
}
