//! `GET /version`: which build this is.

use crate::audience::Audience;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;
use rankd_plan::json::Writer;

pub(crate) struct VersionPage;

impl Page for VersionPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/version",
        audience: Audience::Everyone,
        operation: "Version",
        summary: "Which build this is",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Json(r#"{"type":"object"}"#))],
            failures: Failures::OfPages(&[]),
            components: &[],
        },
    };

    async fn answer(_: &mut RequestScope, _: &mut Call) -> Reply {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("name").string("rankd");
            w.field("version").string(env!("CARGO_PKG_VERSION"));
            w.field("plan_schema_version").int(1);
        });
        Reply::json(writer.finish())
    }
}
