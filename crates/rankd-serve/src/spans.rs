//! A request as OpenTelemetry spans: one for itself and one for each node of its run, as OTLP's JSON.
//!
//! A loop only hands over what it knows; the text is written by the thread that sends it ([`crate::collector`]).

use crate::request_outcome::RequestOutcome;
use crate::trace_context::TraceContext;
use rankd_edge::answer::taken;
use rankd_engine::Linked;
use rankd_engine::arms::Arms;
use rankd_engine::degraded::{Degraded, StandIn, fallback_name};
use rankd_engine::trace::{End, NodeTrace, Trace};
use rankd_plan::json::Writer;
use std::sync::Arc;

/// OTLP's kinds of spans.
const INTERNAL: i64 = 1;
const SERVER: i64 = 2;
/// OTLP's status of what went wrong.
const ERROR: i64 = 2;

/// A run of a plan.
pub(crate) struct TracedRun {
    pub(crate) plan: Arc<Linked>,
    pub(crate) trace: Trace,
    /// The fallbacks that were taken.
    pub(crate) degraded: Vec<Degraded>,
    /// When it began, in nanoseconds from the start of the request.
    pub(crate) began_ns: u64,
}

/// A request that is over.
pub(crate) struct FinishedRequest {
    pub(crate) context: Option<TraceContext>,
    /// Nanoseconds since 1970.
    pub(crate) start_ns: u64,
    pub(crate) took_ns: u64,
    pub(crate) route: &'static str,
    pub(crate) status: u16,
    pub(crate) outcome: RequestOutcome,
    pub(crate) request_id: String,
    pub(crate) rows: u64,
    /// The arms of experiments that it was in.
    pub(crate) arms: Option<Arc<Arms>>,
    /// Nothing where it did not come to a run.
    pub(crate) run: Option<TracedRun>,
}

/// The body of an export.
pub(crate) fn export(all: &[FinishedRequest]) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("resourceSpans").array(|w| {
            w.object(|w| {
                w.field("resource").object(|w| {
                    w.field("attributes").array(|w| {
                        text(w, "service.name", "rankd");
                        text(w, "service.version", env!("CARGO_PKG_VERSION"));
                    });
                });
                w.field("scopeSpans").array(|w| {
                    w.object(|w| {
                        w.field("scope").object(|w| {
                            w.field("name").string("rankd").field("version").string(env!("CARGO_PKG_VERSION"));
                        });
                        w.field("spans").array(|w| all.iter().for_each(|request| request.spans(w)));
                    });
                });
            });
        });
    });
    writer.finish()
}

impl FinishedRequest {
    fn spans(&self, w: &mut Writer) {
        // Random, as the standard wants them: samplers look at the last bytes. Never zero, because of the bits that say what it is.
        let fresh = || uuid::Uuid::new_v4().as_u128();
        let trace_id = self.context.map_or_else(|| format!("{:032x}", fresh()), |context| context.trace_id());
        let span_id = || format!("{:016x}", fresh() as u64);
        let own = span_id();
        let parent = self.context.map(|context| format!("{:016x}", context.parent));
        w.object(|w| {
            ids(w, &trace_id, &own, parent.as_deref());
            w.field("name").string(&format!("POST {}", self.route)).field("kind").int(SERVER);
            times(w, self.start_ns, self.start_ns.saturating_add(self.took_ns));
            w.field("attributes").array(|w| self.attributes(w));
            self.events(w);
            // What the caller got wrong is not an error of this side.
            status(w, self.status >= 500);
        });
        let Some(run) = &self.run else { return };
        let began = self.start_ns.saturating_add(run.began_ns);
        let taken = taken(&run.degraded);
        for node in &run.trace.nodes {
            w.object(|w| {
                ids(w, &trace_id, &span_id(), Some(&own));
                w.field("name").string(run.plan.node(node.node).op).field("kind").int(INTERNAL);
                times(w, began.saturating_add(node.start_ns), began.saturating_add(node.end_ns));
                w.field("attributes").array(|w| node_attributes(w, &run.plan, node, taken.get(&node.node)));
                status(w, node.end == End::Failed);
            });
        }
    }

    /// The fallbacks that were taken. A node that was not even started has no span of its own, so they are events of the request.
    fn events(&self, w: &mut Writer) {
        let Some(run) = self.run.as_ref().filter(|run| !run.degraded.is_empty()) else { return };
        let began = self.start_ns.saturating_add(run.began_ns);
        w.field("events").array(|w| {
            for Degraded { node, reason, code, fallback, after } in &run.degraded {
                let after_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
                w.object(|w| {
                    w.field("timeUnixNano").string(&began.saturating_add(after_ns).to_string());
                    w.field("name").string("rankd.degraded");
                    w.field("attributes").array(|w| {
                        text(w, "rankd.node", &run.plan.node(*node).id);
                        text(w, "rankd.reason", reason.name());
                        code.iter().for_each(|code| text(w, "rankd.code", code.id));
                        text(w, "rankd.fallback", &fallback_name(&run.plan, *fallback).to_string());
                    });
                });
            }
        });
    }

    fn attributes(&self, w: &mut Writer) {
        text(w, "http.request.method", "POST");
        text(w, "http.route", self.route);
        number(w, "http.response.status_code", self.status.into());
        text(w, "rankd.outcome", self.outcome.name());
        text(w, "rankd.request_id", &self.request_id);
        if let Some(run) = &self.run {
            text(w, "rankd.plan", &run.plan.name);
            number(w, "rankd.rows", self.rows);
        }
        for (experiment, arm) in self.arms.iter().flat_map(|arms| arms.names()) {
            text(w, &format!("rankd.arm.{experiment}"), arm);
        }
    }
}

fn node_attributes(w: &mut Writer, plan: &Linked, node: &NodeTrace, taken: Option<&StandIn>) {
    text(w, "rankd.node", &plan.node(node.node).id);
    text(w, "rankd.where", &node.on.name());
    text(w, "rankd.outcome", node.end.name());
    if let Some(fallback) = taken {
        text(w, "rankd.fallback", &fallback_name(plan, *fallback).to_string());
    }
    number(w, "rankd.rows_in", node.rows_in);
    number(w, "rankd.rows_out", node.rows_out);
    node.noted_rows().for_each(|(name, rows)| number(w, &format!("rankd.{name}"), rows));
    number(w, "rankd.commands", node.commands);
    if let Some(detail) = &node.detail {
        text(w, "rankd.detail", detail);
    }
    attribute(w, "rankd.critical", |w| {
        w.field("boolValue").bool(node.critical);
    });
}

fn ids(w: &mut Writer, trace: &str, span: &str, parent: Option<&str>) {
    w.field("traceId").string(trace).field("spanId").string(span);
    if let Some(parent) = parent {
        w.field("parentSpanId").string(parent);
    }
}

/// Numbers of 64 bits are text in this JSON.
fn times(w: &mut Writer, start_ns: u64, end_ns: u64) {
    w.field("startTimeUnixNano").string(&start_ns.to_string());
    w.field("endTimeUnixNano").string(&end_ns.to_string());
}

fn status(w: &mut Writer, failed: bool) {
    if failed {
        w.field("status").object(|w| {
            w.field("code").int(ERROR);
        });
    }
}

fn attribute(w: &mut Writer, key: &str, value: impl FnOnce(&mut Writer)) {
    w.object(|w| {
        w.field("key").string(key);
        w.field("value").object(value);
    });
}

fn text(w: &mut Writer, key: &str, value: &str) {
    attribute(w, key, |w| {
        w.field("stringValue").string(value);
    });
}

fn number(w: &mut Writer, key: &str, value: u64) {
    attribute(w, key, |w| {
        w.field("intValue").string(&value.to_string());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{plan, tasks};
    use rankd_engine::codes;
    use rankd_engine::degraded::Reason;
    use rankd_plan::plan::Substitute;
    use std::time::Duration;

    #[test]
    fn a_fallback_that_was_taken_is_an_event_of_the_request() {
        let exported = |degraded: Vec<Degraded>| {
            let run = TracedRun { plan: Arc::new(plan(&tasks()).2), trace: Trace::default(), degraded, began_ns: 20 };
            export(&[FinishedRequest {
                context: None,
                start_ns: 1_000,
                took_ns: 500,
                route: "/rank",
                status: 200,
                outcome: RequestOutcome::Degraded,
                request_id: "r".to_owned(),
                rows: 1,
                arms: None,
                run: Some(run),
            }])
        };
        let (reason, code, after) = (Reason::NoTime, codes::LEARNED_LIMIT, Duration::from_nanos(3));
        let told = exported(vec![Degraded {
            node: 1,
            reason,
            code: Some(code),
            fallback: StandIn::Substitute(Substitute::Node(0)),
            after,
        }]);
        let attribute = |key, value| format!(r#"{{"key":"rankd.{key}","value":{{"stringValue":"{value}"}}}}"#);
        let attributes = [("node", "w"), ("reason", "no_time"), ("code", "E304"), ("fallback", "node r")];
        let attributes = attributes.map(|(key, value)| attribute(key, value)).join(",");
        let event =
            format!(r#""events":[{{"timeUnixNano":"1023","name":"rankd.degraded","attributes":[{attributes}]}}]"#);
        assert!(told.contains(&event) && told.contains(&attribute("outcome", "degraded")), "{told}");
        assert!(!exported(Vec::new()).contains("events"));
    }
}
