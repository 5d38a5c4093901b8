//! Plays a scene: one event loop under a clock that moves only when nothing else can, and one virtual pool.

use crate::pool::{JobLog, OfRun, VirtualPool};
use crate::scene::{Interruption, Scene};
use crate::tasks::{ScriptedStore, Seen, take_witness};
use rankd_column::Value;
use rankd_engine::clock::{self, Instant};
use rankd_engine::deadline::Limits;
use rankd_engine::loop_context::LoopContext;
use rankd_engine::run::{self, Cancel};
use rankd_engine::stats::Stats;
use rankd_engine::store::{Open, Stores};
use rankd_engine::{Linked, Outcome, Request};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

/// Longer than any run can take.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Played {
    pub(crate) epoch: Instant,
    /// By run; nothing for one whose future was dropped before it had an outcome, or that was not played.
    pub(crate) outcomes: Vec<Option<Outcome>>,
    /// Runs that gave no outcome and should have.
    pub(crate) troubles: Vec<String>,
    /// In order of submission.
    pub(crate) jobs: Vec<JobLog>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) stats: Arc<Stats>,
}

/// A request that tells the tasks which run it is.
pub(crate) fn request(number: i64, plan: &Linked) -> Request {
    let registry = Some(plan.registry());
    Request { user_id: number.into(), params: vec![Value::Int(number)], registry, trace: true, ..Request::default() }
}

/// Plays all runs of a scene at once, or one of them alone.
pub(crate) fn play(scene: &Scene, only: Option<usize>) -> Played {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build_local(Default::default());
    let played = runtime.unwrap().block_on(Box::pin(on_loop(scene, only)));
    Played { seen: take_witness(), ..played }
}

async fn on_loop(scene: &Scene, only: Option<usize>) -> Played {
    let epoch = clock::now();
    let stats = Arc::new(Stats::default());
    let costs_ms = scene.runs.iter().map(|run| run.costs_ms.clone()).collect();
    let pool = Arc::new(VirtualPool::new(scene.workers, costs_ms));
    let endpoints: [Arc<dyn Open>; 1] = [Arc::new(ScriptedStore)];
    let context = Rc::new(LoopContext::new(Stores::open(&endpoints), pool.clone(), stats.clone(), scene.policy));
    let mut handles = Vec::new();
    for (number, script) in scene.runs.iter().enumerate() {
        if only.is_some_and(|only| only != number) {
            handles.push(None);
            continue;
        }
        let cancel = Arc::new(Cancel::default());
        let (plan, context, token) = (scene.plan(number).linked.clone(), context.clone(), cancel.clone());
        let (deadline, node_timeout) = (script.deadline, script.node_timeout);
        let begins = epoch + Duration::from_millis(script.begins_ms);
        let request = Arc::new(request(number as i64, &plan));
        let inner = Box::pin(async move {
            tokio::time::sleep_until(begins).await;
            let limits = Limits::from_start(clock::now(), deadline, node_timeout);
            Box::pin(run::run(plan, request, context, limits, token)).await
        });
        let handle = tokio::task::spawn_local(OfRun { run: number, inner });
        if let Some(interruption) = script.interruption {
            let abort = handle.abort_handle();
            tokio::task::spawn_local(async move {
                let (Interruption::Cancel(ms) | Interruption::Drop(ms)) = interruption;
                tokio::time::sleep_until(begins + Duration::from_millis(ms)).await;
                match interruption {
                    Interruption::Cancel(_) => cancel.cancel(),
                    Interruption::Drop(_) => abort.abort(),
                }
            });
        }
        handles.push(Some(handle));
    }
    let (mut outcomes, mut troubles) = (Vec::new(), Vec::new());
    for (number, handle) in handles.into_iter().enumerate() {
        let Some(handle) = handle else {
            outcomes.push(None);
            continue;
        };
        // Where nothing can happen any more, the clock runs on to this.
        let ended = tokio::time::timeout(FOREVER, handle).await;
        outcomes.push(match ended {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(error)) if error.is_cancelled() => None,
            Ok(Err(error)) => {
                troubles.push(format!("a panic was not caught: {error}"));
                None
            }
            Err(_) => {
                troubles.push(format!("run {number} never answered"));
                None
            }
        });
    }
    let jobs = pool.drain().await;
    Played { epoch, outcomes, troubles, jobs, seen: Vec::new(), stats }
}
