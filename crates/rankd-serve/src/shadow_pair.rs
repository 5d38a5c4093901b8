//! A plan and its shadow: which share of the plan's requests the shadow runs for, and what is counted of that. Nothing here runs.

use crate::metrics::Count;
use rankd_column::RowSet;
use rankd_edge::diff::lists::{Paired, RBO_P, ranked_rows};
use rankd_engine::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How far down lists are compared.
pub(crate) const OVERLAP_ROWS: usize = 20;

/// A plan that runs beside another one for a share of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowSettings {
    /// The plan that answers.
    pub plan: String,
    /// The plan that runs beside it.
    pub shadow: String,
    /// For which share of the requests, from 0 to 1.
    pub share: f64,
}

/// A plan and its shadow, for as long as the process lives.
#[derive(Debug)]
pub(crate) struct ShadowPair {
    pub(crate) settings: ShadowSettings,
    /// The share, as a part of all numbers of 64 bits.
    drawn_max: u64,
    pub(crate) counts: ShadowCounts,
}

impl ShadowPair {
    pub(crate) fn new(settings: ShadowSettings) -> ShadowPair {
        // The largest number is that of the whole share: a conversion stops there.
        let drawn_max = (settings.share * u64::MAX as f64) as u64;
        ShadowPair { settings, drawn_max, counts: ShadowCounts::new() }
    }

    /// Whether a request is one of the share, for which this number was drawn.
    pub(crate) fn takes(&self, drawn: u64) -> bool {
        drawn <= self.drawn_max
    }
}

/// Why a request of the share has no shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// As many wait as may wait.
    Queue,
    /// What waits takes as many bytes as it may, or the run has read more than is kept of one.
    Memory,
    /// The loop is pressed.
    Pressure,
    /// The plan itself has failed or answered with less, so there is nothing to compare with.
    Answer,
    /// The shadow cannot run: `/plans` says why.
    Unfit,
    /// A task of an earlier shadow has not given its thread back.
    Stuck,
}

impl DropReason {
    pub(crate) const ALL: [DropReason; 6] = [
        DropReason::Queue,
        DropReason::Memory,
        DropReason::Pressure,
        DropReason::Answer,
        DropReason::Unfit,
        DropReason::Stuck,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            DropReason::Queue => "queue",
            DropReason::Memory => "memory",
            DropReason::Pressure => "pressure",
            DropReason::Answer => "answer",
            DropReason::Unfit => "unfit",
            DropReason::Stuck => "stuck",
        }
    }
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShadowResult {
    /// The same ids in the same order.
    Same,
    Differs,
    /// It has taken a fallback. It is not compared: that would tell about a store.
    Degraded,
    Failed,
}

impl ShadowResult {
    pub(crate) const ALL: [ShadowResult; 4] =
        [ShadowResult::Same, ShadowResult::Differs, ShadowResult::Degraded, ShadowResult::Failed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            ShadowResult::Same => "same",
            ShadowResult::Differs => "differs",
            ShadowResult::Degraded => "degraded",
            ShadowResult::Failed => "failed",
        }
    }
}

/// What is counted of a pair. All but what is dropped is written by the thread of the shadows alone.
#[derive(Debug)]
pub(crate) struct ShadowCounts {
    dropped: [AtomicU64; DropReason::ALL.len()],
    results: [Count; ShadowResult::ALL.len()],
    failed: [Count; ErrorKind::ALL.len()],
    pub(crate) reads_shared: Count,
    pub(crate) reads_live: Count,
    pub(crate) overlap: Distribution,
    pub(crate) rbo: Distribution,
    pub(crate) displacement: Distribution,
    last_failure: Mutex<Option<String>>,
}

impl ShadowCounts {
    fn new() -> ShadowCounts {
        ShadowCounts {
            dropped: Default::default(),
            results: Default::default(),
            failed: Default::default(),
            reads_shared: Count::default(),
            reads_live: Count::default(),
            overlap: Distribution::new(PARTS),
            rbo: Distribution::new(PARTS),
            displacement: Distribution::new(PLACES),
            last_failure: Mutex::default(),
        }
    }

    pub(crate) fn drop_one(&self, reason: DropReason) {
        self.dropped[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn result(&self, result: ShadowResult) -> u64 {
        self.results[result as usize].get()
    }

    pub(crate) fn failed(&self, kind: ErrorKind) -> u64 {
        self.failed[kind as usize].get()
    }

    /// The last failure of a run, in words.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn fail(&self, kind: ErrorKind, message: String) {
        self.results[ShadowResult::Failed as usize].add(1);
        self.failed[kind as usize].add(1);
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    pub(crate) fn degrade(&self) {
        self.results[ShadowResult::Degraded as usize].add(1);
    }

    /// Compares the rows of both plans, each output by itself.
    pub(crate) fn compare(&self, of_plan: &[RowSet], of_shadow: &[RowSet]) {
        let mut result = ShadowResult::Same;
        for at in 0..of_plan.len().max(of_shadow.len()) {
            // An output that only one of them has is empty in the other.
            let rows = |outputs: &[RowSet]| outputs.get(at).map_or(Vec::new(), |rows| ranked_rows(rows, None, None));
            let paired = Paired::new(&rows(of_plan), &rows(of_shadow));
            self.overlap.add(paired.overlap(OVERLAP_ROWS));
            self.rbo.add(paired.rbo(RBO_P));
            if let Some(places) = paired.displacement() {
                self.displacement.add(places);
            }
            if !paired.is_same() {
                result = ShadowResult::Differs;
            }
        }
        self.results[result as usize].add(1);
    }
}

/// Upper bounds of the buckets of parts, and of places.
const PARTS: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0];
const PLACES: &[f64] = &[0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// Numbers by buckets. One thread writes it.
#[derive(Debug)]
pub(crate) struct Distribution {
    bounds: &'static [f64],
    /// The last one is for what is beyond all bounds.
    buckets: Box<[Count]>,
    /// The bits of a float.
    sum: AtomicU64,
}

impl Distribution {
    fn new(bounds: &'static [f64]) -> Distribution {
        let buckets = (0..=bounds.len()).map(|_| Count::default()).collect();
        Distribution { bounds, buckets, sum: AtomicU64::default() }
    }

    fn add(&self, value: f64) {
        self.buckets[self.bounds.partition_point(|bound| *bound < value)].add(1);
        self.sum.store((self.sum() + value).to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Ordering::Relaxed))
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().map(Count::get).sum()
    }

    /// By bound, as it is written: how many are not larger.
    pub(crate) fn cumulated(&self) -> impl Iterator<Item = (String, u64)> {
        let bounds = self.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        bounds.zip(self.buckets.iter().scan(0, |all, bucket| {
            *all += bucket.get();
            Some(*all)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::Batch;

    fn rows(ids: &[i64]) -> RowSet {
        RowSet::new(Batch::new(ids.to_vec()))
    }

    fn pair(share: f64) -> ShadowPair {
        ShadowPair::new(ShadowSettings { plan: "a".to_owned(), shadow: "b".to_owned(), share })
    }

    #[test]
    fn a_share_is_that_part_of_all_numbers() {
        assert!(pair(1.0).takes(u64::MAX) && pair(1.0).takes(0));
        let half = pair(0.5);
        assert!(half.takes(u64::MAX / 2 - 2_000) && !half.takes(u64::MAX / 2 + 2_000));
        assert!(!pair(0.001).takes(u64::MAX / 999) && pair(0.001).takes(u64::MAX / 1_001));
    }

    #[test]
    fn what_is_counted_is_what_was_computed_by_hand() {
        let counts = ShadowCounts::new();
        let seen = |of: &Distribution| (of.sum(), of.count());
        // 2 and 1 change places, 4 leaves, 5 enters: 3 of 4 are in both, and two of these have moved by one place.
        counts.compare(&[rows(&[1, 2, 3, 4])], &[rows(&[2, 1, 3, 5])]);
        assert_eq!((seen(&counts.overlap), seen(&counts.displacement)), ((0.75, 1), (2.0 / 3.0, 1)));
        assert_eq!(counts.overlap.buckets[8].get(), 1, "0.7 < 0.75 <= 0.8");
        assert_eq!((counts.result(ShadowResult::Differs), counts.result(ShadowResult::Same)), (1, 0));
        // The second output is one that only the shadow has.
        counts.compare(&[rows(&[1])], &[rows(&[1]), rows(&[7])]);
        assert_eq!(seen(&counts.overlap), (1.75, 3));
        assert_eq!((counts.overlap.buckets[0].get(), counts.overlap.buckets[11].get()), (1, 1));
        assert_eq!(counts.result(ShadowResult::Differs), 2);
        counts.compare(&[rows(&[])], &[rows(&[])]);
        assert_eq!((seen(&counts.overlap), counts.result(ShadowResult::Same)), ((2.75, 4), 1));
        assert_eq!(counts.displacement.count(), 2, "two empty lists have no places");
        let last = counts.overlap.cumulated().last();
        assert_eq!(last, Some(("+Inf".to_owned(), 4)));
    }
}
