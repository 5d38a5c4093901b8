//! `GET /api/live/{plan}`: how the nodes of a plan are doing, from the runs that are traced. `from` is the first slot that the page wants, `node` one node whose times it wants to know better.

use super::OF_A_PLAN;
use crate::audience::Audience;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;
use rankd_engine::clock;
use rankd_plan::json::Writer;

pub(crate) struct NodeFiguresPage;

impl Page for NodeFiguresPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/live/{plan}",
        audience: Audience::Console,
        operation: "ConsoleNodes",
        summary: "Figures of a plan's nodes, of the last quarter of an hour",
        schema: OF_A_PLAN,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let app = scope.loop_state.app.clone();
        let catalog = app.catalog.load();
        let found = app.find_plan(&catalog, call.name()).and_then(|plan| plan.version());
        let good = match found {
            Ok(good) => good,
            Err(error) => return Reply::error(scope.id(), Some(call.name()), &error),
        };
        let number = |name| call.query(name).and_then(|text| text.parse().ok());
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("version").int(good.version as i64);
            if let Some(console) = &app.console {
                console.nodes.write(&good.linked, number("from").unwrap_or(0), number("node"), clock::now(), w);
            }
        });
        Reply::json(writer.finish())
    }
}
