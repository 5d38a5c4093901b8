//! `POST /explain`: what a plan that is served does, node by node; with `analyze`, also what one run of it was like.

use crate::audience::Audience;
use crate::content_headers;
use crate::off_loop;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::run;
use crate::traced_run;
use bytes::Bytes;
use hyper::Method;
use rankd_edge::explain::Explanation;
use rankd_edge::prepare::{ANY_USER, Tracing, prepare};
use rankd_engine::{ErrorKind, RunError, codes};
use rankd_plan::diagnostic::quoted;
use rankd_plan::json::{Fault, Kind, Reader};

const DEPTH_MAX: usize = 64;

/// What is asked for.
struct ExplainRequest {
    plan: String,
    analyze: bool,
    /// The request to run it with, as it came.
    request: Bytes,
}

pub(crate) struct Explain;

impl Page for Explain {
    const ABOUT: About = About {
        method: Method::POST,
        path: "/explain",
        audience: Audience::Operators,
        operation: "Explain",
        summary: "Describe a plan, node by node; with analyze, also run it and report on the run",
        schema: Schema {
            takes: Some(Shape::Component("Question")),
            gives: &[(JSON, Shape::Json(r#"{"type":"object"}"#))],
            failures: Failures::OfRuns,
            components: &[("Question", QUESTION)],
        },
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        if let Err(error) = content_headers::check(&call.head.headers, scope.loop_state.app.settings.lenient) {
            return Reply::error(scope.id(), None, &error);
        }
        let loop_state = scope.loop_state.clone();
        let read = match call.body.read().await {
            Ok(read) => read,
            Err(error) => return Reply::error(scope.id(), None, &error),
        };
        let ExplainRequest { plan, analyze, request } = match off_loop::parse(scope, &read.bytes, read_question).await {
            Ok(Ok(question)) => question,
            Ok(Err(error)) | Err(error) => return Reply::error(scope.id(), None, &error),
        };
        let catalog = loop_state.app.catalog.load_full();
        let entry = match loop_state.app.find_entry(&catalog, &plan) {
            Ok(entry) => entry,
            Err(error) => return Reply::error(scope.id(), None, &error),
        };
        let served = &entry.plan;
        let good = match served.version() {
            Ok(good) => good,
            Err(error) => return Reply::error(scope.id(), Some(&plan), &error),
        };
        let mut outcome = None;
        if analyze {
            let (registry, name) = (catalog.registry.clone(), plan.clone());
            let prepare = move |bytes: &Bytes| prepare(bytes, &registry, &name, Tracing::Recorded);
            let prepared = match off_loop::parse(scope, &request, prepare).await {
                Ok(Ok(prepared)) => prepared,
                Ok(Err(refused)) => return Reply::error(&refused.request_id, Some(&plan), &refused.error),
                Err(error) => return Reply::error(scope.id(), Some(&plan), &error),
            };
            scope.plan = Some(served.clone());
            let ran = run::run(scope, &good.linked, prepared.request).await;
            traced_run::record(scope, &good.linked, &ran);
            if let Err(error) = &ran.result
                && error.code.kind == ErrorKind::Overloaded
            {
                return Reply::error(scope.id(), Some(&plan), error);
            }
            outcome = Some(ran);
        }
        let settings = &loop_state.app.engine;
        let explanation = Explanation {
            plan: &good.linked,
            scheduler: settings.scheduler,
            policy: &settings.policy,
            limits_nodes: settings.node_timeout.is_some(),
            analyzed: outcome.as_ref(),
            experiments: entry.experiments.as_ref().map(|of| (of, &*served.registry)),
        };
        Reply::json(explanation.to_json())
    }
}

fn read_question(bytes: &Bytes) -> Result<ExplainRequest, RunError> {
    let not_json = |fault: Fault| {
        RunError::new(codes::NOT_A_REQUEST, format!("this is not a request: {} (byte {})", fault.message, fault.at))
    };
    let wrong = |name: &str, takes: &str| RunError::new(codes::WRONG_VALUE, format!("{name} must be {takes}"));
    let text = std::str::from_utf8(bytes)
        .map_err(|_| RunError::new(codes::NOT_A_REQUEST, "the body is not UTF-8".to_owned()))?;
    let mut reader = Reader::new(text, DEPTH_MAX);
    let (mut plan, mut analyze, mut request) = (None, false, None);
    let mut fields = reader.open_object().map_err(not_json)?;
    while let Some((name, repeated)) = reader.field(&mut fields).map_err(not_json)? {
        let kind = reader.peek().map_err(not_json)?;
        match (&*name, kind) {
            _ if repeated => {
                return Err(RunError::new(codes::NOT_A_REQUEST, format!("the field {} appears twice", quoted(&name))));
            }
            ("plan", Kind::String) => plan = Some(reader.string().map_err(not_json)?.into_owned()),
            ("plan", _) => return Err(wrong("plan", "a string")),
            ("analyze", Kind::Bool) => analyze = reader.bool().map_err(not_json)?,
            ("analyze", _) => return Err(wrong("analyze", "true or false")),
            ("request", Kind::Object) => {
                let from = reader.at();
                reader.skip().map_err(not_json)?;
                request = Some(text[from..reader.at()].trim());
            }
            ("request", _) => return Err(wrong("request", "an object")),
            _ => return Err(RunError::new(codes::UNKNOWN_FIELD, format!("there is no field {}", quoted(&name)))),
        }
    }
    reader.end().map_err(not_json)?;
    let plan = plan.ok_or_else(|| RunError::new(codes::MISSING_FIELD, "the field \"plan\" is missing".to_owned()))?;
    let request = request.map_or(Bytes::from_static(ANY_USER), |request| bytes.slice_ref(request.as_bytes()));
    Ok(ExplainRequest { plan, analyze, request })
}

const QUESTION: &str = r#"{"type":"object","required":["plan"],"additionalProperties":false,"properties":{
  "plan":{"type":"string"},"analyze":{"type":"boolean","description":"Run it once"},
  "request":{"type":"object","description":"What to run it with; by default for user 1"}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_taken_as_it_came() {
        let asked =
            read_question(&br#" {"plan":"feed","request": {"user_id": 7, "params":{}} ,"analyze":true} "#[..].into());
        let asked = asked.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (asked.plan.as_str(), asked.analyze, &asked.request[..]),
            ("feed", true, &br#"{"user_id": 7, "params":{}}"#[..])
        );
    }

    #[test]
    fn what_is_not_a_question_is_refused() {
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"plan":1}"#,
            r#"{"plan":"a","x":1}"#,
            r#"{"plan":"a","plan":"b"}"#,
            r#"{"plan":"a","request":[]}"#,
        ] {
            assert!(read_question(&bad.as_bytes().into()).is_err(), "{bad}");
        }
    }
}
