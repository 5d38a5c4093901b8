//! The simulation of fallbacks: a seed makes plans with fallbacks, conditions, lazy nodes, limits and faults; a virtual clock, a virtual
//! pool and a scripted store play several runs of each, one after the other, so that limits are learned.
//!
//! What comes of a run is compared with a model that knows nothing of the engine: given which nodes fell back, which rows must come out,
//! and which nodes may have run. Where no limit can pass, all three schedulers must agree.
//!
//! A seed that fails is printed. To play it again: `RANKD_SEED=<seed> cargo test -p rankd-engine --test weather`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "weather/model.rs"]
mod model;
#[path = "scripted/plan.rs"]
#[expect(dead_code, reason = "the other simulation has plans without predicates")]
mod plan;
#[path = "simulation/pool.rs"]
#[expect(dead_code, reason = "the other simulation looks at more of it")]
mod pool;
#[path = "scripted/quiet.rs"]
mod quiet;
#[path = "scripted/rng.rs"]
mod rng;
#[path = "weather/script.rs"]
mod script;
#[path = "simulation/tasks.rs"]
#[expect(dead_code, reason = "the other simulation looks at more of it")]
mod tasks;

use model::Model;
use pool::{OfRun, VirtualPool};
use rankd_column::Value;
use rankd_engine::clock;
use rankd_engine::deadline::Limits;
use rankd_engine::loop_context::LoopContext;
use rankd_engine::pool::Pool;
use rankd_engine::run::{self, Cancel};
use rankd_engine::sequential::Sequential;
use rankd_engine::stats::Stats;
use rankd_engine::store::{Open, Stores};
use rankd_engine::thread_pools::{self, IoPool};
use rankd_engine::{Linked, Outcome, Request};
use script::Script;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

fn request(number: i64, plan: &Linked, is_strict: bool) -> Arc<Request> {
    let (params, registry) = (vec![Value::Int(number)], Some(plan.registry()));
    let request = Request { user_id: number.into(), params, registry, trace: true, ..Request::default() };
    Arc::new(Request { strict: is_strict, ..request })
}

/// Plays the runs of a script on one event loop in virtual time.
fn play(script: &Script) -> Vec<Option<Outcome>> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build_local(Default::default());
    let outcomes = runtime.unwrap().block_on(Box::pin(async {
        let costs_ms = script.runs.iter().map(|run| run.costs_ms.clone()).collect();
        let pool = Arc::new(VirtualPool::new(script.workers, costs_ms));
        let endpoints: [Arc<dyn Open>; 1] = [Arc::new(tasks::ScriptedStore)];
        let stats = Arc::new(Stats::default());
        let context = Rc::new(LoopContext::new(Stores::open(&endpoints), pool.clone(), stats, script.policy));
        let mut outcomes = Vec::new();
        for (number, of_run) in script.runs.iter().enumerate() {
            let (plan, context) = (script.linked.clone(), context.clone());
            let request = request(number as i64, &plan, of_run.strict);
            let limits = Limits::from_start(clock::now(), of_run.deadline, of_run.node_timeout);
            let cancel = Arc::new(Cancel::default());
            let inner = Box::pin(async move { Box::pin(run::run(plan, request, context, limits, cancel)).await });
            // Where nothing can happen any more, the clock runs on to this.
            let day = Duration::from_secs(24 * 3600);
            outcomes.push(tokio::time::timeout(day, OfRun { run: number, inner }).await.ok());
        }
        pool.drain().await;
        outcomes
    }));
    tasks::take_witness();
    outcomes
}

/// How often each thing happened, so that a test which tries nothing is seen.
type Counts = BTreeMap<String, usize>;

struct Others {
    sequential: Sequential,
    cpu: Pool,
    io: IoPool,
    stats: Arc<Stats>,
}

impl Others {
    fn new() -> Others {
        let endpoints: [Arc<dyn Open>; 1] = [Arc::new(tasks::ScriptedStore)];
        let stats = Arc::<Stats>::default();
        let sequential = Sequential::new(&endpoints, stats.clone()).unwrap();
        Others { sequential, cpu: Pool::start(2).unwrap(), io: IoPool::start(&endpoints).unwrap(), stats }
    }

    /// Where no limit can pass, what strikes a node does not depend on when it runs.
    fn agree(&self, script: &Script, number: usize, outcome: &Outcome) -> Result<(), String> {
        let Some(plan) = &script.at_once else { return Ok(()) };
        let request = request(number as i64, plan, script.runs[number].strict);
        let in_turn = self.sequential.run(plan, &request, Limits::default());
        let on_pools = thread_pools::run(plan, &request, Limits::default(), &self.cpu, &self.io, &self.stats);
        let tell = |outcome: &Outcome| {
            let mut nodes: Vec<u32> = outcome.degraded.iter().map(|degraded| degraded.node).collect();
            nodes.sort_unstable();
            // Which of several mistakes is met first depends on time.
            outcome.result.as_ref().map(|rows| (model::cells(rows), nodes)).map_err(|_| ())
        };
        let all = [tell(outcome), tell(&in_turn), tell(&on_pools)];
        match all[0] == all[1] && all[0] == all[2] {
            true => Ok(()),
            false => {
                Err(format!("the schedulers disagree:\nasync {:?}\nin turn {:?}\npools {:?}", all[0], all[1], all[2]))
            }
        }
    }
}

fn play_all(seeds: std::ops::Range<u64>) {
    quiet::scripted_panics();
    let (tasks, others) = (plan::Tasks::new(&tasks::DEFINITIONS), Others::new());
    let asked: Option<u64> = std::env::var_os("RANKD_SEED").map(|seed| seed.to_string_lossy().parse().unwrap());
    let seeds = asked.map_or(seeds, |seed| seed..seed + 1);
    let mut counts = Counts::new();
    for seed in seeds.clone() {
        let script = Script::new(&tasks, seed);
        for (number, outcome) in play(&script).iter().enumerate() {
            let Some(outcome) = outcome else { panic!("seed {seed}: run {number} never answered\n{script:#?}") };
            let model = Model::new(&script, number, outcome);
            let checked = model.check(&mut counts).and_then(|()| others.agree(&script, number, outcome));
            if let Err(why) = checked {
                let again = format!("RANKD_SEED={seed} cargo test -p rankd-engine --test weather");
                panic!("seed {seed}, run {number}: {why}\n{script:#?}\n{outcome:#?}\nagain: {again}");
            }
        }
    }
    let wanted = [
        "rows",
        "degraded upstream",
        "degraded timeout",
        "degraded no_time",
        "E301",
        "cut at a learned limit",
        "E401",
        "E402",
        "E504",
        "E901",
        "fallback none",
        "fallback input",
        "fallback node",
        "lazy woken",
        "lazy asleep",
        "skipped",
        "not run for a skipped node",
        "fallback failed",
        "nothing left",
        "strict",
        "none asked",
        "some asked",
        "all asked",
        "reserve struck",
        "short",
    ];
    for what in wanted {
        let (count, enough) = (counts.get(what).copied().unwrap_or(0), (seeds.end - seeds.start) as usize / 400);
        assert!(asked.is_some() || count >= enough.max(1), "{what:?} came {count} times, too few to tell: {counts:?}");
    }
}

#[test]
fn what_stands_in_is_what_the_plan_says() {
    play_all(0..10_000);
}

#[test]
fn what_stands_in_is_what_the_plan_says_in_other_plans() {
    play_all(1_000_000..1_010_000);
}
