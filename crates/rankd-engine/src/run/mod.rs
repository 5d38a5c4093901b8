//! One request on its event loop.
//!
//! This file has what the rest of the engine sees of a run: how it is started, how it is ended from outside, and what came of it. Then:
//! `machine` (the state machine: start here), `buffers` (what a run works with), `turn` (what it computes on the loop), `job` (what
//! it computes on the pool), `timeouts` (its timer), `usage` (its share of the processor). All state of a run is touched by the
//! loop's thread only.

mod buffers;
mod job;
mod machine;
mod timeouts;
mod turn;
mod usage;

pub(crate) use buffers::RunBuffers;
pub(crate) use job::BegunSteps;
pub use usage::Cpu;

use crate::arms::Arms;
use crate::clock;
use crate::cursor::NextCursor;
use crate::deadline::Limits;
use crate::degraded::{Degraded, Short};
use crate::error::RunError;
use crate::link::Linked;
use crate::loop_context::{BorrowedBuffers, LoopContext};
use crate::place::Way;
use crate::progress::Progress;
use crate::recorded::Reads;
use crate::request::Request;
use crate::seed::Seed;
use crate::settle::RunFailure;
use crate::steps::Steps;
use crate::store::TableVersions;
use crate::trace::{Recorder, Trace};
use futures_util::task::AtomicWaker;
use job::Results;
use rankd_column::RowSet;
use rankd_plan::model::ModelVersions;
use rankd_plan::plan::NodeIx;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use usage::Usage;

/// What came of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The rows of each output, in the plan's order.
    pub result: Result<Vec<RowSet>, Box<RunError>>,
    /// The rows of the nodes that log them, where there is a result.
    pub logged: Vec<(NodeIx, RowSet)>,
    /// The fallbacks that were taken, in order of time.
    pub degraded: Vec<Degraded>,
    /// The nodes that have fewer rows than they want, in order of time.
    pub short: Vec<Short>,
    /// Where the plan's dials stood, in its order.
    pub dials: Vec<i64>,
    /// For the next page, where the plan pages and there is one.
    pub cursor: Option<NextCursor>,
    /// What random choices followed from, where the plan draws random numbers.
    pub seed: Option<Seed>,
    /// The arms of experiments that the request was in.
    pub arms: Option<Arc<Arms>>,
    /// The models that it could score with, where a trace was asked for and the plan names one.
    pub models: Option<Arc<ModelVersions>>,
    /// The same for tables.
    pub tables: Option<Arc<TableVersions>>,
    pub trace: Option<Trace>,
    pub took: Duration,
    pub cpu: Cpu,
}

impl Outcome {
    /// Of a run that is over.
    pub(crate) fn of(
        plan: &Linked,
        request: &Request,
        result: Result<Vec<RowSet>, RunFailure>,
        progress: &mut Progress,
        (trace, took, cpu): (Option<Trace>, Duration, Cpu),
    ) -> Outcome {
        if let Reads::Recorded(recorder) = &request.reads {
            recorder.end(progress.weather(plan));
        }
        let (degraded, short) = progress.take_shortcomings();
        let logged = progress.take_logged();
        let result = result.map_err(RunFailure::into_error);
        let paging = plan.paging.as_ref().filter(|_| progress.has_more).zip(result.as_ref().ok());
        let cursor = paging.and_then(|(paging, rows)| paging.next(&plan.name, &plan.outputs, request, rows));
        let (dials, seed) = (request.dials.clone(), request.seed.clone());
        let models = request.models.as_ref().filter(|_| request.trace).cloned();
        let tables = request.tables.as_ref().filter(|_| request.trace).cloned();
        let arms = request.arms.clone();
        Outcome { result, logged, degraded, short, dials, cursor, seed, arms, models, tables, trace, took, cpu }
    }

    /// Of a request that did not come to run.
    pub fn failed(error: RunError) -> Outcome {
        Outcome {
            result: Err(Box::new(error)),
            logged: Vec::new(),
            degraded: Vec::new(),
            short: Vec::new(),
            dials: Vec::new(),
            cursor: None,
            seed: None,
            arms: None,
            models: None,
            tables: None,
            trace: None,
            took: Duration::ZERO,
            cpu: Cpu::default(),
        }
    }
}

/// Ends a run from outside: the caller has gone, or the process stops.
#[derive(Default)]
pub struct Cancel {
    requested: AtomicBool,
    waker: AtomicWaker,
}

impl Cancel {
    pub fn cancel(&self) {
        self.requested.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// Runs a plan for a request. Dropping the future cancels the run.
pub async fn run(
    plan: Arc<Linked>,
    request: Arc<Request>,
    context: Rc<LoopContext>,
    limits: Limits,
    cancel: Arc<Cancel>,
) -> Outcome {
    let began = clock::now();
    // A node that gets its recorded end is a step of its own, and is called by itself.
    let is_struck = request.struck.as_ref().is_some_and(|struck| !struck.is_empty());
    let way = Way::on_loop(&context.policy, limits.node_timeout.is_some() || is_struck);
    let steps = plan.steps(way);
    let recorder = Recorder::new(&plan, request.trace, began);
    let mut borrowed = BorrowedBuffers::new(&context);
    let buffers = borrowed.get();
    let may_go_too_deep = (context.policy.max_inline_depth as usize) < steps.order.len();
    buffers.begin(steps, limits.run_bytes_max, recorder.is_on() || may_go_too_deep);
    let limits_nodes = limits.node_timeout.is_some() || (steps.has_timeouts && limits.times_nodes);
    let sample = plan.count_run();
    let timed = sample || recorder.is_on() || limits_nodes || steps.has_reserves || plan.paging.is_some() || is_struck;
    let mut run = Run {
        plan: &plan,
        way,
        steps,
        request: &request,
        context: &context,
        limits,
        limits_nodes,
        cancel: &cancel,
        buffers,
        recorder,
        results: None,
        sample,
        timed,
        inlined: 0,
        chained: 0,
        begun: false,
        open: true,
        usage: Usage::new(began),
    };
    let result = poll_fn(|cx| run.poll(cx)).await;
    run.close();
    let now = clock::now();
    let trace = run.recorder.take(&plan, steps, now);
    let cpu = run.usage.cpu(run.results.as_deref(), now);
    let took = now.saturating_duration_since(began);
    Outcome::of(&plan, &request, result, &mut run.buffers.progress, (trace, took, cpu))
}

struct Run<'r> {
    plan: &'r Arc<Linked>,
    way: Way,
    steps: &'r Steps,
    request: &'r Arc<Request>,
    context: &'r Rc<LoopContext>,
    limits: Limits,
    /// Whether single nodes have limits.
    limits_nodes: bool,
    cancel: &'r Cancel,
    buffers: &'r mut RunBuffers,
    recorder: Recorder,
    /// Where its jobs leave their results, once there is a job.
    results: Option<Arc<Results>>,
    /// This run is one of those that measure costs.
    sample: bool,
    /// Every step is called and timed by itself: for the trace, because this run is a sample, because nodes have limits, or because one may
    /// ask for more inputs or has more rows than a page.
    timed: bool,
    /// Steps that ran on the loop, without those that are still in the ready list, and steps that went on in a job of another.
    inlined: u64,
    chained: u64,
    begun: bool,
    open: bool,
    usage: Usage,
}
