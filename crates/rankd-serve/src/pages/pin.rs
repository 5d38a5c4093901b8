//! `POST /pin/{plan}`: stay at a version, whatever the plan's file has; or follow the file again.

use crate::audience::Audience;
use crate::pages::switching::{self, Digest};
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::version_wish::Wish;
use hyper::Method;
use rankd_engine::{RunError, codes};

pub(crate) struct PinPage;

impl Page for PinPage {
    const ABOUT: About = About {
        method: Method::POST,
        path: "/pin/{plan}",
        audience: Audience::Operators,
        operation: "Pin",
        summary: "Serve a named version until it is unpinned or the process ends; needs --allow_rollback",
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
    match given {
        Some(Some(digits)) => Ok(Wish::Pin(digits)),
        Some(None) => Ok(Wish::Unpin),
        None => {
            let message = "the field \"sha256\" is missing: it is the digest of a version, or null to unpin the plan";
            Err(RunError::new(codes::MISSING_FIELD, message))
        }
    }
}

const TAKES: &str = r#"{"type":"object","required":["sha256"],"additionalProperties":false,"properties":{
  "sha256":{"type":["string","null"],"pattern":"^[0-9a-f]{8,64}$","description":"The version's digest, or how it begins; null to unpin the plan, which serves its newest good version"}}}"#;
