//! `POST /why/{plan}`: what became of items in one run of a plan, and why. The run is one of its own, linked for the question; one question
//! is answered at a time on a loop, and none is counted with the plan's requests.

use crate::admission::Purpose;
use crate::audience::Audience;
use crate::body::BodyMemory;
use crate::catalog::ServedPlan;
use crate::content_headers;
use crate::off_loop;
use crate::reply::{JSON, Reply};
use crate::request_outcome::RequestOutcome;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::run;
use hyper::Method;
use rankd_column::Id;
use rankd_edge::input::{self, RefusedRequest};
use rankd_edge::prepare::plan_name;
use rankd_edge::why::WhyAnswer;
use rankd_engine::clock::{self, timeout_at};
use rankd_engine::run_limit::TIME_MAX;
use rankd_engine::why::AskedPlan;
use rankd_engine::{ErrorKind, Request, RunError, codes};
use std::sync::Arc;

pub(crate) struct WhyPage;

impl Page for WhyPage {
    const ABOUT: About = About {
        method: Method::POST,
        path: "/why/{plan}",
        audience: Audience::Askers,
        operation: "Why",
        summary: "Run a plan and say what became of some items, and why",
        schema: Schema {
            takes: Some(Shape::Component("WhyQuestion")),
            gives: &[(JSON, Shape::Component("WhyAnswer"))],
            failures: Failures::OfRuns,
            components: &[("WhyQuestion", QUESTION), ("WhyAnswer", ANSWER)],
        },
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        scope.asks = true;
        if let Err(error) = content_headers::check(&call.head.headers, scope.loop_state.app.settings.lenient) {
            return Reply::error(scope.id(), None, &error);
        }
        let question = match read(scope, call).await {
            Ok(question) => question,
            Err(reply) => return *reply,
        };
        let loop_state = scope.loop_state.clone();
        // Held until there is an answer. Nobody closes the places.
        let Some(Ok(_turn)) = timeout_at(clock::now() + TIME_MAX, loop_state.questions.acquire()).await else {
            let waited = TIME_MAX.as_millis();
            let message = format!("other questions about items kept this one waiting for {waited} ms; try again");
            let error = RunError::new(codes::QUESTION_UNDER_WAY, message);
            return Reply::error(scope.id(), Some(call.name()), &error);
        };
        let replied = answer(scope, question).await;
        replied.unwrap_or_else(|error| Reply::error(scope.id(), Some(call.name()), &error))
    }
}

/// A question that can be asked.
struct Question {
    request: Request,
    items: Vec<Id>,
    plan: Arc<ServedPlan>,
    /// Given back when there is an answer.
    _memory: BodyMemory,
}

async fn read(scope: &mut RequestScope, call: &mut Call) -> Result<Question, Box<Reply>> {
    let received = call.body.read().await;
    let name = call.name();
    let failed = |id: &str, error: &RunError| Box::new(Reply::error(id, Some(name), error));
    let received = received.map_err(|error| failed(scope.id(), &error))?;
    scope.bytes_in = received.bytes.len();
    let loop_state = scope.loop_state.clone();
    let catalog = loop_state.app.catalog.load();
    let registry = catalog.registry.clone();
    let read = off_loop::parse(scope, &received.bytes, move |bytes| input::read_question(bytes, &registry)).await;
    let (mut input, items) = match read.map_err(|error| failed(scope.id(), &error))? {
        Ok(read) => read,
        Err(RefusedRequest { request_id, error }) => {
            scope.request_id = request_id;
            return Err(failed(&scope.request_id, &error));
        }
    };
    scope.request_id.clone_from(&input.request.request_id);
    let id = &scope.request_id;
    plan_name(Some(name), &input).map_err(|error| failed(id, &error))?;
    let entry = loop_state.app.find_entry(&catalog, name).map_err(|error| Box::new(Reply::error(id, None, &error)))?;
    scope.plan = Some(entry.plan.clone());
    let entry = scope.take_arms(&catalog, entry, &mut input);
    let entry = entry.map_err(|error| failed(&scope.request_id, &error))?;
    Ok(Question { request: input.request, items, plan: entry.plan.clone(), _memory: received.memory })
}

/// Links the plan for one run, runs it and tells. All but the run is done on the pool.
async fn answer(scope: &mut RequestScope, question: Question) -> Result<Reply, RunError> {
    let Question { request, items, plan: served, _memory } = question;
    let loop_state = scope.loop_state.clone();
    let limits = loop_state.loop_handle.limits_of_question();
    let (plan, registry) = (served.version()?.plan.clone(), served.registry.clone());
    let (tasks, linked_from, linked_with) = (loop_state.app.tasks.clone(), plan.clone(), registry.clone());
    let link = move || AskedPlan::link(&linked_from, &tasks, &linked_with);
    let asked = off_loop::offload(scope, limits.request, link).await?.map_err(|error| *error)?;
    let request = asked.request(request);
    let outcome = run::run_within(scope, asked.linked(), request.clone(), limits, Purpose::Question).await;
    let ended = match &outcome.result {
        // Without a run there is nothing to tell.
        Err(error) if matches!(error.code.kind, ErrorKind::Overloaded | ErrorKind::BadRequest) => {
            return Err((**error).clone());
        }
        Err(error) => RequestOutcome::Failed(error.code.kind),
        Ok(_) if outcome.degraded.is_empty() => RequestOutcome::Ok,
        Ok(_) => RequestOutcome::Degraded,
    };
    // A run that took all its time is told, too.
    let until = loop_state.loop_handle.limits_of_question().request;
    let told = off_loop::offload(scope, until, move || {
        let told = asked.items(&plan, &registry, &request, &outcome, &items);
        (told, asked, registry, request, outcome)
    });
    let ((mut items, inquiry), asked, registry, request, outcome) = told.await?;
    if let Some(inquiry) = inquiry {
        let limits = loop_state.loop_handle.limits_of_question();
        // What came of it is in its answers.
        let _ = run::run_within(scope, inquiry.linked(), inquiry.request(&request), limits, Purpose::Question).await;
        inquiry.tell(&mut items);
    }
    let told = off_loop::offload(scope, until, move || {
        let (request_id, plan) = (request.request_id.as_str(), asked.linked());
        WhyAnswer { request_id, plan, registry: &registry, outcome: &outcome, items: &items }.to_json()
    });
    Ok(Reply::json(told.await?).with_outcome(ended))
}

const QUESTION: &str = r##"{"type":"object","required":["user_id","items"],"additionalProperties":false,"properties":{
  "user_id":{"$ref":"#/components/schemas/UserId"},
  "items":{"type":"array","minItems":1,"maxItems":20,"items":{"$ref":"#/components/schemas/GivenId"},"description":"The ids that are asked about"},
  "request_id":{"type":"string","maxLength":32,"description":"At most 128 bytes"},
  "plan":{"type":"string","description":"The same as in the path"},
  "params":{"type":"object","description":"As for /rank"},
  "candidates":{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"$ref":"#/components/schemas/GivenId"}}},"description":"As for /rank"},
  "now_ms":{"type":"integer","minimum":0,"maximum":253402300799999,"description":"As for /rank"},
  "seed":{"oneOf":[{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807},{"type":"string","maxLength":32,"description":"At most 128 bytes"}],"description":"As for /rank"},
  "strict":{"type":["boolean","null"],"description":"As for /rank"},
  "dials":{"type":"object","additionalProperties":{"type":"integer"},"description":"Where dials of the plan stand; those that are not given stand at their first value"},
  "arms":{"type":"object","maxProperties":64,"additionalProperties":{"type":"string"},"description":"Arms by experiment, in place of those that the user is in"}}}"##;

const ANSWER: &str = r##"{"type":"object","required":["request_id","plan","items"],"properties":{
  "request_id":{"type":"string"},"plan":{"type":"string"},
  "error":{"type":"object","description":"Why the run failed, where it did"},
  "degraded":{"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/Degraded"}},
  "arms":{"type":"object","minProperties":1,"additionalProperties":{"type":"string"},"description":"As for /rank"},
  "forced":{"const":true,"description":"As for /rank"},
  "items":{"type":"array","items":{"type":"object","required":["id","verdict","rows","row_count"],"properties":{
    "id":{"$ref":"#/components/schemas/Id"},
    "verdict":{"enum":["answered","dropped","expanded","grouped","never","failed"],"description":"What became of its best row"},
    "row_count":{"type":"integer","minimum":0},
    "change":{"type":["object","null"],"description":"Where it was dropped: one number whose change alone brings it into the answer, as seen in a run on the same reads"},
    "no_change":{"enum":["two_drops","not_found","out_of_time","not_read"],"description":"Why there is no such number"},
    "never":{"type":"array","items":{"type":"object","required":["node","op","why"]},"description":"Where it was in no source: each of them, and why it was not there"},
    "rows":{"type":"array","items":{"type":"object","required":["end","source","path","score"],"properties":{
      "end":{"enum":["answered","dropped","expanded","grouped","aside","failed"]},
      "source":{"type":"object","description":"The node that brought it in, its position there and what it had"},
      "path":{"type":"array","items":{"type":"object"},"description":"The nodes that it went through: its position before and after, and what was written"},
      "dropped":{"type":"object","description":"The node that dropped it, and why"},
      "score":{"type":["object","null"],"description":"The key that it was last ordered or picked by, and what that was made of"}}}}}}}}}"##;
