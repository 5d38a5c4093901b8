//! `rankd compile` and `dslc build`, `check`, `watch`, `types`: plans in TypeScript to artifacts, and what editors need.

use crate::cli::check::{print_json, print_registry_problems, print_words};
use crate::cli::{DONE, WRONG, say};
use clap::Args;
use rankd_edge::files;
use rankd_edge::library::{self, Library, PLAN_SUFFIX, PlanFile};
use rankd_edge::registry_files::LoadedRegistry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Which plans, and what they may name.
#[derive(Args, Clone)]
pub(crate) struct Sources {
    /// Plan files, or folders with plans
    #[arg(default_value = "plans", value_name = "FILES|DIR")]
    paths: Vec<PathBuf>,
    /// Folder with the registry files
    #[arg(long, value_name = "DIR", default_value = "registry")]
    registry: PathBuf,
    /// Which endpoints.NAME.toml to use
    #[arg(long, value_name = "NAME", default_value = "local")]
    env: String,
}

#[derive(Args, Clone)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    sources: Sources,
    /// Folder to write the artifacts to [default: next to the plans]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also compile plans whose artifacts are up to date
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct DslcCheckArgs {
    #[command(flatten)]
    sources: Sources,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct TypesArgs {
    /// Folder to write the files to
    #[arg(long, value_name = "DIR", default_value = "plans")]
    out: PathBuf,
    /// Folder with the registry files
    #[arg(long, value_name = "DIR", default_value = "registry")]
    registry: PathBuf,
    /// Which endpoints.NAME.toml to use
    #[arg(long, value_name = "NAME", default_value = "local")]
    env: String,
}

impl Sources {
    /// The registry, if plans can be judged by it.
    fn registry(&self, library: &Library) -> Option<LoadedRegistry> {
        let loaded = library.load_registry(&self.registry, &self.env);
        print_registry_problems(&loaded);
        (!loaded.has_errors()).then_some(loaded)
    }

    /// The plan files that are meant; a folder means all plans in it.
    fn files(&self) -> Option<Vec<PathBuf>> {
        let mut all = Vec::new();
        for path in &self.paths {
            if !path.is_dir() {
                all.push(path.clone());
                continue;
            }
            match library::list_sources(path) {
                Ok(paths) => all.extend(paths),
                Err(error) => {
                    say::to_people(&format!("error: {}: {error}", path.display()));
                    return None;
                }
            }
        }
        let strange = all.iter().find(|path| path.extension().is_none_or(|extension| extension != "ts"));
        if let Some(path) = strange {
            say::to_people(&format!("error: {}: a plan to compile is a .plan.ts file", path.display()));
            return None;
        }
        Some(all)
    }
}

pub(crate) fn build(args: &BuildArgs, library: &Library) -> u8 {
    let Some(loaded) = args.sources.registry(library) else { return WRONG };
    let Some(paths) = args.sources.files() else { return WRONG };
    let built = library::on_all_cores(&paths, |path| {
        let folder = args.out.as_deref().or_else(|| path.parent()).unwrap_or(Path::new(""));
        let target = folder.join(library::name_of(path) + PLAN_SUFFIX);
        let current = if args.force { None } else { library.up_to_date(path, &target, &loaded.registry) };
        let plan = current.unwrap_or_else(|| library.load_plan(path, &loaded.registry));
        (plan, target)
    });
    let good = built.iter().filter(|(plan, target)| write(plan, target)).count();
    if good == built.len() { DONE } else { WRONG }
}

/// Writes a plan's artifact, or says what is wrong with it. An artifact that was read is up to date.
fn write(plan: &PlanFile, target: &Path) -> bool {
    let words = plan.report(|report| report.for_people(say::in_colour(), &|span| plan.source_text(span)));
    if !words.is_empty() {
        say::to_people(&words);
    }
    if plan.text.is_some() {
        say::to_people(&format!("{}: up to date", target.display()));
        return true;
    }
    let (Some(artifact), Some(_)) = (&plan.artifact, &plan.checked.plan) else {
        let errors = plan.checked.diagnostics.errors();
        say::to_people(&format!("{}: {errors} {}", plan.file(), if errors == 1 { "error" } else { "errors" }));
        return false;
    };
    match files::write_if_changed(target, artifact) {
        Ok(true) => say::to_people(&format!("{}: written", target.display())),
        Ok(false) => say::to_people(&format!("{}: up to date", target.display())),
        Err(error) => {
            say::to_people(&format!("error: {}: {error}", target.display()));
            return false;
        }
    }
    true
}

pub(crate) fn check(args: &DslcCheckArgs, library: &Library) -> u8 {
    let mut loaded = library.load_registry(&args.sources.registry, &args.sources.env);
    let plans = match loaded.has_errors() {
        true => Vec::new(),
        false => {
            let Some(paths) = args.sources.files() else { return WRONG };
            library.load_all(&paths, &loaded.registry)
        }
    };
    loaded.check_other_environments(&args.sources.registry, &args.sources.env);
    let ok = !loaded.has_errors() && plans.iter().all(|plan| plan.checked.plan.is_some());
    if args.json {
        print_json(ok, &loaded, &plans, &[]);
    } else {
        print_words(&loaded, &plans);
    }
    if ok { DONE } else { WRONG }
}

/// How often the files are looked at.
const POLL: Duration = Duration::from_millis(250);

/// Builds, and builds again whenever a source or the registry has changed, until the program is stopped.
#[expect(clippy::disallowed_methods, reason = "watching is waiting, and this program does nothing else meanwhile")]
pub(crate) fn watch(args: &BuildArgs, library: &Library) -> u8 {
    let mut seen = None;
    loop {
        let state = state(&args.sources);
        if seen.as_ref() != Some(&state) {
            build(args, library);
            say::to_people("watching; ctrl-c ends");
            seen = Some(state);
        }
        std::thread::sleep(POLL);
    }
}

/// When each file that plans depend on was last changed: those of the plans' folders and one level below, and the registry.
fn state(sources: &Sources) -> Vec<(PathBuf, Option<SystemTime>)> {
    let mut folders: Vec<PathBuf> = vec![sources.registry.clone()];
    for path in &sources.paths {
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        let folder = folder.filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let below = files::list(folder).unwrap_or_default().into_iter().filter(|path| path.is_dir());
        folders.extend(below);
        folders.push(folder.to_owned());
    }
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| files::list(folder).unwrap_or_default()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ts" || extension == "toml"));
    files.sort();
    files.dedup();
    files.into_iter().map(|path| (path.clone(), files::changed(&path))).collect()
}

/// Writes the declarations that let an editor check plans.
pub(crate) fn types(args: &TypesArgs, library: &Library) -> u8 {
    let loaded = library.load_registry(&args.registry, &args.env);
    print_registry_problems(&loaded);
    if loaded.has_errors() {
        return WRONG;
    }
    let declarations = dslc::types::declarations(library.tasks().signatures(), &loaded.registry);
    for (name, text) in [(dslc::types::FILE, declarations.as_str()), ("tsconfig.json", dslc::types::TSCONFIG)] {
        let target = args.out.join(name);
        match files::write_if_changed(&target, text) {
            Ok(written) => {
                let state = if written { "written" } else { "up to date" };
                say::to_people(&format!("{}: {state}", target.display()));
            }
            Err(error) => {
                say::to_people(&format!("error: {}: {error}", target.display()));
                return WRONG;
            }
        }
    }
    DONE
}
