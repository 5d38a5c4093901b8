//! The simulation: a seed makes plans, latencies, faults and limits; a virtual clock, a virtual pool and a scripted store play
//! them; every invariant of the scheduler is read from the trace, and the rows are those of the sequential scheduler.
//!
//! A seed that fails is printed. To play it again: `RANKD_SEED=<seed> cargo test -p rankd-engine --test simulation`. Once it is
//! understood, it is kept in `KEPT_SEEDS`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

#[path = "simulation/check.rs"]
mod check;
#[path = "scripted/plan.rs"]
mod plan;
#[path = "simulation/play.rs"]
mod play;
#[path = "simulation/pool.rs"]
mod pool;
#[path = "scripted/quiet.rs"]
mod quiet;
#[path = "scripted/rng.rs"]
mod rng;
#[path = "simulation/scene.rs"]
mod scene;
#[path = "simulation/tasks.rs"]
mod tasks;

use rankd_engine::deadline::Limits;
use rankd_engine::sequential::Sequential;
use rankd_engine::store::Open;
use scene::{Scene, Shape, WORKERS_UNBOUNDED};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Seeds that once found something. They are played in every shape, and after a change to the generator are as good as any other.
const KEPT_SEEDS: &[u64] = &[
    // A read that is dropped before its end and panics took its run with it, and two of them the process.
    21, 100_004, 200_013,
];

/// How often each verdict came: a code, or a word where there is none.
type Verdicts = BTreeMap<&'static str, usize>;

/// Plays scenes of one shape until one breaks an invariant.
fn play_all(shape: impl Fn(u64) -> Shape, runs_max: usize, seeds: Range<u64>) {
    quiet::scripted_panics();
    let tasks = plan::Tasks::new(&tasks::DEFINITIONS);
    let endpoints: [Arc<dyn Open>; 1] = [Arc::new(tasks::ScriptedStore)];
    let sequential = Sequential::new(&endpoints, Arc::default()).unwrap();
    let asked: Option<u64> = std::env::var_os("RANKD_SEED").map(|seed| seed.to_string_lossy().parse().unwrap());
    let seeds: Vec<u64> = match asked {
        Some(seed) => vec![seed],
        None => KEPT_SEEDS.iter().copied().chain(seeds).collect(),
    };
    let mut verdicts = Verdicts::new();
    for &seed in &seeds {
        let scene = Scene::new(shape(seed), runs_max, &tasks, seed);
        if let Err(why) = play_one(&scene, &sequential, &mut verdicts) {
            panic!("seed {seed}: {why}\nagain: RANKD_SEED={seed} cargo test -p rankd-engine --test simulation");
        }
    }
    for verdict in ["rows", "dropped", "E301", "E302", "E303", "E401", "E504", "E701", "E901"] {
        let (count, enough) = (verdicts.get(verdict).copied().unwrap_or(0), seeds.len() / 200);
        assert!(asked.is_some() || count >= enough, "{verdict} came {count} times, too few to tell: {verdicts:?}");
    }
}

fn play_one(scene: &Scene, sequential: &Sequential, verdicts: &mut Verdicts) -> Result<(), String> {
    let rehearse = |plan: &scene::PlanScript| {
        let request = Arc::new(play::request(tasks::REHEARSAL, &plan.untimed));
        let rows = sequential.run(&plan.untimed, &request, Limits::default()).result;
        rows.map(|rows| check::cells(&rows)).map_err(|error| error.to_string())
    };
    let expected = scene.plans.iter().map(rehearse).collect::<Result<Vec<String>, String>>()?;
    // The schedulers share what hands rows from node to node, so that is looked at from outside, too.
    for (plan, expected) in scene.plans.iter().zip(&expected) {
        let scripted = check::cells(&plan.rows());
        if scripted != *expected {
            return Err(format!("in sequence:\n{expected}\nby the script:\n{scripted}"));
        }
    }
    let together = play::play(scene, None);
    check::scene(scene, &together, &expected)?;
    for outcome in &together.outcomes {
        let verdict = match outcome.as_ref().map(|outcome| &outcome.result) {
            Some(Ok(_)) => "rows",
            Some(Err(error)) => error.code.id,
            None => "dropped",
        };
        *verdicts.entry(verdict).or_default() += 1;
    }
    // Where costs are learned, a run goes another way than the one before it.
    if scene.workers == WORKERS_UNBOUNDED && scene.runs.len() > 1 && !scene.policy.inline {
        for number in 0..scene.runs.len() {
            check::alone(scene, &together, &play::play(scene, Some(number)), number)?;
        }
    }
    Ok(())
}

#[test]
fn any_plan_keeps_the_invariants() {
    play_all(|_| Shape::Any(60), 1, 0..10_000);
}

#[test]
fn runs_on_one_loop_do_not_touch_each_other() {
    play_all(|_| Shape::Any(40), 6, 100_000..105_000);
}

#[test]
fn wide_deep_and_large_plans_keep_the_invariants() {
    let shapes = [Shape::FanOut(1_000), Shape::Layered(500), Shape::Chain(400)];
    play_all(|seed| shapes[seed as usize % 3], 2, 200_000..200_300);
}

#[test]
fn a_result_that_nobody_came_for_is_late() {
    let tasks = plan::Tasks::new(&tasks::DEFINITIONS);
    // The job delivers in the moment in which the run is dropped, between the drop being asked for and being done.
    let played = play::play(&Scene::dropped_as_its_job_ends(&tasks), None);
    assert!(played.outcomes[0].is_none());
    assert_eq!(played.seen.last().map(|seen| seen.what), Some(tasks::What::Done));
    assert_eq!(played.stats.late_completions(), 1);
}
