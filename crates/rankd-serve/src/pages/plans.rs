//! `GET /plans`: all plans and their state.

use crate::audience::Audience;
use crate::catalog::{Catalog, RefusedVersion, ServedPlan};
use crate::readiness::{Warning, Warnings};
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use crate::time_slice::TimeSlice;
use crate::version_history::Held;
use hyper::Method;
use rankd_edge::outputs::write_outputs;
use rankd_plan::json::Writer;
use std::sync::Arc;

pub(crate) struct PlansPage;

impl Page for PlansPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/plans",
        audience: Audience::Operators,
        operation: "Plans",
        summary: "List the plans and their state",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::ListOf("Plan"))],
            failures: Failures::OfPages(&[]),
            components: &[("Plan", PLAN)],
        },
    };

    /// In time slices, because there may be thousands.
    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        let app = &scope.loop_state.app;
        let (catalog, warnings, mut slice) = (app.catalog.load_full(), app.readiness.warnings(), TimeSlice::begin());
        let mut out = String::from("[");
        for (at, plan) in catalog.list().iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            let mut writer = Writer::new();
            writer.object(|w| summarize(plan, &catalog, &warnings, w));
            out.push_str(&writer.finish());
            slice.yield_if_over().await;
        }
        out.push(']');
        Reply::json(out)
    }
}

/// What the listing says about a plan.
pub(crate) fn summarize(plan: &ServedPlan, catalog: &Catalog, warnings: &Warnings, w: &mut Writer) {
    w.field("plan").string(&plan.name);
    w.field("file").string(&plan.file);
    let held = plan.held();
    w.field("ok").bool(plan.good.is_some() && plan.problem.is_none() && held.is_none());
    w.field("serving").bool(plan.good.is_some());
    if let Some(good) = &plan.good {
        w.field("version").int(good.version as i64);
        w.field("sha256").string(&good.sha256);
        w.field("loaded_at").string(&good.loaded_at);
        w.field("nodes").int(good.linked.nodes.len() as i64);
        let outputs = good.linked.outputs.iter().map(|output| &*good.linked.node(*output).id);
        write_outputs(good.linked.output_names.as_deref(), outputs, w.field("outputs"));
    }
    if let Some(RefusedVersion { at, message, .. }) = &plan.problem {
        w.field("problem").object(|w| {
            w.field("at").string(at);
            w.field("message").string(message);
        });
    }
    if let Some(pin) = &plan.history.pinned {
        w.field("pinned").string(&pin.sha256);
    }
    if let Some(Held { at, message }) = &held {
        w.field("held").object(|w| {
            w.field("at").string(at).field("message").string(message);
        });
    }
    if let Some(pair) = catalog.shadows.iter().find(|pair| pair.settings.plan == plan.name) {
        w.field("shadow").object(|w| {
            w.field("plan").string(&pair.settings.shadow).field("share").float(pair.settings.share);
            if let Some((_, unfit)) = catalog.unfit.iter().find(|(of, _)| Arc::ptr_eq(of, pair)) {
                w.field("problem").string(&unfit.to_string());
            }
            if let Some(failure) = pair.counts.last_failure() {
                w.field("last_failure").string(&failure);
            }
        });
    }
    // Every plan is then built with the previous registry.
    if let Some(Warning { at, message }) = &warnings.registry {
        w.field("registry_problem").object(|w| {
            w.field("at").string(at).field("message").string(message);
        });
    }
}

const PLAN: &str = r#"{"type":"object","required":["plan","file","ok","serving"],"properties":{
  "plan":{"type":"string"},"file":{"type":"string"},
  "ok":{"type":"boolean","description":"Whether the version in service matches the file"},
  "serving":{"type":"boolean"},"version":{"type":"integer"},"sha256":{"type":"string"},"loaded_at":{"type":"string"},
  "nodes":{"type":"integer"},"outputs":{"description":"Nodes, as a list or by the names of the outputs","oneOf":[{"type":"array","items":{"type":"string"}},{"type":"object","additionalProperties":{"type":"string"}}]},
  "problem":{"type":"object","required":["at","message"],"properties":{"at":{"type":"string"},"message":{"type":"string"}}},
  "registry_problem":{"description":"Why the registry on disk is not the one that the plan was built with","type":"object","required":["at","message"],"properties":{"at":{"type":"string"},"message":{"type":"string"}}},
  "pinned":{"type":"string","description":"The digest of the version that the plan is pinned to"},
  "held":{"description":"Why the good version in the file is not in service: the plan is pinned, or the version was rolled back","type":"object","required":["at","message"],"properties":{"at":{"type":"string"},"message":{"type":"string"}}},
  "shadow":{"description":"The plan that runs beside it, for this share of its requests","type":"object","required":["plan","share"],"properties":{"plan":{"type":"string"},"share":{"type":"number"},
    "problem":{"type":"string","description":"Why it cannot run"},"last_failure":{"type":"string","description":"Of its last run that failed"}}},
  "versions":{"description":"The good versions that this process has had, newest first","type":"array","maxItems":10,"items":{"type":"object","required":["sha256","since","served","pinned","kept"],"properties":{
    "sha256":{"type":"string"},"since":{"type":"string","description":"When it was loaded"},"served":{"type":"boolean"},"pinned":{"type":"boolean"},
    "kept":{"type":"boolean","description":"Whether it can be served again"},
    "answers":{"type":"integer","description":"Answers that say something about the version; with --allow_rollback or --auto_rollback, as the next two"},"bad":{"type":"integer"},"bad_share":{"type":"number"},
    "verdict":{"type":"string","description":"What watching it came to, with --auto_rollback"},
    "refused":{"description":"That it was rolled back: it is not served until the file has had another version","type":"object","required":["at","message"],"properties":{"at":{"type":"string"},"message":{"type":"string"}}}}}},
  "graph":{"type":"array","items":{"type":"object"}},"diagnostics":{"type":"array","items":{"type":"object"}}}}"#;
