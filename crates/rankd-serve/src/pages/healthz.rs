//! `GET /healthz`: whether the process is alive.

use crate::audience::Audience;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;

pub(crate) struct Healthz;

impl Page for Healthz {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/healthz",
        audience: Audience::Probes,
        operation: "Alive",
        summary: "Whether the process is alive",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Component("Status"))],
            failures: Failures::OfPages(&[]),
            components: &[],
        },
    };

    async fn answer(_: &mut RequestScope, _: &mut Call) -> Reply {
        Reply::json(r#"{"status":"ok"}"#)
    }
}
