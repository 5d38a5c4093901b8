//! The reference scheduler: nodes in order, one after the other, on the caller's thread. What the others must agree with.

use crate::call;
use crate::clock;
use crate::deadline::Limits;
use crate::link::Linked;
use crate::progress::{NodeNews, Progress};
use crate::request::Request;
use crate::run::{Cpu, Outcome};
use crate::settle::{NodeFailure, RunFailure, Settled, begin_substitution, note_counts, settle, started_by};
use crate::stats::Stats;
use crate::store::{Open, Stores};
use crate::task::{InputRows, RowCounts, Tally, Task};
use crate::trace::{Recorder, Where};
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::runtime::{Builder, LocalRuntime};

/// The caller's own runtime and stores, to wait for reads with.
pub struct Sequential {
    runtime: LocalRuntime,
    stores: Stores,
    stats: Arc<Stats>,
}

impl Sequential {
    pub fn new(endpoints: &[Arc<dyn Open>], stats: Arc<Stats>) -> io::Result<Sequential> {
        let runtime = Builder::new_current_thread().enable_all().build_local(Default::default())?;
        Ok(Sequential { runtime, stores: Stores::open(endpoints), stats })
    }

    /// Runs a plan for a request on the calling thread.
    pub fn run(&self, plan: &Arc<Linked>, request: &Arc<Request>, limits: Limits) -> Outcome {
        let began = clock::now();
        let mut recorder = Recorder::new(plan, request.trace, began);
        let mut progress = Progress::of(&plan.written, limits.run_bytes_max);
        let result = self.walk(plan, request, limits, &mut progress, &mut recorder);
        let now = clock::now();
        let trace = recorder.take(plan, &plan.written, now);
        let took = now.saturating_duration_since(began);
        Outcome::of(plan, request, result, &mut progress, (trace, took, Cpu::default()))
    }

    fn walk(
        &self,
        plan: &Arc<Linked>,
        request: &Arc<Request>,
        limits: Limits,
        progress: &mut Progress,
        recorder: &mut Recorder,
    ) -> Result<Vec<RowSet>, RunFailure> {
        plan.accept(request, self.stores.id()).map_err(RunFailure::refused)?;
        let steps = &plan.written;
        begin_substitution(plan, steps, request, progress, recorder, &self.stats)?;
        // Of the nodes that can run, always the first in the plan's order.
        let mut position = vec![0; steps.node_count()];
        steps.order.iter().enumerate().for_each(|(at, ix)| position[*ix as usize] = at);
        let mut ready: BTreeSet<usize> =
            steps.starts.iter().filter(|ix| progress.is_ready(**ix)).map(|ix| position[*ix as usize]).collect();
        loop {
            while let Some(news) = progress.next_news() {
                ready.extend(started_by(news, steps, progress).into_iter().map(|ix| position[ix as usize]));
            }
            let Some(at) = ready.pop_first() else { return progress.outputs(plan) };
            let ix = steps.order[at];
            let result = self.node(plan, request, limits, ix, progress, recorder);
            match settle(plan, steps, &limits, progress, recorder, (ix, steps.step(ix)), result)? {
                Settled::News => {}
                Settled::Rows => {
                    let started = started_by(NodeNews::HasRows(ix), steps, progress);
                    ready.extend(started.into_iter().map(|ix| position[ix as usize]));
                }
            }
        }
    }

    /// Runs one node to its end.
    fn node(
        &self,
        plan: &Arc<Linked>,
        request: &Arc<Request>,
        limits: Limits,
        ix: NodeIx,
        progress: &mut Progress,
        recorder: &mut Recorder,
    ) -> Result<RowSet, NodeFailure> {
        let (step, started) = (plan.written.step(ix), clock::now());
        if let Some(request) = limits.request.filter(|request| request.has_passed(started)) {
            return Err(NodeFailure::TooLate(request));
        }
        let mut inputs = progress.inputs(ix, step)?;
        if let Some(recorded) = request.recorded_failure(ix) {
            return Err(recorded);
        }
        recorder.ready(ix, None, started);
        recorder.started(ix, &inputs, Where::Caller, started);
        let own = limits.of_node(started, step.timeout);
        let (limit, until) = limits.split(own, (step.is_anytime && !request.strict, step.has_fallback));
        let (result, tally, counts) = match &step.task {
            Task::Compute(_) => {
                let (stop, at) = (AtomicBool::new(false), limit.map(|limit| limit.at));
                let mut slots: Vec<Option<RowSet>> = inputs.into_iter().map(Some).collect();
                let inputs = &mut InputRows::owned(&mut slots);
                let (result, counts) = call::compute(step, inputs, request, &stop, (at, until), &self.stats);
                // Nothing could interrupt it, so its limit is looked at now.
                let timed_out = limit.filter(|limit| limit.has_passed(clock::now()));
                (
                    timed_out.map_or(result.map_err(NodeFailure::Task), |limit| Err(NodeFailure::TimedOut(limit))),
                    Tally::default(),
                    counts,
                )
            }
            Task::Fetch(task) => {
                let (request, stats) = (request.clone(), self.stats.clone());
                call::gather(step, &mut inputs);
                let fetch = call::fetch(task.clone(), ix, inputs, request, &self.stores, stats, Where::Caller, None);
                let finished = self.runtime.block_on(async {
                    match limit {
                        Some(limit) => tokio::time::timeout_at(limit.at, fetch).await.map_err(|_| limit),
                        None => Ok(fetch.await),
                    }
                });
                let counts = RowCounts::default();
                match finished {
                    Ok(finished) => (finished.result.map_err(NodeFailure::Task), finished.tally, counts),
                    Err(limit) => (Err(NodeFailure::TimedOut(limit)), Tally::default(), counts),
                }
            }
        };
        let ended = clock::now();
        recorder.ended(ix, result.as_ref().ok(), (started, ended), Where::Caller, &tally, counts);
        // What comes after its limit is not handed over.
        if result.is_ok() {
            note_counts(progress, ix, counts, ended);
        }
        result
    }
}
