//! What a read brings, made into rows: a computation of its own, which runs on the loop where it is predicted to be cheap and on the
//! CPU pool otherwise, while the read waits for it. So a large answer holds up no other request on the loop.

use crate::call;
use crate::clock::{self, Instant};
use crate::cost::LearnedCost;
use crate::error::TaskError;
use crate::link::Linked;
use crate::place::Policy;
use crate::pool::{Offload, Worker};
use crate::task::{FetchContext, LinkContext};
use rankd_column::{RowSet, Stop};
use rankd_plan::signature::Cost;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::oneshot;

/// So many bytes weigh as much as a row in predictions.
const BYTES_A_ROW: usize = 16;
/// Work that is predicted to take this long is measured each time: reading the clock adds little to it.
const MEASURED_FROM_NS: f32 = 1_000.0;
/// Of cheaper work, one call in this many is measured.
const MEASURED_EVERY: u32 = 32;

/// What a node's decoding costs, learned over all runs of its plan. A task keeps it.
pub struct Decoding(Arc<Learned>);

struct Learned {
    cost: LearnedCost,
    may_inline: bool,
    calls: AtomicU32,
}

impl LinkContext<'_> {
    /// For a node whose decoding costs about this much, where a row weighs as much as sixteen bytes.
    pub fn decoding(&self, cost: Cost) -> Decoding {
        let scheduling = self.node.scheduling;
        Decoding(Arc::new(Learned {
            cost: LearnedCost::new(cost, scheduling.cost_estimate_us),
            may_inline: scheduling.inline != Some(false),
            calls: AtomicU32::new(0),
        }))
    }
}

/// How much there is to decode.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub rows: usize,
    pub bytes: usize,
}

impl Load {
    fn weight(self) -> usize {
        self.rows + self.bytes / BYTES_A_ROW
    }
}

/// Where decoding may go that is not cheap.
#[derive(Clone, Copy)]
pub(crate) struct DecodePool<'a> {
    pub(crate) pool: &'a dyn Offload,
    pub(crate) policy: &'a Policy,
    pub(crate) plan: &'a Arc<Linked>,
}

/// A trip to the pool, for those who count.
#[derive(Clone, Copy, Debug)]
pub struct PoolTrip {
    pub waited_ns: u64,
    pub worked_ns: u64,
    pub ended: Instant,
}

/// Values that could not be read as what their keys take, by the name of the key.
#[derive(Debug, Default)]
pub struct Unread(Vec<(Arc<str>, u64)>);

impl Unread {
    pub fn count(&mut self, key: &Arc<str>, values: u64) {
        if values == 0 {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, count)) => *count += values,
            None => self.0.push((key.clone(), values)),
        }
    }

    pub(crate) fn list(&self) -> &[(Arc<str>, u64)] {
        &self.0
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

impl FetchContext<'_> {
    /// Counts what could not be read of what an endpoint holds.
    pub fn count_unread(&self, endpoint: u32, unread: &Unread) {
        let total = unread.total();
        if total > 0 {
            self.tally.skipped.set(self.tally.skipped.get() + total);
            self.stats.count_unread(endpoint, unread);
        }
    }

    /// Makes rows of what an endpoint answered: here and now if that is cheap, else on the pool, where `work` is told when nobody waits
    /// for it any more. What it counts as unread is counted for the endpoint.
    pub async fn decode(
        &self,
        decoding: &Decoding,
        endpoint: u32,
        load: Load,
        work: impl FnOnce(&mut Unread, Stop<'_>) -> Result<RowSet, TaskError> + Send + 'static,
    ) -> Result<RowSet, TaskError> {
        let (Decoding(learned), weight) = (decoding, load.weight());
        let Some(DecodePool { pool, policy, plan }) = self.decode_pool else {
            let mut unread = Unread::default();
            let rows = work(&mut unread, Stop::default());
            self.count_unread(endpoint, &unread);
            return rows;
        };
        let threshold_ns = policy.inline_threshold_ns as f32;
        let calls = learned.calls.load(Ordering::Relaxed).wrapping_add(1);
        // Loops may count over each other: a call less.
        learned.calls.store(calls, Ordering::Relaxed);
        let sample = calls.is_multiple_of(MEASURED_EVERY);
        let cheap = learned.cost.cheap_ns(weight, threshold_ns);
        let cheap = cheap.or_else(|| learned.cost.near_ns(weight, threshold_ns).filter(|_| sample));
        let (rows, unread) = match cheap.filter(|_| learned.may_inline) {
            Some(predicted_ns) => {
                let mut unread = Unread::default();
                let measured = sample || predicted_ns >= MEASURED_FROM_NS || learned.cost.is_suspect();
                let began = measured.then(|| (clock::now(), learned.cost.stopwatch(weight, threshold_ns)));
                let rows = work(&mut unread, Stop::default());
                if let (Some((began, stopwatch)), true) = (began, rows.is_ok()) {
                    let took = stopwatch.stop(clock::nanos_between(began, clock::now()), true);
                    learned.cost.learn(weight, took, threshold_ns);
                }
                (rows, unread)
            }
            None => self.decode_on(pool, plan, learned, weight, threshold_ns, work).await?,
        };
        self.count_unread(endpoint, &unread);
        rows
    }

    /// Sends the work to the pool and waits for what it brings.
    async fn decode_on(
        &self,
        pool: &dyn Offload,
        plan: &Arc<Linked>,
        learned: &Arc<Learned>,
        weight: usize,
        threshold_ns: f32,
        work: impl FnOnce(&mut Unread, Stop<'_>) -> Result<RowSet, TaskError> + Send + 'static,
    ) -> Result<(Result<RowSet, TaskError>, Unread), TaskError> {
        let (sender, receiver) = oneshot::channel();
        let (plan, learned, stats, submitted) = (plan.clone(), learned.clone(), self.stats.clone(), clock::now());
        let gone = StopOnDrop::default();
        let stop = gone.0.clone();
        stats.count_offloads(1);
        pool.submit(Box::new(move |worker: Worker| {
            // Nobody waits any more.
            if sender.is_closed() {
                return;
            }
            let started = worker.started.unwrap_or_else(clock::now);
            let stopwatch = learned.cost.stopwatch(weight, threshold_ns);
            let mut unread = Unread::default();
            let rows = call::contain(&stats, || work(&mut unread, Stop::when(&stop))).and_then(|rows| rows);
            let ended = clock::now();
            let worked_ns = clock::nanos_between(started, ended);
            if rows.is_ok() {
                learned.cost.learn(weight, stopwatch.stop(worked_ns, false), threshold_ns);
            }
            let trip = PoolTrip { waited_ns: clock::nanos_between(submitted, started), worked_ns, ended };
            if sender.send((rows, unread, trip)).is_err() {
                stats.count_late(&plan.name, worked_ns);
            }
        }));
        let dropped = |_| TaskError::bug("the pool dropped what was to be decoded");
        let (rows, unread, trip) = receiver.await.map_err(dropped)?;
        self.tally.pool_trip.set(Some(trip));
        Ok((rows, unread))
    }
}

/// Sets its flag when it is dropped: whoever waited for something does not wait any more.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
