//! `GET /models`: the models that rows are scored with.

use crate::audience::Audience;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;
use rankd_edge::model_list;

pub(crate) struct ModelsPage;

impl Page for ModelsPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/models",
        audience: Audience::Operators,
        operation: "Models",
        summary: "List the models that rows are scored with",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Json(r#"{"type":"array","items":{"type":"object"}}"#))],
            failures: Failures::OfPages(&[]),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        Reply::json(model_list::to_json(&scope.loop_state.app.catalog.load().registry))
    }
}
