//! `POST /api/ask/{plan}`: one request, run as any request is, with its trace. It is not counted with the plan's requests.

use crate::audience::Audience;
use crate::off_loop::{self, AnswerSpec};
use crate::pages::rank;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::{run, traced_run};
use hyper::Method;
use rankd_edge::prepare::Prepared;

pub(crate) struct AskPage;

impl Page for AskPage {
    const ABOUT: About = About {
        method: Method::POST,
        path: "/api/ask/{plan}",
        audience: Audience::Console,
        operation: "ConsoleAsk",
        summary: "Run a plan for one request and give its rows and its trace",
        schema: ANSWER,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        // The memory is given back when there is an answer.
        let (prepared, plan, linked, _memory) = match rank::prepare(scope, call, true).await {
            Ok(prepared) => prepared,
            Err(reply) => return *reply,
        };
        let Prepared { request, output_keys, with_trace } = prepared;
        let shows_rows = scope.loop_state.app.console.as_ref().is_some_and(|console| console.rows);
        let output_keys = if shows_rows { output_keys } else { Some(Vec::new()) };
        let deadline = scope.loop_state.loop_handle.deadline(scope.since, request.deadline);
        let outcome = run::run(scope, &linked, request).await;
        traced_run::record(scope, &linked, &outcome);
        let spec =
            AnswerSpec { plan: &linked, registry: &plan.registry, output_keys, with_trace, arrow: false, deadline };
        off_loop::write(scope, spec, outcome).await.0
    }
}

/// As for `/rank`.
const ANSWER: Schema = Schema {
    takes: Some(Shape::Component("Request")),
    gives: &[(JSON, Shape::Component("Response"))],
    failures: Failures::OfRuns,
    components: &[],
};
