//! `POST /rollback/{plan}`: back to the version before, or to one that is named.

use crate::audience::Audience;
use crate::pages::switching::{self, Digest};
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::version_wish::Wish;
use hyper::Method;
use rankd_engine::RunError;

pub(crate) struct RollbackPage;

impl Page for RollbackPage {
    const ABOUT: About = About {
        method: Method::POST,
        path: "/rollback/{plan}",
        audience: Audience::Operators,
        operation: "Rollback",
        summary: "Serve the version before, or a named one, until the plan's file changes; needs --allow_rollback",
        schema: Schema {
            takes: Some(Shape::Json(TAKES)),
            gives: &[(JSON, Shape::Component("Plan"))],
            failures: Failures::OfPages(switching::FAILURES),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        switching::answer(scope, call, wish).await
    }
}

fn wish(given: Option<Digest>) -> Result<Wish, RunError> {
    Ok(Wish::RollBack(given.flatten()))
}

const TAKES: &str = r#"{"type":"object","additionalProperties":false,"properties":{
  "sha256":{"type":["string","null"],"pattern":"^[0-9a-f]{8,64}$","description":"The version to go back to: its digest, or how that begins. Without it, the version before"}}}"#;
