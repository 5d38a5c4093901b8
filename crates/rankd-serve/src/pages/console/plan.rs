//! `GET /api/plan/{plan}`: the state of one plan: its versions, what is wrong with it, and the parameters that it takes.

use super::OF_A_PLAN;
use crate::audience::Audience;
use crate::catalog::GoodVersion;
use crate::pages::plan::write_history;
use crate::pages::plans::summarize;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;
use rankd_plan::Registry;
use rankd_plan::json::Writer;

pub(crate) struct PlanStatePage;

impl Page for PlanStatePage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/plan/{plan}",
        audience: Audience::Console,
        operation: "ConsolePlan",
        summary: "One plan: its versions, its problems and its parameters",
        schema: OF_A_PLAN,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let app = scope.loop_state.app.clone();
        let catalog = app.catalog.load();
        let plan = match app.find_plan(&catalog, call.name()) {
            Ok(plan) => plan,
            Err(error) => return Reply::error(scope.id(), None, &error),
        };
        let mut writer = Writer::new();
        writer.object(|w| {
            summarize(plan, &catalog, &app.readiness.warnings(), w);
            write_history(plan, w);
            if let Some(good) = &plan.good {
                w.field("params").array(|w| write_params(good, &plan.registry, w));
            }
        });
        Reply::json(writer.finish())
    }
}

/// The parameters that requests may set.
fn write_params(good: &GoodVersion, registry: &Registry, w: &mut Writer) {
    for at in good.linked.params() {
        let entry = registry.params.get(*at);
        w.object(|w| {
            w.field("name").string(&entry.name).field("type").string(&entry.type_of.to_string());
            w.field("doc").string(&entry.doc).field("nullable").bool(entry.nullable);
            if let Some(default) = &entry.default {
                w.field("default").string(&default.to_string());
            }
        });
    }
}
