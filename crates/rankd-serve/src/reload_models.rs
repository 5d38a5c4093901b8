//! Takes changed files of models into use, on the thread that looks after the plans.
//!
//! A file is read beside the version that is in use and then swapped in. One that cannot be used, or that a served plan could not go on
//! with, leaves the last good version where it is, and that is said in the log, by `/readyz` and in the metrics.

use crate::app::App;
use crate::catalog::Catalog;
use crate::watched_folder::LookReason;
use crate::watched_tables::SeenFile;
use rankd_edge::models::{ModelError, ModelFiles, ModelSource};
use rankd_plan::model::UsedModel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of models, checked periodically, and what is wrong with those that are not in use.
pub(crate) struct WatchedModels {
    files: Arc<ModelFiles>,
    /// By model.
    seen: Vec<SeenFile>,
    /// By name.
    problems: BTreeMap<String, String>,
}

impl WatchedModels {
    /// Made before the files are read for the first time: what changes meanwhile has changed.
    pub(crate) fn new(files: Arc<ModelFiles>) -> WatchedModels {
        let seen = files.sources().iter().map(|source| SeenFile::read_as(source.stamp())).collect();
        WatchedModels { files, seen, problems: BTreeMap::new() }
    }

    /// Whether a file has changed that may still be changing.
    pub(crate) fn is_changing(&self) -> bool {
        self.seen.iter().any(SeenFile::is_changing)
    }

    /// Reads the files that have changed and takes into use what is good. Says whether there was any.
    pub(crate) fn look(&mut self, reason: LookReason, app: &App) -> bool {
        let mut any = false;
        for (source, seen) in self.files.sources().iter().zip(&mut self.seen) {
            if !seen.is_due(source.stamp(), reason) {
                continue;
            }
            any = true;
            let result = reload(source, app);
            source.count_reload(result.is_ok());
            match result {
                Ok(()) => {
                    app.log.event("info", &format!("model {}: the changed file is in use", source.name()));
                    self.problems.remove(source.name());
                }
                Err(why) => drop(self.problems.insert(source.name().to_owned(), why.to_string())),
            }
        }
        any
    }

    /// What is wrong, in a sentence; `None` where every file is in use.
    pub(crate) fn message(&self) -> Option<String> {
        let all: Vec<String> = self.problems.iter().map(|(model, why)| format!("model {model}: {why}")).collect();
        (!all.is_empty()).then(|| format!("the last good version stays in use: {}", all.join("; ")))
    }
}

fn reload(source: &ModelSource, app: &App) -> Result<(), ModelError> {
    let loaded = source.load(&app.catalog.load_full().registry)?;
    // Until it is in use, no plan may come that it does not fit.
    let _changing = app.change_catalog();
    let catalog = app.catalog.load_full();
    must_fit(source, &loaded, &catalog)?;
    source.put(loaded, &catalog.registry);
    Ok(())
}

/// Refuses a version that a served plan cannot go on with, and names every such plan.
fn must_fit(source: &ModelSource, loaded: &UsedModel, catalog: &Catalog) -> Result<(), ModelError> {
    let mut plans = Vec::new();
    for plan in catalog.list() {
        let uses = plan.good.iter().flat_map(|good| good.linked.models().uses());
        let unfit = uses.filter(|of| of.model == source.at()).find_map(|of| of.fits(loaded, &catalog.registry).err());
        plans.extend(unfit.map(|why| (plan.name.clone(), why.to_string())));
    }
    if plans.is_empty() { Ok(()) } else { Err(ModelError::Unfit { path: source.path().to_owned(), plans }) }
}
