//! `GET /plans/{name}`: one plan with its nodes, and what is wrong with its newest version.

use super::plans::summarize;
use crate::audience::Audience;
use crate::catalog::ServedPlan;
use crate::readiness::Warnings;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;
use rankd_plan::json::Writer;

pub(crate) struct PlanPage;

impl Page for PlanPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/plans/{name}",
        audience: Audience::Operators,
        operation: "Plan",
        summary: "One plan: its state, its nodes, and what is wrong with its newest version",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Component("Plan"))],
            failures: Failures::OfPages(&[(404, "unknown_plan", Shape::Component("Failure"))]),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let app = scope.loop_state.app.clone();
        match app.find_plan(&app.catalog.load(), call.name()) {
            Ok(plan) => Reply::json(describe(plan, &app.readiness.warnings())),
            Err(error) => Reply::error(scope.id(), None, &error),
        }
    }
}

fn describe(plan: &ServedPlan, warnings: &Warnings) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        summarize(plan, warnings, w);
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
