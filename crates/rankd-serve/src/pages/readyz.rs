//! `GET /readyz`: whether requests should be sent to this process.

use crate::audience::Audience;
use crate::readiness::Phase;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::{Method, StatusCode};

pub(crate) struct Readyz;

impl Page for Readyz {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/readyz",
        audience: Audience::Probes,
        operation: "Ready",
        summary: "Whether the process is ready for requests: not before plans are loaded, nor while it stops",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Component("Status"))],
            failures: Failures::OfPages(&[(503, "Requests should go elsewhere", Shape::Component("Status"))]),
            components: &[("Status", STATUS)],
        },
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        let readiness = &scope.loop_state.app.readiness;
        let reply = Reply::json(readiness.to_json());
        match readiness.phase() {
            Phase::Ready => reply,
            Phase::Loading | Phase::Stopping => reply.with_status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

const STATUS: &str = r#"{"type":"object","required":["status"],"properties":{"status":{"type":"string"},
  "warnings":{"description":"Problems that do not keep requests from being served","type":"array","items":{"type":"object","required":["about","at","message"],"properties":{"about":{"enum":["plan_folder","registry"]},"at":{"type":"string"},"message":{"type":"string"}}}}}}"#;
