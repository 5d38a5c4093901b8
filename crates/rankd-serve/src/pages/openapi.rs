//! `GET /openapi.json`: the OpenAPI document of the listener that is asked.

use crate::audience::Audience;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;

pub(crate) struct OpenApi;

impl Page for OpenApi {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/openapi.json",
        audience: Audience::Everyone,
        operation: "OpenApi",
        summary: "This document",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Json(r#"{"type":"object"}"#))],
            failures: Failures::OfPages(&[]),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        let app = &scope.loop_state.app;
        let (listener, _) = app.listener(scope.state.class);
        Reply::json(app.documents[listener as usize].clone())
    }
}
