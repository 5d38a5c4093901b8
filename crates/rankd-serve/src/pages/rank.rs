//! `POST /rank` and `POST /rank/{plan}`: a request's JSON in, a plan run on this loop, rows out, as JSON or as Arrow.

use crate::accept_header;
use crate::audience::Audience;
use crate::body::{BodyMemory, ReceivedBody};
use crate::catalog::ServedPlan;
use crate::content_headers;
use crate::off_loop::{self, AnswerSpec};
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::run;
use crate::run_recording::RunRecording;
use crate::spans::TracedRun;
use hyper::Method;
use rankd_edge::arrow;
use rankd_edge::input::{self, RefusedRequest};
use rankd_edge::prepare::{Prepared, Tracing, plan_name};
use rankd_engine::{Linked, Outcome, RunError, codes};
use std::sync::Arc;

/// The plan is named by the path, or by the request.
pub(crate) struct RankPage<const IN_PATH: bool>;

impl<const IN_PATH: bool> Page for RankPage<IN_PATH> {
    const ABOUT: About = About {
        method: Method::POST,
        path: if IN_PATH { "/rank/{plan}" } else { "/rank" },
        audience: Audience::Callers,
        operation: if IN_PATH { "RankPlan" } else { "Rank" },
        summary: if IN_PATH { "Run a plan" } else { "Run the plan that the request names" },
        schema: Schema {
            takes: Some(Shape::Component("Request")),
            // In Arrow, the candidates are a table; the rest of the response is JSON in the schema's metadata, under "response".
            gives: &[(JSON, Shape::Component("Response")), (arrow::MEDIA_TYPE, Shape::Json("{}"))],
            failures: Failures::OfRuns,
            components: if IN_PATH {
                &[]
            } else {
                &[("Request", REQUEST), ("Response", RESPONSE), ("Rows", ROWS), ("Degraded", DEGRADED)]
            },
        },
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        scope.begin_ranking();
        if let Err(error) = content_headers::check(&call.head.headers, scope.loop_state.app.settings.lenient) {
            return Reply::error(scope.id(), None, &error);
        }
        if let Some(refused) = scope.refuse_unread(call.name()).await {
            return refused;
        }
        // The memory is given back when there is an answer.
        let (prepared, plan, linked, _memory) = match prepare(scope, call, false).await {
            Ok(prepared) => prepared,
            Err(reply) => return *reply,
        };
        let Prepared { request, output_keys, with_trace } = prepared;
        let deadline = scope.loop_state.loop_handle.deadline(scope.since, request.deadline);
        let logged_user = run::logged_user(scope, &request);
        let outcome = run::run(scope, &linked, request).await;
        run::record(scope, &linked, &outcome);
        let arrow = accept_header::arrow(&call.head.headers);
        let spec = AnswerSpec { plan: &linked, registry: &plan.registry, output_keys, with_trace, arrow, deadline };
        let (reply, mut outcome) = off_loop::write(scope, spec, outcome).await;
        if outcome.is_none() {
            scope.rows = 0;
        }
        if let (Some(recording), Some(outcome)) = (&mut scope.recording, &outcome) {
            recording.answered(&linked, &plan.registry, outcome);
        }
        if let Some((user_id, outcome)) = logged_user.zip(outcome.as_mut()) {
            run::log_rows(scope, &plan, user_id, outcome);
        }
        let began_ns = scope.began_ns;
        scope.run = outcome.and_then(|Outcome { trace, degraded, .. }| {
            trace.map(|trace| TracedRun { plan: linked, trace, degraded, began_ns })
        });
        match &plan.good {
            Some(version) => reply.of_plan(&version.header),
            None => reply,
        }
    }
}

/// Everything up to the run: the body, the request in it, the plan that it is for. With `shown`, the answer has the trace in any
/// case, and nothing is captured.
pub(crate) async fn prepare(
    scope: &mut RequestScope,
    call: &mut Call,
    shown: bool,
) -> Result<(Prepared, Arc<ServedPlan>, Arc<Linked>, BodyMemory), Box<Reply>> {
    let failed = |id: &str, plan: Option<&str>, error: &RunError| Box::new(Reply::error(id, plan, error));
    let read = call.body.read().await;
    let named = Some(call.name()).filter(|name| !name.is_empty());
    let read = read.map_err(|error| failed(scope.id(), named, &error))?;
    scope.bytes_in = read.bytes.len();
    let loop_state = scope.loop_state.clone();
    let catalog = loop_state.app.catalog.load();
    let registry = catalog.registry.clone();
    let ReceivedBody { bytes, memory } = read;
    let input = off_loop::parse(scope, &bytes, move |bytes| input::read(bytes, &registry)).await;
    let mut input = match input.map_err(|error| failed(scope.id(), named, &error))? {
        Ok(input) => input,
        Err(RefusedRequest { request_id, error }) => {
            scope.request_id = request_id;
            return Err(failed(&scope.request_id, named, &error));
        }
    };
    scope.request_id.clone_from(&input.request.request_id);
    let id = &scope.request_id;
    let name = plan_name(named, &input).map_err(|error| failed(id, named, &error))?.ok_or_else(|| {
        let message = "which plan? Name it in \"plan\", or use /rank/{plan}";
        failed(id, None, &RunError::new(codes::NO_PLAN_NAMED, message))
    })?;
    let entry = loop_state.app.find_entry(&catalog, name).map_err(|error| failed(id, None, &error))?;
    scope.plan = Some(entry.plan.clone());
    let answering = scope.take_arms(&catalog, entry, &mut input);
    let id = &scope.request_id;
    let answering = answering.map_err(|error| failed(id, Some(&entry.plan.name), &error))?;
    let plan = &answering.plan;
    let version = plan.version().map_err(|error| failed(id, Some(&plan.name), &error))?;
    let linked = version.linked.clone();
    // What is tried out on the console is no traffic to replay or to shadow.
    if !shown {
        scope.recording = RunRecording::begin(&loop_state, &catalog, answering, &mut input.request, &bytes);
    }
    drop(bytes);
    let every = loop_state.app.settings.trace_every;
    let tracing = match shown {
        true => Tracing::Shown,
        false if loop_state.metrics.should_trace_next(every) || loop_state.app.log.audit || scope.sampled => {
            Tracing::Recorded
        }
        false => Tracing::AsAsked,
    };
    Ok((Prepared::new(input, tracing), plan.clone(), linked, memory))
}

const REQUEST: &str = r##"{"type":"object","required":["user_id"],"additionalProperties":false,"properties":{
  "user_id":{"$ref":"#/components/schemas/UserId"},
  "request_id":{"type":"string","maxLength":32,"description":"At most 128 bytes"},
  "plan":{"type":"string","description":"Needed unless the path names it"},
  "params":{"type":"object","description":"Parameters of the registry, by name; a list or vector is an array"},
  "candidates":{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"$ref":"#/components/schemas/GivenId"}}},"description":"Rows for the task candidates, with keys of the registry; a list or vector is an array"},
  "output_keys":{"type":"array","items":{"type":"string"}},
  "now_ms":{"type":"integer","minimum":0,"maximum":253402300799999,"description":"The time that nowMs() gives, in milliseconds since 1970; the present where it is not given"},
  "seed":{"oneOf":[{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807},{"type":"string","maxLength":32,"description":"At most 128 bytes"}],"description":"What random choices follow from: the same seed chooses the same rows. A hash of request_id where it is not given"},
  "deadline_ms":{"type":"integer","minimum":1,"maximum":86400000},
  "node_timeout_ms":{"type":"integer","minimum":1,"maximum":86400000},
  "strict":{"type":["boolean","null"],"description":"True to take no fallback: the first failure is the answer"},
  "dials":{"type":"object","additionalProperties":{"type":"integer"},"description":"Where dials of the plan stand, by node and parameter, such as n2.fanout"},
  "arms":{"type":"object","maxProperties":64,"additionalProperties":{"type":"string"},"description":"Arms by experiment, in place of those that the user is in; refused unless the server was started with --force_arms"},
  "trace":{"type":["boolean","null"]}}}"##;

const RESPONSE: &str = r##"{"type":"object","required":["request_id","plan"],"anyOf":[{"required":["candidates"]},{"required":["outputs"]}],"properties":{
  "request_id":{"type":"string"},"plan":{"type":"string"},
  "candidates":{"$ref":"#/components/schemas/Rows","description":"The rows of all outputs, one after the other. Absent where the plan names its outputs"},
  "outputs":{"oneOf":[{"type":"object","minProperties":1,"additionalProperties":{"$ref":"#/components/schemas/Rows"},"description":"The rows of each output by its name, where the plan names its outputs"},
    {"type":"array","items":{"type":"object","required":["node","rows"],"properties":{"node":{"type":"string"},"rows":{"type":"integer"}}},"description":"How many of the candidates are of which output, where there are several without names"}]},
  "degraded":{"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/Degraded"},"description":"What is missing: the fallbacks that were taken, in order of time. Absent where the rows are what the plan gives"},
  "short":{"type":"array","minItems":1,"items":{"type":"object","required":["node","wanted","got"],"additionalProperties":false,"properties":{"node":{"type":"string"},"wanted":{"type":"integer","minimum":1},"got":{"type":"integer","minimum":0}}},"description":"The nodes that have fewer rows than they want, after all that they could ask for"},
  "dials":{"type":"object","additionalProperties":{"type":"integer"},"description":"The dials that are not at their first value"},
  "arms":{"type":"object","minProperties":1,"additionalProperties":{"type":"string"},"description":"The experiments that changed this answer, or could have, each with the arm that the request was in"},
  "forced":{"const":true,"description":"Present where the request chose arms itself"},
  "cursor":{"type":"string","description":"For the next page. Absent where the plan does not page, and on the last page"},
  "seed":{"type":["integer","string"],"description":"What random choices followed from. Absent where the plan makes none"},
  "trace":{"type":"object"}}}"##;

const ROWS: &str = r##"{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"$ref":"#/components/schemas/Id"}}}}"##;

const DEGRADED: &str = r##"{"type":"object","required":["node","op","reason","fallback","after_ms"],"additionalProperties":false,"properties":{
  "node":{"type":"string"},"op":{"type":"string"},"label":{"type":"string"},
  "reason":{"enum":["timeout","upstream","no_time"],"description":"no_time: it was not started, because it would hardly have ended in time; or, with the fallback prefix, it handed over what it had picked"},
  "code":{"type":"string","description":"Of the error that the request would otherwise have had; absent with the fallback prefix"},
  "fallback":{"description":"As in the plan","oneOf":[{"enum":["none","input","prefix"]},{"type":"object","required":["node"],"additionalProperties":false,"properties":{"node":{"type":"string"}}}]},
  "picked":{"type":"integer","minimum":0,"description":"With the fallback prefix: how many rows were picked; the others follow as they came in"},
  "after_ms":{"type":"number","description":"From the start of the run"}}}"##;

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_engine::degraded::Reason;

    #[test]
    fn the_document_lists_every_reason() {
        let names: Vec<String> = Reason::ALL.iter().map(|reason| format!("{:?}", reason.name())).collect();
        assert!(DEGRADED.contains(&format!(r#""reason":{{"enum":[{}]"#, names.join(","))));
    }
}
