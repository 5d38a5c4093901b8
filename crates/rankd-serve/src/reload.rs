//! Loads the plans of the folder into the catalog, at start and whenever a file changes, on a thread of its own.
//!
//! A changed plan is compiled, checked, linked and tried beside the one that is served, and the whole catalog is swapped in one
//! step. A plan that is not good leaves the last good version where it is; so does a registry that cannot be used, and a folder that is
//! suddenly empty. Whatever hangs here, a file system or a pipe, keeps only plans from changing: requests and signals go on.

use crate::app::App;
use crate::build_version::build;
use crate::catalog::{Arrival, Catalog, CatalogBase, GoodVersion, PlanCounters, RefusedVersion, ServedPlan};
use crate::give_back::GiveBack;
use crate::load_plan::{LoadContext, LoadedPlan, Loader, PlanCompiler};
use crate::readiness::{Phase, Warning, Warnings};
use crate::reload_experiments::{LookResult, ServedExperiments, WatchedExperiments};
use crate::reload_models::WatchedModels;
use crate::reload_tables::{self, TableProblems};
use crate::start_error::StartError;
use crate::start_progress::StartProgress;
use crate::trial::{self, CurrentVersion};
use crate::version_counts::VersionCounts;
use crate::version_history::{KeptVersion, VersionHistory, short};
use crate::watched_folder::{Changes, LookReason, WatchedFolder};
use crate::watched_tables::WatchedTables;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use rankd_edge::date;
use rankd_edge::late_data::LateData;
use rankd_edge::library::{self, Library, PlanProblem};
use rankd_edge::registry_files::{ExperimentsFile, RegistryTexts};
use rankd_engine::{Engine, clock};
use rankd_plan::Registry;
use rankd_plan::render::Report;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a plan is loaded that others change meanwhile; after that, it has to wait for the next look at the folder.
const TRIES: usize = 3;

/// Which plans, and how they are looked at.
#[derive(Clone, Debug)]
pub struct ReloadSettings {
    /// The folder of plans.
    pub plan_dir: PathBuf,
    /// The folder of registry files.
    pub registry: PathBuf,
    /// Which `endpoints.NAME.toml` is used.
    pub env: String,
    /// Whether a new version must get through a run before it replaces another.
    pub trial: bool,
}

pub(crate) struct Reloader {
    app: Arc<App>,
    engine: Arc<Engine>,
    settings: ReloadSettings,
    folder: WatchedFolder,
    library: Library,
    loader: Loader,
    /// What the registry in use was read from.
    texts: Arc<RegistryTexts>,
    tables: Option<WatchedTables>,
    table_problems: TableProblems,
    models: Option<WatchedModels>,
    experiments: WatchedExperiments,
    give_back: GiveBack,
}

/// Asks the thread for everything to be read again.
pub(crate) struct Reload(Sender<()>);

impl Reload {
    /// A wish that is not yet seen to covers a second one.
    pub(crate) fn ask(&self) {
        let _ = self.0.try_send(());
    }
}

/// Plans by name: as they are now, or `None` for those that are gone.
type Changed = BTreeMap<String, Option<Arc<ServedPlan>>>;

/// What came of loading plans.
struct LoadedPlans {
    changed: Changed,
    /// The first plan whose version in service does not build with the new registry, and why.
    broken: Option<(String, String)>,
}

/// The registry to load plans with.
struct RegistryChoice {
    registry: Arc<Registry>,
    texts: Arc<RegistryTexts>,
    /// Whether it is another one than before, so that plans that have not changed are made again.
    is_new: bool,
}

impl Reloader {
    pub(crate) fn new(
        app: &Arc<App>,
        engine: &Arc<Engine>,
        settings: ReloadSettings,
        (texts, experiments): (Arc<RegistryTexts>, &ExperimentsFile),
        library: Library,
        compiler: Box<dyn PlanCompiler>,
    ) -> Reloader {
        Reloader {
            app: app.clone(),
            engine: engine.clone(),
            folder: WatchedFolder::new(&settings.plan_dir),
            loader: Loader::new(library.clone(), compiler),
            library,
            texts,
            settings,
            tables: None,
            table_problems: TableProblems::default(),
            models: None,
            experiments: WatchedExperiments::new(experiments),
            give_back: GiveBack::default(),
        }
    }

    /// Reads the data files of stores, loads the plans, then looks after them, on a thread that ends with the process. `report` is called
    /// once plans can be served. Where the data cannot be used, no plan ever is.
    pub(crate) fn start(
        mut self,
        late: LateData,
        watch: Option<Duration>,
        report: impl Fn(StartProgress) + Send + 'static,
    ) -> Result<Reload, StartError> {
        let (ask, asked) = bounded(1);
        let attend = move || {
            let note = &mut |note| report(StartProgress::Note(note));
            self.tables = late.tables().cloned().map(WatchedTables::new);
            self.models = late.models().cloned().map(WatchedModels::new);
            if let Err(error) = late.read(&self.app.catalog.load_full().registry, note) {
                return report(StartProgress::Failed(error));
            }
            self.guarded(|this| this.look(LookReason::Asked));
            if let Some(why) = self.app.catalog.load().shadow_mistake() {
                return report(StartProgress::NoShadow(why));
            }
            self.app.readiness.reach(Phase::Ready);
            report(StartProgress::Ready);
            let mut next_look = clock::now() + self.pause(watch).unwrap_or_default();
            loop {
                let watched = watch.map(|watch| {
                    let pause = next_look.saturating_duration_since(clock::now());
                    if self.is_changing() { pause.min(watch) } else { pause }
                });
                let waited = match watched.into_iter().chain(self.give_back.pause()).min() {
                    None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(pause) => asked.recv_timeout(pause),
                };
                self.give_back.attempt(clock::now());
                match waited {
                    Ok(()) => {
                        let changed = self.guarded(|this| this.look(LookReason::Asked));
                        self.app.log.event("info", &format!("reloaded on SIGHUP; plans changed: {changed}"));
                    }
                    // Only memory was given back.
                    Err(RecvTimeoutError::Timeout) if watch.is_none() => continue,
                    Err(RecvTimeoutError::Timeout) if clock::now() >= next_look => {
                        self.guarded(|this| this.look(LookReason::Watch));
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        self.guarded(Reloader::look_at_changing);
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                next_look = clock::now() + self.pause(watch).unwrap_or_default();
            }
        };
        std::thread::Builder::new()
            .name("rankd-reload".to_owned())
            .spawn(attend)
            .map_err(|error| StartError::Thread { purpose: "the plans", error })?;
        Ok(Reload(ask))
    }

    /// Whether something has changed that may still be changing.
    fn is_changing(&self) -> bool {
        self.folder.is_changing()
            || self.tables.as_ref().is_some_and(WatchedTables::is_changing)
            || self.models.as_ref().is_some_and(WatchedModels::is_changing)
            || self.experiments.is_changing()
    }

    /// Takes changed files of tables into use.
    fn look_at_tables(&mut self, reason: LookReason) {
        let Some(tables) = &mut self.tables else { return };
        let due = tables.look(reason);
        if due.is_empty() {
            return;
        }
        reload_tables::reload(tables, &due, &self.app, &mut self.table_problems);
        self.give_back.begin(clock::now());
        let message = self.table_problems.message();
        self.warn(|all| &mut all.tables, message.as_deref(), "the files of all tables are in use again");
    }

    /// Takes changed files of models into use.
    fn look_at_models(&mut self, reason: LookReason) {
        let Some(models) = &mut self.models else { return };
        if models.look(reason, &self.app) {
            self.give_back.begin(clock::now());
            let message = models.message();
            self.warn(|all| &mut all.models, message.as_deref(), "the files of all models are in use again");
        }
    }

    /// Takes a changed file of experiments into use.
    fn look_at_experiments(&mut self, reason: LookReason) {
        let current = self.app.catalog.load_full();
        match self.experiments.look(reason, &current.registry) {
            LookResult::Same => {}
            LookResult::Refused => self.app.metrics.experiments_failed.add(1),
            LookResult::Changed(all) => {
                let count = all.list().len();
                let changing = self.app.change_catalog();
                // Plans may have been rolled back or pinned while the file was read.
                let current = self.app.catalog.load_full();
                let experiments = ServedExperiments::new(all, Some(&current.experiments));
                let catalog = current.with(CatalogBase { experiments, ..current.base() }, []);
                self.app.catalog.store(Arc::new(catalog));
                drop(changing);
                self.app.metrics.experiments_ok.add(1);
                self.app.log.event("info", &format!("{count} experiments are in use"));
            }
        }
        self.warn_of_unbound();
    }

    /// Says which experiments and shadows need a plan that is not served.
    fn warn_of_unbound(&self) {
        let message = self.experiments.message(&self.app.catalog.load().left_out);
        self.warn(|all| &mut all.experiments, message.as_deref(), "all experiments are in use again");
        let message = self.app.catalog.load().shadow_problem();
        self.warn(|all| &mut all.shadows, message.as_deref(), "all shadows can run again");
    }

    /// How long to wait before the next look at the whole folder.
    fn pause(&self, watch: Option<Duration>) -> Option<Duration> {
        watch.map(|watch| watch.max(self.folder.interval()))
    }

    /// Looks at plans. A panic on the way is a bug that is reported; the plans stay as they are, and later changes are still seen.
    fn guarded(&mut self, look: impl FnOnce(&mut Reloader) -> usize) -> usize {
        catch_unwind(AssertUnwindSafe(|| look(self))).unwrap_or_else(|_| {
            self.app.metrics.reloads_failed.add(1);
            self.app.log.event("error", "bug: a panic while plans were read; they stay as they are");
            0
        })
    }

    /// Looks at the folder and swaps in what is new. Says how many plans changed.
    fn look(&mut self, reason: LookReason) -> usize {
        // First, because plans are checked against the columns of tables and the features of models.
        self.look_at_tables(reason);
        self.look_at_models(reason);
        self.look_at_experiments(reason);
        let current = self.app.catalog.load_full();
        let names = current.list().iter().map(|plan| plan.name.as_str());
        let changes = match self.folder.look(names, reason) {
            Ok(changes) => changes,
            Err(error) => {
                self.warn_of_folder(Some(&format!("cannot be listed: {error}; the plans stay as they are")));
                return 0;
            }
        };
        self.warn_of_folder(match (changes.all.is_empty(), current.list().is_empty()) {
            (true, true) => Some("has no plans"),
            (true, false) => Some("has no plans any more; the last good ones are served"),
            (false, _) => None,
        });
        if reason == LookReason::Asked
            && let Some(changed) = self.renew_registry(&changes, &current)
        {
            return changed;
        }
        self.take(changes.due, changes.gone)
    }

    /// The same for what was changing.
    fn look_at_changing(&mut self) -> usize {
        self.look_at_tables(LookReason::Watch);
        self.look_at_models(LookReason::Watch);
        self.look_at_experiments(LookReason::Watch);
        let due = self.folder.look_at_changing();
        self.take(due, Vec::new())
    }

    /// Loads the plans that are due and swaps them in. One that was rolled back or pinned meanwhile is loaded again.
    fn take(&mut self, mut due: Vec<PathBuf>, mut gone: Vec<String>) -> usize {
        let mut count = 0;
        for _ in 0..TRIES {
            if due.is_empty() && gone.is_empty() {
                return count;
            }
            let current = self.app.catalog.load_full();
            let with = self.with_same(&current);
            let LoadedPlans { changed, .. } = self.load(&due, &gone, &current, &with);
            let left = self.swap(&current, changed, &mut count);
            due.retain(|path| left.contains(&library::name_of(path)));
            gone.retain(|name| left.contains(name));
        }
        self.folder.forget(&due);
        count
    }

    fn with_same(&self, current: &Catalog) -> RegistryChoice {
        RegistryChoice { registry: current.registry.clone(), texts: self.texts.clone(), is_new: false }
    }

    /// Takes the registry as it is on disk, with all plans made anew, if it is another than the one in use and can take its place.
    fn renew_registry(&mut self, changes: &Changes, current: &Arc<Catalog>) -> Option<usize> {
        let mut loaded = self.library.load_registry(&self.settings.registry, &self.settings.env);
        if loaded.texts == *self.texts {
            self.warn_of_registry(None);
            return None;
        }
        let errors = loaded
            .problems
            .iter()
            // What is wrong with the experiments on disk does not matter where those in use can stay.
            .filter(|(file, ..)| *file != loaded.experiments.file())
            .filter_map(|(file, text, found)| Report { file, text: text.as_deref(), found }.first_error());
        let mut why = errors.into_iter().next();
        let endpoints = current.registry.endpoints.list();
        if why.is_none() && loaded.registry.endpoints.list() != endpoints {
            let file = self.settings.registry.join(format!("endpoints.{}.toml", self.settings.env));
            let new = loaded.registry.endpoints.list();
            let differs = endpoints
                .iter()
                .find(|old| !new.contains(old))
                .or_else(|| new.iter().find(|new| !endpoints.contains(new)));
            let name = differs.map(|endpoint| format!(" {:?}", endpoint.name)).unwrap_or_default();
            why = Some(format!("{}: the endpoint{name} has changed, which requires a restart", file.display()));
        }
        if why.is_none() && self.tables.is_some() && loaded.texts.0[0] != self.texts.0[0] {
            // The columns of tables are those of the keys that they were loaded with.
            why = Some("keys.toml has changed, which requires a restart where there are tables".to_owned());
        }
        let has_models = !current.registry.models.list().is_empty();
        if why.is_none() && loaded.registry.models.list() != current.registry.models.list() {
            why = Some("models.toml has changed, which requires a restart".to_owned());
        }
        if why.is_none() && has_models && loaded.texts.0[0] != self.texts.0[0] {
            // The features of models are positions of the keys that they were loaded with.
            why = Some("keys.toml has changed, which requires a restart where there are models".to_owned());
        }
        if why.is_none() && changes.all.is_empty() && !current.list().is_empty() {
            why = Some("there are no plans in the plan folder to build with it".to_owned());
        }
        let experiments = match why {
            Some(why) => Err(why),
            None => self.experiments.with_registry(&loaded.experiments, &loaded.registry),
        };
        let experiments = match experiments {
            Ok(experiments) => experiments,
            Err(why) => {
                self.warn_of_registry(Some(&why));
                return None;
            }
        };
        if let Some(tables) = &self.tables {
            tables.files().tell(&loaded.registry);
        }
        loaded.registry.share_models(current.registry.models_in_use());
        let with = RegistryChoice { registry: Arc::new(loaded.registry), texts: Arc::new(loaded.texts), is_new: true };
        let LoadedPlans { changed, broken } = self.load(&changes.all, &changes.gone, current, &with);
        // A plan that was made with one registry cannot answer requests that were read with another.
        if let Some((name, why)) = broken {
            self.warn_of_registry(Some(&format!("plan {name} does not build with it: {why}")));
            return None;
        }
        let app = self.app.clone();
        let changing = app.change_catalog();
        if !Arc::ptr_eq(current, &app.catalog.load_full()) {
            drop(changing);
            self.warn_of_registry(Some("a plan was rolled back or pinned while it was read; send SIGHUP again"));
            return None;
        }
        self.texts = with.texts.clone();
        self.experiments.is_using(&experiments);
        self.warn_of_registry(None);
        changed.iter().for_each(|(name, plan)| self.report(name, plan.as_deref(), current.get(name)));
        let count = changed.len();
        let experiments = ServedExperiments::new(experiments.experiments, Some(&current.experiments));
        let base = CatalogBase { registry: with.registry, texts: with.texts, experiments, ..current.base() };
        app.catalog.store(Arc::new(current.with(base, changed)));
        drop(changing);
        self.look_at_experiments(LookReason::Asked);
        Some(count)
    }

    /// Every plan that is to be read now, as it is, and those that are gone.
    fn load(&mut self, due: &[PathBuf], gone: &[String], current: &Catalog, with: &RegistryChoice) -> LoadedPlans {
        let mut changed: Changed = gone.iter().map(|name| (name.clone(), None)).collect();
        let mut broken = None;
        for path in due {
            let name = library::name_of(path);
            match self.load_one(path, &name, current.get(&name), with) {
                Ok(Some(plan)) => drop(changed.insert(name, Some(Arc::new(plan)))),
                Ok(None) => {}
                Err(why) => drop(broken.get_or_insert((name, why))),
            }
        }
        LoadedPlans { changed, broken }
    }

    /// A plan as its file is now; `None` where nothing has changed. The error is why the version that is served does not build with the new
    /// registry.
    fn load_one(
        &mut self,
        path: &Path,
        name: &str,
        old: Option<&Arc<ServedPlan>>,
        with: &RegistryChoice,
    ) -> Result<Option<ServedPlan>, String> {
        let last = old.and_then(|old| old.good.clone());
        let mut history = old.map(|old| old.history.clone()).unwrap_or_default();
        let (mut good, mut problem) = (None, None);
        let context = LoadContext { registry: &with.registry, texts: &with.texts, log: &self.app.log };
        let result = match self.loader.load(path, &context) {
            Ok(LoadedPlan { sha256, .. }) if !with.is_new && history.is_newest(&sha256) => Ok(()),
            Ok(LoadedPlan { sha256, plan, text }) => self.link(&plan, name, old, &with.registry).map(|linked| {
                let text: Arc<str> = text.into();
                if !history.is_refused(&sha256) {
                    history.add(self.kept(sha256.clone(), &text), last.as_ref().map(|last| &*last.sha256));
                }
                let is_served = history.pinned.as_ref().is_none_or(|pin| pin.sha256 == sha256);
                if let Some(kept) = history.get(&sha256).filter(|kept| is_served && kept.rolled_back.is_none()) {
                    let artifact = self.app.capture.is_some().then_some(text);
                    let new = GoodVersion::new(plan, linked, artifact, kept, last.as_ref(), Arrival::File);
                    good = Some(new.logged(self.app.feature_log.as_ref(), &with.registry));
                }
            }),
            Err(wrong) => Err(wrong),
        };
        if let Err(PlanProblem { message, diagnostics }) = result {
            problem = Some(RefusedVersion { at: date::now(), message, diagnostics });
        }
        if with.is_new
            && good.is_none()
            && let Some(last) = &last
        {
            good = Some(self.build_again(name, last, &history, problem.as_ref(), &with.registry)?);
        }
        let is_same = good.is_none() && problem.is_none() && old.is_some_and(|old| old.problem.is_none());
        if is_same && old.is_some_and(|old| old.history.is_same_file(&history)) {
            return Ok(None);
        }
        let counters = match old {
            Some(old) => old.counters.clone(),
            None => {
                let limit = self.app.settings.plan_limits.get(name).copied();
                Arc::new(PlanCounters::new(self.app.metrics.loops().len(), limit))
            }
        };
        let (name, file) = (name.to_owned(), path.display().to_string());
        let (good, registry) = (good.or(last), with.registry.clone());
        Ok(Some(ServedPlan { name, file, good, problem, history, registry, counters }))
    }

    /// What is known of a version that has just been loaded.
    fn kept(&self, sha256: String, text: &Arc<str>) -> KeptVersion {
        let keeps = self.app.settings.versions.keeps_versions();
        KeptVersion {
            sha256,
            artifact: keeps.then(|| text.clone()),
            since: date::now(),
            counts: keeps.then(|| Arc::new(VersionCounts::new(self.app.metrics.loops().len()))),
            rolled_back: None,
        }
    }

    /// The version that is served although the file has another, with a new registry.
    fn build_again(
        &self,
        name: &str,
        last: &GoodVersion,
        history: &VersionHistory,
        problem: Option<&RefusedVersion>,
        registry: &Registry,
    ) -> Result<GoodVersion, String> {
        let held = history.get(&last.sha256).filter(|kept| !history.is_newest(&kept.sha256));
        let Some((kept, artifact)) = held.and_then(|kept| Some((kept, kept.artifact.as_deref()?))) else {
            return Err(problem.map_or_else(|| "it is not in its file".to_owned(), |problem| problem.message.clone()));
        };
        let linked = build(name, artifact, registry, self.library.tasks(), &self.engine);
        let (plan, linked) =
            linked.map_err(|problem| format!("version {}: {}", short(&last.sha256), problem.message))?;
        let artifact = self.app.capture.as_ref().and(kept.artifact.clone());
        let good = GoodVersion::new(plan, linked, artifact, kept, Some(last), last.arrival);
        Ok(good.logged(self.app.feature_log.as_ref(), registry))
    }

    /// Links a plan, and tries it out if it is to replace a version that works.
    fn link(
        &self,
        plan: &rankd_plan::Plan,
        name: &str,
        old: Option<&Arc<ServedPlan>>,
        registry: &Registry,
    ) -> Result<Arc<rankd_engine::Linked>, PlanProblem> {
        let refused = |why: trial::Unfit| PlanProblem::in_words(why.to_string());
        let linked = trial::link(plan, name, self.library.tasks(), registry).map_err(refused)?;
        if let Some(tables) = self.engine.tables() {
            tables.prepare(&linked);
        }
        if self.settings.trial
            && let Some(old) = old
            && let Some(good) = &old.good
        {
            let served = CurrentVersion { good, registry: &old.registry };
            trial::run(&self.engine, &linked, registry, &served).map_err(refused)?;
        }
        Ok(linked)
    }

    /// Puts what has changed into the catalog, counts and logs it. Gives the plans that somebody else has changed since `base`.
    fn swap(&self, base: &Catalog, changed: Changed, count: &mut usize) -> Vec<String> {
        if changed.is_empty() {
            return Vec::new();
        }
        let changing = self.app.change_catalog();
        let current = self.app.catalog.load_full();
        let is_same = |name: &String| match (base.get(name), current.get(name)) {
            (Some(base), Some(current)) => Arc::ptr_eq(base, current),
            (base, current) => base.is_none() && current.is_none(),
        };
        let (taken, left): (Changed, Changed) = changed.into_iter().partition(|(name, _)| is_same(name));
        taken.iter().for_each(|(name, plan)| self.report(name, plan.as_deref(), current.get(name)));
        *count += taken.len();
        self.app.catalog.store(Arc::new(current.with(current.base(), taken)));
        drop(changing);
        // A plan that an arm names, or a shadow, may have come or gone.
        self.warn_of_unbound();
        left.into_keys().collect()
    }

    fn report(&self, name: &str, new: Option<&ServedPlan>, old: Option<&Arc<ServedPlan>>) {
        let App { log, metrics, .. } = &*self.app;
        let Some(new) = new else {
            return log.event("info", &format!("plan {name} removed: its file was deleted"));
        };
        let version = |plan: &ServedPlan| plan.good.as_ref().map(|good| good.version);
        match (&new.problem, version(new)) {
            (Some(problem), version) => {
                metrics.reloads_failed.add(1);
                let kept = if version.is_some() { "the last good version stays" } else { "there is no good version" };
                log.event("error", &format!("plan {name}: {}; {kept}", problem.message));
            }
            (None, Some(now)) if old.and_then(|old| version(old)) != Some(now) => {
                metrics.reloads_ok.add(1);
                if now > 1 {
                    log.event("info", &format!("plan {name}: version {now} is served"));
                }
            }
            (None, _) => match new.held() {
                Some(held) if !old.is_some_and(|old| old.history.is_same_file(&new.history)) => {
                    metrics.reloads_ok.add(1);
                    log.event("info", &format!("plan {name}: a good version is not served: {}", held.message));
                }
                // Its file is again what it was.
                _ => {}
            },
        }
    }

    fn warn_of_folder(&self, message: Option<&str>) {
        let folder = self.settings.plan_dir.display();
        let message = message.map(|message| format!("the plan folder {folder} {message}"));
        self.warn(|all| &mut all.plan_folder, message.as_deref(), "the plan folder has plans again");
    }

    fn warn_of_registry(&self, why: Option<&str>) {
        let message =
            why.map(|why| format!("the registry on disk is refused and the previous one stays in use: {why}"));
        self.warn(|all| &mut all.registry, message.as_deref(), "the registry in use is the one on disk again");
    }

    /// Sets or clears a warning, and says so once.
    fn warn(&self, which: fn(&mut Warnings) -> &mut Option<Warning>, message: Option<&str>, over: &str) {
        if self.app.readiness.warn(which, message) {
            match message {
                Some(message) => self.app.log.event("error", message),
                None => self.app.log.event("info", over),
            }
        }
    }
}
