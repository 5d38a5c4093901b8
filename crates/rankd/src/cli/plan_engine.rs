//! What it takes to run a plan from the command line: the flags that name it, its registry, the plan itself and an engine with its stores.

use crate::cli::check::print_registry_problems;
use crate::cli::command_error::CommandError;
use crate::cli::engine::EngineArgs;
use crate::cli::{ModelArgs, Places, say};
use clap::{Args, ValueEnum};
use rankd_edge::endpoints::{self, EndpointError};
use rankd_edge::experiments::{Arming, PlanExperiments, UnappliedExperiment};
use rankd_edge::input::RefusedRequest;
use rankd_edge::library::{self, Library, PlanFile};
use rankd_edge::prepare::{Prepared, Tracing, prepare_in_arms};
use rankd_edge::registry_files::LoadedRegistry;
use rankd_edge::tables::TableFiles;
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::Registry;
use rankd_plan::diagnostic::{nearest, quoted};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// Name of a plan in the plan folder
    #[arg(long, value_name = "NAME")]
    plan_name: Option<String>,
    /// Plan file
    #[arg(long, value_name = "FILE", conflicts_with = "plan_name")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    models: ModelArgs,
    /// Write a Perfetto trace of the run to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Add a trace of the run to each response
    #[arg(long)]
    pub(crate) dump_run_trace: bool,
    /// Let requests choose the arms of experiments that they are in
    #[arg(long)]
    force_arms: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// Which scheduler runs the nodes
    #[arg(long, help_heading = "Scheduler tuning", value_name = "S", value_enum, default_value = "async")]
    scheduler: SchedulerName,
    /// The same as --scheduler async
    #[arg(long, hide = true, conflicts_with_all = ["scheduler", "within_request_parallelism"])]
    async_scheduler: bool,
    /// The same as --scheduler pools
    #[arg(long, hide = true, conflicts_with = "scheduler")]
    within_request_parallelism: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchedulerName {
    Async,
    Pools,
    Sequential,
}

impl SchedulerName {
    pub(crate) fn scheduler(self) -> Scheduler {
        match self {
            SchedulerName::Async => Scheduler::Async,
            SchedulerName::Pools => Scheduler::Pools,
            SchedulerName::Sequential => Scheduler::Sequential,
        }
    }
}

impl RunArgs {
    /// The same flags for a plan that may be given by name or path beside them.
    pub(crate) fn with_plan(&self, plan: Option<&str>) -> RunArgs {
        let Some(plan) = plan else { return self.clone() };
        let (name, path) =
            if library::is_name(plan) { (Some(plan.to_owned()), None) } else { (None, Some(plan.into())) };
        RunArgs { plan_name: name, plan: path, ..self.clone() }
    }

    /// The same for questions: whoever asks may choose the arms, since nothing but the answer depends on it.
    pub(crate) fn with_forced_arms(self) -> RunArgs {
        RunArgs { force_arms: true, ..self }
    }

    /// The artifact of the plan that the flags name, for runs on what was captured. Where there is none, the reason has been printed.
    pub(crate) fn artifact(&self, library: &Library) -> Option<String> {
        let loaded = load_registry(self, library)?;
        load_tables(&loaded.registry)?;
        let (_, file) = load_plan(&plan_path(self)?, self.plan.is_none(), library, &loaded)?;
        file.artifact_text().map(str::to_owned)
    }

    pub(crate) fn settings(&self) -> Settings {
        let scheduler = match self.scheduler {
            _ if self.within_request_parallelism => Scheduler::Pools,
            scheduler => scheduler.scheduler(),
        };
        self.engine.settings(scheduler)
    }
}

/// Where the reads of runs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadsFrom {
    Stores,
    /// What other runs recorded: no store is opened.
    Records,
}

/// A plan that can run.
pub(crate) struct PlanEngine {
    pub(crate) loaded: LoadedRegistry,
    pub(crate) plan: Arc<Linked>,
    /// Where the plan came from, to show what an error is about.
    pub(crate) file: PlanFile,
    pub(crate) engine: Engine,
    arms: PlanArms,
}

/// The experiments of a plan that runs, and the plans that may answer in its place.
struct PlanArms {
    experiments: Option<PlanExperiments>,
    others: Vec<(Arc<Linked>, PlanFile)>,
    may_force: bool,
}

impl PlanEngine {
    /// Loads the plan that the flags name and starts an engine for it. Where that is not possible, the reason has been printed.
    pub(crate) fn start(args: &RunArgs, library: &Library) -> Option<PlanEngine> {
        PlanEngine::start_on(args, library, ReadsFrom::Stores)
    }

    /// The same, where runs read from stores or what others recorded.
    pub(crate) fn start_on(args: &RunArgs, library: &Library, reads: ReadsFrom) -> Option<PlanEngine> {
        let loaded = load_registry(args, library)?;
        let path = plan_path(args)?;
        // First, because plans are checked against the columns that tables have.
        let tables = load_tables(&loaded.registry)?;
        let models = args.models.files(library, &loaded.registry);
        if let Some(Err(error)) = models.map(|models| models.load_all(&loaded.registry)) {
            CommandError::from(EndpointError::Model(error)).report();
            return None;
        }
        let (plan, file) = load_plan(&path, args.plan.is_none(), library, &loaded)?;
        match start_engine(args, tables.as_ref(), &loaded.registry, reads) {
            Ok(engine) => {
                let arms = PlanArms::load(args, &plan, library, &loaded);
                if let Some(tables) = engine.tables() {
                    tables.prepare(&plan);
                    arms.others.iter().for_each(|(other, _)| tables.prepare(other));
                }
                Some(PlanEngine { loaded, plan, file, engine, arms })
            }
            Err(error) => {
                error.report();
                None
            }
        }
    }
}

impl PlanEngine {
    /// Makes a request ready to run, in its arms of experiments. Gives the plan that answers, too.
    pub(crate) fn prepare(
        &self,
        line: &[u8],
        tracing: Tracing,
    ) -> Result<(Prepared, &Arc<Linked>, &PlanFile), RefusedRequest> {
        let PlanArms { experiments, others, may_force } = &self.arms;
        let all = &*self.loaded.experiments.experiments;
        let arming = Arming { experiments: Some(all), of_plan: experiments.as_ref(), may_force: *may_force };
        let prepared = prepare_in_arms(line, &self.loaded.registry, &self.plan.name, tracing, &arming)?;
        let (prepared, other) = prepared;
        let other = other.and_then(|name| others.iter().find(|(other, _)| other.name == name));
        let (plan, file) = other.map_or((&self.plan, &self.file), |(plan, file)| (plan, file));
        Ok((prepared, plan, file))
    }

    /// The plans that may answer, each with the file that it came from.
    pub(crate) fn plans(&self) -> impl Iterator<Item = (&Arc<Linked>, &PlanFile)> {
        let others = self.arms.others.iter().map(|(plan, file)| (plan, file));
        std::iter::once((&self.plan, &self.file)).chain(others)
    }

    /// Puts a request into its arms of experiments that sets no parameter itself. Gives the plan that answers.
    pub(crate) fn take_arms(&self, request: &mut Request) -> &Arc<Linked> {
        let PlanArms { experiments, others, .. } = &self.arms;
        let other = experiments.as_ref().and_then(|experiments| experiments.assign(request, &[], &[]));
        let other = other.and_then(|name| others.iter().find(|(other, _)| other.name == name));
        other.map_or(&self.plan, |(plan, _)| plan)
    }

    /// The experiments that can change the answers of the plan.
    pub(crate) fn experiments(&self) -> Option<&PlanExperiments> {
        self.arms.experiments.as_ref()
    }

    /// Another plan for the same engine. Where there is none, the reason has been printed.
    pub(crate) fn also(&self, args: &RunArgs, library: &Library) -> Option<(Arc<Linked>, PlanFile)> {
        let (plan, file) = load_plan(&plan_path(args)?, args.plan.is_none(), library, &self.loaded)?;
        if let Some(tables) = self.engine.tables() {
            tables.prepare(&plan);
        }
        Some((plan, file))
    }
}

impl PlanArms {
    /// Finds the experiments of a plan, and loads the plans that their arms name. An experiment whose plan cannot be loaded is not applied.
    fn load(args: &RunArgs, plan: &Linked, library: &Library, loaded: &LoadedRegistry) -> PlanArms {
        let all = &loaded.experiments.experiments;
        let of_plan = all.list().iter().filter(|one| one.is_for(&plan.name));
        let mut names: Vec<&str> = of_plan.flat_map(|one| &one.arms).filter_map(|arm| arm.plan.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        let paths = names.iter().map(|name| library::find(name, &args.places.plan_dir)).filter(|path| path.is_file());
        let others: Vec<_> = paths.filter_map(|path| load_plan(&path, true, library, loaded)).collect();
        let reads = |name: &str| match name == plan.name {
            true => Some(plan.params()),
            false => others.iter().find(|(other, _)| other.name == name).map(|(other, _)| other.params()),
        };
        let mut left_out = Vec::new();
        let experiments = PlanExperiments::bind(all, &plan.name, reads, &mut left_out);
        for UnappliedExperiment { experiment, plan } in left_out {
            say::note(format!("the experiment {experiment} is not applied: there is no plan {plan} that can run"));
        }
        PlanArms { experiments, others, may_force: args.force_arms }
    }
}

fn load_registry(args: &RunArgs, library: &Library) -> Option<LoadedRegistry> {
    let loaded = library.load_registry(&args.places.registry, &args.places.env);
    print_registry_problems(&loaded);
    (!loaded.has_errors()).then_some(loaded)
}

/// The tables of a registry, read. Where one cannot be read, the reason has been printed.
fn load_tables(registry: &Registry) -> Option<Option<TableFiles>> {
    let tables = TableFiles::new(registry);
    if let Some(Err(error)) = tables.as_ref().map(|tables| tables.load_all(registry, &mut say::note)) {
        CommandError::from(EndpointError::Table(error)).report();
        return None;
    }
    Some(tables)
}

fn start_engine(
    args: &RunArgs,
    tables: Option<&TableFiles>,
    registry: &Registry,
    reads: ReadsFrom,
) -> Result<Engine, CommandError> {
    let stores = match reads {
        ReadsFrom::Stores => endpoints::open_beside(tables, registry, &mut say::note)?,
        ReadsFrom::Records => endpoints::closed(tables, registry),
    };
    Engine::start(args.settings(), stores).map_err(CommandError::with("cannot start threads"))
}

/// The file of the plan that is asked for.
fn plan_path(args: &RunArgs) -> Option<PathBuf> {
    if let Some(path) = &args.plan {
        return Some(path.clone());
    }
    let Some(name) = &args.plan_name else {
        say::to_people("error: which plan? Give --plan_name NAME or --plan FILE (rankd plans lists them)");
        return None;
    };
    let path = library::find(name, &args.places.plan_dir);
    if path.is_file() && library::is_name(name) {
        return Some(path);
    }
    let known: Vec<String> =
        library::list(&args.places.plan_dir).unwrap_or_default().iter().map(|p| library::name_of(p)).collect();
    let hint = nearest(name, known.iter().map(String::as_str)).map(|near| format!("; did you mean {near:?}?"));
    let folder = args.places.plan_dir.display();
    say::to_people(&format!("error: there is no plan {} in {folder}{}", quoted(name), hint.unwrap_or_default()));
    None
}

/// The plan in a file. A stale artifact that was found by the plan's name gives way to its source; one that was asked for is run.
fn load_plan(
    path: &Path,
    by_name: bool,
    library: &Library,
    loaded: &LoadedRegistry,
) -> Option<(Arc<Linked>, PlanFile)> {
    let mut file = library.load_plan(path, &loaded.registry);
    if by_name && file.is_stale() {
        let source = library::source_of(path);
        say::to_people(&format!("note: {} is stale; running {}", path.display(), source.display()));
        file = library.load_plan(&source, &loaded.registry);
    }
    let words = file.report(|report| report.for_people(say::in_colour(), &|span| file.source_text(span)));
    if !words.is_empty() {
        say::to_people(&words);
    }
    match Linked::link(file.checked.plan.as_ref()?, library.tasks(), &loaded.registry) {
        Ok(linked) => Some((Arc::new(linked), file)),
        Err(diagnostic) => {
            say::to_people(&format!("error: {}", diagnostic.message));
            None
        }
    }
}
