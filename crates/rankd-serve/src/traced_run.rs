//! What is recorded of a traced run: the metrics of its ops, and a line for each of its nodes where `--audit_log` asks for them.

use crate::request_scope::RequestScope;
use rankd_edge::answer::{taken, write_fallback, write_row_counts};
use rankd_edge::date;
use rankd_engine::{Linked, Outcome};
use rankd_plan::json::Writer;

pub(crate) fn record(scope: &RequestScope, plan: &Linked, outcome: &Outcome) {
    let Some(trace) = &outcome.trace else { return };
    scope.loop_state.metrics.count_trace(plan, trace);
    if let Some(console) = &scope.loop_state.app.console {
        console.nodes.record(plan, trace);
    }
    let log = &scope.loop_state.app.log;
    if !log.audit {
        return;
    }
    let (at, taken) = (date::now(), taken(&outcome.degraded));
    for node in &trace.nodes {
        let linked = plan.node(node.node);
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("at").string(&at);
            w.field("request_id").string(&scope.request_id);
            if let Some(context) = &scope.trace_context {
                w.field("trace_id").string(&context.trace_id());
            }
            w.field("plan").string(&plan.name);
            w.field("node").string(&linked.id);
            w.field("op").string(linked.op);
            w.field("where").string(&node.on.name());
            w.field("outcome").string(node.end.name());
            if let Some(fallback) = taken.get(&node.node) {
                write_fallback(plan, *fallback, w.field("fallback"));
            }
            w.field("start_us").float(node.start_ns as f64 / 1e3);
            w.field("took_us").float(node.end_ns.saturating_sub(node.start_ns) as f64 / 1e3);
            w.field("rows_in").int(node.rows_in as i64);
            w.field("rows_out").int(node.rows_out as i64);
            write_row_counts(node, w);
            w.field("commands").int(node.commands as i64);
            if let Some(detail) = &node.detail {
                w.field("detail").string(detail);
            }
        });
        log.nodes(writer.finish());
    }
}
