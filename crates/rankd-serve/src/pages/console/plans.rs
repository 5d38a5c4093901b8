//! `GET /api/plans`: all plans with their state and their figures. `slot` and `catalog` of the answer before leave out what the page knows.

use super::AN_OBJECT;
use crate::audience::Audience;
use crate::console::plan_figures::Seen;
use crate::console::{SLOT, SLOTS};
use crate::pages::plans::summarize;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use crate::time_slice::TimeSlice;
use hyper::Method;
use rankd_engine::clock;
use rankd_plan::json::{Reader, Writer};

pub(crate) struct PlanFiguresPage;

impl Page for PlanFiguresPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/plans",
        audience: Audience::Console,
        operation: "ConsolePlans",
        summary: "All plans, with figures of the last quarter of an hour",
        schema: AN_OBJECT,
    };

    /// In time slices, because there may be thousands.
    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let app = scope.loop_state.app.clone();
        let Some(console) = &app.console else { return Reply::json("{}") };
        let (catalog, warnings, mut slice) = (app.catalog.load_full(), app.readiness.warnings(), TimeSlice::begin());
        let number = |name| call.query(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        let (now, mut seen) = (console.plans.now(&catalog), Seen { slot: number("slot"), catalog: number("catalog") });
        // A page of another process knows nothing of this one.
        if seen.slot > now.slot || seen.catalog > now.catalog {
            seen = Seen::default();
        }
        let mut out = format!(
            "{{\"slot\":{},\"catalog\":{},\"slot_seconds\":{},\"slots_max\":{SLOTS},\"state\":{},\"all\":{},\"plans\":[",
            now.slot,
            now.catalog,
            SLOT.as_secs(),
            app.readiness.to_json(),
            now.catalog != seen.catalog
        );
        let mut is_first = true;
        for plan in catalog.list() {
            let (mut writer, mut is_told) = (Writer::new(), now.catalog != seen.catalog);
            writer.object(|w| {
                match is_told {
                    true => {
                        summarize(plan, &catalog, &warnings, w);
                        if let Some(place) = plan.problem.as_ref().and_then(|problem| first_place(&problem.diagnostics))
                        {
                            w.field("place").string(&place);
                        }
                    }
                    false => drop(w.field("plan").string(&plan.name)),
                }
                is_told |= console.plans.write(&plan.name, &plan.counters, seen, clock::now(), w);
            });
            if is_told {
                out.push_str(if is_first { "" } else { "," });
                out.push_str(&writer.finish());
                is_first = false;
            }
            slice.yield_if_over().await;
        }
        out.push_str("]}");
        Reply::json(out)
    }
}

/// Levels of JSON that diagnostics have at most.
const DEPTH_MAX: usize = 8;

/// Where the first error is, of diagnostics as programs are told them.
fn first_place(diagnostics: &str) -> Option<String> {
    let mut reader = Reader::new(diagnostics, DEPTH_MAX);
    let mut items = reader.open_array().ok()?;
    while reader.item(&mut items).ok()? {
        let (mut place, mut is_error) = (None, false);
        let mut fields = reader.open_object().ok()?;
        while let Some((name, _)) = reader.field(&mut fields).ok()? {
            match &*name {
                "at" => place = Some(reader.string().ok()?.into_owned()),
                "severity" => is_error = reader.string().ok()? == "error",
                _ => reader.skip().ok()?,
            }
        }
        if is_error {
            return place;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_has_its_place() {
        let told = r#"[{"code":"P111","severity":"warning","at":"a:1:1","help":null},{"severity":"error","message":"x","at":"b:2:3"}]"#;
        assert_eq!(first_place(told).as_deref(), Some("b:2:3"));
        for none in ["[]", "", "{}", r#"[{"severity":"warning","at":"a"}]"#, r#"[{"severity":1}]"#] {
            assert_eq!(first_place(none), None, "{none}");
        }
    }
}
