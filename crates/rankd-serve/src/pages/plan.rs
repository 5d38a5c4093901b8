//! `GET /plans/{name}`: one plan with its nodes, its versions, and what is wrong with its newest version.

use super::plans::summarize;
use crate::audience::Audience;
use crate::catalog::{Catalog, ServedPlan};
use crate::readiness::Warnings;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::version_history::{KeptVersion, RolledBack};
use hyper::Method;
use rankd_plan::json::Writer;

pub(crate) struct PlanPage;

impl Page for PlanPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/plans/{name}",
        audience: Audience::Operators,
        operation: "Plan",
        summary: "One plan: its state, its nodes, its versions, and what is wrong with its newest version",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Component("Plan"))],
            failures: Failures::OfPages(&[(404, "unknown_plan", Shape::Component("Failure"))]),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let app = scope.loop_state.app.clone();
        let catalog = app.catalog.load();
        match app.find_plan(&catalog, call.name()) {
            Ok(plan) => Reply::json(describe(plan, &catalog, &app.readiness.warnings())),
            Err(error) => Reply::error(scope.id(), None, &error),
        }
    }
}

pub(super) fn describe(plan: &ServedPlan, catalog: &Catalog, warnings: &Warnings) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        summarize(plan, catalog, warnings, w);
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
        write_history(plan, w);
    });
    writer.finish()
}

/// The versions of a plan, and what is wrong with its newest one.
pub(crate) fn write_history(plan: &ServedPlan, w: &mut Writer) {
    w.field("versions").array(|w| {
        plan.history.list().iter().rev().for_each(|version| write_version(plan, version, w));
    });
    if let Some(problem) = &plan.problem {
        w.field("diagnostics").raw(&problem.diagnostics);
    }
}

/// One version that there was, the newest first.
fn write_version(plan: &ServedPlan, version: &KeptVersion, w: &mut Writer) {
    let KeptVersion { sha256, artifact, since, counts, rolled_back } = version;
    w.object(|w| {
        w.field("sha256").string(sha256).field("since").string(since);
        w.field("served").bool(plan.good.as_ref().is_some_and(|good| good.sha256 == *sha256));
        w.field("pinned").bool(plan.history.pinned.as_ref().is_some_and(|pin| pin.sha256 == *sha256));
        w.field("kept").bool(artifact.is_some());
        if let Some(counts) = counts {
            let answers = counts.total();
            w.field("answers").int(answers.all as i64).field("bad").int(answers.bad as i64);
            w.field("bad_share").float(answers.share());
            if let Some(verdict) = counts.verdict() {
                w.field("verdict").string(&verdict);
            }
        }
        if let Some(RolledBack { at, why }) = rolled_back {
            w.field("refused").object(|w| {
                w.field("at").string(at).field("message").string(why);
            });
        }
    });
}
