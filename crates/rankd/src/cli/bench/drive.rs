//! A plan of this process under load, and what came back.

use crate::cli::bench::load::{Ends, Load, Requests};
use crate::cli::command_error::CommandError;
use crate::cli::plan_engine::PlanEngine;
use crate::cli::say;
use crossbeam_channel::{RecvTimeoutError, unbounded};
use hdrhistogram::Histogram;
use rankd_column::Id;
use rankd_edge::prepare::{Prepared, Tracing, prepare};
use rankd_engine::trace::Trace;
use rankd_engine::{Linked, Outcome, Request, Scheduler, clock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One request in so many is traced, so that times of nodes are known and the others are not slowed down.
const TRACED_EVERY: u64 = 16;
/// How often those who watch see how far it is.
const TICK: Duration = Duration::from_millis(100);

/// What came back.
pub(crate) struct Tally {
    pub(crate) nanos: Histogram<u64>,
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// Requests that got rows for which a fallback was taken.
    pub(crate) degraded: u64,
    /// The nodes that those fallbacks stood for, by id, and in how many of those requests.
    pub(crate) degraded_nodes: BTreeMap<String, u64>,
    /// By node: traced runs, and their run and queue times. Runs of plans that answer in place of the one that is asked are not among them.
    pub(crate) nodes: BTreeMap<u32, (u64, u64, u64)>,
    /// By experiment and arm: the requests that were in it.
    pub(crate) arms: BTreeMap<(String, String), u64>,
}

impl Default for Tally {
    fn default() -> Tally {
        // Three digits over the range that is given always make a histogram.
        let nanos = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constants that are known to be good");
        let (errors, nodes, degraded_nodes, arms) = Default::default();
        Tally { nanos, errors, degraded: 0, degraded_nodes, nodes, arms }
    }
}

impl Tally {
    /// Counts what came of a request: which plan ran, and whether that is the one that was asked.
    fn add(&mut self, took: Duration, (plan, is_asked): (&Linked, bool), outcome: &Outcome) {
        self.nanos.saturating_record(took.as_nanos() as u64);
        match &outcome.result {
            Ok(_) => self.add_degraded(outcome.degraded.iter().map(|one| plan.node(one.node).id.to_string())),
            Err(error) => *self.errors.entry(error.code.kind.name()).or_default() += 1,
        }
        for (experiment, arm) in outcome.arms.iter().flat_map(|arms| arms.names()) {
            *self.arms.entry((experiment.to_owned(), arm.to_owned())).or_default() += 1;
        }
        let trace = outcome.trace.iter().filter(|_| is_asked);
        for node in trace.flat_map(|Trace { nodes, .. }| nodes) {
            let (runs, run_ns, queue_ns) = self.nodes.entry(node.node).or_default();
            *runs += 1;
            *run_ns += node.end_ns - node.start_ns;
            *queue_ns += node.queue_ns().unwrap_or(0);
        }
    }

    /// Counts an answer with rows by the nodes whose fallbacks it has; often none.
    pub(crate) fn add_degraded(&mut self, nodes: impl Iterator<Item = String>) {
        let mut nodes = nodes.peekable();
        self.degraded += u64::from(nodes.peek().is_some());
        nodes.for_each(|node| *self.degraded_nodes.entry(node).or_default() += 1);
    }

    fn merge(&mut self, other: &Tally) {
        // Both have the same bounds.
        let _ = self.nanos.add(&other.nanos);
        for (kind, count) in &other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.degraded += other.degraded;
        for (node, count) in &other.degraded_nodes {
            *self.degraded_nodes.entry(node.clone()).or_default() += count;
        }
        for (arm, count) in &other.arms {
            *self.arms.entry(arm.clone()).or_default() += count;
        }
        for (node, (runs, run_ns, queue_ns)) in &other.nodes {
            let ours = self.nodes.entry(*node).or_default();
            *ours = (ours.0 + runs, ours.1 + run_ns, ours.2 + queue_ns);
        }
    }

    /// How many requests came to an end.
    pub(crate) fn ended(&self) -> u64 {
        self.nanos.len()
    }

    pub(crate) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The part of all requests that got no rows.
    pub(crate) fn error_share(&self) -> f64 {
        self.failed() as f64 / self.ended().max(1) as f64
    }

    /// The part of all requests that got rows for which a fallback was taken.
    pub(crate) fn degraded_share(&self) -> f64 {
        self.degraded as f64 / self.ended().max(1) as f64
    }
}

/// A plan, who runs it and for whom.
pub(crate) struct PlanTarget<'a> {
    pub(crate) running: &'a PlanEngine,
    /// The listed requests, read, each with the plan that answers it, or one that is the same for every user.
    pub(crate) requests: &'a [(Prepared, &'a Arc<Linked>)],
}

impl PlanTarget<'_> {
    /// Puts the plan under load until `ends`.
    pub(crate) fn run(&self, load: &Load, ends: Ends, what: &str) -> Tally {
        let ends = ends.at_rate(load.rate);
        let mut bar = say::Progress::new(what, ends.whole());
        let tally = match (self.running.engine.settings().scheduler, load.rate) {
            (Scheduler::Async, _) | (_, Some(_)) => self.drive(load, ends, &mut bar),
            _ => self.crowd(load, ends, &mut bar),
        };
        bar.at(ends.whole());
        tally
    }

    /// The `at`th request, in its arms of experiments, and the plan that answers it; some are traced.
    fn request(&self, load: &Load, at: u64) -> (Request, &Arc<Linked>) {
        let (request, plan) = &self.requests[(at % self.requests.len() as u64) as usize];
        let tracing = if at.is_multiple_of(TRACED_EVERY) { Tracing::Recorded } else { Tracing::AsAsked };
        let user = load.requests.user(at).map(Id::Int);
        let is_other = user.is_some();
        let mut request = request.repeat(user, tracing);
        // Those that are listed were put into theirs when they were read.
        let plan = if is_other { self.running.take_arms(&mut request) } else { plan };
        (request, plan)
    }

    fn is_asked(&self, plan: &Arc<Linked>) -> bool {
        Arc::ptr_eq(plan, &self.running.plan)
    }

    /// One thread that starts requests and takes answers as they come.
    fn drive(&self, load: &Load, ends: Ends, bar: &mut say::Progress) -> Tally {
        let mut tally = Tally::default();
        let (sink, answers) = unbounded();
        // Given up when all are started, so that answers that will never come end the wait.
        let mut sink = Some(sink);
        let began = clock::now();
        let due = |at: u64| load.rate.map(|rate| began + Duration::from_secs_f64(at as f64 / rate as f64));
        let (mut started, mut ended) = (0, 0);
        let mut shown = began;
        loop {
            if sink.is_some() && !ends.go_on(started, began, clock::now) {
                sink = None;
            }
            if sink.is_none() && ended == started {
                return tally;
            }
            let may_start = match due(started) {
                Some(due) => clock::now() >= due,
                None => started - ended < load.concurrency,
            };
            if let Some(open) = sink.clone().filter(|_| may_start) {
                let from = due(started).unwrap_or_else(clock::now);
                let (request, plan) = self.request(load, started);
                let ran = plan.clone();
                self.running.engine.start_run_then(plan, request, move |outcome| {
                    // The receiver lives until every answer is in.
                    let _ = open.send((from, clock::now(), ran, outcome));
                });
                started += 1;
                continue;
            }
            let answer = match due(started).filter(|_| sink.is_some()) {
                Some(next) => answers.recv_deadline(next.into_std()),
                None => answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match answer {
                Ok((from, to, plan, outcome)) => {
                    ended += 1;
                    tally.add(to.saturating_duration_since(from), (&plan, self.is_asked(&plan)), &outcome);
                    if to.saturating_duration_since(shown) >= TICK {
                        shown = to;
                        bar.at(ends.progress(ended, to.saturating_duration_since(began)));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return tally,
            }
        }
    }

    /// As many threads as requests in flight, for the schedulers that work on their caller's thread.
    fn crowd(&self, load: &Load, ends: Ends, bar: &mut say::Progress) -> Tally {
        let next = AtomicU64::new(0);
        let began = clock::now();
        let one = || {
            let mut tally = Tally::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if !ends.go_on(at, began, clock::now) {
                    return tally;
                }
                let (request, plan) = self.request(load, at);
                let outcome = self.running.engine.run(plan, request);
                tally.add(outcome.took, (plan, self.is_asked(plan)), &outcome);
            }
        };
        let mut tally = Tally::default();
        std::thread::scope(|scope| {
            let (sink, tallies) = unbounded();
            for _ in 0..load.concurrency {
                let sink = sink.clone();
                // The receiver lives until every thread has ended.
                scope.spawn(move || drop(sink.send(one())));
            }
            drop(sink);
            loop {
                match tallies.recv_timeout(TICK) {
                    Ok(other) => tally.merge(&other),
                    Err(RecvTimeoutError::Timeout) => {
                        let took = clock::now().saturating_duration_since(began);
                        bar.at(ends.progress(next.load(Ordering::Relaxed), took));
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        tally
    }
}

/// The requests for a plan as the engine takes them, in their arms of experiments, each with the plan that answers; at least one.
pub(crate) fn read_requests<'a>(
    requests: &Requests,
    running: &'a PlanEngine,
) -> Result<Vec<(Prepared, &'a Arc<Linked>)>, CommandError> {
    let texts: Vec<_> = match requests {
        Requests::Listed(texts) => (0..texts.len() as u64).map(|at| requests.text(at)).collect(),
        Requests::Users(..) => vec![requests.text(0)],
    };
    let (registry, plan) = (&running.loaded.registry, &running.plan);
    let read = texts.iter().enumerate().map(|(at, text)| {
        let read = match requests {
            Requests::Listed(_) => {
                running.prepare(text.as_bytes(), Tracing::AsAsked).map(|(prepared, plan, _)| (prepared, plan))
            }
            // It is repeated for users, each of whom is in arms of their own.
            Requests::Users(..) => {
                prepare(text.as_bytes(), registry, &plan.name, Tracing::AsAsked).map(|prepared| (prepared, plan))
            }
        };
        read.map_err(|refused| CommandError::Wrong(format!("request {}: {}", at + 1, refused.error.message)))
    });
    read.collect()
}
