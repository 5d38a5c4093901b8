//! How much of the processor a run gets and how long it waits for it, by which admission sees that there is too much to do.

use super::job::Results;
use crate::call::StepResult;
use crate::clock::{self, Instant, nanos_between};
use crate::task::PoolTrip;
use std::time::Duration;

/// What a run on a loop had of the processor; nothing under the other schedulers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// How long it was ready and others had the threads: the loop while it had something to do there, and the pool while its jobs
    /// waited. Of several jobs the one that waited least counts: the others may have waited for each other.
    pub waited: Duration,
    /// How long its jobs on the pool took. What it did on the loop is known to whoever polls it.
    pub worked: Duration,
}

/// Kept by a run. Reads the clock only where the run gave way or a job came back.
pub(crate) struct Usage {
    /// When it gave way to others although it had more to do.
    gave_way: Option<Instant>,
    /// How long it waited for its loop, and up to when that has been counted.
    loop_wait_ns: u64,
    counted_until: Instant,
    first_submitted: Option<Instant>,
    pool_ns: u64,
    /// The shortest time that something which was read waited for a thread to decode it; the largest number before the first.
    least_trip_wait_ns: u64,
}

impl Usage {
    pub(crate) fn new(began: Instant) -> Usage {
        Usage {
            gave_way: None,
            loop_wait_ns: 0,
            counted_until: began,
            first_submitted: None,
            pool_ns: 0,
            least_trip_wait_ns: u64::MAX,
        }
    }

    /// Its turn is over, and it has more to do.
    pub(crate) fn give_way(&mut self, now: Instant) {
        self.gave_way = Some(now);
    }

    /// It has a turn.
    pub(crate) fn resume(&mut self) {
        if let Some(since) = self.gave_way.take() {
            self.count_loop_wait(since);
        }
    }

    pub(crate) fn note_submit(&mut self, now: Instant) {
        self.first_submitted.get_or_insert(now);
    }

    /// A job is back, and the loop takes it in now.
    pub(crate) fn count_job(&mut self, job: &StepResult) {
        self.pool_ns += job.took_ns();
        self.count_loop_wait(job.ended);
    }

    /// Something that was read has been decoded on the pool, and the loop takes it in now.
    pub(crate) fn count_trip(&mut self, trip: &PoolTrip) {
        self.pool_ns += trip.worked_ns;
        self.least_trip_wait_ns = self.least_trip_wait_ns.min(trip.waited_ns);
        self.count_loop_wait(trip.ended);
    }

    /// Of several things that waited at the same time, the time counts once.
    fn count_loop_wait(&mut self, since: Instant) {
        let now = clock::now();
        self.loop_wait_ns += nanos_between(since.max(self.counted_until), now);
        self.counted_until = now;
    }

    pub(crate) fn cpu(&self, results: Option<&Results>, now: Instant) -> Cpu {
        let since_first = self.first_submitted.map_or(0, |submitted| nanos_between(submitted, now));
        // As long as no job has begun, the first one waits.
        let pool_wait_ns = results.map(|results| results.least_wait_ns().unwrap_or(since_first));
        let trip_wait_ns = Some(self.least_trip_wait_ns).filter(|wait_ns| *wait_ns != u64::MAX);
        let pool_wait_ns = pool_wait_ns.into_iter().chain(trip_wait_ns).min().unwrap_or(0);
        Cpu {
            waited: Duration::from_nanos(self.loop_wait_ns + pool_wait_ns),
            worked: Duration::from_nanos(self.pool_ns),
        }
    }
}
