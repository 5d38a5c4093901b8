//! How plans are doing, for the console: sums over ten seconds, a quarter of an hour of them for each plan, in about 3 KB.
//!
//! They are differences of the counters that the metrics have anyway, taken by the clock: no request does anything for them.

use super::quantile::quantile;
use super::{SLOT, SLOTS};
use crate::catalog::{Catalog, PlanCounters};
use crate::metrics::BOUNDS;
use crate::request_outcome::RequestOutcome;
use crate::time_slice::TimeSlice;
use rankd_engine::clock::Instant;
use rankd_plan::json::Writer;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Times are told of the last minute, which is so many slots.
const MINUTE: usize = 6;
const BUCKETS: usize = BOUNDS.len() + 1;

/// The counters of one plan at one moment.
#[derive(Clone, Debug, Default)]
struct Totals {
    requests: u64,
    degraded: u64,
    failed: u64,
    buckets: [u64; BUCKETS],
}

/// What became of the requests of one slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    requests: u32,
    degraded: u32,
    failed: u32,
    p50_us: u32,
    p99_us: u32,
}

/// One plan.
#[derive(Debug, Default)]
struct Ring {
    /// At the ends of the last slots, the newest last.
    ends: VecDeque<Totals>,
    slots: VecDeque<Slot>,
}

#[derive(Default)]
struct Rings {
    by_plan: HashMap<String, Ring>,
    /// The catalog that was last looked at, and how many there were. While it is kept, no other one has its address.
    catalog: Option<Arc<Catalog>>,
    catalogs: u64,
    /// How many slots have ended, and when the last one did.
    slot: u64,
    ended: Option<Instant>,
}

/// All plans.
pub(crate) struct PlanFigures {
    since: Instant,
    rings: Mutex<Rings>,
}

/// What a page has seen already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// The slots before this one.
    pub(crate) slot: u64,
    /// This catalog.
    pub(crate) catalog: u64,
}

impl PlanFigures {
    pub(crate) fn new(now: Instant) -> PlanFigures {
        PlanFigures { since: now, rings: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a slot for all plans, in time slices, and forgets plans that are gone.
    pub(crate) async fn end_slot(&self, catalog: &Arc<Catalog>, now: Instant) {
        let mut slice = TimeSlice::begin();
        {
            let mut rings = self.lock();
            rings.by_plan.retain(|name, _| catalog.get(name).is_some());
            rings.slot += 1;
            rings.ended = Some(now);
        }
        for plan in catalog.list() {
            self.lock().by_plan.entry(plan.name.clone()).or_default().end_slot(Totals::of(&plan.counters));
            slice.yield_if_over().await;
        }
    }

    /// Where the figures are now: for the page's next question.
    pub(crate) fn now(&self, catalog: &Arc<Catalog>) -> Seen {
        let mut rings = self.lock();
        if !rings.catalog.as_ref().is_some_and(|known| Arc::ptr_eq(known, catalog)) {
            rings.catalog = Some(catalog.clone());
            rings.catalogs += 1;
        }
        Seen { slot: rings.slot, catalog: rings.catalogs }
    }

    /// Writes the figures of a plan: those of the last minute, and the slots that the page has not seen. False where there is nothing that the
    /// page does not know.
    pub(crate) fn write(&self, name: &str, counters: &PlanCounters, seen: Seen, now: Instant, w: &mut Writer) -> bool {
        let rings = self.lock();
        let current = Totals::of(counters);
        let nothing = Ring::default();
        let ring = rings.by_plan.get(name).unwrap_or(&nothing);
        let zero = Totals::default();
        let before = ring.ends.front().unwrap_or(&zero);
        let last = current.since(before);
        // Before the first slot has ended, counting began with the console.
        let slots_before = ring.ends.len().saturating_sub(1) as u32;
        let began =
            rings.ended.filter(|_| !ring.ends.is_empty()).map_or(self.since, |ended| ended - SLOT * slots_before);
        let seconds = now.saturating_duration_since(began).as_secs_f64().max(0.001);
        let unseen = (rings.slot.saturating_sub(seen.slot) as usize).min(ring.slots.len());
        let news = ring.slots.range(ring.slots.len() - unseen..);
        if last.requests == 0 && unseen == 0 && seen.catalog > 0 {
            return false;
        }
        w.field("now").object(|w| {
            w.field("requests_per_s").float(last.requests as f64 / seconds);
            for (field, share) in [("p50_ms", 0.5), ("p99_ms", 0.99)] {
                match quantile(&last.buckets, BOUNDS, share) {
                    Some(seconds) => w.field(field).float(seconds * 1e3),
                    None => w.field(field).null(),
                };
            }
            for (field, part) in [("degraded", last.degraded), ("failed", last.failed)] {
                w.field(field).float(if last.requests > 0 { part as f64 / last.requests as f64 } else { 0.0 });
            }
            w.field("requests").int(current.requests as i64);
        });
        w.field("slots").array(|w| {
            for Slot { requests, degraded, failed, p50_us, p99_us } in news {
                w.array(|w| {
                    for figure in [requests, degraded, failed, p50_us, p99_us] {
                        w.int(i64::from(*figure));
                    }
                });
            }
        });
        true
    }
}

impl Ring {
    fn end_slot(&mut self, now: Totals) {
        let slot = match self.ends.back() {
            Some(before) => Slot::of(&now.since(before)),
            None => Slot::of(&now),
        };
        if self.slots.len() == SLOTS {
            self.slots.pop_front();
        }
        self.slots.push_back(slot);
        if self.ends.len() > MINUTE {
            self.ends.pop_front();
        }
        self.ends.push_back(now);
    }
}

impl Totals {
    fn of(counters: &PlanCounters) -> Totals {
        let mut totals = Totals::default();
        for counts in &counters.metrics.loops {
            for outcome in RequestOutcome::all() {
                let count = counts.outcome(outcome);
                totals.requests += count;
                match outcome {
                    RequestOutcome::Ok => {}
                    RequestOutcome::Degraded => totals.degraded += count,
                    RequestOutcome::Failed(_) => totals.failed += count,
                }
            }
            for (total, count) in totals.buckets.iter_mut().zip(&counts.took.buckets) {
                *total += count.get();
            }
        }
        totals
    }

    /// What was counted since. A plan that came back counts anew.
    fn since(&self, before: &Totals) -> Totals {
        let mut buckets = self.buckets;
        buckets.iter_mut().zip(before.buckets).for_each(|(now, before)| *now = now.saturating_sub(before));
        Totals {
            requests: self.requests.saturating_sub(before.requests),
            degraded: self.degraded.saturating_sub(before.degraded),
            failed: self.failed.saturating_sub(before.failed),
            buckets,
        }
    }
}

impl Slot {
    fn of(counted: &Totals) -> Slot {
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let micros = |share| (quantile(&counted.buckets, BOUNDS, share).unwrap_or(0.0) * 1e6) as u32;
        Slot {
            requests: small(counted.requests),
            degraded: small(counted.degraded),
            failed: small(counted.failed),
            p50_us: micros(0.5),
            p99_us: micros(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_engine::ErrorKind;
    use rankd_engine::clock;
    use std::time::Duration;

    fn totals(requests: u64) -> Totals {
        let mut buckets = [0; BUCKETS];
        buckets[3] = requests;
        Totals { requests, degraded: requests / 2, failed: requests / 10, buckets }
    }

    #[test]
    fn a_ring_keeps_a_quarter_of_an_hour_and_a_minute_of_counters() {
        let mut ring = Ring::default();
        for at in 1..=200 {
            ring.end_slot(totals(at * 10));
        }
        assert_eq!((ring.slots.len(), ring.ends.len()), (SLOTS, MINUTE + 1));
        assert!(ring.slots.iter().all(|slot| (slot.requests, slot.degraded, slot.failed) == (10, 5, 1)));
        let bytes = SLOTS * size_of::<Slot>() + (MINUTE + 1) * size_of::<Totals>() + size_of::<Ring>();
        assert!(bytes <= 3 << 10, "{bytes}");
    }

    #[test]
    fn a_plan_tells_of_its_last_minute_and_then_only_what_is_new() {
        let now = clock::now();
        let figures = PlanFigures::new(now);
        let counters = PlanCounters::new(1, None);
        let write = |seen, at| {
            let mut writer = Writer::new();
            let mut told = false;
            writer.object(|w| told = figures.write("feed", &counters, seen, at, w));
            (told, writer.finish())
        };
        (0..8).for_each(|_| counters.metrics.loops[0].count(RequestOutcome::Ok, 2_000_000));
        counters.metrics.loops[0].count(RequestOutcome::Degraded, 2_000_000);
        counters.metrics.loops[0].count(RequestOutcome::Failed(ErrorKind::Timeout), 2_000_000);
        let (told, json) = write(Seen::default(), now + Duration::from_secs(5));
        assert!(
            told && json.contains(r#""requests_per_s":2"#) && json.contains(r#""degraded":0.1,"failed":0.1"#),
            "{json}"
        );
        let mut rings = figures.lock();
        rings.slot += 1;
        rings.ended = Some(now + SLOT);
        rings.by_plan.entry("feed".to_owned()).or_default().end_slot(Totals::of(&counters));
        drop(rings);
        let (told, json) = write(Seen { slot: 0, catalog: 0 }, now + SLOT);
        assert!(told && json.contains(r#""slots":[[10,1,1,"#), "{json}");
        let (told, json) = write(Seen { slot: 1, catalog: 1 }, now + SLOT);
        assert!(!told, "{json}");
    }
}
