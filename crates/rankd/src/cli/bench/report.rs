//! What a bench of a plan tells: a table and a picture for people, one JSON object for programs.

use crate::cli::bench::drive::Tally;
use crate::cli::bench::gates::{Figures, Gate};
use crate::cli::bench::load::Load;
use crate::cli::bench::picture;
use crate::cli::{DONE, FAILED, say};
use hdrhistogram::Histogram;
use rankd_edge::listing::Listing;
use rankd_edge::process;
use rankd_edge::registry_files::LoadedRegistry;
use rankd_engine::stats::Stats;
use rankd_engine::{Engine, Linked, Policy};
use rankd_plan::json::Writer;
use std::time::Duration;

/// What is to become of the report.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Only the JSON.
    pub(crate) json: bool,
    pub(crate) baseline: Option<Figures>,
    pub(crate) gates: Vec<Gate>,
}

impl Wanted {
    /// Tells the report and judges it; gives the exit code.
    pub(crate) fn tell(&self, table: &str, json: &str) -> u8 {
        let (to_people, to_programs) = channels(self.json, say::programs_are_people());
        if to_people {
            say::to_people(table);
        }
        if to_programs {
            say::to_programs(json);
        }
        let figures = match Figures::of_report(json) {
            Ok(figures) => figures,
            Err(why) => {
                say::to_people(&format!("bug: the report cannot be read: {why}"));
                return FAILED;
            }
        };
        if let Some(before) = self.baseline.as_ref().filter(|_| to_people) {
            say::to_people(&format!("\n{}", figures.beside(before)));
        }
        let failures = self.gates.iter().filter_map(|gate| gate.failure(&figures, self.baseline.as_ref()));
        let failures: Vec<String> = failures.collect();
        failures.iter().for_each(|failure| say::to_people(failure));
        if failures.is_empty() { DONE } else { FAILED }
    }
}

/// Whether the table and whether the JSON is told. Never both on one screen.
fn channels(json_only: bool, stdout_is_a_terminal: bool) -> (bool, bool) {
    (!json_only, json_only || !stdout_is_a_terminal)
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

/// How many requests failed and of what, and how many got less than they should, in words.
pub(crate) fn troubles_in_words(tally: &Tally) -> String {
    let mut words = "no errors".to_owned();
    if !tally.errors.is_empty() {
        let kinds: Vec<String> = tally.errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let (failed, share) = (tally.failed(), 100.0 * tally.error_share());
        words = format!("{failed} without rows ({share:.2} %): {}", kinds.join(", "));
    }
    if tally.degraded > 0 {
        let nodes: Vec<String> = tally.degraded_nodes.iter().map(|(node, count)| format!("{count} {node}")).collect();
        let (degraded, share) = (tally.degraded, 100.0 * tally.degraded_share());
        words += &format!("; {degraded} degraded ({share:.2} %): {}", nodes.join(", "));
    }
    words
}

/// What all benches tell programs of requests that failed or got less than they should.
pub(crate) fn write_troubles(w: &mut Writer, tally: &Tally) {
    w.field("errors").object(|w| {
        for (kind, count) in &tally.errors {
            w.field(kind).int(*count as i64);
        }
    });
    w.field("error_share").float(tally.error_share());
    w.field("degraded").object(|w| {
        for (node, count) in &tally.degraded_nodes {
            w.field(node).int(*count as i64);
        }
    });
    w.field("degraded_share").float(tally.degraded_share());
}

/// What all benches tell programs of the load.
pub(crate) fn write_load(w: &mut Writer, load: &Load, tally: &Tally) {
    w.field("iterations").int(tally.ended() as i64);
    w.field("concurrency").int(load.concurrency as i64);
    if let Some(rate) = load.rate {
        w.field("rate").int(rate as i64);
    }
    if let Some(warmup) = load.warmup {
        w.field("warmup").string(&warmup.shown());
    }
}

/// What an engine has counted, so that a warm-up can be taken off.
pub(crate) struct Counted {
    inlined: u64,
    chained: u64,
    offloads: u64,
    late: u64,
    wasted_ns: u64,
    commands: Vec<u64>,
}

impl Counted {
    pub(crate) fn now(stats: &Stats) -> Counted {
        Counted {
            inlined: stats.inlined(),
            chained: stats.chained(),
            offloads: stats.offloads(),
            late: stats.late_completions(),
            wasted_ns: stats.wasted_ns(),
            commands: stats.commands().collect(),
        }
    }

    pub(crate) fn since(&self, before: &Counted) -> Counted {
        Counted {
            inlined: self.inlined - before.inlined,
            chained: self.chained - before.chained,
            offloads: self.offloads - before.offloads,
            late: self.late - before.late,
            wasted_ns: self.wasted_ns - before.wasted_ns,
            commands: self.commands.iter().zip(&before.commands).map(|(now, before)| now - before).collect(),
        }
    }

    /// Which part of all computations ran on an event loop.
    fn inline_rate(&self) -> f64 {
        let all = self.inlined + self.chained + self.offloads;
        if all == 0 { 0.0 } else { self.inlined as f64 / all as f64 }
    }
}

pub(crate) struct PlanReport<'a> {
    pub(crate) plan: &'a Linked,
    pub(crate) engine: &'a Engine,
    pub(crate) loaded: &'a LoadedRegistry,
    pub(crate) load: &'a Load,
    pub(crate) tally: &'a Tally,
    pub(crate) counted: Counted,
    pub(crate) wall: Duration,
    pub(crate) cpu: f64,
}

impl PlanReport<'_> {
    fn a_second(&self, count: u64) -> f64 {
        count as f64 / self.wall.as_secs_f64()
    }

    /// Which part of all CPU time went into nodes that finished after their run had answered.
    fn wasted_share(&self) -> f64 {
        let wasted = self.counted.wasted_ns as f64 / 1e9;
        // Nodes are timed by the clock, which counts waiting for a core as well.
        if self.cpu > 0.0 { (wasted / self.cpu).min(1.0) } else { 0.0 }
    }

    pub(crate) fn table(&self) -> String {
        let (tally, counted) = (self.tally, &self.counted);
        let scheduler = self.engine.settings().scheduler.name();
        let load = match self.load.rate {
            Some(rate) => format!("{rate} a second"),
            None => format!("{} in flight", self.load.concurrency),
        };
        let mut out = format!("{}: {} requests, {load}, scheduler {scheduler}\n", self.plan.name, tally.ended());
        let (throughput, seconds) = (self.a_second(tally.ended()), self.wall.as_secs_f64());
        out += &format!("{throughput:.0} a second, {seconds:.2} s, {}\n", troubles_in_words(tally));
        out += &format!(
            "{:.1} % of computations inline, {} chained, {} round trips to the CPU pool\n",
            100.0 * counted.inline_rate(),
            counted.chained,
            counted.offloads
        );
        if !tally.arms.is_empty() {
            let arms = tally.arms.iter().map(|((experiment, arm), count)| format!("{experiment} {arm}: {count}"));
            out += &format!("requests in arms of experiments: {}\n", arms.collect::<Vec<_>>().join(", "));
        }
        if counted.late > 0 {
            let share = 100.0 * self.wasted_share();
            out += &format!(
                "{} nodes finished after their run had answered, {share:.1} % of all CPU time\n",
                counted.late
            );
        }
        out.push('\n');
        let mut latency = Listing::new(&["latency", "µs"]);
        for (name, micros) in latencies(&tally.nanos) {
            latency.row(vec![name.to_owned(), format!("{micros:.1}")]);
        }
        let mut nodes = Listing::new(&["node", "op", "run µs", "queue µs"]);
        for (node, (runs, run_ns, queue_ns)) in &tally.nodes {
            let linked = self.plan.node(*node);
            let mean = |nanos: &u64| format!("{:.1}", *nanos as f64 / *runs as f64 / 1e3);
            nodes.row(vec![linked.id.to_string(), linked.op.to_owned(), mean(run_ns), mean(queue_ns)]);
        }
        out + &latency.render() + "\n" + &picture::picture(&tally.nanos) + "\n" + &nodes.render()
    }

    pub(crate) fn json(&self) -> String {
        let (settings, tally, counted) = (self.engine.settings(), self.tally, &self.counted);
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
            write_load(w, self.load, tally);
            write_troubles(w, tally);
            if !tally.arms.is_empty() {
                w.field("arms").array(|w| {
                    for ((experiment, arm), count) in &tally.arms {
                        w.object(|w| {
                            w.field("experiment").string(experiment).field("arm").string(arm);
                            w.field("requests").int(*count as i64);
                        });
                    }
                });
            }
            w.field("wall_s").float(self.wall.as_secs_f64());
            w.field("throughput_per_s").float(self.a_second(tally.ended()));
            w.field("goodput_per_s").float(self.a_second(tally.ended() - tally.failed()));
            w.field("latency_us").object(|w| {
                for (name, micros) in latencies(&tally.nanos) {
                    w.field(name).float(micros);
                }
            });
            picture::write(&tally.nanos, w.field("histogram"));
            w.field("nodes").array(|w| {
                for (node, (runs, run_ns, queue_ns)) in &tally.nodes {
                    let linked = self.plan.node(*node);
                    w.object(|w| {
                        w.field("node").string(&linked.id).field("op").string(linked.op);
                        w.field("traced_runs").int(*runs as i64);
                        w.field("run_us").float(*run_ns as f64 / *runs as f64 / 1e3);
                        w.field("queue_us").float(*queue_ns as f64 / *runs as f64 / 1e3);
                    });
                }
            });
            w.field("inline_rate").float(counted.inline_rate());
            w.field("inlined_nodes").int(counted.inlined as i64).field("chained_nodes").int(counted.chained as i64);
            w.field("offload_round_trips").int(counted.offloads as i64);
            w.field("late_completions").int(counted.late as i64);
            w.field("wasted_cpu_share").float(self.wasted_share());
            w.field("commands").object(|w| {
                for (endpoint, count) in self.loaded.registry.endpoints.list().iter().zip(&counted.commands) {
                    w.field(&endpoint.name).int(*count as i64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_json_never_meet_on_one_screen() {
        assert_eq!(channels(false, true), (true, false));
        assert_eq!(channels(true, true), (false, true));
        assert_eq!(channels(false, false), (true, true));
        assert_eq!(channels(true, false), (false, true));
    }
}
