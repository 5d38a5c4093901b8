//! The reference scheduler: nodes in order, one after the other, on the caller's thread. What the others must agree with.

use crate::clock::{self, Instant};
use crate::deadline::Limits;
use crate::error::RunError;
use crate::link::Linked;
use crate::progress::Progress;
use crate::request::Request;
use crate::run::job;
use crate::run::{Cpu, Outcome};
use crate::stats::Stats;
use crate::store::{Open, Stores};
use crate::task::{InputRows, Tally, Task};
use crate::trace::{Recorder, Where};
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
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

    /// Runs a plan for a request and gives back the thread when there is an answer.
    pub fn run(&self, plan: &Arc<Linked>, request: &Arc<Request>, limits: Limits) -> Outcome {
        let began = clock::now();
        let mut recorder = Recorder::new(plan, request.trace, began);
        let result = self.walk(plan, request, limits, &mut recorder).map_err(Box::new);
        let now = clock::now();
        let trace = recorder.take(plan, &plan.written, now);
        Outcome { result, trace, took: now.saturating_duration_since(began), cpu: Cpu::default() }
    }

    fn walk(
        &self,
        plan: &Arc<Linked>,
        request: &Arc<Request>,
        limits: Limits,
        recorder: &mut Recorder,
    ) -> Result<Vec<RowSet>, RunError> {
        plan.accept(request)?;
        let steps = &plan.written;
        let mut progress = Progress::of(steps);
        for &ix in &steps.order {
            let now = clock::now();
            if let Some(request) = limits.request.filter(|request| request.has_passed(now)) {
                return Err(plan.at_node(ix, RunError::too_late_to_start(&request)));
            }
            let inputs = progress.inputs(steps.step(ix)).map_err(|error| plan.at_node(ix, error))?;
            recorder.ready(ix, None, now);
            recorder.started(ix, &inputs, Where::Caller, now);
            let rows = self.node(plan, request, limits, ix, inputs, now, recorder)?;
            progress.finish(ix, rows);
        }
        progress.outputs(&plan.outputs)
    }

    #[expect(clippy::too_many_arguments, reason = "the pieces of one step, spelled out once")]
    fn node(
        &self,
        plan: &Arc<Linked>,
        request: &Arc<Request>,
        limits: Limits,
        ix: NodeIx,
        inputs: Vec<RowSet>,
        now: Instant,
        recorder: &mut Recorder,
    ) -> Result<RowSet, RunError> {
        let deadline = limits.of_node(now, plan.written.step(ix).timeout);
        let timeout = |recorder: &mut Recorder| match deadline.filter(|deadline| deadline.has_passed(clock::now())) {
            Some(deadline) => {
                recorder.ended(ix, None, (now, clock::now()), Where::Caller, &Tally::default());
                Err(plan.at_node(ix, RunError::timeout(&deadline)))
            }
            None => Ok(()),
        };
        let (result, tally) = match &plan.written.step(ix).task {
            task @ Task::Compute(_) => {
                let (stop, at) = (AtomicBool::new(false), deadline.map(|deadline| deadline.at));
                let mut slots: Vec<Option<RowSet>> = inputs.into_iter().map(Some).collect();
                let inputs = &mut InputRows::owned(&mut slots);
                let result = job::compute(task, inputs, request, &stop, at, &self.stats);
                timeout(recorder)?;
                (result, Tally::default())
            }
            Task::Fetch(task) => {
                let fetch = job::fetch(
                    task.clone(),
                    ix,
                    inputs,
                    request.clone(),
                    &self.stores,
                    self.stats.clone(),
                    Where::Caller,
                );
                let finished = self.runtime.block_on(async {
                    match deadline {
                        Some(deadline) => tokio::time::timeout_at(deadline.at, fetch).await.ok(),
                        None => Some(fetch.await),
                    }
                });
                match finished {
                    Some(finished) => (finished.result, finished.tally),
                    None => {
                        timeout(recorder)?;
                        return Err(RunError::bug("a fetch ended early without a reason"));
                    }
                }
            }
        };
        recorder.ended(ix, result.as_ref().ok(), (now, clock::now()), Where::Caller, &tally);
        result.map_err(|error| plan.blame(ix, error))
    }
}
