//! `rankd bench`: one plan under load, closed or open loop; a table for people and one JSON object for programs.
//!
//! Closed loop: so many requests are kept in flight. Open loop (`--rate`): requests start when they are due, whatever became of
//! those before, and their latency counts from then on, so that a slow answer cannot hide the ones that waited behind it.
//! Errors never stop a bench; they are counted by kind.

use crate::cli::bench_url;
use crate::cli::listing::Listing;
use crate::cli::run::{self, RunArgs};
use crate::cli::{DONE, WRONG, say};
use crate::files;
use crate::input;
use crate::library::LoadedRegistry;
use crate::process;
use clap::Args;
use crossbeam_channel::{RecvTimeoutError, unbounded};
use hdrhistogram::Histogram;
use rankd_engine::trace::Trace;
use rankd_engine::{Engine, ErrorKind, Linked, Outcome, Policy, Request, Scheduler, clock};
use rankd_plan::json::Writer;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One request in so many is traced, so that times of nodes are known and the others are not slowed down.
const TRACED_EVERY: u64 = 16;
/// The largest file of requests.
const REQUESTS_BYTES_MAX: usize = 64 << 20;

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// Name or file of the plan
    #[arg(value_name = "PLAN", required_unless_present = "url")]
    target: Option<String>,
    /// Drive a server instead: the address of its plan, such as http://127.0.0.1:8080/rank/feed
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    url: Option<String>,
    /// How many requests to make
    #[arg(short = 'n', long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    /// How many requests to keep in flight; with --url, how many connections to have
    #[arg(short = 'c', long, value_name = "C", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    concurrency: u64,
    #[command(flatten)]
    load: LoadArgs,
    /// Print only the JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LoadArgs {
    /// Start so many requests a second, whatever became of those before
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) rate: Option<u64>,
    /// A file of requests, one JSON document a line, used over and over
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
}

pub(crate) fn run(args: &BenchArgs) -> u8 {
    let load = Load { iterations: args.iterations, concurrency: args.concurrency, more: args.load.clone() };
    match (&args.url, &args.target) {
        (Some(url), _) => bench_url::run(url, &load, args.json),
        (None, Some(plan)) => bench(&args.run.with_plan(plan), &load, args.json),
        // Refused when the command line is read.
        (None, None) => WRONG,
    }
}

/// How a plan is put under load.
pub(crate) struct Load {
    pub(crate) iterations: u64,
    pub(crate) concurrency: u64,
    pub(crate) more: LoadArgs,
}

/// Runs a bench of the plan that the flags name.
pub(crate) fn bench(args: &RunArgs, load: &Load, json_only: bool) -> u8 {
    let Some((loaded, plan, _, engine)) = run::prepare(args) else { return WRONG };
    let requests = match requests(load, &loaded) {
        Ok(requests) => requests,
        Err(message) => {
            say::to_people(&format!("error: {message}"));
            return WRONG;
        }
    };
    let mut bar = say::Progress::new("bench", load.iterations as usize);
    let began = clock::now();
    let cpu_before = process::cpu_seconds();
    let mut tally = Tally::default();
    match (engine.settings().scheduler, load.more.rate) {
        (Scheduler::Async, _) | (_, Some(_)) => drive(&engine, &plan, &requests, load, &mut tally, &mut bar),
        _ => crowd(&engine, &plan, &requests, load, &mut tally),
    }
    let wall = clock::now().saturating_duration_since(began);
    bar.at(load.iterations as usize);
    let report = Report {
        plan: &plan,
        engine: &engine,
        load,
        loaded: &loaded,
        tally: &tally,
        wall,
        cpu: process::cpu_seconds() - cpu_before,
    };
    if !json_only {
        say::to_people(&report.table());
    }
    say::to_programs(&report.json());
    engine.stop(Duration::from_secs(5));
    DONE
}

/// The requests to make as they were written, at least one.
pub(crate) fn request_texts(load: &Load) -> Result<Vec<String>, String> {
    let text = match &load.more.request {
        None => "{\"user_id\": 1}".to_owned(),
        Some(path) => {
            files::read_named_text(path, REQUESTS_BYTES_MAX).map_err(|error| format!("{}: {error}", path.display()))?
        }
    };
    let texts: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    if texts.is_empty() { Err("there is no request in the file".into()) } else { Ok(texts) }
}

/// The same, read.
fn requests(load: &Load, loaded: &LoadedRegistry) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    for (at, line) in request_texts(load)?.iter().enumerate() {
        match input::read(line.as_bytes(), &loaded.registry) {
            Ok(input) => requests.push(input.request),
            Err(refused) => return Err(format!("request {}: {}", at + 1, refused.error.message)),
        }
    }
    Ok(requests)
}

/// The `at`th request; some are traced.
fn request(requests: &[Request], at: u64) -> Request {
    let request = requests[(at % requests.len() as u64) as usize].clone();
    Request { trace: at.is_multiple_of(TRACED_EVERY), ..request }
}

/// One thread that starts requests and takes answers as they come.
fn drive(
    engine: &Engine,
    plan: &Arc<Linked>,
    requests: &[Request],
    load: &Load,
    tally: &mut Tally,
    bar: &mut say::Progress,
) {
    let (sink, answers) = unbounded();
    // Given up when all are started, so that answers that will never come end the wait.
    let mut sink = Some(sink);
    let began = clock::now();
    let due = |at: u64| load.more.rate.map(|rate| began + Duration::from_secs_f64(at as f64 / rate as f64));
    let (mut started, mut ended) = (0, 0);
    while ended < load.iterations {
        let may_start = started < load.iterations
            && match due(started) {
                Some(due) => clock::now() >= due,
                None => started - ended < load.concurrency,
            };
        if let Some(open) = sink.clone().filter(|_| may_start) {
            let from = due(started).unwrap_or_else(clock::now);
            engine.start_run_then(plan, request(requests, started), move |outcome| {
                // The receiver lives until every answer is in.
                let _ = open.send((from, clock::now(), outcome));
            });
            started += 1;
            if started == load.iterations {
                sink = None;
            }
            continue;
        }
        let next = due(started).filter(|_| started < load.iterations);
        let answer = match next {
            Some(next) => answers.recv_deadline(next.into_std()),
            None => answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok((from, to, outcome)) => {
                ended += 1;
                tally.add(to.saturating_duration_since(from), &outcome);
                if ended.is_multiple_of(256) {
                    bar.at(ended as usize);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// As many threads as requests in flight, for the schedulers that work on their caller's thread.
fn crowd(engine: &Engine, plan: &Arc<Linked>, requests: &[Request], load: &Load, tally: &mut Tally) {
    let next = AtomicU64::new(0);
    let tallies = std::thread::scope(|scope| {
        let one = || {
            let mut tally = Tally::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= load.iterations {
                    return tally;
                }
                let outcome = engine.run(plan, request(requests, at));
                tally.add(outcome.took, &outcome);
            }
        };
        let threads: Vec<_> = (0..load.concurrency).map(|_| scope.spawn(one)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    tallies.iter().for_each(|other| tally.merge(other));
}

/// What came back.
pub(crate) struct Tally {
    pub(crate) nanos: Histogram<u64>,
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// By node: traced runs, and their run and queue times.
    nodes: BTreeMap<u32, (u64, u64, u64)>,
}

impl Default for Tally {
    fn default() -> Tally {
        // Three digits over the range that is given always make a histogram.
        let nanos = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constants that are known to be good");
        Tally { nanos, errors: BTreeMap::new(), nodes: BTreeMap::new() }
    }
}

impl Tally {
    fn add(&mut self, took: Duration, outcome: &Outcome) {
        self.nanos.saturating_record(took.as_nanos() as u64);
        if let Err(error) = &outcome.result {
            *self.errors.entry(error.kind.name()).or_default() += 1;
        }
        for node in outcome.trace.iter().flat_map(|Trace { nodes, .. }| nodes) {
            let (runs, run_ns, queue_ns) = self.nodes.entry(node.node).or_default();
            *runs += 1;
            *run_ns += node.end_ns - node.start_ns;
            *queue_ns += node.queue_ns().unwrap_or(0);
        }
    }

    fn merge(&mut self, other: &Tally) {
        // Both have the same bounds.
        let _ = self.nanos.add(&other.nanos);
        for (kind, count) in &other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        for (node, (runs, run_ns, queue_ns)) in &other.nodes {
            let ours = self.nodes.entry(*node).or_default();
            *ours = (ours.0 + runs, ours.1 + run_ns, ours.2 + queue_ns);
        }
    }
}

/// The latencies that are told, in microseconds.
pub(crate) fn latencies(nanos: &Histogram<u64>) -> [(&'static str, f64); 7] {
    let at = |quantile: f64| nanos.value_at_quantile(quantile) as f64 / 1e3;
    [
        ("min", nanos.min() as f64 / 1e3),
        ("mean", nanos.mean() / 1e3),
        ("p50", at(0.5)),
        ("p90", at(0.9)),
        ("p99", at(0.99)),
        ("p99.9", at(0.999)),
        ("max", nanos.max() as f64 / 1e3),
    ]
}

struct Report<'a> {
    plan: &'a Linked,
    engine: &'a Engine,
    loaded: &'a LoadedRegistry,
    load: &'a Load,
    tally: &'a Tally,
    wall: Duration,
    cpu: f64,
}

impl Report<'_> {
    fn throughput(&self) -> f64 {
        self.load.iterations as f64 / self.wall.as_secs_f64()
    }

    fn errors(&self) -> u64 {
        self.tally.errors.values().sum()
    }

    /// Commands to each endpoint, by name.
    fn commands(&self) -> impl Iterator<Item = (&str, u64)> {
        let endpoints = self.loaded.registry.endpoints.list().iter();
        endpoints.zip(self.engine.stats().commands()).map(|(endpoint, count)| (endpoint.name.as_str(), count))
    }

    /// Which part of all computations ran on an event loop.
    fn inline_rate(&self) -> f64 {
        let stats = self.engine.stats();
        let all = stats.inlined() + stats.chained() + stats.offloads();
        if all == 0 { 0.0 } else { stats.inlined() as f64 / all as f64 }
    }

    fn table(&self) -> String {
        let Load { iterations, concurrency, more } = self.load;
        let scheduler = self.engine.settings().scheduler.name();
        let load = match more.rate {
            Some(rate) => format!("{rate} a second"),
            None => format!("{concurrency} in flight"),
        };
        let mut out = format!("{}: {iterations} requests, {load}, scheduler {scheduler}\n", self.plan.name);
        out +=
            &format!("{:.0} a second, {} errors, {:.2} s\n", self.throughput(), self.errors(), self.wall.as_secs_f64());
        let stats = self.engine.stats();
        out += &format!(
            "{:.1} % of computations inline, {} chained, {} round trips to the CPU pool\n\n",
            100.0 * self.inline_rate(),
            stats.chained(),
            stats.offloads()
        );
        let mut latency = Listing::new(&["latency", "µs"]);
        for (name, micros) in latencies(&self.tally.nanos) {
            latency.row(vec![name.to_owned(), format!("{micros:.1}")]);
        }
        let mut nodes = Listing::new(&["node", "op", "run µs", "queue µs"]);
        for (node, (runs, run_ns, queue_ns)) in &self.tally.nodes {
            let linked = self.plan.node(*node);
            let mean = |nanos: &u64| format!("{:.1}", *nanos as f64 / *runs as f64 / 1e3);
            nodes.row(vec![linked.id.to_string(), linked.op.to_owned(), mean(run_ns), mean(queue_ns)]);
        }
        out + &latency.render() + "\n" + &nodes.render()
    }

    fn json(&self) -> String {
        let (settings, stats) = (self.engine.settings(), self.engine.stats());
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("plan").string(&self.plan.name);
            w.field("scheduler").string(settings.scheduler.name());
            w.field("settings").object(|w| {
                w.field("loops").int(settings.loops as i64).field("cpu_threads").int(settings.cpu_threads as i64);
                for (name, limit) in [("deadline_ms", settings.deadline), ("node_timeout_ms", settings.node_timeout)] {
                    if let Some(limit) = limit {
                        w.field(name).int(limit.as_millis() as i64);
                    }
                }
                let Policy { inline, chaining, inline_threshold_ns, max_inline_depth } = settings.policy;
                w.field("inline").bool(inline).field("chaining").bool(chaining);
                w.field("inline_threshold_ns").int(inline_threshold_ns.into());
                w.field("max_inline_depth").int(max_inline_depth.into());
            });
            w.field("iterations").int(self.load.iterations as i64);
            w.field("concurrency").int(self.load.concurrency as i64);
            if let Some(rate) = self.load.more.rate {
                w.field("rate").int(rate as i64);
            }
            w.field("errors").object(|w| {
                for kind in ErrorKind::ALL {
                    if let Some(count) = self.tally.errors.get(kind.name()) {
                        w.field(kind.name()).int(*count as i64);
                    }
                }
            });
            w.field("wall_s").float(self.wall.as_secs_f64()).field("throughput_per_s").float(self.throughput());
            w.field("latency_us").object(|w| {
                for (name, micros) in latencies(&self.tally.nanos) {
                    w.field(name).float(micros);
                }
            });
            w.field("nodes").array(|w| {
                for (node, (runs, run_ns, queue_ns)) in &self.tally.nodes {
                    let linked = self.plan.node(*node);
                    w.object(|w| {
                        w.field("node").string(&linked.id).field("op").string(linked.op);
                        w.field("traced_runs").int(*runs as i64);
                        w.field("run_us").float(*run_ns as f64 / *runs as f64 / 1e3);
                        w.field("queue_us").float(*queue_ns as f64 / *runs as f64 / 1e3);
                    });
                }
            });
            w.field("inline_rate").float(self.inline_rate());
            w.field("inlined_nodes").int(stats.inlined() as i64).field("chained_nodes").int(stats.chained() as i64);
            w.field("offload_round_trips").int(stats.offloads() as i64);
            w.field("late_completions").int(stats.late_completions() as i64);
            w.field("commands").object(|w| {
                for (name, count) in self.commands() {
                    w.field(name).int(count as i64);
                }
            });
            w.field("cpu_s").float(self.cpu);
            if let Some(bytes) = process::peak_bytes() {
                w.field("peak_rss_bytes").int(bytes as i64);
            }
        });
        writer.finish()
    }
}
