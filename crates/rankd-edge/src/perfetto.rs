//! Traces as Chrome trace-event JSON, which Perfetto and about:tracing open.
//!
//! A lane holds one thing at a time: the runs, the loop's own work, each thread of a pool, and as many lanes for reads as were in flight at once.

use crate::answer::{taken, write_fallback, write_row_counts, write_seed};
use rankd_engine::trace::{NodeTrace, Where};
use rankd_engine::{Linked, Outcome};
use rankd_plan::json::Writer;

/// The events of all requests so far.
#[derive(Default)]
pub struct Perfetto {
    events: Writer,
    lanes: Vec<String>,
    /// Until when each lane is taken, in nanoseconds.
    taken: Vec<u64>,
}

impl Perfetto {
    /// Adds a run that began so long after the first one did, where it was traced.
    pub fn add(&mut self, plan: &Linked, request_id: &str, outcome: &Outcome, offset_ns: u64) {
        let Some(trace) = &outcome.trace else { return };
        let taken = taken(&outcome.degraded);
        let lane = self.lane("runs", offset_ns, offset_ns + trace.total_ns);
        self.event(&format!("{} {request_id}", plan.name), "run", lane, offset_ns, trace.total_ns, |w| {
            write_seed(outcome, w)
        });
        let mut nodes: Vec<&NodeTrace> = trace.nodes.iter().collect();
        nodes.sort_by_key(|node| node.start_ns);
        for node in nodes {
            let kind = match node.on {
                Where::Loop if node.inlined.is_none() => "reads".to_owned(),
                other => other.name(),
            };
            let (start, end) = (offset_ns + node.start_ns, offset_ns + node.end_ns);
            let lane = self.lane(&kind, start, end);
            let linked = plan.node(node.node);
            let category = if node.critical { "critical" } else { "node" };
            self.event(&format!("{} {}", linked.id, linked.op), category, lane, start, end - start, |w| {
                w.field("outcome").string(node.end.name());
                if let Some(fallback) = taken.get(&node.node) {
                    write_fallback(plan, *fallback, w.field("fallback"));
                }
                w.field("rows_in").int(node.rows_in as i64);
                w.field("rows_out").int(node.rows_out as i64);
                write_row_counts(node, w);
                w.field("critical").bool(node.critical);
                if let Some(queue_ns) = node.queue_ns() {
                    w.field("queue_us").float(queue_ns as f64 / 1e3);
                }
                if let Some(inlined) = node.inlined {
                    w.field("inline_depth").int(inlined.depth.into());
                }
                if let Some(after) = node.chained_after {
                    w.field("chained_after").string(&plan.node(after).id);
                }
                if let Some(into) = node.fused_into {
                    w.field("fused_into").string(&plan.node(into).id);
                }
                if node.commands > 0 {
                    w.field("commands").int(node.commands as i64);
                    w.field("bytes").int(node.bytes as i64);
                }
            });
        }
    }

    /// All events as one JSON document.
    pub fn finish(mut self) -> String {
        for (lane, name) in self.lanes.iter().enumerate() {
            self.events.object(|w| {
                w.field("ph").string("M").field("name").string("thread_name").field("pid").int(1);
                w.field("tid").int(lane as i64 + 1);
                w.field("args").object(|w| {
                    w.field("name").string(name);
                });
            });
        }
        format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[{}]}}\n", self.events.finish())
    }

    /// A lane of this kind that is free from `start` on.
    fn lane(&mut self, kind: &str, start: u64, end: u64) -> usize {
        let is_kind = |name: &str| name.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let free = (0..self.lanes.len()).find(|lane| is_kind(&self.lanes[*lane]) && self.taken[*lane] <= start);
        let lane = free.unwrap_or_else(|| {
            let others = self.lanes.iter().filter(|name| is_kind(name)).count();
            self.lanes.push(if others == 0 { kind.to_owned() } else { format!("{kind} {}", others + 1) });
            self.taken.push(0);
            self.lanes.len() - 1
        });
        self.taken[lane] = end;
        lane
    }

    fn event(
        &mut self,
        name: &str,
        category: &str,
        lane: usize,
        start_ns: u64,
        nanos: u64,
        args: impl FnOnce(&mut Writer),
    ) {
        self.events.object(|w| {
            w.field("ph").string("X").field("name").string(name).field("cat").string(category);
            w.field("pid").int(1).field("tid").int(lane as i64 + 1);
            w.field("ts").float(start_ns as f64 / 1e3).field("dur").float(nanos as f64 / 1e3);
            w.field("args").object(args);
        });
    }
}
