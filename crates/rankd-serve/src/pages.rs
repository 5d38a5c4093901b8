//! The paths that tell about the server itself: plans, tasks, health, metrics, version.

use crate::app::App;
use crate::catalog::{RefusedVersion, ServedPlan};
use crate::exposition;
use crate::openapi;
use crate::readiness::{Phase, Warning, Warnings};
use crate::reply::{Reply, TEXT};
use crate::request_scope::RequestScope;
use crate::routes::Answers;
use crate::time_slice::TimeSlice;
use hyper::StatusCode;
use rankd_edge::task_list;
use rankd_engine::RunError;
use rankd_plan::json::Writer;

pub(crate) async fn page(scope: &mut RequestScope, which: Answers, name: &str) -> Reply {
    let app = scope.acceptor.app.clone();
    match which {
        Answers::Alive => Reply::json(r#"{"status":"ok"}"#),
        Answers::Ready => {
            let reply = Reply::json(app.readiness.to_json());
            match app.readiness.phase() {
                Phase::Ready => reply,
                Phase::Loading | Phase::Stopping => reply.with_status(StatusCode::SERVICE_UNAVAILABLE),
            }
        }
        Answers::Metrics => Reply::of(TEXT, exposition::render(&app).await),
        Answers::OpenApi => Reply::json(openapi::document(app.listener(scope.state.class).0)),
        Answers::Version => Reply::json(version()),
        Answers::Tasks => {
            let all: Vec<_> = app.tasks.iter().collect();
            Reply::json(task_list::to_json(&all))
        }
        Answers::Plans => Reply::json(plans(&app).await),
        Answers::Plan => match app.find_plan(&app.catalog.load(), name) {
            Ok(plan) => Reply::json(in_full(plan, &app.readiness.warnings())),
            Err(error) => Reply::error(scope.id(), None, &error),
        },
        // These run plans and are answered elsewhere.
        Answers::Rank | Answers::RankPlan | Answers::Explain => {
            Reply::error(scope.id(), None, &RunError::bug("a page that is none"))
        }
    }
}

/// All plans, listed in time slices, because there may be thousands.
async fn plans(app: &App) -> String {
    let (catalog, warnings, mut slice) = (app.catalog.load_full(), app.readiness.warnings(), TimeSlice::begin());
    let mut out = String::from("[");
    for (at, plan) in catalog.list().iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let mut writer = Writer::new();
        writer.object(|w| summary(plan, &warnings, w));
        out.push_str(&writer.finish());
        slice.yield_if_over().await;
    }
    out.push(']');
    out
}

fn version() -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("name").string(env!("CARGO_PKG_NAME"));
        w.field("version").string(env!("CARGO_PKG_VERSION"));
        w.field("plan_schema_version").int(1);
    });
    writer.finish()
}

/// What the listing says about a plan.
fn summary(plan: &ServedPlan, warnings: &Warnings, w: &mut Writer) {
    w.field("plan").string(&plan.name);
    w.field("file").string(&plan.file);
    w.field("ok").bool(plan.good.is_some() && plan.problem.is_none());
    w.field("serving").bool(plan.good.is_some());
    if let Some(good) = &plan.good {
        w.field("version").int(good.version as i64);
        w.field("sha256").string(&good.sha256);
        w.field("loaded_at").string(&good.loaded_at);
        w.field("nodes").int(good.linked.nodes.len() as i64);
        w.field("outputs").array(|w| {
            for output in &good.linked.outputs {
                w.string(&good.linked.node(*output).id);
            }
        });
    }
    if let Some(RefusedVersion { at, message, .. }) = &plan.problem {
        w.field("problem").object(|w| {
            w.field("at").string(at);
            w.field("message").string(message);
        });
    }
    // Every plan is then made with the registry before it.
    if let Some(Warning { at, message }) = &warnings.registry {
        w.field("registry_problem").object(|w| {
            w.field("at").string(at).field("message").string(message);
        });
    }
}

fn in_full(plan: &ServedPlan, warnings: &Warnings) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        summary(plan, warnings, w);
        if let Some(good) = &plan.good {
            w.field("graph").array(|w| {
                for node in &good.linked.nodes {
                    w.object(|w| {
                        w.field("node").string(&node.id);
                        w.field("op").string(node.op);
                        w.field("inputs").array(|w| {
                            for input in &node.inputs {
                                w.string(&good.linked.node(*input).id);
                            }
                        });
                    });
                }
            });
        }
        if let Some(problem) = &plan.problem {
            w.field("diagnostics").raw(&problem.diagnostics);
        }
    });
    writer.finish()
}
