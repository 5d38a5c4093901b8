//! `GET /api/about`: which build the console is of, and what it may show.

use super::AN_OBJECT;
use crate::audience::{Audience, WhyServed};
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;
use rankd_plan::json::Writer;

pub(crate) struct AboutPage;

impl Page for AboutPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/about",
        audience: Audience::Console,
        operation: "ConsoleAbout",
        summary: "Which build this is, and what the console may show",
        schema: AN_OBJECT,
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        let app = &scope.loop_state.app;
        let rows = app.console.as_ref().is_some_and(|console| console.rows);
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("version").string(env!("CARGO_PKG_VERSION"));
            w.field("started_ms").int(app.started_ms as i64).field("loops").int(app.metrics.loops().len() as i64);
            w.field("trace_every").int(i64::try_from(app.settings.trace_every).unwrap_or(i64::MAX));
            w.field("rows").bool(rows).field("why").bool(rows && app.settings.why != WhyServed::Nowhere);
        });
        Reply::json(writer.finish())
    }
}
