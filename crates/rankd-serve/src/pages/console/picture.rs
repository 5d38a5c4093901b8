//! `GET /api/picture/{plan}`: a plan laid out, as it runs or with `form=written` as it was written. It has a version: a browser asks for it once.

use super::OF_A_PLAN;
use super::file::has_version;
use crate::audience::Audience;
use crate::console::files::build_id;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;
use rankd_edge::explain::{Explanation, Form};
use rankd_engine::RunError;

pub(crate) struct PicturePage;

impl Page for PicturePage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/picture/{plan}",
        audience: Audience::Console,
        operation: "ConsolePicture",
        summary: "A plan laid out as a picture, as it runs or as it was written",
        schema: OF_A_PLAN,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let loop_state = scope.loop_state.clone();
        let app = loop_state.app.clone();
        let catalog = app.catalog.load_full();
        let found = app.find_plan(&catalog, call.name()).and_then(|plan| Ok((plan, plan.version()?.clone())));
        let (plan, good) = match found {
            Ok(found) => found,
            Err(error) => return Reply::error(scope.id(), Some(call.name()), &error),
        };
        let (form, name) = match call.query("form") {
            Some("written") => (Form::Written, "written"),
            _ => (Form::Running, "runs"),
        };
        let etag = format!("\"{}-{}-{}-{name}\"", build_id(), good.sha256, good.version);
        if has_version(call, &etag) {
            return Reply::not_modified(&etag);
        }
        let (registry, engine) = (plan.registry.clone(), app.engine.clone());
        let lay_out = move || {
            let (scheduler, limits_nodes) = (engine.scheduler, engine.node_timeout.is_some());
            let plan = &good.linked;
            let told = Explanation {
                plan,
                scheduler,
                policy: &engine.policy,
                limits_nodes,
                analyzed: None,
                experiments: None,
            };
            told.to_scene(&good.plan, &registry, form)
        };
        // Held until there is a picture. Nobody closes the places.
        let drawn = match &app.console {
            Some(console) => match console.pictures.acquire().await {
                Ok(_turn) => loop_state.loop_handle.offload(None, lay_out).await,
                Err(_) => Err(RunError::bug("there is no place for a picture")),
            },
            None => Err(RunError::bug("there is no console")),
        };
        match drawn {
            Ok(scene) => Reply::json(scene).with_etag(&etag),
            Err(error) => Reply::error(scope.id(), Some(call.name()), &error),
        }
    }
}
