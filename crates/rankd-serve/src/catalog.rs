//! The plans that are served, as one value that is swapped whole: a request takes a plan from it once and keeps that.

use crate::degraded_counts::DegradedCounts;
use crate::metrics::{Count, PlanMetrics};
use crate::plan_header;
use crate::reload_experiments::ServedExperiments;
use crate::shadow_pair::{ShadowPair, ShadowSettings};
use crate::verdict::Answers;
use crate::version_counts::VersionCounts;
use crate::version_history::{ARTIFACT_BYTES_MAX, Held, KeptVersion, VersionHistory};
use hyper::header::HeaderValue;
use rankd_edge::date;
use rankd_edge::experiments::{PlanExperiments, UnappliedExperiment};
use rankd_edge::feature_log::{FeatureLog, LoggedPlan};
use rankd_edge::registry_files::RegistryTexts;
use rankd_engine::{Linked, RunError, codes};
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::{Plan, Registry};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All plans, and the registry that they were checked against.
pub(crate) struct Catalog {
    pub(crate) registry: Arc<Registry>,
    /// What the files of the registry say.
    pub(crate) texts: Arc<RegistryTexts>,
    pub(crate) experiments: ServedExperiments,
    plans: HashMap<String, CatalogEntry>,
    /// The same in order of their names.
    in_order: Vec<Arc<ServedPlan>>,
    /// The experiments that are not applied, because they need a plan that is not served.
    pub(crate) left_out: Vec<UnappliedExperiment>,
    /// All plans that have a shadow.
    pub(crate) shadows: Arc<[Arc<ShadowPair>]>,
    /// The shadows that cannot run.
    pub(crate) unfit: Vec<(Arc<ShadowPair>, UnfitShadow)>,
}

/// What plans are served with.
#[derive(Clone)]
pub(crate) struct CatalogBase {
    pub(crate) registry: Arc<Registry>,
    pub(crate) texts: Arc<RegistryTexts>,
    pub(crate) experiments: ServedExperiments,
    pub(crate) shadows: Arc<[Arc<ShadowPair>]>,
}

/// A plan, the experiments that change its answers, and its shadow.
pub(crate) struct CatalogEntry {
    pub(crate) plan: Arc<ServedPlan>,
    pub(crate) experiments: Option<PlanExperiments>,
    pub(crate) shadow: Option<BoundShadow>,
}

/// The shadow of a plan, and the version of it that runs; none where it cannot.
pub(crate) struct BoundShadow {
    pub(crate) pair: Arc<ShadowPair>,
    pub(crate) runs: Option<ShadowVersion>,
}

/// A version that runs as the shadow of another plan.
#[derive(Clone)]
pub(crate) struct ShadowVersion {
    pub(crate) plan: Arc<Plan>,
    pub(crate) registry: Arc<Registry>,
}

/// Why a plan cannot run as the shadow of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnfitShadow {
    /// There is no such plan; a name that is near.
    NoPlan { name: String, near: Option<String> },
    /// It has no version that can run.
    NoVersion { name: String },
    /// It needs a parameter that requests for the other plan need not give.
    NeedsParam { plan: String, shadow: String, param: String },
}

impl UnfitShadow {
    /// Whether it is the command line that is wrong, and not a plan.
    fn is_of_command_line(&self) -> bool {
        match self {
            UnfitShadow::NoPlan { .. } | UnfitShadow::NeedsParam { .. } => true,
            UnfitShadow::NoVersion { .. } => false,
        }
    }
}

impl fmt::Display for UnfitShadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitShadow::NoPlan { name, near } => {
                write!(f, "there is no plan {}", quoted(name))?;
                near.as_ref().map_or(Ok(()), |near| write!(f, "; did you mean {near:?}?"))
            }
            UnfitShadow::NoVersion { name } => write!(f, "the plan {name:?} has no version that can run"),
            UnfitShadow::NeedsParam { plan, shadow, param } => write!(
                f,
                "the plan {shadow:?} needs the parameter {param:?}, which requests for {plan:?} need not give: give the parameter a default"
            ),
        }
    }
}

impl Catalog {
    pub(crate) fn new(base: CatalogBase, plans: HashMap<String, Arc<ServedPlan>>) -> Catalog {
        let CatalogBase { registry, texts, experiments, shadows } = base;
        // Sorted here and not for each request: with thousands of plans it would keep an event loop busy for milliseconds.
        let mut in_order: Vec<_> = plans.values().cloned().collect();
        in_order.sort_by(|a, b| a.name.cmp(&b.name));
        let reads = |name: &str| Some(plans.get(name)?.good.as_ref()?.linked.params());
        let mut left_out = Vec::new();
        let pairs = shadows.clone();
        let mut bound_shadows: HashMap<&str, (BoundShadow, Option<UnfitShadow>)> =
            pairs.iter().map(|pair| (&*pair.settings.plan, bind_shadow(pair, &plans))).collect();
        let unfit = pairs.iter().filter_map(|pair| {
            let (_, unfit) = bound_shadows.get(&*pair.settings.plan)?;
            Some((pair.clone(), unfit.clone()?))
        });
        let unfit = unfit.collect();
        let bound = in_order.iter().map(|plan| {
            let bound = PlanExperiments::bind(&experiments.all, &plan.name, reads, &mut left_out);
            let shadow = bound_shadows.remove(&*plan.name).map(|(bound, _)| bound);
            (plan.name.clone(), CatalogEntry { plan: plan.clone(), experiments: bound, shadow })
        });
        let plans = bound.collect();
        left_out.sort_unstable();
        left_out.dedup();
        Catalog { registry, texts, experiments, plans, in_order, left_out, shadows, unfit }
    }

    pub(crate) fn empty(base: CatalogBase) -> Catalog {
        Catalog::new(base, HashMap::new())
    }

    /// What its plans are served with.
    pub(crate) fn base(&self) -> CatalogBase {
        let Catalog { registry, texts, experiments, shadows, .. } = self;
        let (registry, texts, experiments, shadows) =
            (registry.clone(), texts.clone(), experiments.clone(), shadows.clone());
        CatalogBase { registry, texts, experiments, shadows }
    }

    /// With some plans exchanged, added or, where there is `None`, taken away.
    pub(crate) fn with(
        &self,
        base: CatalogBase,
        changed: impl IntoIterator<Item = (String, Option<Arc<ServedPlan>>)>,
    ) -> Catalog {
        let mut plans: HashMap<_, _> = self.in_order.iter().map(|plan| (plan.name.clone(), plan.clone())).collect();
        for (name, plan) in changed {
            match plan {
                Some(plan) => drop(plans.insert(name, plan)),
                None => drop(plans.remove(&name)),
            }
        }
        forget_artifacts(&mut plans, ARTIFACT_BYTES_MAX);
        Catalog::new(base, plans)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ServedPlan>> {
        self.plans.get(name).map(|entry| &entry.plan)
    }

    /// The plan of this name; the error where there is none.
    pub(crate) fn find(&self, name: &str) -> Result<&CatalogEntry, RunError> {
        self.plans.get(name).ok_or_else(|| {
            let near = nearest(name, self.plans.keys().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            RunError::new(codes::UNKNOWN_PLAN, format!("there is no plan {}{hint}", quoted(name)))
        })
    }

    /// Why shadows cannot run, if one cannot. Before there are plans, nothing can.
    pub(crate) fn shadow_problem(&self) -> Option<String> {
        if self.in_order.is_empty() { None } else { self.unfit_shadows(|_| true) }
    }

    /// The same as far as the command line is wrong.
    pub(crate) fn shadow_mistake(&self) -> Option<String> {
        self.unfit_shadows(UnfitShadow::is_of_command_line)
    }

    fn unfit_shadows(&self, which: impl Fn(&UnfitShadow) -> bool) -> Option<String> {
        let unfit = self.unfit.iter().filter(|(_, unfit)| which(unfit)).map(|(pair, unfit)| {
            let ShadowSettings { plan, shadow, share } = &pair.settings;
            format!("--shadow {plan}={shadow}:{share}: {unfit}")
        });
        let unfit: Vec<String> = unfit.collect();
        (!unfit.is_empty()).then(|| unfit.join("; "))
    }

    /// In order of their names.
    pub(crate) fn list(&self) -> &[Arc<ServedPlan>] {
        &self.in_order
    }
}

/// Finds the version that runs as a plan's shadow, or why there is none.
fn bind_shadow(pair: &Arc<ShadowPair>, plans: &HashMap<String, Arc<ServedPlan>>) -> (BoundShadow, Option<UnfitShadow>) {
    let settings = &pair.settings;
    let find = |name: &String| {
        // None of the pair itself: a plan cannot be its own shadow.
        let others =
            plans.keys().map(String::as_str).filter(|known| ![&*settings.plan, &*settings.shadow].contains(known));
        let near = || nearest(name, others).map(str::to_owned);
        plans.get(name).ok_or_else(|| UnfitShadow::NoPlan { name: name.clone(), near: near() })
    };
    let bind = || {
        let (plan, shadow) = (find(&settings.plan)?, find(&settings.shadow)?);
        let good = shadow.good.as_ref().ok_or_else(|| UnfitShadow::NoVersion { name: shadow.name.clone() })?;
        let given = plan.good.as_ref().map(|good| good.linked.required_params());
        let missing = good.linked.required_params().iter().find(|param| given.is_some_and(|of| !of.contains(param)));
        match missing {
            None => Ok(ShadowVersion { plan: good.plan.clone(), registry: shadow.registry.clone() }),
            Some((_, param)) => Err(UnfitShadow::NeedsParam {
                plan: plan.name.clone(),
                shadow: shadow.name.clone(),
                param: param.clone(),
            }),
        }
    };
    let (runs, unfit) = match bind() {
        Ok(version) => (Some(version), None),
        Err(unfit) => (None, Some(unfit)),
    };
    (BoundShadow { pair: pair.clone(), runs }, unfit)
}

/// Forgets artifacts, the oldest first, until all of them have at most so many bytes.
fn forget_artifacts(plans: &mut HashMap<String, Arc<ServedPlan>>, bytes_max: usize) {
    let mut bytes: usize = plans.values().map(|plan| plan.history.bytes()).sum();
    if bytes <= bytes_max {
        return;
    }
    let mut oldest = Vec::new();
    for (name, plan) in &*plans {
        let served = plan.good.as_ref().map(|good| good.sha256.as_str());
        let forgettable = plan.history.forgettable(served);
        oldest.extend(forgettable.map(|(since, sha256)| (since.to_owned(), name.clone(), sha256.to_owned())));
    }
    oldest.sort_unstable();
    for (_, name, sha256) in oldest {
        if bytes <= bytes_max {
            return;
        }
        let Some(plan) = plans.get_mut(&name) else { continue };
        let mut history = plan.history.clone();
        history.forget_artifact(&sha256);
        bytes -= plan.history.bytes() - history.bytes();
        *plan = Arc::new(ServedPlan { history, ..ServedPlan::clone(plan) });
    }
}

/// One plan of the folder.
#[derive(Clone)]
pub(crate) struct ServedPlan {
    pub(crate) name: String,
    pub(crate) file: String,
    /// The version that is served: the newest good one, unless the plan is pinned or was rolled back. `None` as long as there was none.
    pub(crate) good: Option<GoodVersion>,
    /// What is wrong with the file as it is now.
    pub(crate) problem: Option<RefusedVersion>,
    /// The versions that there were.
    pub(crate) history: VersionHistory,
    pub(crate) registry: Arc<Registry>,
    pub(crate) counters: Arc<PlanCounters>,
}

impl ServedPlan {
    /// The version that is served; the error where there is none.
    pub(crate) fn version(&self) -> Result<&GoodVersion, RunError> {
        self.good.as_ref().ok_or_else(|| {
            let why = self.problem.as_ref().map_or("it was never loaded", |problem| &problem.message);
            RunError::new(codes::NO_GOOD_VERSION, format!("the plan {:?} cannot run: {why}", self.name))
        })
    }

    /// Why the good version in the file is not the one that is served, where that is so.
    pub(crate) fn held(&self) -> Option<Held> {
        self.history.held(&self.good.as_ref()?.sha256)
    }
}

/// What brought a version into service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was the newest that the file had.
    File,
    /// A rollback, or an operator who pinned it.
    Switched,
}

/// A version that can run.
#[derive(Clone)]
pub(crate) struct GoodVersion {
    pub(crate) linked: Arc<Linked>,
    /// What it was linked from: questions about items link it once more.
    pub(crate) plan: Arc<Plan>,
    /// Of the artifact's bytes, in hexadecimal.
    pub(crate) sha256: String,
    /// What is logged of its rows, where rows are.
    pub(crate) logged: Option<Arc<LoggedPlan>>,
    /// The artifact, where requests are captured.
    pub(crate) artifact: Option<Arc<str>>,
    /// What answers name it by.
    pub(crate) header: HeaderValue,
    pub(crate) loaded_at: String,
    /// How many times a version came into service, with this one.
    pub(crate) version: u64,
    pub(crate) degraded: Arc<DegradedCounts>,
    /// Where versions are counted.
    pub(crate) counts: Option<Arc<VersionCounts>>,
    /// What they were when it came into service.
    pub(crate) counted_from: Answers,
    pub(crate) arrival: Arrival,
    /// The one that it replaced, where versions are counted.
    pub(crate) before: Option<VersionBefore>,
}

/// What a version is compared with if nobody has looked at the plan before it came into service.
#[derive(Clone)]
pub(crate) struct VersionBefore {
    pub(crate) sha256: String,
    pub(crate) counts: Arc<VersionCounts>,
    pub(crate) counted_from: Answers,
}

impl GoodVersion {
    /// A version that is served from now on, in place of another, if there was one.
    pub(crate) fn new(
        plan: Plan,
        linked: Arc<Linked>,
        artifact: Option<Arc<str>>,
        kept: &KeptVersion,
        before: Option<&GoodVersion>,
        arrival: Arrival,
    ) -> GoodVersion {
        let degraded = Arc::new(DegradedCounts::new(&linked, before.map(|before| &*before.degraded)));
        let version = before.map_or(1, |before| before.version + 1);
        let counts = kept.counts.clone();
        // One that is only made again, with another registry, goes on as it was.
        let (counted_from, arrival, before) = match before {
            Some(same) if same.sha256 == kept.sha256 => (same.counted_from, same.arrival, same.before.clone()),
            before => {
                let counted_from = counts.as_ref().map(|counts| counts.total()).unwrap_or_default();
                (counted_from, arrival, before.and_then(GoodVersion::as_before))
            }
        };
        let (sha256, loaded_at) = (kept.sha256.clone(), date::now());
        GoodVersion {
            linked,
            plan: Arc::new(plan),
            header: plan_header::value(&sha256),
            sha256,
            logged: None,
            artifact,
            loaded_at,
            version,
            degraded,
            counts,
            counted_from,
            arrival,
            before,
        }
    }

    /// The same with its rows logged, where rows are.
    pub(crate) fn logged(self, log: Option<&FeatureLog>, registry: &Registry) -> GoodVersion {
        let logged = log.map(|log| log.plan(&self.linked, &self.sha256, registry));
        GoodVersion { logged, ..self }
    }

    fn as_before(&self) -> Option<VersionBefore> {
        let (sha256, counts) = (self.sha256.clone(), self.counts.clone()?);
        Some(VersionBefore { sha256, counts, counted_from: self.counted_from })
    }
}

/// A version that is not served.
#[derive(Clone)]
pub(crate) struct RefusedVersion {
    pub(crate) at: String,
    pub(crate) message: String,
    /// A JSON array, as `rankd check --json` has it.
    pub(crate) diagnostics: String,
}

/// What stays when a plan's version changes.
#[derive(Debug)]
pub(crate) struct PlanCounters {
    pub(crate) metrics: PlanMetrics,
    /// How often an earlier version was put back into service.
    pub(crate) rollbacks: Count,
    running: AtomicUsize,
    limit: Option<usize>,
}

impl PlanCounters {
    pub(crate) fn new(loops: usize, limit: Option<usize>) -> PlanCounters {
        PlanCounters {
            metrics: PlanMetrics::new(loops),
            rollbacks: Count::default(),
            running: AtomicUsize::new(0),
            limit,
        }
    }

    /// Counts a run in, unless the plan's limit is reached.
    pub(crate) fn enter(self: &Arc<PlanCounters>) -> Option<CountedRun> {
        let Some(limit) = self.limit else { return Some(CountedRun(None)) };
        if self.running.fetch_add(1, Ordering::Relaxed) >= limit {
            self.running.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(CountedRun(Some(self.clone())))
    }
}

/// A run of a plan that has a limit; counted out when dropped.
pub(crate) struct CountedRun(Option<Arc<PlanCounters>>);

impl Drop for CountedRun {
    fn drop(&mut self) {
        if let Some(counters) = &self.0 {
            counters.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
