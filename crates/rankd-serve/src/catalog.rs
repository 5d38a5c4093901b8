//! The plans that are served, as one value that is swapped whole: a request takes a plan from it once and keeps that.

use crate::metrics::PlanMetrics;
use rankd_engine::Linked;
use rankd_plan::Registry;
use rankd_plan::diagnostic::nearest;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All plans, and the registry that they were checked against.
pub(crate) struct Shelf {
    pub(crate) registry: Arc<Registry>,
    plans: HashMap<String, Arc<Shelved>>,
    /// The same in order of their names.
    in_order: Vec<Arc<Shelved>>,
}

impl Shelf {
    pub(crate) fn new(registry: Arc<Registry>, plans: HashMap<String, Arc<Shelved>>) -> Shelf {
        // Sorted here and not by those who ask: with thousands of plans it would keep an event loop busy for milliseconds.
        let mut in_order: Vec<_> = plans.values().cloned().collect();
        in_order.sort_by(|a, b| a.name.cmp(&b.name));
        Shelf { registry, plans, in_order }
    }

    pub(crate) fn empty(registry: Arc<Registry>) -> Shelf {
        Shelf::new(registry, HashMap::new())
    }

    /// With some plans exchanged, added or, where there is `None`, taken away.
    pub(crate) fn with(
        &self,
        registry: Arc<Registry>,
        changed: impl IntoIterator<Item = (String, Option<Arc<Shelved>>)>,
    ) -> Shelf {
        let mut plans = self.plans.clone();
        for (name, plan) in changed {
            match plan {
                Some(plan) => drop(plans.insert(name, plan)),
                None => drop(plans.remove(&name)),
            }
        }
        Shelf::new(registry, plans)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Shelved>> {
        self.plans.get(name)
    }

    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.plans.keys().map(String::as_str))
    }

    /// In order of their names.
    pub(crate) fn list(&self) -> &[Arc<Shelved>] {
        &self.in_order
    }
}

/// One plan of the folder.
pub(crate) struct Shelved {
    pub(crate) name: String,
    pub(crate) file: String,
    /// The newest good version; `None` as long as there was none.
    pub(crate) good: Option<Good>,
    /// Why the file as it is now is not what is served.
    pub(crate) problem: Option<Problem>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) standing: Arc<Standing>,
}

/// A version that can run.
#[derive(Clone)]
pub(crate) struct Good {
    pub(crate) linked: Arc<Linked>,
    /// Of the artifact's bytes, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) loaded_at: String,
    /// How many good versions there have been, with this one.
    pub(crate) version: u64,
}

/// A version that is not served.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) at: String,
    pub(crate) message: String,
    /// A JSON array, as `rankd check --json` has it.
    pub(crate) diagnostics: String,
}

/// What stays when a plan's version changes.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) metrics: PlanMetrics,
    under_way: AtomicUsize,
    limit: Option<usize>,
}

impl Standing {
    pub(crate) fn new(loops: usize, limit: Option<usize>) -> Standing {
        Standing { metrics: PlanMetrics::new(loops), under_way: AtomicUsize::new(0), limit }
    }

    /// Counts a run in, unless so many are under way already.
    pub(crate) fn enter(self: &Arc<Standing>) -> Option<UnderWay> {
        let Some(limit) = self.limit else { return Some(UnderWay(None)) };
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= limit {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(UnderWay(Some(self.clone())))
    }
}

/// A run of a plan that has a limit; counted out when dropped.
pub(crate) struct UnderWay(Option<Arc<Standing>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(standing) = &self.0 {
            standing.under_way.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
