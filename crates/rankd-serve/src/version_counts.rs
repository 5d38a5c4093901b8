//! What became of the answers of one version of a plan, counted on the loops. Nothing here decides anything.

use crate::metrics::Count;
use crate::verdict::Answers;
use arc_swap::ArcSwapOption;
use rankd_engine::degraded::Reason;
use rankd_engine::{ErrorKind, Linked, Outcome, codes};
use std::sync::Arc;

/// The counters of one version. They stay with its digest when it leaves service and comes back.
#[derive(Debug)]
pub(crate) struct VersionCounts {
    /// By loop: only that loop writes them.
    loops: Box<[LoopCounts]>,
    /// What watching it came to, for operators.
    verdict: ArcSwapOption<String>,
}

#[derive(Debug, Default)]
struct LoopCounts {
    answers: Count,
    bad: Count,
}

impl VersionCounts {
    pub(crate) fn new(loops: usize) -> VersionCounts {
        VersionCounts { loops: (0..loops).map(|_| LoopCounts::default()).collect(), verdict: ArcSwapOption::empty() }
    }

    /// Counts a run that is over, on its loop.
    pub(crate) fn count(&self, number: usize, plan: &Linked, outcome: &Outcome) {
        let Some(counts) = self.loops.get(number) else { return };
        match Judgement::of(plan, outcome) {
            Judgement::Good => counts.answers.add(1),
            Judgement::Bad => {
                counts.answers.add(1);
                counts.bad.add(1);
            }
            Judgement::NotCounted => {}
        }
    }

    /// What all loops have counted.
    pub(crate) fn total(&self) -> Answers {
        // The bad ones first: each of them has been counted among the answers before.
        let bad = self.loops.iter().map(|one| one.bad.get()).sum();
        let all = self.loops.iter().map(|one| one.answers.get()).sum();
        Answers { all, bad }
    }

    pub(crate) fn verdict(&self) -> Option<Arc<String>> {
        self.verdict.load_full()
    }

    pub(crate) fn set_verdict(&self, verdict: String) {
        self.verdict.store(Some(Arc::new(verdict)));
    }
}

/// What an answer says about its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Good,
    Bad,
    /// It is about something else: a store, the caller, or how busy the server is.
    NotCounted,
}

impl Judgement {
    fn of(plan: &Linked, outcome: &Outcome) -> Judgement {
        let error = match &outcome.result {
            Ok(_) if outcome.degraded.iter().any(|one| one.reason == Reason::Upstream) => return Judgement::NotCounted,
            Ok(outputs) if outputs.iter().all(|rows| rows.is_empty()) => return Judgement::Bad,
            Ok(_) => return Judgement::Good,
            Err(error) => error,
        };
        match error.code.kind {
            ErrorKind::Task | ErrorKind::Bug => Judgement::Bad,
            // A node that waited for a store ran out of time because of the store; one that could not even start did not wait for any.
            ErrorKind::Timeout => {
                let is_fetch = error.node.as_ref().is_some_and(|node| plan.is_fetch(&node.id));
                let is_its_own = !is_fetch || error.code == codes::TOO_LATE_TO_START;
                if is_its_own { Judgement::Bad } else { Judgement::NotCounted }
            }
            ErrorKind::BadRequest
            | ErrorKind::UnknownPlan
            | ErrorKind::InvalidPlan
            | ErrorKind::Upstream
            | ErrorKind::Overloaded
            | ErrorKind::Cancelled => Judgement::NotCounted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{plan, tasks};
    use rankd_column::{Batch, RowSet};
    use rankd_engine::RunError;
    use rankd_engine::degraded::{Degraded, StandIn};
    use rankd_engine::error::FailedNode;
    use rankd_plan::plan::Substitute;
    use std::time::Duration;

    fn failed(code: &'static rankd_engine::ErrorCode, node: &str) -> Outcome {
        let node = FailedNode { id: node.to_owned(), op: "", at: None, source: None };
        Outcome::failed(RunError { node: Some(Box::new(node)), ..RunError::new(code, "") })
    }

    fn rows(counts: &[usize], reasons: &[Reason]) -> Outcome {
        let degraded = |reason: &Reason| Degraded {
            node: 0,
            reason: *reason,
            code: None,
            fallback: StandIn::Substitute(Substitute::NoRows),
            after: Duration::ZERO,
        };
        let result = counts.iter().map(|count| RowSet::new(Batch::new((1..=*count as i64).collect())));
        Outcome {
            result: Ok(result.collect()),
            degraded: reasons.iter().map(degraded).collect(),
            ..Outcome::failed(RunError::new(codes::BUG, ""))
        }
    }

    #[test]
    fn only_what_the_version_itself_did_is_counted() {
        let (_, _, plan) = plan(&tasks());
        // `r` reads, `w` computes.
        for (outcome, expected) in [
            (rows(&[1], &[]), Judgement::Good),
            (rows(&[0, 1], &[]), Judgement::Good),
            (rows(&[0], &[]), Judgement::Bad),
            (rows(&[0, 0], &[Reason::Timeout]), Judgement::Bad),
            (rows(&[1], &[Reason::NoTime]), Judgement::Good),
            (rows(&[1], &[Reason::Upstream]), Judgement::NotCounted),
            (rows(&[0], &[Reason::Timeout, Reason::Upstream]), Judgement::NotCounted),
            (failed(codes::INT_OVERFLOW, "w"), Judgement::Bad),
            (failed(codes::BUG, "w"), Judgement::Bad),
            (failed(codes::NODE_TIMEOUT, "w"), Judgement::Bad),
            (failed(codes::REQUEST_DEADLINE, "w"), Judgement::Bad),
            (failed(codes::REQUEST_DEADLINE, "r"), Judgement::NotCounted),
            (failed(codes::TOO_LATE_TO_START, "r"), Judgement::Bad),
            (failed(codes::UNREACHABLE, "r"), Judgement::NotCounted),
            (failed(codes::OVERLOADED, "r"), Judgement::NotCounted),
            (failed(codes::CANCELLED, "w"), Judgement::NotCounted),
            (failed(codes::BAD_PATTERN, "w"), Judgement::NotCounted),
        ] {
            assert_eq!(Judgement::of(&plan, &outcome), expected, "{:?} {:?}", outcome.result, outcome.degraded);
        }
    }

    #[test]
    fn the_loops_are_added_up() {
        let (_, _, plan) = plan(&tasks());
        let counts = VersionCounts::new(2);
        counts.count(0, &plan, &rows(&[1], &[]));
        counts.count(1, &plan, &rows(&[0], &[]));
        counts.count(1, &plan, &failed(codes::OVERLOADED, "r"));
        assert_eq!(counts.total(), Answers { all: 2, bad: 1 });
    }
}
