//! `rankd check`: everything that is wrong with plans and registries, at once.

use crate::cli::{DONE, ModelArgs, Places, WRONG, say};
use clap::Args;
use rankd_edge::endpoints;
use rankd_edge::endpoints::EndpointError;
use rankd_edge::library::{self, Library, PlanFile};
use rankd_edge::listing::Listing;
use rankd_edge::registry_files::LoadedRegistry;
use rankd_edge::sample::{self, Cause, Sample, Unreadable};
use rankd_edge::tables::TableFiles;
use rankd_engine::Linked;
use rankd_plan::diagnostic::quoted;
use rankd_plan::json::Writer;
use rankd_plan::limits;
use rankd_plan::plan::{Node, Plan};
use rankd_plan::registry::{Backend, EndpointSettings};
use rankd_plan::render::Report;
use rankd_plan::{Code, Diagnostic, Diagnostics, Registry};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Plan names or files [default: all plans in the plan folder]
    plans: Vec<String>,
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    models: ModelArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print the limits of the plan format instead
    #[arg(long)]
    limits: bool,
    /// Also connect to every endpoint to check whether it can be used
    #[arg(long)]
    connect: bool,
    /// Also read N keys of what each node of the plans reads by key, and show the values that it cannot use
    #[arg(long, value_name = "N", requires = "connect", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sample: Option<u32>,
}

pub(crate) fn run(args: &CheckArgs, library: &Library) -> u8 {
    if args.limits {
        print_limits(args.json);
        return DONE;
    }
    let Places { registry, env, plan_dir } = &args.places;
    let mut loaded = library.load_registry(registry, env);
    // With a broken registry every name in a plan would look wrong, and every endpoint might be another.
    let is_usable = !loaded.has_errors();
    let mut plans = Vec::new();
    if is_usable {
        let paths = match args.plans.as_slice() {
            [] => match library::list(plan_dir) {
                Ok(paths) => paths,
                Err(error) => {
                    say::to_people(&format!("error: {}: {error}", plan_dir.display()));
                    return WRONG;
                }
            },
            named => named.iter().map(|plan| library::find(plan, plan_dir)).collect(),
        };
        if paths.is_empty() {
            loaded.problems.push((plan_dir.display().to_string(), None, no_plans()));
        }
        check_endpoints(&mut loaded);
        check_models(&args.models, library, &mut loaded);
        plans = load_plans(&paths, library, &loaded.registry);
        check_experiments(&mut loaded, plan_dir, args.plans.is_empty().then_some(&plans));
    }
    loaded.check_other_environments(registry, env);
    let probed = match args.connect && is_usable {
        true => probe(&loaded.registry, args.sample.map(|count| (count, link(&plans, library, &loaded.registry)))),
        false => Vec::new(),
    };
    let reachable = probed.iter().all(|probed| probed.result.is_ok());
    let ok = !loaded.has_errors() && plans.iter().all(|plan| plan.checked.plan.is_some()) && reachable;
    if args.json {
        print_json(ok, &loaded, &plans, &probed);
    } else {
        print_words(&loaded, &plans);
        probed.iter().for_each(|probed| say::to_people(&probed.in_words()));
    }
    if ok { DONE } else { WRONG }
}

/// An endpoint that was connected to.
pub(crate) struct Probed {
    name: String,
    /// What was read of it, where that was asked for and its kind has anything to read; or why it cannot be used.
    result: Result<Option<Sample>, EndpointError>,
}

/// The plans that have no errors, as they would run. Whatever keeps one from being linked is found when it is run.
fn link(plans: &[PlanFile], library: &Library, registry: &Registry) -> Vec<Linked> {
    let plans = plans.iter().filter_map(|plan| plan.checked.plan.as_ref());
    plans.filter_map(|plan| Linked::link(plan, library.tasks(), registry).ok()).collect()
}

fn probe(registry: &Registry, sampled: Option<(u32, Vec<Linked>)>) -> Vec<Probed> {
    let probed = endpoints::probe(registry).into_iter().zip(registry.endpoints.list()).enumerate();
    let probed = probed.map(|(at, ((name, result), endpoint))| {
        let result = match (result, &sampled) {
            (Ok(()), Some((count, plans))) => sample::read(at as u32, endpoint, plans, registry, *count as usize),
            (result, _) => result.map(|()| None),
        };
        Probed { name, result }
    });
    probed.collect()
}

impl Probed {
    fn in_words(&self) -> String {
        /// So many cells are shown.
        const SHOWN: usize = 20;
        let name = &self.name;
        let sample = match &self.result {
            Ok(None) => return format!("endpoint {name}: ok"),
            Err(why) => return format!("endpoint {name}: {why}"),
            Ok(Some(sample)) => sample,
        };
        let Sample { readers, keys, unreadable, kept } = sample;
        if *readers == 0 {
            return format!("endpoint {name}: ok; no plan reads keys from it");
        }
        let mut words = format!(
            "endpoint {name}: ok; {} read as {} of plans would, {} cannot be used",
            counted(*keys, "key"),
            counted(*readers, "node"),
            counted(*unreadable, "value")
        );
        for Unreadable { store_key, cause } in kept.iter().take(SHOWN) {
            let cause = match cause {
                Cause::Value { field, type_of, value } => format!(", {field}: {} is not {type_of}", quoted(value)),
                Cause::Stored(why) => format!(": {why}"),
            };
            words.push_str(&format!("\n  {}{cause}", quoted(store_key)));
        }
        let shown = kept.len().min(SHOWN);
        if *unreadable > shown {
            words.push_str(&format!("\n  … and {} more", unreadable - shown));
        }
        words
    }

    fn to_json(&self, w: &mut Writer) {
        w.field("name").string(&self.name).field("ok").bool(self.result.is_ok());
        match &self.result {
            Ok(None) => {}
            Err(why) => {
                w.field("message").string(&why.to_string());
            }
            Ok(Some(Sample { readers, keys, unreadable, kept })) => {
                w.field("readers").int(*readers as i64).field("keys").int(*keys as i64);
                w.field("unreadable_count").int(*unreadable as i64);
                w.field("unreadable").array(|w| {
                    for Unreadable { store_key, cause } in kept {
                        w.object(|w| {
                            w.field("key").string(store_key);
                            match cause {
                                Cause::Value { field, type_of, value } => {
                                    w.field("field").string(field).field("value").string(value);
                                    w.field("type").string(&type_of.to_string());
                                }
                                Cause::Stored(why) => {
                                    w.field("message").string(why);
                                }
                            }
                        });
                    }
                });
            }
        }
    }
}

/// Reads and checks plans; on a terminal, many of them show how far it is.
pub(crate) fn load_plans(paths: &[PathBuf], library: &Library, registry: &Registry) -> Vec<PlanFile> {
    /// So many are done before anybody wonders.
    const MANY: usize = 50;
    let (bar, done) = (Mutex::new(say::Progress::new("check", paths.len())), AtomicUsize::new(0));
    library::on_all_cores(paths, |path| {
        let plan = library.load_plan(path, registry);
        let done = 1 + done.fetch_add(1, Ordering::Relaxed);
        if paths.len() >= MANY {
            bar.lock().unwrap_or_else(PoisonError::into_inner).at(done);
        }
        plan
    })
}

/// What to say of a folder in which there is no plan.
pub(crate) fn no_plans() -> Diagnostics {
    let mut found = Diagnostics::default();
    let help = "plans are files whose names end in .plan.ts or .plan.json; --plan_dir names another folder";
    found.push(Diagnostic::new(Code::NoPlans, "", "there is no plan in this folder").help(help));
    found
}

/// Finds what keeps endpoints from being opened: addresses that cannot be used, and files that are not there or broken.
fn check_endpoints(loaded: &mut LoadedRegistry) {
    let mut found = Diagnostics::default();
    let mut seen: Vec<&str> = Vec::new();
    for (at, endpoint) in loaded.registry.endpoints.list().iter().enumerate() {
        let settings = match &endpoint.settings {
            EndpointSettings::Redis(settings) => settings,
            EndpointSettings::Http(settings) => {
                if let Err(why) = endpoints::http(endpoint, settings) {
                    let wrong = Diagnostic::new(Code::BadEndpoint, "", why.to_string());
                    found.push(wrong.bytes(loaded.registry.endpoints.place(at as u32)));
                }
                continue;
            }
            // Tables have files that take longer to read, and more to tell.
            EndpointSettings::Table(_) => continue,
        };
        let wrong = match &settings.backend {
            // Endpoints may share a file; it is read once.
            Backend::Memory { path } if seen.contains(&path.as_str()) => continue,
            Backend::Memory { path } => {
                seen.push(path);
                endpoints::read(Path::new(path)).err().map(|why| {
                    (Code::BadDataFile, format!("the data file of {:?} cannot be used: {why}", endpoint.name))
                })
            }
            Backend::Server { .. } | Backend::Cluster { .. } => {
                endpoints::redis(endpoint, settings).err().map(|why| (Code::BadEndpoint, why.to_string()))
            }
        };
        if let Some((code, why)) = wrong {
            found.push(Diagnostic::new(code, "", why).bytes(loaded.registry.endpoints.place(at as u32)));
        }
    }
    check_tables(&loaded.registry, &mut found);
    if !found.list().is_empty() {
        let (file, text) = (loaded.endpoints_file.clone(), loaded.texts.0[2].clone());
        loaded.problems.push((file, Some(text), found));
    }
}

/// Reads the files of models, so that plans are checked against the features that there are.
pub(crate) fn check_models(args: &ModelArgs, library: &Library, loaded: &mut LoadedRegistry) {
    let Some(models) = args.files(library, &loaded.registry) else { return };
    let mut all = Diagnostics::default();
    for source in models.sources() {
        match source.load(&loaded.registry) {
            Ok(model) => source.put(model, &loaded.registry),
            Err(why) => {
                why.diagnostics(source, &loaded.registry).list().iter().cloned().for_each(|found| all.push(found))
            }
        }
    }
    if !all.list().is_empty() {
        let (file, text) = (loaded.models_file.clone(), loaded.texts.0[3].clone());
        loaded.problems.push((file, Some(text), all));
    }
}

/// Finds experiments that name plans that there are not, and, where all plans are given, those that change none of them.
fn check_experiments(loaded: &mut LoadedRegistry, plan_dir: &Path, all_plans: Option<&Vec<PlanFile>>) {
    let names: Vec<String> = library::list(plan_dir).unwrap_or_default().iter().map(|p| library::name_of(p)).collect();
    let (experiments, mut found) = (&loaded.experiments, Diagnostics::default());
    let checked = all_plans.into_iter().flatten().filter_map(|plan| plan.checked.plan.as_ref());
    let reads: Vec<(&str, Vec<u32>)> = checked.map(|plan| (plan.name.as_str(), plan.params())).collect();
    for one in experiments.experiments.list() {
        let of_arms = one.arms.iter().filter_map(|arm| Some((arm.plan.as_ref()?, arm.place())));
        for (plan, place) in one.plans.iter().map(|plan| (plan, one.place())).chain(of_arms) {
            if !names.contains(plan) {
                let message = format!("there is no plan {} in {}", quoted(plan), plan_dir.display());
                let unknown = Diagnostic::new(Code::BadArmPlan, "", message).bytes(place);
                found.push(unknown.nearest(plan, names.iter().map(String::as_str)));
            }
        }
        let is_read = reads
            .iter()
            .filter(|(plan, _)| one.is_for(plan))
            .any(|(_, read)| one.switches_plans() || one.params.iter().any(|param| read.contains(param)));
        if all_plans.is_some() && !is_read {
            let message = format!("no plan reads a parameter that the experiment {:?} overrides", one.name);
            found.push(Diagnostic::new(Code::UnreadExperiment, "", message).bytes(one.place()));
        }
    }
    if !found.list().is_empty() {
        loaded.problems.push((experiments.file(), experiments.text.clone(), found));
    }
}

/// Reads the files of tables, so that plans are checked against the columns that there are.
fn check_tables(registry: &Registry, found: &mut Diagnostics) {
    let Some(tables) = TableFiles::new(registry) else { return };
    for source in tables.sources() {
        let (name, place) = (source.name(), registry.endpoints.place(source.endpoint().0));
        match source.load(&mut |_| {}) {
            Ok(loaded) => {
                registry.know_columns(source.endpoint().0, loaded.keys());
                if let Some(unread) = loaded.unread() {
                    let message = format!("not all of the table {name:?} is read: {unread}");
                    found.push(Diagnostic::new(Code::TableUnread, "", message).bytes(place));
                }
            }
            Err(why) if why.is_missing() => {
                let message = format!("the file of the table {name:?} is not there, so plans may read any key of it");
                found.push(Diagnostic::new(Code::NoTableFile, "", message).bytes(place));
            }
            Err(why) => {
                let message = format!("the file of the table {name:?} cannot be used: {why}");
                found.push(Diagnostic::new(Code::BadDataFile, "", message).bytes(place));
            }
        }
    }
}

pub(crate) fn print_json(ok: bool, loaded: &LoadedRegistry, plans: &[PlanFile], probed: &[Probed]) {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("ok").bool(ok);
        w.field("diagnostics").array(|w| {
            for (file, text, found) in &loaded.problems {
                Report { file, text: text.as_deref(), found }.for_programs(w);
            }
            for plan in plans {
                plan.report(|report| report.for_programs(w));
            }
        });
        if plans.iter().any(|plan| failing_open(plan).next().is_some()) {
            w.field("fail_open").array(|w| {
                for (plan, node, reason) in plans.iter().flat_map(failing_open) {
                    w.object(|w| {
                        w.field("plan").string(&plan.name).field("node").string(&node.id);
                        w.field("op").string(node.signature.op).field("reason").string(reason);
                        if let Some(source) = &node.source {
                            w.field("at").string(&source.at());
                        }
                    });
                }
            });
        }
        if !probed.is_empty() {
            w.field("endpoints").array(|w| {
                for probed in probed {
                    w.object(|w| probed.to_json(w));
                }
            });
        }
        if let Some(left_out) = plans.iter().find_map(|plan| plan.checked.diagnostics.left_out()) {
            w.field("left_out").string(&left_out);
        }
    });
    say::to_programs(&writer.finish());
}

pub(crate) fn print_words(loaded: &LoadedRegistry, plans: &[PlanFile]) {
    let colour = say::in_colour();
    print_registry_problems(loaded);
    for plan in plans {
        let words = plan.report(|report| report.for_people(colour, &|span| plan.source_text(span)));
        if !words.is_empty() {
            say::to_people(&(words + "\n"));
        }
        match &plan.checked.plan {
            Some(checked) => {
                let nodes = counted(checked.nodes.len(), "node");
                say::to_people(&format!("{}: ok, {} with {nodes}", plan.file(), checked.name));
                for (_, node, reason) in failing_open(plan) {
                    let at = node.source.as_ref().map(|source| format!(" at {}", source.at())).unwrap_or_default();
                    let (op, id) = (node.signature.op, quoted(&node.id));
                    say::to_people(&format!("  {op} {id}{at} fails open: {}", quoted(reason)));
                }
            }
            None => {
                let errors = plan.checked.diagnostics.errors();
                say::to_people(&format!("{}: {}", plan.file(), counted(errors, "error")));
            }
        }
    }
}

/// The nodes of a plan that say why their fallbacks may let rows pass a filter.
fn failing_open(plan: &PlanFile) -> impl Iterator<Item = (&Plan, &Node, &str)> {
    let plan = plan.checked.plan.as_ref();
    plan.into_iter()
        .flat_map(|plan| plan.nodes.iter().filter_map(move |node| Some((plan, node, node.fail_open.as_deref()?))))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Shows what is wrong with the registry.
pub(crate) fn print_registry_problems(loaded: &LoadedRegistry) {
    for (file, text, found) in &loaded.problems {
        let report = Report { file, text: text.as_deref(), found };
        say::to_people(&report.for_people(say::in_colour(), &|_| None));
    }
}

fn print_limits(json: bool) {
    if json {
        let mut writer = Writer::new();
        writer.object(|w| {
            for limit in limits::ALL {
                w.field(&limit.name.to_lowercase()).int(limit.value as i64);
            }
        });
        return say::to_programs(&writer.finish());
    }
    let mut listing = Listing::new(&["limit", "value", "of what"]);
    for limit in limits::ALL {
        listing.row(vec![limit.name.to_lowercase(), limit.value.to_string(), limit.about.to_owned()]);
    }
    say::to_people(&listing.render());
}
