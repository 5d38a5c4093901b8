//! What is missing from an answer, written down: as JSON, the same for answers, logs and Arrow's metadata, and as lines for people.

use super::shown_text::shown_text;
use rankd_engine::degraded::{Degraded, FallbackName, Short, StandIn, fallback_name};
use rankd_engine::{Linked, codes};
use rankd_plan::json::Writer;
use rankd_plan::plan::NodeIx;
use rankd_plan::render;
use std::collections::HashMap;
use std::time::Duration;

/// Writes an array with an object for each fallback that was taken, in order of time.
pub fn write_degraded(plan: &Linked, degraded: &[Degraded], w: &mut Writer) {
    w.array(|w| {
        for Degraded { node, reason, code, fallback, after } in degraded {
            let linked = plan.node(*node);
            w.object(|w| {
                w.field("node").string(&linked.id).field("op").string(linked.op);
                if let Some(label) = &linked.label {
                    w.field("label").string(label);
                }
                w.field("reason").string(reason.name());
                if let Some(code) = code {
                    w.field("code").string(code.id);
                }
                write_fallback(plan, *fallback, w.field("fallback"));
                match fallback {
                    StandIn::Prefix(picked) => {
                        w.field("picked").int(*picked as i64);
                    }
                    StandIn::Finished(rows) => {
                        w.field("rows").int(*rows as i64);
                    }
                    StandIn::Substitute(_) => {}
                }
                w.field("after_ms").float(after_ms(*after));
            });
        }
    });
}

/// Writes an array with an object for each node that has fewer rows than it wants, in order of time.
pub fn write_short(plan: &Linked, short: &[Short], w: &mut Writer) {
    w.array(|w| {
        for Short { node, wanted, got } in short {
            w.object(|w| {
                w.field("node").string(&plan.node(*node).id);
                w.field("wanted").int(*wanted as i64).field("got").int(*got as i64);
            });
        }
    });
}

/// Writes a fallback as a plan does.
pub fn write_fallback(plan: &Linked, fallback: StandIn, w: &mut Writer) {
    match fallback_name(plan, fallback) {
        FallbackName::Word(word) => {
            w.string(word);
        }
        FallbackName::Node(id) => {
            w.object(|w| {
                w.field("node").string(id);
            });
        }
    }
}

/// The fallbacks that were taken, by the node that they stand for. Where there are none, as in most runs, it costs nothing.
pub fn taken(degraded: &[Degraded]) -> HashMap<NodeIx, StandIn> {
    degraded.iter().map(|one| (one.node, one.fallback)).collect()
}

/// A warning for each fallback that was taken, one a line.
pub(crate) fn degraded_lines(plan: &Linked, degraded: &[Degraded], colour: bool) -> String {
    let line = |Degraded { node, reason, code, fallback: handed_over, after }: &Degraded| {
        let linked = plan.node(*node);
        let label = linked.label.as_ref().map(|label| format!(" ({})", shown_text(label))).unwrap_or_default();
        let fallback = shown_text(&fallback_name(plan, *handed_over).to_string());
        let (id, op, reason, after) = (shown_text(&linked.id), linked.op, reason.name(), after_ms(*after));
        let done = match handed_over {
            StandIn::Prefix(picked) => format!(" with {picked} picks"),
            StandIn::Finished(rows) => format!(" with {rows} rows"),
            StandIn::Substitute(_) => String::new(),
        };
        let message = format!("{id} {op}{label} is degraded: {reason} after {after} ms{done}, fallback {fallback}");
        // What was cut short is not a failure, and has the code of the limit that it kept.
        render::warning(code.unwrap_or(codes::LEARNED_LIMIT).id, &message, colour) + "\n"
    };
    degraded.iter().map(line).collect()
}

/// A line for each node that has fewer rows than it wants.
pub(crate) fn short_lines(plan: &Linked, short: &[Short]) -> String {
    let line = |Short { node, wanted, got }: &Short| {
        let linked = plan.node(*node);
        format!("note: {} {} has {got} of {wanted} rows\n", shown_text(&linked.id), linked.op)
    };
    short.iter().map(line).collect()
}

/// In milliseconds, to a tenth.
fn after_ms(after: Duration) -> f64 {
    ((after.as_nanos() + 50_000) / 100_000) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Answer, pretty};
    use crate::perfetto::Perfetto;
    use crate::test_plan::{outcome, plan, registry};
    use rankd_engine::Outcome;
    use rankd_engine::degraded::Reason;
    use rankd_plan::Registry;

    const DEGRADED: &str = concat!(
        r#"[{"node":"n1","op":"source","reason":"upstream","code":"E401","fallback":{"node":"stand in"},"after_ms":1.2},"#,
        r#"{"node":"n0","op":"source","label":"the \u0007 first","reason":"timeout","code":"E302","fallback":"none","after_ms":41.2},"#,
        r#"{"node":"kept","op":"keep","reason":"no_time","code":"E304","fallback":"input","after_ms":41.2}]"#
    );

    fn answer<'a>(plan: &'a Linked, registry: &'a Registry, with_trace: bool) -> Answer<'a> {
        Answer { request_id: "r", plan, registry, output_keys: None, with_trace }
    }

    fn whole() -> Outcome {
        Outcome { degraded: Vec::new(), ..outcome() }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_answer_says_what_is_missing_between_its_rows_and_its_trace() {
        let registry = registry();
        let plan = plan(&registry);
        let rows = r#"{"request_id":"r","plan":"feed","candidates":[{"id":7},{"id":8},{"id":9}],"outputs":[{"node":"kept","rows":1},{"node":"other","rows":2}]"#;
        let [plain, traced] = [false, true].map(|with_trace| answer(&plan, &registry, with_trace));
        assert_eq!(text(plain.render(&outcome())), format!(r#"{rows},"degraded":{DEGRADED}}}"#));
        assert_eq!(text(plain.render(&whole())), format!("{rows}}}"));
        assert!(text(pretty(&plain.render(&outcome()))).contains("\"fallback\": {\n        \"node\": \"stand in\""));
        let traced = text(traced.render(&outcome()));
        assert!(traced.starts_with(&format!(r#"{rows},"degraded":{DEGRADED},"trace":{{"#)), "{traced}");
        for record in [
            r#""where":"loop","outcome":"failed","fallback":"none","#,
            r#""where":"loop","outcome":"failed","fallback":{"node":"stand in"},"#,
            r#""node":"stand in","op":"source","where":"loop","outcome":"done","ready_us"#,
        ] {
            assert!(traced.contains(record), "{record}: {traced}");
        }
        assert!(plain.weight(&outcome()) > plain.weight(&whole()));
    }

    #[test]
    fn what_was_handed_over_in_time_is_counted() {
        let registry = registry();
        let plan = plan(&registry);
        let written = |fallback: StandIn| {
            let after = Duration::from_micros(18_070);
            let degraded = [Degraded { node: 0, reason: Reason::NoTime, code: None, fallback, after }];
            let mut writer = Writer::new();
            write_degraded(&plan, &degraded, &mut writer);
            (writer.finish(), degraded_lines(&plan, &degraded, false))
        };
        let (json, line) = written(StandIn::Finished(640));
        assert!(json.ends_with(r#""reason":"no_time","fallback":"input","rows":640,"after_ms":18.1}]"#), "{json}");
        assert!(line.ends_with("no_time after 18.1 ms with 640 rows, fallback input\n"), "{line}");
        let (json, line) = written(StandIn::Prefix(12));
        assert!(json.ends_with(r#""reason":"no_time","fallback":"prefix","picked":12,"after_ms":18.1}]"#), "{json}");
        assert!(line.ends_with("no_time after 18.1 ms with 12 picks, fallback prefix\n"), "{line}");
    }

    #[test]
    fn rows_stand_under_the_names_of_their_outputs() {
        let registry = registry();
        let mut plan = plan(&registry);
        plan.output_names = Some(["main", "ads"].map(str::to_owned).into());
        let (answer, outcome) = (answer(&plan, &registry, false), whole());
        let rows = r#"{"request_id":"r","plan":"feed","outputs":{"main":[{"id":7}],"ads":[{"id":8},{"id":9}]}}"#;
        assert_eq!(text(answer.render(&outcome)), rows);
        let outputs = outcome.result.as_ref().unwrap();
        assert_eq!(
            answer.table(outputs, (&[], &[]), None, false),
            "main:\nid\n 7\n1 row\n\nads:\nid\n 8\n 9\n2 rows\n"
        );
        let arrow = String::from_utf8_lossy(&answer.arrow(outputs, &outcome).unwrap()).into_owned();
        for part in [
            r#""outputs":[{"name":"main","node":"kept","rows":1},{"name":"ads","node":"other","rows":2}]}"#,
            "mainadsads",
        ] {
            assert!(arrow.contains(part), "{part}: {arrow}");
        }
    }

    #[test]
    fn a_failure_has_no_rows_that_something_could_be_missing_from() {
        let registry = registry();
        let error = rankd_engine::RunError::new(rankd_engine::codes::UNREACHABLE, "gone");
        let failed = Outcome { result: Err(Box::new(error)), ..outcome() };
        let plan = plan(&registry);
        assert!(!text(answer(&plan, &registry, false).render(&failed)).contains("degraded"));
    }

    #[test]
    fn an_arrow_stream_has_it_in_its_metadata() {
        let registry = registry();
        let plan = plan(&registry);
        let stream = |outcome: &Outcome| {
            let outputs = outcome.result.as_ref().unwrap();
            String::from_utf8_lossy(&answer(&plan, &registry, false).arrow(outputs, outcome).unwrap()).into_owned()
        };
        let degraded = stream(&outcome());
        assert!(degraded.contains("\0degraded\0") && degraded.contains(&format!("\0{DEGRADED}\0")), "{degraded:?}");
        assert!(degraded.contains(&format!(r#","degraded":{DEGRADED}}}"#)), "{degraded:?}");
        assert!(!stream(&whole()).contains("degraded"));
    }

    #[test]
    fn a_table_has_a_line_for_each_below_the_rows() {
        let registry = registry();
        let plan = plan(&registry);
        let table = |colour| {
            let Outcome { result, degraded, .. } = outcome();
            answer(&plan, &registry, false).table(&result.unwrap(), (&degraded, &[]), None, colour)
        };
        let lines = "other:\nid\n 8\n 9\n2 rows\n\
            warning[E401]: n1 source is degraded: upstream after 1.2 ms, fallback node stand in\n\
            warning[E302]: n0 source (the \\u{7} first) is degraded: timeout after 41.2 ms, fallback none\n\
            warning[E304]: kept keep is degraded: no_time after 41.2 ms, fallback input\n";
        assert!(table(false).ends_with(lines), "{}", table(false));
        assert!(table(true).contains("\u{1b}[") && !table(false).contains('\u{1b}'), "{:?}", table(true));
    }

    #[test]
    fn an_event_of_a_failed_node_names_its_fallback() {
        let plan = plan(&registry());
        let mut events = Perfetto::default();
        events.add(&plan, "r", &outcome(), 0);
        let events = events.finish();
        assert!(events.contains(r#""outcome":"failed","fallback":"none""#), "{events}");
        assert_eq!(events.matches("\"fallback\":").count(), 2, "{events}");
    }
}
