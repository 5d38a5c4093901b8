//! The paths that tell about the server itself: plans, tasks, health, metrics, version.

use crate::cli::tasks;
use crate::serve::exchange::Visit;
use crate::serve::exposition;
use crate::serve::openapi;
use crate::serve::reply::{Reply, TEXT};
use crate::serve::routes::Answers;
use crate::serve::shelf::{Problem, Shelved};
use hyper::StatusCode;
use rankd_engine::{ErrorKind, RunError};
use rankd_plan::json::Writer;
use std::sync::atomic::Ordering;

pub(crate) fn page(visit: &mut Visit, which: Answers, name: &str) -> Reply {
    let app = visit.desk.app.clone();
    match which {
        Answers::Alive => Reply::json(r#"{"status":"ok"}"#),
        Answers::Ready if app.ready.load(Ordering::Relaxed) => Reply::json(r#"{"status":"ready"}"#),
        Answers::Ready => Reply::json(r#"{"status":"not ready"}"#).with_status(StatusCode::SERVICE_UNAVAILABLE),
        Answers::Metrics => Reply::of(TEXT, exposition::render(&app)),
        Answers::OpenApi => Reply::json(openapi::document()),
        Answers::Version => Reply::json(version()),
        Answers::Tasks => {
            let all: Vec<_> = rankd_tasks::SIGNATURES.iter().collect();
            Reply::json(tasks::to_json(&all))
        }
        Answers::Plans => {
            let mut writer = Writer::new();
            writer.array(|w| {
                for plan in app.shelf.load().list() {
                    w.object(|w| summary(plan, w));
                }
            });
            Reply::json(writer.finish())
        }
        Answers::Plan => match app.shelf.load().get(name) {
            Some(plan) => Reply::json(in_full(plan)),
            None => Reply::error(visit.id(), None, &no_plan(name, app.shelf.load().nearest(name))),
        },
        // These run plans and are answered elsewhere.
        Answers::Rank | Answers::RankPlan | Answers::Explain => {
            Reply::error(visit.id(), None, &RunError::bug("a page that is none"))
        }
    }
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

pub(crate) fn no_plan(name: &str, near: Option<&str>) -> RunError {
    let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let shown: String = name.chars().take(80).collect();
    RunError::new(ErrorKind::UnknownPlan, "E201", format!("there is no plan {shown:?}{hint}"))
}

/// What the listing says about a plan.
fn summary(plan: &Shelved, w: &mut Writer) {
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
    if let Some(Problem { at, message, .. }) = &plan.problem {
        w.field("problem").object(|w| {
            w.field("at").string(at);
            w.field("message").string(message);
        });
    }
}

fn in_full(plan: &Shelved) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        summary(plan, w);
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
