//! The two-pool scheduler: reads on a few blocking IO threads, computations on the CPU pool, the caller's thread in between.
//!
//! It exists to be compared with: an IO thread drives one read at a time to its end, so as many reads are in flight as there are
//! threads. The first failure stops the dispatch and what is in flight is waited for; a deadline answers at once.

use crate::call::{self, StepResult};
use crate::clock;
use crate::deadline::{Deadline, Limits};
use crate::link::Linked;
use crate::pool::{Offload, Pool, Worker};
use crate::progress::{NodeNews, Progress};
use crate::request::Request;
use crate::run::{Cpu, Outcome};
use crate::settle::{NodeFailure, RunFailure, Settled, begin_substitution, note_counts, settle, started_by};
use crate::stats::Stats;
use crate::store::{Open, Stores, identify};
use crate::task::{InputRows, Tally, Task};
use crate::trace::{Recorder, Where};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use rankd_plan::registry::EndpointsId;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::runtime::Builder;

/// How many threads wait for reads.
pub const IO_THREADS: usize = 4;

type IoJob = Box<dyn FnOnce(&tokio::runtime::LocalRuntime, &Stores, u16) + Send>;

/// Threads that each drive one read at a time.
pub struct IoPool {
    jobs: Option<Sender<IoJob>>,
    threads: Vec<JoinHandle<()>>,
    /// Which endpoints its threads have opened.
    endpoints: EndpointsId,
}

impl IoPool {
    pub fn start(endpoints: &[Arc<dyn Open>]) -> io::Result<IoPool> {
        let (jobs, queue) = unbounded::<IoJob>();
        let mut pool = IoPool { jobs: Some(jobs), threads: Vec::new(), endpoints: identify(endpoints) };
        for number in 0..IO_THREADS {
            let (queue, endpoints) = (queue.clone(), endpoints.to_vec());
            let thread = thread::Builder::new().name(format!("rankd-io-{number}")).spawn(move || {
                // Without a runtime this thread takes no jobs; the others do.
                let Ok(runtime) = Builder::new_current_thread().enable_all().build_local(Default::default()) else {
                    return;
                };
                let stores = Stores::open(&endpoints);
                for job in queue {
                    job(&runtime, &stores, number as u16);
                }
                // Does not wait for threads that resolve names: a resolver may hang for minutes.
                runtime.shutdown_background();
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    fn submit(&self, job: IoJob) {
        if let Some(jobs) = &self.jobs {
            // The threads live as long as the sender, so this cannot fail.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs a plan for a request; the caller's thread dispatches.
pub fn run(
    plan: &Arc<Linked>,
    request: &Arc<Request>,
    limits: Limits,
    cpu: &Pool,
    io: &IoPool,
    stats: &Arc<Stats>,
) -> Outcome {
    let began = clock::now();
    let recorder = Recorder::new(plan, request.trace, began);
    let (sender, results) = unbounded();
    let over = Arc::new(Over::default());
    let mut dispatch = Dispatch {
        plan,
        request,
        limits,
        cpu,
        io,
        stats,
        progress: Progress::of(&plan.written, limits.run_bytes_max),
        ready: plan.written.starts.iter().copied().collect(),
        in_flight: Vec::new(),
        job_stops: Vec::new(),
        sender,
        results,
        over,
        recorder,
    };
    let result = dispatch.walk();
    dispatch.close();
    let now = clock::now();
    let trace = dispatch.recorder.take(plan, &plan.written, now);
    let took = now.saturating_duration_since(began);
    Outcome::of(plan, request, result, &mut dispatch.progress, (trace, took, Cpu::default()))
}

struct Dispatch<'a> {
    plan: &'a Arc<Linked>,
    request: &'a Arc<Request>,
    limits: Limits,
    cpu: &'a Pool,
    io: &'a IoPool,
    stats: &'a Arc<Stats>,
    progress: Progress,
    ready: VecDeque<NodeIx>,
    in_flight: Vec<(NodeIx, Option<Deadline>)>,
    /// Computations with a fallback: each can be stopped by itself.
    job_stops: Vec<(NodeIx, Arc<AtomicBool>)>,
    sender: Sender<StepResult>,
    results: Receiver<StepResult>,
    over: Arc<Over>,
    recorder: Recorder,
}

enum DispatchEvent {
    Finished(Box<StepResult>),
    TimedOut(NodeIx, Deadline),
    ThreadsGone,
}

/// Whether a run is over.
#[derive(Default)]
struct Over {
    /// Set when nothing waits any more; computations look at it.
    stop: AtomicBool,
    /// Set when the run has answered. Held while a result is left, so that each is either taken or counted as late.
    answered: Mutex<bool>,
}

impl Dispatch<'_> {
    fn walk(&mut self) -> Result<Vec<RowSet>, RunFailure> {
        self.plan.accept(self.request, self.io.endpoints).map_err(RunFailure::refused)?;
        let (progress, recorder) = (&mut self.progress, &mut self.recorder);
        begin_substitution(self.plan, &self.plan.written, self.request, progress, recorder, self.stats)?;
        let progress = &self.progress;
        self.ready.retain(|ix| progress.is_ready(*ix));
        self.take_news();
        // The first failure is the one that counts.
        let mut failure = None;
        loop {
            while failure.is_none()
                && let Some(node) = self.ready.pop_front()
            {
                failure = self.start(node).err();
            }
            if self.in_flight.is_empty() {
                return match failure {
                    Some(failure) => Err(failure),
                    None => self.progress.outputs(self.plan),
                };
            }
            match self.next_event() {
                DispatchEvent::Finished(finished) => {
                    if let Err(error) = self.take_in(*finished) {
                        // Computations stop early; reads are short.
                        self.over.stop.store(true, Ordering::Relaxed);
                        self.job_stops.iter().for_each(|(_, stop)| stop.store(true, Ordering::Relaxed));
                        failure = failure.or(Some(error));
                    }
                }
                DispatchEvent::TimedOut(node, limit) => {
                    let settled = self.settle(node, Err(NodeFailure::TimedOut(limit)));
                    settled.map_err(|error| failure.take().unwrap_or(error))?;
                    self.recorder.ended_now(node, clock::now());
                    // Its fallback was taken: it is not waited for.
                    self.in_flight.retain(|(of, _)| *of != node);
                    let stops = self.job_stops.iter().filter(|(of, _)| *of == node);
                    stops.for_each(|(_, stop)| stop.store(true, Ordering::Relaxed));
                }
                DispatchEvent::ThreadsGone => return Err(RunFailure::bug("all threads of a pool are gone")),
            }
        }
    }

    fn start(&mut self, ix: NodeIx) -> Result<(), RunFailure> {
        let now = clock::now();
        if let Some(request) = self.limits.request.filter(|request| request.has_passed(now)) {
            return self.settle(ix, Err(NodeFailure::TooLate(request)));
        }
        let steps = &self.plan.written;
        let step = steps.step(ix);
        let own = self.limits.of_node(now, step.timeout);
        let (deadline, until) = self.limits.split(own, (step.is_anytime && !self.request.strict, step.has_fallback));
        let mut inputs = match self.progress.inputs(ix, step) {
            Ok(inputs) => inputs,
            Err(missing) => return self.settle(ix, Err(missing)),
        };
        if let Some(recorded) = self.request.recorded_failure(ix) {
            return self.settle(ix, Err(recorded));
        }
        self.recorder.started(ix, &inputs, Where::Caller, now);
        self.in_flight.push((ix, deadline));
        let (task, request, stats) = (step.task.clone(), self.request.clone(), self.stats.clone());
        let (sender, over, plan) = (self.sender.clone(), self.over.clone(), self.plan.clone());
        let deliver = move |finished: StepResult, over: &Over, stats: &Stats| {
            let took = finished.took_ns();
            let answered = over.answered.lock().unwrap_or_else(PoisonError::into_inner);
            if *answered || sender.send(finished).is_err() {
                stats.count_late(&plan.name, took);
            }
        };
        if let Task::Fetch(_) = task {
            call::gather(step, &mut inputs);
        }
        match task {
            Task::Fetch(task) => self.io.submit(Box::new(move |runtime, stores, number| {
                let on = Where::Io(number);
                let fetch = call::fetch(task, ix, inputs, request, stores, stats.clone(), on, None);
                let finished = runtime.block_on(async {
                    match deadline {
                        // The thread that dispatches reports a read that is cut here as a timeout.
                        Some(deadline) => tokio::time::timeout_at(deadline.at, fetch).await.ok(),
                        None => Some(fetch.await),
                    }
                });
                if let Some(finished) = finished {
                    deliver(finished, &over, &stats);
                }
            })),
            Task::Compute(_) => {
                self.stats.count_offloads(1);
                let plan = self.plan.clone();
                let stop = step.has_fallback.then(Arc::<AtomicBool>::default);
                self.job_stops.extend(stop.clone().map(|stop| (ix, stop)));
                self.cpu.submit(Box::new(move |worker: Worker| {
                    let started = clock::now();
                    let mut slots: Vec<Option<RowSet>> = inputs.into_iter().map(Some).collect();
                    let inputs = &mut InputRows::owned(&mut slots);
                    let stop = stop.as_deref().unwrap_or(&over.stop);
                    let step = plan.written.step(ix);
                    let (result, counts) = call::compute(step, inputs, &request, stop, (None, until), &stats);
                    let (ended, on) = (clock::now(), Where::Pool(worker.number));
                    let (tally, before) = (Tally::default(), Vec::new());
                    deliver(
                        StepResult { step: ix, result, started, ended, on, tally, counts, report: None, before },
                        &over,
                        &stats,
                    );
                }));
            }
        }
        Ok(())
    }

    /// The run has answered: what still comes is late.
    fn close(&self) {
        self.over.stop.store(true, Ordering::Relaxed);
        self.job_stops.iter().for_each(|(_, stop)| stop.store(true, Ordering::Relaxed));
        let mut answered = self.over.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered = true;
        for late in self.results.try_iter() {
            self.stats.count_late(&self.plan.name, late.took_ns());
        }
    }

    /// The next node that ends, or the limit that passes before one does.
    fn next_event(&mut self) -> DispatchEvent {
        let earliest = self.in_flight.iter().filter_map(|(node, deadline)| Some((*node, (*deadline)?)));
        let Some((node, deadline)) = earliest.min_by_key(|(_, deadline)| deadline.at) else {
            let finished = self.results.recv();
            return finished.map_or(DispatchEvent::ThreadsGone, |finished| DispatchEvent::Finished(finished.into()));
        };
        match self.results.recv_deadline(deadline.at.into_std()) {
            Ok(finished) => DispatchEvent::Finished(finished.into()),
            Err(RecvTimeoutError::Timeout) => DispatchEvent::TimedOut(node, deadline),
            Err(RecvTimeoutError::Disconnected) => DispatchEvent::ThreadsGone,
        }
    }

    fn take_in(&mut self, finished: StepResult) -> Result<(), RunFailure> {
        if self.progress.has_given_up(finished.step) {
            self.stats.count_late(&self.plan.name, finished.took_ns());
            return Ok(());
        }
        let StepResult { step, result, started, ended, on, tally, counts, .. } = finished;
        self.in_flight.retain(|(of, _)| *of != step);
        self.recorder.ended(step, result.as_ref().ok(), (started, ended), on, &tally, counts);
        note_counts(&mut self.progress, step, counts, ended);
        self.settle(step, result.map_err(NodeFailure::Task))
    }

    /// Settles a node. Those that waited only for it can be started.
    fn settle(&mut self, ix: NodeIx, result: Result<RowSet, NodeFailure>) -> Result<(), RunFailure> {
        let (progress, recorder) = (&mut self.progress, &mut self.recorder);
        match settle(
            self.plan,
            &self.plan.written,
            &self.limits,
            progress,
            recorder,
            (ix, self.plan.written.step(ix)),
            result,
        )? {
            Settled::News => self.take_news(),
            Settled::Rows => self.start_after(NodeNews::HasRows(ix)),
        }
        Ok(())
    }

    fn take_news(&mut self) {
        while let Some(news) = self.progress.next_news() {
            self.start_after(news);
        }
    }

    fn start_after(&mut self, news: NodeNews) {
        let after = match news {
            NodeNews::HasRows(node) => Some(node),
            NodeNews::Woken(_) => None,
        };
        let now = self.recorder.is_on().then(clock::now);
        for ix in started_by(news, &self.plan.written, &mut self.progress) {
            if let Some(now) = now {
                self.recorder.ready(ix, after, now);
            }
            self.ready.push_back(ix);
        }
    }
}
