//! How many requests were in each arm of the experiments. The number of series is bounded, because anybody who edits the experiments adds some.

use rankd_plan::registry::Experiments;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many series there are at most, the one for all other arms included.
const SERIES_MAX: usize = 1_000;
/// What that one has in place of names; no experiment is called so.
const OTHER: &str = "_other";

/// The counters of the experiments in use.
#[derive(Debug)]
pub(crate) struct ArmCounts {
    experiments: Arc<Experiments>,
    /// By the number of the arm, as far as there are series. Versions share them, so that no count is lost or goes back.
    arms: Vec<Arc<AtomicU64>>,
    other: Arc<AtomicU64>,
}

impl ArmCounts {
    /// For experiments that come after others, if there were any.
    pub(crate) fn new(experiments: Arc<Experiments>, before: Option<&ArmCounts>) -> ArmCounts {
        let known: HashMap<_, _> = before.iter().flat_map(|before| before.names().zip(&before.arms)).collect();
        let own = names(&experiments).take(SERIES_MAX - 1);
        let arms = own.map(|names| known.get(&names).map(|count| Arc::clone(count)).unwrap_or_default()).collect();
        let other = before.map(|before| before.other.clone()).unwrap_or_default();
        ArmCounts { experiments, arms, other }
    }

    pub(crate) fn add(&self, arm: u32) {
        self.arms.get(arm as usize).unwrap_or(&self.other).fetch_add(1, Ordering::Relaxed);
    }

    /// The names of experiment and arm, and how many requests were in it. All others together are the last, where there are any.
    pub(crate) fn all(&self) -> impl Iterator<Item = ((&str, &str), u64)> {
        let has_others = self.experiments.arms() as usize > self.arms.len();
        let other = has_others.then_some(((OTHER, OTHER), &self.other));
        self.names().zip(&self.arms).chain(other).map(|(names, count)| (names, count.load(Ordering::Relaxed)))
    }

    fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        names(&self.experiments)
    }
}

/// In the order of their numbers.
fn names(experiments: &Experiments) -> impl Iterator<Item = (&str, &str)> {
    experiments.list().iter().flat_map(|one| one.arms.iter().map(|arm| (&*one.name, &*arm.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_plan::{Diagnostics, Registry};

    fn experiments(count: usize) -> Arc<Experiments> {
        let mut text = "[[layer]]\nname = \"l\"\n".to_owned();
        for at in 0..count {
            text += &format!("[[experiment]]\nname = \"e{at}\"\nlayer = \"l\"\nfrom = 0\nto = 0\n");
            text += "arm = [{ name = \"a\" }, { name = \"b\" }]\n";
        }
        let mut found = Diagnostics::default();
        let experiments = Experiments::parse(&text, &Registry::default(), &mut found);
        assert!(found.list().is_empty(), "{:?}", found.list());
        Arc::new(experiments)
    }

    #[test]
    fn counts_stay_with_their_arms_when_experiments_change() {
        let first = ArmCounts::new(experiments(1), None);
        first.add(1);
        let second = ArmCounts::new(experiments(2), Some(&first));
        second.add(1);
        second.add(2);
        let all: Vec<_> = second.all().collect();
        assert_eq!(all, [(("e0", "a"), 0), (("e0", "b"), 2), (("e1", "a"), 1), (("e1", "b"), 0)]);
    }

    #[test]
    fn there_are_never_more_series_than_are_allowed() {
        let counts = ArmCounts::new(experiments(3_000), None);
        (0..6_000).for_each(|arm| counts.add(arm));
        let all: Vec<_> = counts.all().collect();
        assert_eq!((all.len(), all.last().copied()), (SERIES_MAX, Some(((OTHER, OTHER), 6_000 - 999))));
    }
}
