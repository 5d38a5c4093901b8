//! An explanation for programs.

use crate::answer::{write_degraded, write_fallback, write_row_counts, write_short};
use crate::explain::{Explanation, micros, millis};
use crate::outputs::write_outputs;
use rankd_engine::Outcome;
use rankd_engine::degraded::StandIn;
use rankd_engine::steps::Step;
use rankd_engine::trace::NodeTrace;
use rankd_plan::json::Writer;
use rankd_plan::plan::NodeIx;

impl Explanation<'_> {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("plan").string(&self.plan.name);
            w.field("scheduler").string(self.scheduler.name());
            w.field("settings").object(|w| {
                w.field("inline").bool(self.policy.inline).field("chaining").bool(self.policy.chaining);
                w.field("inline_threshold_ns").int(self.policy.inline_threshold_ns.into());
                w.field("max_inline_depth").int(self.policy.max_inline_depth.into());
            });
            w.field("written").array(|w| {
                for ix in 0..self.plan.nodes.len() as NodeIx {
                    w.object(|w| self.node(ix, w));
                }
            });
            let outputs = self.plan.outputs.iter().map(|output| self.name(*output));
            write_outputs(self.plan.output_names.as_deref(), outputs, w.field("outputs"));
            self.names("not_run", &self.unneeded().collect::<Vec<_>>(), w);
            w.field("steps").array(|w| {
                let steps = self.steps();
                for ix in &steps.order {
                    w.object(|w| self.step(steps.step(*ix), w));
                }
            });
            self.write_experiments(w);
            if let Some(outcome) = self.analyzed {
                w.field("analyzed").object(|w| self.run(outcome, w));
            }
        });
        writer.finish()
    }

    fn names(&self, field: &str, nodes: &[NodeIx], w: &mut Writer) {
        w.field(field).array(|w| {
            for node in nodes {
                w.string(self.name(*node));
            }
        });
    }

    fn node(&self, ix: NodeIx, w: &mut Writer) {
        let node = self.plan.node(ix);
        w.field("node").string(&node.id).field("op").string(node.op);
        if let Some(label) = &node.label {
            w.field("label").string(label);
        }
        self.names("inputs", &node.inputs, w);
        if let Some(fallback) = node.fallback {
            write_fallback(self.plan, StandIn::Substitute(fallback), w.field("fallback"));
        }
        for (field, holds) in [("conditional", node.has_condition), ("lazy", node.lazy)] {
            if holds {
                w.field(field).bool(true);
            }
        }
        if let Some(keys) = &node.log {
            w.field("log").array(|w| {
                for (_, name) in keys {
                    w.string(name);
                }
            });
        }
        if let Some(at) = node.at() {
            w.field("at").string(at);
        }
    }

    fn step(&self, step: &Step, w: &mut Writer) {
        self.names("nodes", &step.nodes, w);
        self.names("inputs", &step.inputs, w);
        w.field("ways").array(|w| {
            for way in self.ways(step) {
                w.string(way);
            }
        });
        w.field("expected").string(&self.expected(step));
        if let Some(next) = self.chains_into(step) {
            w.field("chains_into").string(self.name(next));
        }
        let cost = step.cost.line();
        if cost.fixed_ns.is_finite() {
            w.field("cost").object(|w| {
                w.field("fixed_ns").float(cost.fixed_ns.into()).field("per_row_ns").float(cost.per_row_ns.into());
                w.field("samples").int(cost.samples.into());
            });
        }
        if let Some(times) = self.usual_times(step) {
            w.field("times").object(|w| {
                w.field("p50_ms").float(millis(times.p50)).field("p95_ms").float(millis(times.p95));
                w.field("reserve_ms").float(millis(times.reserve)).field("samples").int(times.samples.into());
            });
        }
    }

    fn run(&self, outcome: &Outcome, w: &mut Writer) {
        w.field("took_us").float(outcome.took.as_secs_f64() * 1e6);
        match &outcome.result {
            Ok(outputs) => {
                w.field("rows").int(outputs.iter().map(|rows| rows.len() as i64).sum());
            }
            Err(error) => {
                w.field("error").string(&error.to_string());
            }
        }
        if !outcome.degraded.is_empty() {
            write_degraded(self.plan, &outcome.degraded, w.field("degraded"));
        }
        if !outcome.short.is_empty() {
            write_short(self.plan, &outcome.short, w.field("short"));
        }
        w.field("nodes").array(|w| {
            for record in outcome.trace.iter().flat_map(|trace| &trace.nodes) {
                w.object(|w| self.record_json(record, w));
            }
        });
        self.names("critical_path", &self.critical_path(), w);
    }

    fn record_json(&self, record: &NodeTrace, w: &mut Writer) {
        w.field("node").string(self.name(record.node));
        w.field("where").string(&record.on.name());
        w.field("outcome").string(record.end.name());
        if let Some(fallback) = self.taken(record.node) {
            write_fallback(self.plan, fallback, w.field("fallback"));
        }
        w.field("rows_in").int(record.rows_in as i64).field("rows_out").int(record.rows_out as i64);
        write_row_counts(record, w);
        w.field("start_us").float(micros(record.start_ns));
        w.field("took_us").float(micros(record.end_ns - record.start_ns));
        if let Some(queue_ns) = record.queue_ns() {
            w.field("queue_us").float(micros(queue_ns));
        }
        if record.inlined.is_some() {
            w.field("inlined").bool(true);
        }
        for (field, other) in [("chained_after", record.chained_after), ("fused_into", record.fused_into)] {
            if let Some(other) = other {
                w.field(field).string(self.name(other));
            }
        }
        if record.commands > 0 {
            w.field("commands").int(record.commands as i64).field("bytes").int(record.bytes as i64);
        }
        w.field("critical").bool(record.critical);
    }
}
