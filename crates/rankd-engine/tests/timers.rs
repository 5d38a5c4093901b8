//! How exact time is on an event loop. Real threads and a real clock, so what is looked at is the best of many tries: an
//! interruption can spoil most of them, and a timer that ticks in whole milliseconds never comes near.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "scripted/plan.rs"]
mod plan;

use futures_util::FutureExt;
use rankd_column::{Batch, RowSet};
use rankd_engine::clock::{self, Instant};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, Maker};
use rankd_engine::{Engine, ErrorKind, Linked, Request, Settings};
use rankd_plan::signature::*;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

const TRIES: usize = 50;
/// Timers of the runtime are never less than 0.7 ms late for times as short as those here.
const LATE_MAX: Duration = Duration::from_micros(500);

struct First;

impl Compute for First {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(RowSet::new(Batch::new(vec![1, 2, 3])))
    }
}

struct Doze(Duration);

impl Fetch for Doze {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        cx.sleep(self.0).await;
        Ok(inputs[0].clone())
    }
}

const fn contract(inputs: Inputs, rows: RowEffect, cost: Cost) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: &[], cost }
}

static FIRST: Contract = contract(Inputs::None, RowEffect::Source, Cost::Trivial);
static DOZE: Contract = contract(Inputs::One, RowEffect::Same, Cost::Unknown);

macro_rules! definition {
    ($op:literal, $contract:expr, $maker:path, $task:expr) => {
        Definition {
            signature: Signature { op: $op, summary: "", contract: $contract },
            maker: $maker(|_| Arc::new($task)),
        }
    };
}

static DEFINITIONS: [Definition; 4] = [
    definition!("first", &FIRST, Maker::Compute, First),
    definition!("no_time", &DOZE, Maker::Fetch, Doze(Duration::ZERO)),
    definition!("a_moment", &DOZE, Maker::Fetch, Doze(Duration::from_micros(100))),
    definition!("a_minute", &DOZE, Maker::Fetch, Doze(Duration::from_secs(60))),
];

fn after_first(op: &str, more: &str) -> Arc<Linked> {
    let nodes = [
        r#"{"node_id":"n0","op":"first"}"#.to_owned(),
        format!(r#"{{"node_id":"n1","op":"{op}","inputs":["n0"]{more}}}"#),
    ];
    plan::Tasks::new(&DEFINITIONS).link(&nodes, &["n1".to_owned()])
}

fn engine() -> Engine {
    Engine::start(Settings::default(), Vec::new()).unwrap()
}

/// The least that something was late, of many tries.
fn least_late(mut late: impl FnMut() -> Duration) -> Duration {
    (0..TRIES).map(|_| late()).min().unwrap()
}

#[test]
fn a_sleep_is_as_long_as_it_should_be_and_none_is_none() {
    let engine = engine();
    for (op, time) in [("no_time", Duration::ZERO), ("a_moment", Duration::from_micros(100))] {
        let plan = after_first(op, "");
        let late = least_late(|| {
            let took = engine.run(&plan, Request::default()).took;
            took.checked_sub(time).expect("a sleep is not too short")
        });
        assert!(late < LATE_MAX, "{op} is {late:?} too long");
    }
}

#[test]
fn an_answer_leaves_at_its_deadline() {
    let engine = engine();
    let deadline = Duration::from_micros(300);
    let plan = after_first("a_minute", "");
    let late = least_late(|| {
        let outcome = engine.run(&plan, Request { deadline: Some(deadline), ..Request::default() });
        assert_eq!(outcome.result.unwrap_err().code.kind, ErrorKind::Timeout);
        // The deadline counts from before the run began.
        outcome.took.saturating_sub(deadline)
    });
    assert!(late < LATE_MAX, "the answer left {late:?} late");
}

#[test]
fn a_node_s_own_time_is_as_exact() {
    let engine = engine();
    let plan = after_first("a_minute", r#","timeout_ms":1"#);
    let late = least_late(|| {
        let outcome = engine.run(&plan, Request::default());
        assert_eq!(outcome.result.unwrap_err().code.id, "E302");
        outcome.took.saturating_sub(Duration::from_millis(1))
    });
    assert!(late < LATE_MAX, "the answer left {late:?} late");
}

/// Runs a future on an event loop and gives what it gives.
fn on_a_loop<T: Send + 'static, F: Future<Output = T> + 'static>(make: impl Fn() -> F + Send + Sync + 'static) -> T {
    let engine = engine();
    let (sender, value) = channel();
    engine.on_every_loop(move |_| {
        let (sender, future) = (sender.clone(), make());
        Box::pin(async move {
            // The test waits for it.
            let _ = sender.send(future.await);
        })
    });
    value.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn timers_go_off_in_order_whatever_becomes_of_the_others() {
    let (order, early) = on_a_loop(|| async {
        let began = clock::now();
        let at = move |ms: u64| began + Duration::from_millis(ms);
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel::<(u64, bool)>();
        // The earliest is given up, and those after it still have their time; some wait for the same moment.
        let given_up = clock::timeout_at(at(50), std::future::pending::<()>());
        for ms in [9, 3, 7, 3, 5] {
            let sender = sender.clone();
            tokio::task::spawn_local(async move {
                clock::Timer::new(at(ms)).await;
                let _ = sender.send((ms, clock::now() < at(ms)));
            });
        }
        assert_eq!(clock::timeout_at(at(1), given_up).await, None, "given up after 1 ms");
        drop(sender);
        let mut told = Vec::new();
        while let Some(one) = order.recv().await {
            told.push(one);
        }
        let early = told.iter().filter(|(_, early)| *early).count();
        (told.into_iter().map(|(ms, _)| ms).collect::<Vec<_>>(), early)
    });
    assert_eq!((order, early), (vec![3, 3, 5, 7, 9], 0));
}

#[test]
fn a_timer_that_is_set_anew_waits_for_the_new_moment() {
    let (at, came): (Instant, Instant) = on_a_loop(|| async {
        let mut timer = clock::Timer::new(clock::now() + Duration::from_secs(3600));
        assert!((&mut timer).now_or_never().is_none());
        let at = clock::now() + Duration::from_millis(2);
        timer.set(at);
        (&mut timer).await;
        // Once it has come it stays so.
        (&mut timer).await;
        (at, clock::now())
    });
    assert!(came >= at && came < at + Duration::from_secs(30));
}
