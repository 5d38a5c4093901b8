//! The OpenAPI document of a listener, assembled from the pages and the table of statuses.

use crate::audience::{Audience, Listener, WhyServed};
use crate::degraded_header;
use crate::plan_header;
use crate::reply::JSON;
use crate::route::{Failures, Route, Shape};
use crate::status;
use rankd_engine::ErrorKind;
use rankd_plan::json::Writer;
use std::collections::BTreeMap;

/// The document of the pages that a listener serves, for a registry whose ids are texts or ints.
pub(crate) fn document(routes: &[Route], listener: Listener, why: WhyServed, has_text_ids: bool) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("openapi").string("3.1.0");
        w.field("info").object(|w| {
            w.field("title").string("rankd").field("version").string(env!("CARGO_PKG_VERSION"));
            w.field("description")
                .string("Runs ranking plans. An error is an object with a code, a kind and a message.");
        });
        w.field("paths").object(|w| {
            for route in routes.iter().filter(|route| listener.can_serve(route.about.audience, why)) {
                w.field(route.about.path).object(|w| {
                    w.field(&route.about.method.as_str().to_lowercase()).object(|w| operation(route, w));
                });
            }
        });
        w.field("components").object(|w| {
            w.field("schemas").object(|w| {
                w.field("Failure").raw(FAILURE);
                ids(has_text_ids).iter().for_each(|(name, schema)| {
                    w.field(name).raw(schema);
                });
                for (name, schema) in routes.iter().flat_map(|route| route.about.schema.components) {
                    w.field(name).raw(schema);
                }
            });
        });
    });
    writer.finish()
}

/// An id of a user and of a row as requests give them, and of a row as answers do.
fn ids(are_texts: bool) -> [(&'static str, &'static str); 3] {
    if are_texts {
        let given = r#"{"description":"A text of at most 512 bytes without control characters, or an int, which is the text of its digits","oneOf":[{"type":"string","minLength":1,"maxLength":128,"pattern":"^[^\\u0000-\\u001f\\u007f-\\u009f]*$"},{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}]}"#;
        return [("UserId", given), ("GivenId", given), ("Id", r#"{"type":"string"}"#)];
    }
    let user = r#"{"description":"Or the same as a decimal string","oneOf":[{"type":"integer","minimum":1,"maximum":9223372036854775807},{"type":"string","pattern":"^[0-9]{1,18}$"}]}"#;
    [("UserId", user), ("GivenId", r#"{"type":"integer"}"#), ("Id", r#"{"type":"integer"}"#)]
}

fn operation(route: &Route, w: &mut Writer) {
    let about = &route.about;
    w.field("operationId").string(about.operation);
    w.field("summary").string(about.summary);
    if let Some((_, name)) = about.path.split_once('{') {
        w.field("parameters").array(|w| {
            w.object(|w| {
                w.field("name").string(name.trim_end_matches('}')).field("in").string("path");
                w.field("required").bool(true);
                w.field("schema").raw(r#"{"type":"string","minLength":1}"#);
            });
        });
    }
    if let Some(shape) = about.schema.takes {
        w.field("requestBody").object(|w| {
            w.field("required").bool(true);
            w.field("content").object(|w| content(w, JSON, shape));
        });
    }
    w.field("responses").object(|w| {
        w.field("200").object(|w| {
            w.field("description").string(about.summary);
            w.field("content")
                .object(|w| about.schema.gives.iter().for_each(|(media, shape)| content(w, media, *shape)));
            if about.schema.gives.iter().any(|(_, shape)| matches!(shape, Shape::Component("Response"))) {
                w.field("headers").object(|w| {
                    w.field(degraded_header::NAME).raw(DEGRADED_HEADER);
                    w.field(plan_header::NAME).raw(PLAN_HEADER);
                });
            }
        });
        for (status, Failure { description, shape }) in failures(route) {
            w.field(&status.to_string()).object(|w| {
                w.field("description").string(&description);
                w.field("content").object(|w| content(w, JSON, shape));
                if status == 503 && matches!(shape, Shape::Component("Failure")) {
                    let after = r#"{"Retry-After":{"description":"Seconds","schema":{"type":"integer"}}}"#;
                    w.field("headers").raw(after);
                }
            });
        }
    });
}

/// An answer that is a failure.
struct Failure {
    description: String,
    shape: Shape,
}

/// The statuses of failures, each with the kinds of errors that have it.
fn failures(route: &Route) -> BTreeMap<u16, Failure> {
    let mut all: BTreeMap<u16, String> = BTreeMap::new();
    let other_host = "bad_request: this server does not answer for that host".to_owned();
    let mut own: &[(u16, &str, Shape)] = &[];
    match route.about.schema.failures {
        Failures::OfRuns => {
            for kind in ErrorKind::ALL {
                let text = all.entry(status::of_kind(*kind).as_u16()).or_default();
                let comma = if text.is_empty() { "" } else { ", " };
                text.push_str(&format!("{comma}{}", kind.name()));
            }
            all.insert(408, "bad_request: the body was too slow".to_owned());
            all.insert(413, "bad_request: the body is too large".to_owned());
            all.insert(415, "bad_request: the body is not uncompressed JSON, or is not declared as JSON".to_owned());
            all.insert(421, other_host);
        }
        Failures::OfPages(others) => {
            own = others;
            all.insert(400, "bad_request: the header host is missing, repeated or malformed".to_owned());
            if route.about.audience != Audience::Probes {
                all.insert(421, other_host);
                all.insert(503, "overloaded".to_owned());
            }
        }
    }
    let failure = |description| Failure { description, shape: Shape::Component("Failure") };
    let mut all: BTreeMap<u16, Failure> =
        all.into_iter().map(|(status, description)| (status, failure(description))).collect();
    all.extend(
        own.iter().map(|(status, text, shape)| (*status, Failure { description: text.to_string(), shape: *shape })),
    );
    all
}

fn content(w: &mut Writer, media: &str, shape: Shape) {
    let reference = |name: &str| format!(r##"{{"$ref":"#/components/schemas/{name}"}}"##);
    let schema = match shape {
        Shape::Component(name) => reference(name),
        Shape::ListOf(name) => format!(r#"{{"type":"array","items":{}}}"#, reference(name)),
        Shape::Json(schema) => schema.to_owned(),
    };
    w.field(media).object(|w| {
        w.field("schema").raw(&schema);
    });
}

const DEGRADED_HEADER: &str = r#"{"description":"The nodes whose fallbacks were taken: at most 16 ids, percent-encoded, with commas between them, then + and how many more","schema":{"type":"string"}}"#;

const PLAN_HEADER: &str = r#"{"description":"The first 16 digits of the SHA-256 of the plan's version that answered","schema":{"type":"string"}}"#;

const FAILURE: &str = r#"{"type":"object","required":["request_id","error"],"properties":{
  "request_id":{"type":"string"},"plan":{"type":"string"},
  "error":{"type":"object","required":["code","kind","retry","message"],"properties":{
    "code":{"type":"string"},
    "kind":{"enum":["bad_request","unknown_plan","invalid_plan","timeout","upstream","task","overloaded","cancelled","bug"]},
    "retry":{"type":"boolean","description":"Whether to send the same request again"},
    "message":{"type":"string"},"node":{"type":"string"},"op":{"type":"string"},"at":{"type":"string"}}},
  "trace":{"type":"object"}}}"#;
