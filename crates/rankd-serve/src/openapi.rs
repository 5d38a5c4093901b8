//! The OpenAPI document of a listener, written from the table of routes and the table of statuses.

use crate::reply::JSON;
use crate::routes::{Answers, Audience, Listener, ROUTES, Route};
use crate::status;
use rankd_edge::arrow;
use rankd_engine::ErrorKind;
use rankd_plan::json::Writer;
use std::collections::BTreeMap;

pub(crate) fn document(listener: Listener) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("openapi").string("3.1.0");
        w.field("info").object(|w| {
            w.field("title").string("rankd").field("version").string(env!("CARGO_PKG_VERSION"));
            w.field("description")
                .string("Runs ranking plans. An error is an object with a code, a kind and a message.");
        });
        w.field("paths").object(|w| {
            for route in ROUTES.iter().filter(|route| listener.can_serve(route.audience)) {
                w.field(route.path).object(|w| {
                    w.field(&route.method.as_str().to_lowercase()).object(|w| operation(route, w));
                });
            }
        });
        w.field("components").object(|w| {
            w.field("schemas").raw(SCHEMAS);
        });
    });
    writer.finish()
}

fn operation(route: &Route, w: &mut Writer) {
    w.field("operationId").string(&format!("{:?}", route.answers));
    w.field("summary").string(route.summary);
    if let Some((_, name)) = route.path.split_once('{') {
        w.field("parameters").array(|w| {
            w.object(|w| {
                w.field("name").string(name.trim_end_matches('}')).field("in").string("path");
                w.field("required").bool(true);
                w.field("schema").raw(r#"{"type":"string","minLength":1}"#);
            });
        });
    }
    let takes = match route.answers {
        Answers::Rank | Answers::RankPlan => Some("Request"),
        Answers::Explain => Some("Question"),
        _ => None,
    };
    if let Some(schema) = takes {
        w.field("requestBody").object(|w| {
            w.field("required").bool(true);
            w.field("content").object(|w| content(w, JSON, &reference(schema)));
        });
    }
    w.field("responses").object(|w| {
        w.field("200").object(|w| {
            w.field("description").string(route.summary);
            w.field("content").object(|w| success(route.answers, w));
        });
        for (status, description) in failures(route) {
            w.field(&status.to_string()).object(|w| {
                w.field("description").string(&description);
                let not_ready = route.answers == Answers::Ready && status == 503;
                let schema = if not_ready { "Status" } else { "Failure" };
                w.field("content").object(|w| content(w, JSON, &reference(schema)));
                if status == 503 && !not_ready {
                    let after = r#"{"Retry-After":{"description":"Seconds","schema":{"type":"integer"}}}"#;
                    w.field("headers").raw(after);
                }
            });
        }
    });
}

fn success(answers: Answers, w: &mut Writer) {
    let list = |schema: &str| format!(r#"{{"type":"array","items":{}}}"#, reference(schema));
    match answers {
        Answers::Rank | Answers::RankPlan => {
            content(w, JSON, &reference("Response"));
            // The candidates as a table; the rest of the response is JSON in the schema's metadata, under "response".
            content(w, arrow::MEDIA_TYPE, "{}");
        }
        Answers::Plans => content(w, JSON, &list("Plan")),
        Answers::Plan => content(w, JSON, &reference("Plan")),
        Answers::Tasks => content(w, JSON, r#"{"type":"array","items":{"type":"object"}}"#),
        Answers::Alive | Answers::Ready => content(w, JSON, &reference("Status")),
        Answers::Metrics => content(w, "text/plain", r#"{"type":"string"}"#),
        Answers::Explain | Answers::OpenApi | Answers::Version => content(w, JSON, r#"{"type":"object"}"#),
    }
}

/// The statuses of failures, each with the kinds of errors that have it.
fn failures(route: &Route) -> BTreeMap<u16, String> {
    let mut all: BTreeMap<u16, String> = BTreeMap::new();
    let other_host = || "bad_request: this server does not answer for that host".to_owned();
    match route.answers {
        Answers::Rank | Answers::RankPlan | Answers::Explain => {
            for kind in ErrorKind::ALL {
                let text = all.entry(status::of_kind(*kind).as_u16()).or_default();
                let comma = if text.is_empty() { "" } else { ", " };
                text.push_str(&format!("{comma}{}", kind.name()));
            }
            all.insert(408, "bad_request: the body was too slow".to_owned());
            all.insert(413, "bad_request: the body is too large".to_owned());
            all.insert(415, "bad_request: the body is not uncompressed JSON, or is not declared as JSON".to_owned());
            all.insert(421, other_host());
        }
        _ => {
            all.insert(400, "bad_request: the header host is missing, repeated or malformed".to_owned());
            match (route.answers, route.audience) {
                (Answers::Ready, _) => drop(all.insert(503, "Requests should go elsewhere".to_owned())),
                (_, Audience::Probes) => {}
                (answers, _) => {
                    all.insert(421, other_host());
                    all.insert(503, "overloaded".to_owned());
                    if answers == Answers::Plan {
                        all.insert(404, "unknown_plan".to_owned());
                    }
                }
            }
        }
    }
    all
}

fn reference(schema: &str) -> String {
    format!(r##"{{"$ref":"#/components/schemas/{schema}"}}"##)
}

fn content(w: &mut Writer, media: &str, schema: &str) {
    w.field(media).object(|w| {
        w.field("schema").raw(schema);
    });
}

const SCHEMAS: &str = r##"{
"Request":{"type":"object","required":["user_id"],"additionalProperties":false,"properties":{
  "user_id":{"description":"Or the same as a decimal string","oneOf":[{"type":"integer","minimum":1,"maximum":9223372036854775807},{"type":"string","pattern":"^[0-9]{1,18}$"}]},
  "request_id":{"type":"string","maxLength":32,"description":"At most 128 bytes"},
  "plan":{"type":"string","description":"Needed unless the path names it"},
  "params":{"type":"object","description":"Parameters of the registry, by name"},
  "candidates":{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}},"description":"Rows for the task candidates"},
  "output_keys":{"type":"array","items":{"type":"string"}},
  "deadline_ms":{"type":"integer","minimum":1,"maximum":86400000},
  "node_timeout_ms":{"type":"integer","minimum":1,"maximum":86400000},
  "trace":{"type":["boolean","null"]}}},
"Response":{"type":"object","required":["request_id","plan","candidates"],"properties":{
  "request_id":{"type":"string"},"plan":{"type":"string"},
  "candidates":{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}},
  "outputs":{"type":"array","items":{"type":"object","required":["node","rows"],"properties":{"node":{"type":"string"},"rows":{"type":"integer"}}}},
  "trace":{"type":"object"}}},
"Question":{"type":"object","required":["plan"],"additionalProperties":false,"properties":{
  "plan":{"type":"string"},"analyze":{"type":"boolean","description":"Run it once"},
  "request":{"type":"object","description":"What to run it with; by default for user 1"}}},
"Failure":{"type":"object","required":["request_id","error"],"properties":{
  "request_id":{"type":"string"},"plan":{"type":"string"},
  "error":{"type":"object","required":["code","kind","retry","message"],"properties":{
    "code":{"type":"string"},
    "kind":{"enum":["bad_request","unknown_plan","invalid_plan","timeout","upstream","task","overloaded","cancelled","bug"]},
    "retry":{"type":"boolean","description":"Whether to send the same request again"},
    "message":{"type":"string"},"node":{"type":"string"},"op":{"type":"string"},"at":{"type":"string"}}},
  "trace":{"type":"object"}}},
"Plan":{"type":"object","required":["plan","file","ok","serving"],"properties":{
  "plan":{"type":"string"},"file":{"type":"string"},
  "ok":{"type":"boolean","description":"Whether the version in service matches the file"},
  "serving":{"type":"boolean"},"version":{"type":"integer"},"sha256":{"type":"string"},"loaded_at":{"type":"string"},
  "nodes":{"type":"integer"},"outputs":{"type":"array","items":{"type":"string"}},
  "problem":{"type":"object","required":["at","message"],"properties":{"at":{"type":"string"},"message":{"type":"string"}}},
  "registry_problem":{"description":"Why the registry on disk is not the one that the plan was built with","type":"object","required":["at","message"],"properties":{"at":{"type":"string"},"message":{"type":"string"}}},
  "graph":{"type":"array","items":{"type":"object"}},"diagnostics":{"type":"array","items":{"type":"object"}}}},
"Status":{"type":"object","required":["status"],"properties":{"status":{"type":"string"},
  "warnings":{"description":"Problems that do not keep requests from being served","type":"array","items":{"type":"object","required":["about","at","message"],"properties":{"about":{"enum":["plan_folder","registry"]},"at":{"type":"string"},"message":{"type":"string"}}}}}}
}"##;
