//! Models that were read, each with the keys that its features are, and the version of each that is in use.
//!
//! A [`UsedModel`] never changes. [`Models`] swaps in new ones: a run takes [`ModelVersions`] once, when it starts, and sees nothing of a swap. Where
//! files come from is not known here.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest, quoted};
use crate::registry::{FeatureKeys, ModelEntry, Registry, why_not};
use arc_swap::ArcSwap;
use rankd_column::Key;
use rankd_column::model::{Feature, Lookups, Model, ModelOutput, ScoreScratch, Scoring};
use rankd_column::stop::Picking;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One version of a model.
pub struct UsedModel {
    model: Model,
    /// By feature: its key. Nothing where no tree looks at the feature.
    keys: Vec<Option<Key>>,
    /// Of the file, in hexadecimal.
    sha256: String,
    /// Working memory that no scoring uses now: as many as there were scorings at once.
    spare: Mutex<Vec<ScoringMemory>>,
    /// Rows that were scored, by all versions of the model.
    rows: Arc<AtomicU64>,
}

/// What a scoring works in. What it has learned of texts belongs to one version of a model.
#[derive(Default)]
pub struct ScoringMemory {
    pub scratch: ScoreScratch,
    pub lookups: Lookups,
}

impl UsedModel {
    /// Finds the keys of a model's features. What does not fit is reported, at the place of the model in its file.
    pub fn bind(at: u32, model: Model, sha256: String, registry: &Registry) -> Result<UsedModel, Diagnostics> {
        let mut found = Diagnostics::default();
        let (entry, place) = (registry.models.get(at), registry.models.place(at));
        let mut report = |message: String, help: Option<String>| {
            let wrong = Diagnostic::new(Code::BadFeature, "", message).bytes(place.clone());
            found.push(match help {
                Some(help) => wrong.help(help),
                None => wrong,
            });
        };
        let keys = bind(entry, &model, registry, &mut report);
        if found.has_errors() {
            return Err(found);
        }
        let rows = registry.known_model(at).map(|before| before.rows.clone()).unwrap_or_default();
        Ok(UsedModel { model, keys, sha256, spare: Mutex::default(), rows })
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// By feature: the key that it is. Nothing for one that is never looked at.
    pub fn keys(&self) -> &[Option<Key>] {
        &self.keys
    }

    /// The keys that it reads, each once.
    pub fn reads(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.keys.iter().copied().flatten().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Of the file, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// How many rows were scored, by this version and those before it.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Scores with working memory that was used before, if there is some that nobody uses, and counts the rows that were scored.
    pub fn score<E>(&self, score: impl FnOnce(&mut ScoringMemory) -> Result<usize, E>) -> Result<usize, E> {
        let taken = self.spare().pop();
        let mut memory = taken.unwrap_or_default();
        let scored = score(&mut memory);
        // Kept after a scoring that was stopped as well: to start what is no trees takes long.
        self.spare().push(memory);
        let rows = scored?;
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        Ok(rows)
    }

    /// Scores a block of rows that nobody has asked for and leaves its working memory behind, so that the first scorings find all memory in place: as
    /// many as the version before it had at once.
    pub fn warm(&self, before: Option<&UsedModel>) {
        const ROWS: usize = 256;
        let at_once = before.map_or(1, |before| before.spare().len().max(1));
        let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
        let mut scores = vec![vec![0.0; ROWS]; self.model.outputs(scoring.output)];
        let mut out: Vec<&mut [f64]> = scores.iter_mut().map(Vec::as_mut_slice).collect();
        // Far apart, so that rows take different ways.
        let mut inputs = |feature: usize, _: usize, values: &mut [f64]| {
            values.iter_mut().enumerate().for_each(|(row, value)| *value = ((row * 37 + feature) % ROWS) as f64 - 64.0);
        };
        for _ in 0..at_once {
            let mut memory = ScoringMemory::default();
            // Nothing stops it, and what it gives does not matter.
            let _ = self.model.score(&mut inputs, ROWS, scoring, &mut out, &mut memory.scratch, Picking::default());
            self.spare().push(memory);
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<ScoringMemory>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for UsedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UsedModel").field("sha256", &self.sha256).field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// The keys of a model's features.
fn bind(
    entry: &ModelEntry,
    model: &Model,
    registry: &Registry,
    report: &mut dyn FnMut(String, Option<String>),
) -> Vec<Option<Key>> {
    let features = model.features();
    let named = match &entry.features {
        FeatureKeys::InOrder(keys) if keys.len() != features.len() => {
            let (name, lists, has) = (quoted(&entry.name), keys.len(), features.len());
            report(format!("features lists {lists} keys, but the model {name} has {has} features"), None);
            return Vec::new();
        }
        FeatureKeys::InOrder(keys) => {
            let fit = |(at, key): (usize, &Key)| {
                (model.is_used(at) && fits(&features[at], at, *key, entry, registry, report)).then_some(*key)
            };
            return keys.iter().enumerate().map(fit).collect();
        }
        FeatureKeys::ByName(named) => named,
    };
    for (name, _) in named.iter().filter(|(name, _)| features.iter().all(|feature| feature.name != *name)) {
        let near = nearest(name, features.iter().map(|feature| feature.name.as_str()));
        let help = near.map(|near| format!("did you mean {near:?}?"));
        report(format!("the model {} has no feature {}", quoted(&entry.name), quoted(name)), help);
    }
    let mut keys = vec![None; features.len()];
    for (at, feature) in features.iter().enumerate().filter(|(at, _)| model.is_used(*at)) {
        if feature.name.is_empty() {
            let help = format!("list their keys in order: features = [\"…\"], {} of them", features.len());
            report(format!("the features of the model {} have no names", quoted(&entry.name)), Some(help));
            return keys;
        }
        let known = named.iter().find(|(name, _)| *name == feature.name).map(|(_, key)| *key);
        let Some(key) = known.or_else(|| registry.keys.named(&feature.name).map(Key)) else {
            let near = nearest(&feature.name, registry.keys.list().iter().map(|entry| entry.name.as_str()));
            let near = near.map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
            let help = format!("{near}name its key: features = {{ {:?} = \"…\" }}", feature.name);
            report(format!("{} is no key", of_model(feature, at, entry)), Some(help));
            continue;
        };
        keys[at] = fits(feature, at, key, entry, registry, report).then_some(key);
    }
    keys
}

/// Whether a key can be a feature.
fn fits(
    feature: &Feature,
    at: usize,
    key: Key,
    entry: &ModelEntry,
    registry: &Registry,
    report: &mut dyn FnMut(String, Option<String>),
) -> bool {
    let of_key = registry.key(key);
    let name = of_model(feature, at, entry);
    if let Some(why) = why_not(of_key) {
        report(format!("{name} is the key {:?}, which {why}", of_key.name), None);
        return false;
    }
    if !feature.takes(of_key.type_of) {
        let (wants, key, type_of) = (feature.wants(), &of_key.name, of_key.type_of);
        report(format!("{name} is {wants}, but the key {key:?} is of type {type_of}"), None);
        return false;
    }
    true
}

fn of_model(feature: &Feature, at: usize, entry: &ModelEntry) -> String {
    match feature.name.as_str() {
        "" => format!("feature {at} of the model {}", quoted(&entry.name)),
        name => format!("the feature {} of the model {}", quoted(name), quoted(&entry.name)),
    }
}

/// The version of each model that is in use at one moment.
#[derive(Clone, Debug, Default)]
pub struct ModelVersions {
    /// By position in the registry; nothing for one that was not read.
    models: Vec<Option<Arc<UsedModel>>>,
}

impl ModelVersions {
    pub fn get(&self, model: u32) -> Option<&Arc<UsedModel>> {
        self.models.get(model as usize)?.as_ref()
    }
}

/// The models of a process.
#[derive(Debug, Default)]
pub struct Models {
    versions: ArcSwap<ModelVersions>,
}

impl Models {
    /// The versions that are in use now.
    pub fn versions(&self) -> Arc<ModelVersions> {
        self.versions.load_full()
    }

    /// Puts a version in the place of the one that is in use, if there is one. Runs that have started keep theirs.
    pub fn swap(&self, model: u32, version: UsedModel) {
        let version = Arc::new(version);
        // Made again where two are swapped at once, so that none is lost.
        self.versions.rcu(|now| {
            let mut versions = ModelVersions::clone(now);
            let at = model as usize;
            versions.models.resize_with(versions.models.len().max(at + 1), || None);
            versions.models[at] = Some(version.clone());
            versions
        });
    }
}
