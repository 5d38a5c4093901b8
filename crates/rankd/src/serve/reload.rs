//! Plans from the folder onto the shelf, at start and whenever a file changes.
//!
//! A changed plan is compiled, checked, linked and tried beside the one that is served, and the whole shelf is swapped in one
//! step. A plan that is not good leaves the last good version where it is. Files are looked at by their time, size and inode, not
//! by notifications: that works on every file system and through the links that a mounted configuration swaps.

use crate::files::{self, Stamp};
use crate::library::{self, LoadedRegistry};
use crate::serve::app::App;
use crate::serve::date;
use crate::serve::fresh::{Fresh, Source, fresh};
use crate::serve::shelf::{Good, Problem, Shelf, Shelved, Standing};
use rankd_engine::{Engine, ErrorKind, Linked, Request};
use rankd_plan::Registry;
use rankd_plan::limits::REGISTRY_BYTES_MAX;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a trial run may take.
const TRIAL: Duration = Duration::from_secs(1);

/// Which plans, and how they are looked at.
#[derive(Clone, Debug)]
pub(crate) struct ReloadSettings {
    pub(crate) plan_dir: PathBuf,
    pub(crate) registry: PathBuf,
    pub(crate) env: String,
    /// Whether a new version must get through a run before it replaces another.
    pub(crate) trial: bool,
}

pub(crate) struct Reloader<'a> {
    pub(crate) app: &'a App,
    pub(crate) engine: &'a Engine,
    pub(crate) settings: ReloadSettings,
    /// What each plan's files looked like when it was last loaded.
    seen: HashMap<PathBuf, Vec<Stamp>>,
    /// What has changed since, and may still be changing.
    changing: HashMap<PathBuf, Vec<Stamp>>,
    /// Plans whose file was not there when last looked at.
    missing: HashMap<String, u32>,
    registry_digest: [u8; 32],
}

/// Why plans are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is time to look: what has changed is taken once it has stopped changing.
    Watch,
    /// Somebody wants everything to be read again, now.
    Asked,
}

impl<'a> Reloader<'a> {
    pub(crate) fn new(app: &'a App, engine: &'a Engine, settings: ReloadSettings) -> Reloader<'a> {
        let (seen, changing, missing) = (HashMap::new(), HashMap::new(), HashMap::new());
        let registry_digest = registry_digest(&settings);
        Reloader { app, engine, settings, seen, changing, missing, registry_digest }
    }

    /// Looks at the folder and swaps in what is new. Says how many plans changed.
    pub(crate) async fn look(&mut self, why: Why) -> usize {
        let paths = match library::list(&self.settings.plan_dir) {
            Ok(paths) => paths,
            Err(error) => {
                let message = format!("{}: {error}; the plans stay as they are", self.settings.plan_dir.display());
                self.app.log.event("error", &message);
                return 0;
            }
        };
        let current = self.app.shelf.load_full();
        let wanted = if why == Why::Asked { self.new_registry() } else { None };
        if let Some((digest, registry)) = wanted {
            let changed = self.load_all(&paths, &current, &registry, why, true).await;
            // A plan that was made with one registry cannot answer requests that were read with another.
            let broken = changed.values().flatten().find(|plan| plan.good.is_some() && plan.problem.is_some());
            match broken {
                None => {
                    self.registry_digest = digest;
                    return self.swap(&current, registry, changed);
                }
                Some(plan) => {
                    let message = format!("plan {} cannot run with the new registry, which is not taken", plan.name);
                    self.app.log.event("error", &message);
                }
            }
        }
        let mut changed = self.load_all(&paths, &current, &current.registry, why, false).await;
        for gone in self.gone(&current, &paths, why) {
            changed.insert(gone, None);
        }
        match changed.len() {
            0 => 0,
            _ => self.swap(&current, current.registry.clone(), changed),
        }
    }

    /// Every plan that is to be read now, as it is.
    async fn load_all(
        &mut self,
        paths: &[PathBuf],
        current: &Shelf,
        registry: &Arc<Registry>,
        why: Why,
        relink: bool,
    ) -> BTreeMap<String, Option<Arc<Shelved>>> {
        let shared = shared_sources(&self.settings.plan_dir);
        let mut changed = BTreeMap::new();
        for path in paths {
            let stamps = stamps(path, &shared);
            if !(relink || self.is_due(path, &stamps, why)) {
                continue;
            }
            self.changing.remove(path);
            self.seen.insert(path.clone(), stamps);
            let name = library::name_of(path);
            if let Some(plan) = self.load(path, &name, current.get(&name), registry, relink).await {
                changed.insert(name, Some(Arc::new(plan)));
            }
        }
        changed
    }

    /// The registry as it is on disk, if it is another than the one in use and can take its place.
    fn new_registry(&self) -> Option<([u8; 32], Arc<Registry>)> {
        let digest = registry_digest(&self.settings);
        if digest == self.registry_digest {
            return None;
        }
        let LoadedRegistry { registry, problems } = library::load_registry(&self.settings.registry, &self.settings.env);
        let refuse = |why: &str| {
            self.app.log.event("error", &format!("the registry stays as it was: {why}"));
            None
        };
        if let Some((file, ..)) = problems.iter().find(|(.., found)| found.has_errors()) {
            return refuse(&format!("{file} has errors"));
        }
        if registry.endpoints.list() != self.app.shelf.load().registry.endpoints.list() {
            return refuse("its endpoints have changed, which takes a restart");
        }
        Some((digest, Arc::new(registry)))
    }

    /// Whether a plan should be read now.
    fn is_due(&mut self, path: &Path, stamps: &[Stamp], why: Why) -> bool {
        let known = self.seen.get(path);
        if why == Why::Asked || known.is_none() {
            return true;
        }
        if known.is_some_and(|known| known == stamps) {
            self.changing.remove(path);
            return false;
        }
        // Somebody may still be writing: wait until two looks see the same.
        let settled = self.changing.get(path).is_some_and(|last| last == stamps);
        self.changing.insert(path.to_owned(), stamps.to_vec());
        settled
    }

    /// Plans whose files are gone, and were gone when last looked at: a file that is replaced may be missing for a moment.
    fn gone(&mut self, current: &Shelf, paths: &[PathBuf], why: Why) -> Vec<String> {
        let there: Vec<String> = paths.iter().map(|path| library::name_of(path)).collect();
        self.missing.retain(|name, _| !there.contains(name));
        let mut gone = Vec::new();
        for name in current.plans.keys().filter(|name| !there.contains(name)) {
            let looks = self.missing.entry(name.clone()).or_default();
            *looks += 1;
            if *looks > 1 || why == Why::Asked {
                gone.push(name.clone());
            }
        }
        self.seen.retain(|path, _| paths.contains(path));
        gone
    }

    /// A plan as its file is now. `None` where nothing has changed.
    async fn load(
        &self,
        path: &Path,
        name: &str,
        old: Option<&Arc<Shelved>>,
        registry: &Arc<Registry>,
        relink: bool,
    ) -> Option<Shelved> {
        let last = old.and_then(|old| old.good.clone());
        let new = fresh(path, &Source { registry, places: &self.settings }).await;
        let unchanged = |text_sha256: &str| last.as_ref().is_some_and(|good| good.sha256 == text_sha256);
        let result = match new {
            Err(problem) => Err(problem),
            Ok(Fresh { sha256, .. }) if unchanged(&sha256) && !relink => Ok(None),
            Ok(Fresh { sha256, plan }) => self.try_out(&plan, name, last.as_ref(), registry).map(|linked| {
                let version = last.as_ref().map_or(1, |good| good.version + 1);
                Some(Good { linked, sha256, loaded_at: date::now(), version })
            }),
        };
        let standing = match old {
            Some(old) => old.standing.clone(),
            None => {
                let limit = self.app.settings.plan_limits.get(name).copied();
                Arc::new(Standing::new(self.app.metrics.loops().len(), limit))
            }
        };
        let (good, problem) = match result {
            Ok(None) if old.is_some_and(|old| old.problem.is_none()) => return None,
            Ok(None) => (last, None),
            Ok(Some(good)) => {
                self.app.metrics.reloads_ok.add(1);
                if good.version > 1 {
                    self.app.log.event("info", &format!("plan {name}: version {} is served", good.version));
                }
                (Some(good), None)
            }
            Err((message, diagnostics)) => {
                self.app.metrics.reloads_failed.add(1);
                let kept = if last.is_some() { "the last good version stays" } else { "there is no good version" };
                self.app.log.event("error", &format!("plan {name}: {message}; {kept}"));
                (last, Some(Problem { at: date::now(), message, diagnostics }))
            }
        };
        let file = path.display().to_string();
        Some(Shelved { name: name.to_owned(), file, good, problem, registry: registry.clone(), standing })
    }

    /// Links a plan and runs it once. A run that fails by the plan's own fault keeps it from replacing one that works.
    fn try_out(
        &self,
        plan: &rankd_plan::Plan,
        name: &str,
        last: Option<&Good>,
        registry: &Registry,
    ) -> Result<Arc<Linked>, (String, String)> {
        let none = || "[]".to_owned();
        if plan.name != name {
            return Err((format!("the file is named {name:?} and the plan in it {:?}", plan.name), none()));
        }
        let linked = Linked::link(plan, rankd_tasks::DEFINITIONS, registry).map_err(|error| (error.message, none()))?;
        let linked = Arc::new(linked);
        if self.settings.trial {
            let params = registry.params.list().iter().map(|p| p.default.clone().unwrap_or(rankd_column::Value::Null));
            let request = Request {
                user_id: 1,
                request_id: "trial".to_owned(),
                params: params.collect(),
                deadline: Some(TRIAL),
                ..Request::default()
            };
            let outcome = self.engine.run(&linked, request);
            if let Err(error) = outcome.result
                && matches!(error.kind, ErrorKind::Task | ErrorKind::Bug)
                && last.is_some()
            {
                return Err((format!("its trial run failed: {error}"), none()));
            }
        }
        Ok(linked)
    }

    fn swap(&self, current: &Shelf, registry: Arc<Registry>, changed: BTreeMap<String, Option<Arc<Shelved>>>) -> usize {
        let count = changed.len();
        let mut plans = current.plans.clone();
        for (name, plan) in changed {
            match plan {
                Some(plan) => drop(plans.insert(name, plan)),
                None => {
                    self.app.log.event("info", &format!("plan {name}: its file is gone, and so is the plan"));
                    plans.remove(&name);
                }
            }
        }
        self.app.shelf.store(Arc::new(Shelf { registry, plans }));
        count
    }
}

/// What the files of the registry say, as one number.
fn registry_digest(settings: &ReloadSettings) -> [u8; 32] {
    let mut digest = Sha256::new();
    for name in ["keys.toml", "params.toml", &format!("endpoints.{}.toml", settings.env)] {
        // A file that cannot be read is told when the registry is loaded.
        let text = files::read_text(&settings.registry.join(name), REGISTRY_BYTES_MAX).unwrap_or_default();
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize().into()
}

/// What a plan's file, and what it may be made of, look like now.
fn stamps(path: &Path, shared: &[Stamp]) -> Vec<Stamp> {
    let own = files::stamp(path);
    let is_source = path.extension().is_some_and(|extension| extension == "ts");
    own.into_iter().chain(shared.iter().filter(|_| is_source).copied()).collect()
}

/// The files that plans in TypeScript may import: those of the folder and one level below that are no plans themselves.
fn shared_sources(folder: &Path) -> Vec<Stamp> {
    let here = files::list(folder).unwrap_or_default();
    let below = here.iter().filter(|path| path.is_dir()).flat_map(|folder| files::list(folder).unwrap_or_default());
    let all = here.iter().cloned().chain(below);
    let fragments = all.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".ts") && !name.ends_with(library::SOURCE_SUFFIX)
    });
    fragments.filter_map(|path| files::stamp(&path)).collect()
}
