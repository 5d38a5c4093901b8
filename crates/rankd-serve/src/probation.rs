//! The new versions of plans that are being watched, and how versions did in their last ten minutes. One thread looks a few times a second;
//! the loops only count. What is decided is in [`crate::verdict`], and what follows from it in [`crate::switch_version`].

use crate::catalog::{Arrival, Catalog, GoodVersion, VersionBefore};
use crate::verdict::{Answers, Verdict, decide};
use crate::version_counts::VersionCounts;
use rankd_engine::clock::Instant;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What a version before is judged by.
const WINDOW: Duration = Duration::from_secs(600);
/// How often counts are noted for that.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// Every plan's version in service.
#[derive(Default)]
pub(crate) struct Probations {
    plans: HashMap<String, WatchedPlan>,
    /// Those whose version is new.
    on_probation: BTreeSet<String>,
    seen: Option<Arc<Catalog>>,
    noted: Option<Instant>,
}

/// What has been decided about a version.
#[derive(Debug)]
pub(crate) struct VersionDecision {
    pub(crate) plan: String,
    pub(crate) sha256: String,
    pub(crate) counts: Arc<VersionCounts>,
    /// The version before.
    pub(crate) before_sha256: String,
    pub(crate) new: Answers,
    pub(crate) before: Answers,
    pub(crate) verdict: Verdict,
}

struct WatchedPlan {
    sha256: String,
    counts: Arc<VersionCounts>,
    /// What its digest had been counted with when it came into service.
    from: Answers,
    window: Window,
    probation: Option<Probation>,
}

/// A new version, and the one that it is compared with.
#[derive(Clone)]
struct Probation {
    before_sha256: String,
    before: Answers,
    first_answer: Option<Instant>,
}

impl Probation {
    fn against(before: &VersionBefore) -> Probation {
        Probation {
            before_sha256: before.sha256.clone(),
            before: before.counts.total().since(before.counted_from),
            first_answer: None,
        }
    }
}

impl Probations {
    /// Looks at what was counted since the last time. Gives what is decided now; each version is decided about once.
    pub(crate) fn look(&mut self, catalog: &Arc<Catalog>, now: Instant) -> Vec<VersionDecision> {
        if !self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, catalog)) {
            self.notice(catalog, now);
            self.seen = Some(catalog.clone());
        }
        if self.noted.is_none_or(|noted| now >= noted + NOTED_EVERY) {
            self.noted = Some(now);
            self.plans.values_mut().for_each(|plan| plan.window.note(now, plan.counts.total()));
        }
        let mut decided = Vec::new();
        for name in std::mem::take(&mut self.on_probation) {
            let Some(plan) = self.plans.get_mut(&name) else { continue };
            match plan.decide(&name, now) {
                Some(decision) => decided.push(decision),
                None => drop(self.on_probation.insert(name)),
            }
        }
        decided
    }

    /// Takes in which versions are in service now.
    fn notice(&mut self, catalog: &Catalog, now: Instant) {
        self.plans.retain(|name, _| catalog.get(name).is_some());
        self.on_probation.retain(|name| catalog.get(name).is_some());
        for plan in catalog.list() {
            let Some(good) = &plan.good else { continue };
            let Some(counts) = &good.counts else { continue };
            match self.plans.get(&plan.name) {
                // The same version, perhaps made again with another registry.
                Some(known) if Arc::ptr_eq(&known.counts, counts) => {}
                known => {
                    let before = match known {
                        Some(known) => Some(known.as_measure(now)),
                        // It may have been replaced before anybody looked at it.
                        None => good.before.as_ref().map(Probation::against),
                    };
                    let is_watched =
                        |before: &Probation| good.arrival == Arrival::File && before.before_sha256 != good.sha256;
                    let probation = before.filter(is_watched);
                    if probation.is_some() {
                        counts.set_verdict("watched since it came into service".to_owned());
                        self.on_probation.insert(plan.name.clone());
                    } else {
                        self.on_probation.remove(&plan.name);
                    }
                    self.plans.insert(plan.name.clone(), WatchedPlan::new(good, counts, probation, now));
                }
            }
        }
    }
}

impl WatchedPlan {
    fn new(good: &GoodVersion, counts: &Arc<VersionCounts>, probation: Option<Probation>, now: Instant) -> WatchedPlan {
        WatchedPlan {
            sha256: good.sha256.clone(),
            counts: counts.clone(),
            from: good.counted_from,
            window: Window::since(now, good.counted_from),
            probation,
        }
    }

    /// What the version that takes this one's place is compared with.
    fn as_measure(&self, now: Instant) -> Probation {
        match &self.probation {
            // A version that has not been watched to the end is no measure for the next one.
            Some(open) => Probation { first_answer: None, ..open.clone() },
            None => Probation {
                before_sha256: self.sha256.clone(),
                before: self.window.answers(now, self.counts.total()),
                first_answer: None,
            },
        }
    }

    fn decide(&mut self, name: &str, now: Instant) -> Option<VersionDecision> {
        let new = self.counts.total().since(self.from);
        let probation = self.probation.as_mut()?;
        if new.all == 0 {
            return None;
        }
        let first = *probation.first_answer.get_or_insert(now);
        let verdict = decide(new, probation.before, now.saturating_duration_since(first));
        if verdict == Verdict::Open {
            return None;
        }
        let Probation { before_sha256, before, .. } = self.probation.take()?;
        let (plan, sha256, counts) = (name.to_owned(), self.sha256.clone(), self.counts.clone());
        Some(VersionDecision { plan, sha256, counts, before_sha256, new, before, verdict })
    }
}

/// Counts as they were, a minute apart.
struct Window(VecDeque<(Instant, Answers)>);

impl Window {
    fn since(now: Instant, counted: Answers) -> Window {
        Window([(now, counted)].into())
    }

    fn note(&mut self, now: Instant, counted: Answers) {
        self.0.push_back((now, counted));
        self.trim(now);
    }

    /// Keeps one from before the window, which it begins with.
    fn trim(&mut self, now: Instant) {
        while self.0.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= WINDOW) {
            self.0.pop_front();
        }
    }

    /// What was counted in the last ten minutes, or a little more.
    fn answers(&self, now: Instant, counted: Answers) -> Answers {
        let is_within = |(at, _): &&(Instant, Answers)| now.saturating_duration_since(*at) <= WINDOW + NOTED_EVERY;
        let earliest = self.0.iter().find(is_within).map_or(counted, |(_, earlier)| *earlier);
        counted.since(earliest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogBase, PlanCounters, ServedPlan};
    use crate::faults::{plan, tasks};
    use crate::reload_experiments::ServedExperiments;
    use crate::version_history::{KeptVersion, VersionHistory};
    use rankd_column::{Batch, RowSet};
    use rankd_engine::{Linked, Outcome, RunError, clock, codes};
    use rankd_plan::Registry;

    /// Versions of one plan that come into service one after the other.
    struct Stage {
        registry: Arc<Registry>,
        linked: Arc<Linked>,
        catalog: Arc<Catalog>,
        kept: HashMap<&'static str, KeptVersion>,
        now: Instant,
        probations: Probations,
    }

    impl Stage {
        fn new() -> Stage {
            let (registry, _, linked) = plan(&tasks());
            let registry = Arc::new(registry);
            let experiments = ServedExperiments::new(Arc::default(), None);
            let base =
                CatalogBase { registry: registry.clone(), texts: Arc::default(), experiments, shadows: Arc::default() };
            Stage {
                catalog: Arc::new(Catalog::empty(base)),
                registry,
                linked: Arc::new(linked),
                kept: HashMap::new(),
                now: clock::now(),
                probations: Probations::default(),
            }
        }

        fn serve(&mut self, sha256: &'static str, arrival: Arrival) {
            self.serve_unseen(sha256, arrival);
            assert!(self.look(0).is_empty());
        }

        /// The same, and nobody looks at it.
        fn serve_unseen(&mut self, sha256: &'static str, arrival: Arrival) {
            let kept = self.kept.entry(sha256).or_insert_with(|| KeptVersion {
                sha256: sha256.to_owned(),
                artifact: None,
                since: String::new(),
                counts: Some(Arc::new(VersionCounts::new(1))),
                rolled_back: None,
            });
            let before = self.catalog.get("fuse").and_then(|plan| plan.good.clone());
            let (_, plan, _) = plan(&tasks());
            let served = ServedPlan {
                name: "fuse".to_owned(),
                file: String::new(),
                good: Some(GoodVersion::new(plan, self.linked.clone(), None, kept, before.as_ref(), arrival)),
                problem: None,
                history: VersionHistory::default(),
                registry: self.registry.clone(),
                counters: Arc::new(PlanCounters::new(1, None)),
            };
            let changed = [("fuse".to_owned(), Some(Arc::new(served)))];
            self.catalog = Arc::new(self.catalog.with(self.catalog.base(), changed));
        }

        /// So many answers, of which so many are bad, then a look after so many seconds.
        fn answer(&mut self, all: u64, bad: u64, seconds: u64) -> Vec<(String, Verdict, Answers, Answers)> {
            self.answer_unseen(all, bad);
            self.look(seconds)
        }

        fn answer_unseen(&self, all: u64, bad: u64) {
            let good = self.catalog.get("fuse").and_then(|plan| plan.good.clone()).expect("it is served");
            let counts = good.counts.expect("it is counted");
            let bug = || Outcome::failed(RunError::new(codes::BUG, ""));
            let rows = || Outcome { result: Ok(vec![RowSet::new(Batch::new(vec![1]))]), ..bug() };
            (0..all).for_each(|at| counts.count(0, &self.linked, &if at < bad { bug() } else { rows() }));
        }

        fn look(&mut self, seconds: u64) -> Vec<(String, Verdict, Answers, Answers)> {
            self.now += Duration::from_secs(seconds);
            let decided = self.probations.look(&self.catalog, self.now);
            decided.into_iter().map(|one| (one.before_sha256, one.verdict, one.new, one.before)).collect()
        }
    }

    fn answers(all: u64, bad: u64) -> Answers {
        Answers { all, bad }
    }

    #[test]
    fn a_new_version_is_compared_with_the_last_ten_minutes_of_the_one_before() {
        let mut stage = Stage::new();
        stage.serve("a", Arrival::File);
        assert!(stage.answer(1000, 1000, 1).is_empty(), "there is nothing to compare a first version with");
        (0..15).for_each(|_| assert!(stage.answer(100, 1, 60).is_empty()));
        stage.serve("b", Arrival::File);
        assert!(stage.answer(199, 199, 1).is_empty());
        let decided = stage.answer(1, 1, 1);
        let [(before_sha256, verdict, new, before)] = &decided[..] else { panic!("{decided:?}") };
        assert_eq!((&**before_sha256, *verdict, *new), ("a", Verdict::RollBack, answers(200, 200)));
        // The bad minute at its start is over, and ten to eleven minutes count.
        assert!((1000..=1100).contains(&before.all) && before.bad * 100 == before.all, "{before:?}");
        assert!(stage.answer(500, 500, 1).is_empty(), "it is decided about once");
    }

    #[test]
    fn the_minute_begins_with_the_first_answer_and_ends_without_a_verdict_if_there_are_few() {
        let mut stage = Stage::new();
        stage.serve("a", Arrival::File);
        stage.answer(300, 0, 1);
        stage.serve("b", Arrival::File);
        assert!(stage.look(3600).is_empty());
        assert!(stage.answer(10, 10, 30).is_empty());
        assert!(stage.answer(10, 10, 59).is_empty());
        assert_eq!(stage.look(1), [("a".to_owned(), Verdict::TooFew, answers(20, 20), answers(300, 0))]);
    }

    #[test]
    fn a_version_that_was_not_watched_to_the_end_is_no_measure() {
        let mut stage = Stage::new();
        stage.serve("a", Arrival::File);
        stage.answer(300, 0, 1);
        stage.serve("b", Arrival::File);
        stage.answer(150, 150, 1);
        stage.serve("c", Arrival::File);
        let decided = stage.answer(200, 200, 1);
        assert_eq!(decided, [("a".to_owned(), Verdict::RollBack, answers(200, 200), answers(300, 0))]);
    }

    #[test]
    fn a_first_version_that_was_replaced_before_a_look_is_what_the_next_is_compared_with() {
        let mut stage = Stage::new();
        stage.serve_unseen("a", Arrival::File);
        stage.answer_unseen(300, 3);
        stage.serve_unseen("b", Arrival::File);
        // Made again with another registry, before anybody looked: still the same two.
        stage.answer_unseen(100, 100);
        stage.serve("b", Arrival::File);
        let decided = stage.answer(100, 100, 1);
        assert_eq!(decided, [("a".to_owned(), Verdict::RollBack, answers(200, 200), answers(300, 3))]);

        let mut stage = Stage::new();
        stage.serve_unseen("a", Arrival::File);
        stage.answer_unseen(300, 3);
        stage.serve("b", Arrival::Switched);
        assert!(stage.answer(300, 300, 1).is_empty() && stage.look(120).is_empty(), "an operator chose it");
    }

    #[test]
    fn what_operators_choose_is_not_watched_and_a_version_made_again_goes_on() {
        let mut stage = Stage::new();
        stage.serve("a", Arrival::File);
        stage.answer(300, 0, 1);
        stage.serve("b", Arrival::Switched);
        assert!(stage.answer(300, 300, 1).is_empty() && stage.look(120).is_empty());
        stage.serve("a", Arrival::Switched);
        stage.answer(250, 0, 1);
        stage.serve("c", Arrival::File);
        assert!(stage.answer(100, 100, 1).is_empty());
        stage.serve("c", Arrival::File);
        let decided = stage.answer(100, 100, 1);
        // Of the version before only what it did since it came back.
        assert_eq!(decided, [("a".to_owned(), Verdict::RollBack, answers(200, 200), answers(250, 0))]);
        // Back to the version that it is compared with: there is nothing to watch.
        stage.serve("a", Arrival::File);
        assert!(stage.answer(300, 300, 120).is_empty());
    }
}
