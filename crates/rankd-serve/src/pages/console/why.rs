//! `POST /api/why/{plan}`: what became of items in one run, as `/why/{plan}` tells it. Not where rows are hidden or `--why off` is set.

use crate::audience::{Audience, WhyServed};
use crate::pages::why::WhyPage;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;
use rankd_engine::{RunError, codes};

pub(crate) struct AskWhyPage;

impl Page for AskWhyPage {
    const ABOUT: About = About {
        method: Method::POST,
        path: "/api/why/{plan}",
        audience: Audience::Console,
        operation: "ConsoleWhy",
        summary: "Run a plan and say what became of some items, and why",
        schema: ANSWER,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let app = scope.loop_state.app.clone();
        let hidden = match (app.console.as_ref().is_some_and(|console| console.rows), app.settings.why) {
            (false, _) => Some("--console_rows off"),
            (true, WhyServed::Nowhere) => Some("--why off"),
            (true, WhyServed::OnAdmin | WhyServed::Everywhere) => None,
        };
        if let Some(flag) = hidden {
            let message = format!("the console does not show what became of rows: the server was started with {flag}");
            return Reply::error(scope.id(), Some(call.name()), &RunError::new(codes::ROWS_HIDDEN, message));
        }
        WhyPage::answer(scope, call).await
    }
}

/// As for `/why`.
const ANSWER: Schema = Schema {
    takes: Some(Shape::Component("WhyQuestion")),
    gives: &[(JSON, Shape::Component("WhyAnswer"))],
    failures: Failures::OfRuns,
    components: &[],
};
