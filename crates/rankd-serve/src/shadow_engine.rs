//! The engine of shadows: one event loop and one pool thread, both at the lowest priority, with connections to stores of their own. What it runs is in no
//! metric, learned cost or count but those of shadows.
//!
//! A shadow is handed over when its request has been answered, and runs on what that request has read; only what is missing there is read from stores. One
//! runs at a time. What waits is bounded by number and by bytes: beyond that, shadows are dropped and counted. Whatever a shadow does, panic,
//! compute without end or make rows without end, the next one runs when its time is up, and nobody else notices.

use crate::shadow_pair::{DropReason, ShadowPair};
use futures_util::FutureExt;
use rankd_column::RowSet;
use rankd_engine::clock::{self, Timer};
use rankd_engine::engine::Gauges;
use rankd_engine::loop_handle::LoopService;
use rankd_engine::recorded::{Reads, Replay, RunFacts, RunRecord};
use rankd_engine::request::Candidates;
use rankd_engine::run_limit::{BYTES_MAX, TIME_MAX, link_beside};
use rankd_engine::{Engine, Linked, LoopHandle, Policy, Request, RunError, Scheduler, Standing, Tasks};
use rankd_plan::{Plan, Registry};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// So many shadows may wait.
const WAITING_MAX: usize = 64;
/// What they have read, and the rows that they are compared with, take no more bytes than this.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// So long the thread of an earlier shadow is waited for, and so often it is looked for.
const THREAD_WAIT: Duration = Duration::from_millis(200);
const THREAD_LOOK: Duration = Duration::from_millis(1);

/// How the engine of shadows works.
pub fn engine_settings(policy: Policy) -> rankd_engine::Settings {
    rankd_engine::Settings {
        scheduler: Scheduler::Async,
        loops: 1,
        cpu_threads: 1,
        deadline: Some(TIME_MAX),
        node_timeout: None,
        run_bytes_max: BYTES_MAX,
        policy,
        standing: Standing::Background,
    }
}

/// A request that has been answered, for a shadow to run.
pub(crate) struct ShadowJob {
    pub(crate) pair: Arc<ShadowPair>,
    /// The shadow's version of the moment.
    pub(crate) plan: Arc<Plan>,
    pub(crate) registry: Arc<Registry>,
    /// As it came, in its arms.
    pub(crate) request: Request,
    /// What its run depended on.
    pub(crate) record: RunRecord,
    /// What it was answered.
    pub(crate) answer: Vec<RowSet>,
}

impl ShadowJob {
    /// About how many bytes it keeps from being freed.
    fn byte_count(&self) -> usize {
        let rows: usize = self.answer.iter().flat_map(|rows| rows.batch().made_parts()).map(|(_, bytes)| bytes).sum();
        let candidates = self.request.candidates.as_ref().map_or(0, Candidates::byte_count);
        size_of::<ShadowJob>() + self.record.byte_count() + rows + candidates
    }
}

/// A job that waits or runs; its bytes are given back when it is over.
struct Waiting {
    job: ShadowJob,
    _bytes: WaitingBytes,
}

struct WaitingBytes {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// Where shadows run.
pub(crate) struct ShadowEngine {
    engine: Arc<Engine>,
    queue: Sender<Waiting>,
    bytes: Arc<AtomicUsize>,
}

impl ShadowEngine {
    /// Takes an engine into service, which was started with [`engine_settings`].
    pub(crate) fn start(engine: Engine, tasks: Tasks) -> ShadowEngine {
        let gauges = engine.gauges();
        let (queue, inbox) = channel(WAITING_MAX);
        // There is one loop, whose service takes it.
        let inbox = Mutex::new(Some(inbox));
        engine.on_every_loop(move |loop_handle| -> LoopService {
            let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (gauges, tasks) = (gauges.clone(), tasks.clone());
            Box::pin(async move {
                if let Some(inbox) = inbox {
                    ShadowRunner { loop_handle, gauges, tasks, linked: HashMap::new() }.serve(inbox).await;
                }
            })
        });
        ShadowEngine { engine: Arc::new(engine), queue, bytes: Arc::default() }
    }

    /// Hands a request over that has been answered, or drops it where too much waits already.
    pub(crate) fn submit(&self, job: ShadowJob) {
        let (pair, own) = (job.pair.clone(), job.byte_count());
        let waiting = self.bytes.fetch_add(own, Ordering::Relaxed);
        let bytes = WaitingBytes { all: self.bytes.clone(), own };
        if job.record.is_cut || waiting.saturating_add(own) > WAITING_BYTES_MAX {
            return pair.counts.drop_one(DropReason::Memory);
        }
        if self.queue.try_send(Waiting { job, _bytes: bytes }).is_err() {
            pair.counts.drop_one(DropReason::Queue);
        }
    }

    /// How many shadows wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Ends with the process: nobody waits for a shadow.
    pub(crate) fn stop(&self) {
        self.engine.abandon();
    }
}

/// What runs shadows, on the one loop of their engine.
struct ShadowRunner {
    loop_handle: LoopHandle,
    gauges: Gauges,
    tasks: Tasks,
    /// By the names of plan and shadow: the version that was last run, and how it is linked here.
    linked: HashMap<(String, String), (Arc<Plan>, Arc<Linked>)>,
}

impl ShadowRunner {
    async fn serve(mut self, mut inbox: Receiver<Waiting>) {
        while let Some(Waiting { job, _bytes }) = inbox.recv().await {
            let pair = job.pair.clone();
            if self.is_stuck().await {
                pair.counts.drop_one(DropReason::Stuck);
                continue;
            }
            // A task's panic is a failure of its run; this is for everything else.
            let done = AssertUnwindSafe(self.run(job)).catch_unwind().await;
            if let Err(error) = done.unwrap_or_else(|_| Err(Box::new(RunError::bug("a panic beside the run")))) {
                pair.counts.fail(error.code.kind, error.to_string());
            }
        }
    }

    /// Whether a task of an earlier shadow still has the pool's only thread, although its time is up. Another run would wait for it in vain, and
    /// everything that it has made would wait with it.
    async fn is_stuck(&self) -> bool {
        let until = clock::now() + THREAD_WAIT;
        while self.gauges.pool_depth() > 0 {
            if clock::now() >= until {
                return true;
            }
            Timer::new(clock::now() + THREAD_LOOK).await;
        }
        false
    }

    /// Runs a shadow and compares what came of it.
    async fn run(&mut self, job: ShadowJob) -> Result<(), Box<RunError>> {
        let linked = self.linked(&job)?;
        let ShadowJob { pair, request, record, answer, .. } = job;
        let RunRecord { reads, calls, facts, .. } = record;
        let replay = Arc::new(Replay::of(reads, calls).or_live());
        let request = shadow_request(request, facts, &linked, replay.clone());
        let limits = self.loop_handle.limits_beside();
        let outcome = self.loop_handle.run(&linked, request, limits, Arc::default()).await;
        pair.counts.reads_shared.add(replay.served());
        pair.counts.reads_live.add(replay.missing());
        let rows = outcome.result?;
        match outcome.degraded.is_empty() {
            true => pair.counts.compare(&answer, &rows),
            false => pair.counts.degrade(),
        }
        Ok(())
    }

    /// The shadow's version, linked for this engine: what others learn of its steps, they learn with other costs.
    fn linked(&mut self, job: &ShadowJob) -> Result<Arc<Linked>, Box<RunError>> {
        let settings = &job.pair.settings;
        let names = (settings.plan.clone(), settings.shadow.clone());
        if let Some((_, linked)) = self.linked.get(&names).filter(|(plan, _)| Arc::ptr_eq(plan, &job.plan)) {
            return Ok(linked.clone());
        }
        let linked = link_beside(&job.plan, &self.tasks, &job.registry, &settings.plan)?;
        self.linked.insert(names, (job.plan.clone(), linked.clone()));
        Ok(linked)
    }
}

/// The request as its shadow runs it: with the time, seed, dials and arms that the plan itself had, and without time limits of its own.
fn shadow_request(request: Request, facts: RunFacts, linked: &Linked, replay: Arc<Replay>) -> Request {
    let RunFacts { now_ms, seed, pressure, .. } = facts;
    let mut request = request;
    // A dial that only the plan itself has says nothing to its shadow.
    request.asked_dials.retain(|(asked, _)| linked.dials.iter().any(|dial| *dial.name == **asked));
    Request {
        now_ms: now_ms.or(request.now_ms),
        seed: seed.or(request.seed),
        pressure,
        deadline: None,
        node_timeout: None,
        trace: false,
        reads: Reads::Replayed(replay),
        ..request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;
    use rankd_engine::seed::Seed;

    #[test]
    fn a_shadow_has_what_the_plan_had_and_its_own_limits() {
        let (registry, _, linked) = faults::plan(&faults::tasks());
        let asked = Request {
            now_ms: None,
            seed: Some(Seed::Int(1)),
            deadline: Some(Duration::from_millis(1)),
            node_timeout: Some(Duration::from_millis(1)),
            asked_dials: vec![("r.fanout".to_owned(), 3)],
            strict: true,
            trace: true,
            ..Request::new(&registry)
        };
        let facts = RunFacts { now_ms: Some(7), seed: Some(Seed::Int(2)), pressure: 3, ..RunFacts::default() };
        let shadow = shadow_request(asked.clone(), facts, &linked, Arc::default());
        assert_eq!((shadow.now_ms, &shadow.seed, shadow.pressure), (Some(7), &Some(Seed::Int(2)), 3));
        assert_eq!((shadow.deadline, shadow.node_timeout, shadow.trace, shadow.strict), (None, None, false, true));
        assert!(shadow.asked_dials.is_empty(), "the shadow has no such dial");
        // Where the plan asks for neither time nor seed, the shadow has those of the request.
        let shadow = shadow_request(asked, RunFacts::default(), &linked, Arc::default());
        assert_eq!((shadow.now_ms, shadow.seed), (None, Some(Seed::Int(1))));
    }
}
