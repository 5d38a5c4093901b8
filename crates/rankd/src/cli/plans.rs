//! `rankd plans`: the plans of the plan folder and whether they are good. What it does with the plans of a server is in `plan_versions`.

use crate::cli::check::{load_plans, no_plans, print_registry_problems};
use crate::cli::plan_versions::{self, PlanSwitch};
use crate::cli::{DONE, Places, WRONG, say};
use clap::Args;
use rankd_edge::library::{self, Library, PlanFile};
use rankd_edge::listing::Listing;
use rankd_edge::outputs::write_outputs;
use rankd_plan::json::Writer;
use rankd_plan::render::Report;

#[derive(Args)]
pub(crate) struct PlansArgs {
    #[command(subcommand)]
    switch: Option<PlanSwitch>,
    #[command(flatten)]
    places: Places,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Print only the names, one a line, without reading the plans; completions use it
    #[arg(long, conflicts_with = "json")]
    names: bool,
}

pub(crate) fn run(args: &PlansArgs, library: &Library) -> u8 {
    if let Some(switch) = &args.switch {
        return plan_versions::run(switch);
    }
    if args.names {
        // Whoever completes a command line has no use for errors.
        let paths = library::list(&args.places.plan_dir).unwrap_or_default();
        paths.iter().for_each(|path| say::to_programs(&library::name_of(path)));
        return DONE;
    }
    let loaded = library.load_registry(&args.places.registry, &args.places.env);
    if loaded.has_errors() {
        print_registry_problems(&loaded);
        return WRONG;
    }
    let paths = match library::list(&args.places.plan_dir) {
        Ok(paths) => paths,
        Err(error) => {
            say::to_people(&format!("error: {}: {error}", args.places.plan_dir.display()));
            return WRONG;
        }
    };
    let plans = load_plans(&paths, library, &loaded.registry);
    if args.json {
        say::to_programs(&to_json(&plans));
    } else if plans.is_empty() {
        let file = args.places.plan_dir.display().to_string();
        let report = Report { file: &file, text: None, found: &no_plans() };
        say::to_people(&report.for_people(say::in_colour(), &|_| None));
    } else {
        let mut listing = Listing::new(&["plan", "nodes", "outputs", "state"]);
        for plan in &plans {
            let (nodes, outputs) = match &plan.checked.plan {
                Some(checked) => (checked.nodes.len().to_string(), checked.outputs.len().to_string()),
                None => ("-".into(), "-".into()),
            };
            listing.row(vec![library::name_of(&plan.path), nodes, outputs, state(plan)]);
        }
        say::to_people(&listing.render());
    }
    DONE
}

fn state(plan: &PlanFile) -> String {
    match (&plan.checked.plan, plan.checked.diagnostics.errors()) {
        (Some(_), _) if plan.is_stale() => "ok, stale: its source has changed".into(),
        (Some(_), _) => "ok".into(),
        (None, 1) => "1 error".into(),
        (None, errors) => format!("{errors} errors"),
    }
}

fn to_json(plans: &[PlanFile]) -> String {
    let mut writer = Writer::new();
    writer.array(|w| {
        for plan in plans {
            w.object(|w| {
                w.field("plan").string(&library::name_of(&plan.path));
                w.field("file").string(&plan.file());
                w.field("ok").bool(plan.checked.plan.is_some());
                if let Some(checked) = &plan.checked.plan {
                    w.field("nodes").int(checked.nodes.len() as i64);
                    let outputs = checked.outputs.iter().map(|output| &*checked.nodes[*output as usize].id);
                    write_outputs(checked.output_names.as_deref(), outputs, w.field("outputs"));
                }
                w.field("errors").int(plan.checked.diagnostics.errors() as i64);
                w.field("stale").bool(plan.is_stale());
            });
        }
    });
    writer.finish()
}
