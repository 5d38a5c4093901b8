//! `GET /metrics`: the metrics for Prometheus.

use crate::audience::Audience;
use crate::exposition;
use crate::reply::{Reply, TEXT};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;

pub(crate) struct MetricsPage;

impl Page for MetricsPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/metrics",
        audience: Audience::Operators,
        operation: "Metrics",
        summary: "Metrics for Prometheus",
        schema: Schema {
            takes: None,
            gives: &[("text/plain", Shape::Json(r#"{"type":"string"}"#))],
            failures: Failures::OfPages(&[]),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        Reply::of(TEXT, exposition::render(&scope.loop_state.app).await)
    }
}
