//! How many runs may be in progress, which requests queue and which are refused: the decisions of admission, without a clock or a task.
//!
//! The scarce resource is the processor: the loop's time and the pool's. So the limit on runs follows how long runs were ready and
//! waited for a thread. How long they took does not count, nor whether they gave rows: a store that is slow or down, a short deadline
//! or a new version of a plan does not make the processor scarcer. The limit shrinks while runs wait for longer than they may, and
//! grows while they do not. When the limit is reached and the processor is idle all the same, it doubles, because the runs in progress
//! must be waiting for something else. Nothing else is learned, so there is nothing to forget. [`crate::admission`] is what requests use.

use rankd_engine::clock::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// How many runs are admitted, and how long requests queue.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    /// The longest that a request with a deadline may queue.
    pub queue: Duration,
    /// The most runs in progress on each loop.
    pub limit_max: f64,
}

/// How much of the way to a new value one run moves the limit, and the averages.
const SMOOTH: f64 = 0.1;
const LIMIT_FIRST: f64 = 64.0;
const LIMIT_MIN: f64 = 1.0;
/// One run that waited endlessly counts for no more than this: its thread may have been interrupted.
const STRAIN_MAX: f64 = 4.0;
/// While runs wait for less than this part of what they may, the limit grows by one for each of them.
const RELAXED: f64 = 0.5;
/// How soon the limit may be doubled again.
const WIDEN_EVERY: Duration = Duration::from_millis(50);
/// A request without a deadline queues for about this long rather than being told to retry after as long.
const PATIENCE: Duration = Duration::from_secs(1);
/// This many requests without a deadline always fit in the queue, however long each of them takes.
const FEW: usize = 32;
/// The longest that a request without a deadline queues, whatever was expected.
const PATIENCE_MAX: Duration = Duration::from_secs(30);

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The loop has taken on enough for this round.
    Behind,
    /// The queue is so long that the request would be in it for too long.
    Queue,
    /// The plan has reached its own limit.
    PlanLimit,
}

impl Refusal {
    pub(crate) const ALL: [Refusal; 3] = [Refusal::Behind, Refusal::Queue, Refusal::PlanLimit];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Refusal::Behind => "loop_behind",
            Refusal::Queue => "line_too_long",
            Refusal::PlanLimit => "plan_limit",
        }
    }
}

/// What becomes of a request that asks to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may run now.
    Enter,
    /// It may queue until then.
    WaitUntil(Instant),
    Refuse(Refusal),
}

/// How much of the processor a finished run used and waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunUsage {
    pub(crate) took: Duration,
    /// How long it was ready and waited for the loop or the pool.
    pub(crate) waited: Duration,
    /// How long it computed.
    pub(crate) worked: Duration,
    /// Whether it was cut at its deadline.
    pub(crate) timed_out: bool,
}

/// The limit of one loop. `W` stands for a request in the queue.
#[derive(Debug)]
pub(crate) struct Limiter<W> {
    settings: AdmissionSettings,
    limit: f64,
    running: u32,
    /// Those with a deadline go before those without.
    urgent: VecDeque<W>,
    patient: VecDeque<W>,
    /// How long a run takes these days, and how much of what it may wait for the processor it waits.
    took_ns: f64,
    strain: f64,
    widened: Option<Instant>,
}

impl<W> Limiter<W> {
    pub(crate) fn new(settings: &AdmissionSettings) -> Limiter<W> {
        Limiter {
            settings: *settings,
            limit: LIMIT_FIRST.clamp(LIMIT_MIN, settings.limit_max),
            running: 0,
            urgent: VecDeque::new(),
            patient: VecDeque::new(),
            took_ns: 0.0,
            strain: 0.0,
            widened: None,
        }
    }

    /// Decides on a request. `round` is how much work the loop has taken on in this round, `pool_has_room` whether a thread of the
    /// pool has nothing to do. A request that may queue is then added with [`Limiter::wait`].
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        deadline: Option<Instant>,
        round: Duration,
        pool_has_room: impl FnOnce() -> bool,
    ) -> Decision {
        let queue = self.settings.queue;
        let (ahead, most) = match deadline {
            Some(_) => (self.urgent.len(), queue),
            None => (self.queue_len(), queue.max(PATIENCE)),
        };
        let is_one_of_few = deadline.is_none() && ahead < FEW;
        if round > most && !is_one_of_few {
            return Decision::Refuse(Refusal::Behind);
        }
        if !self.has_room() {
            self.widen(now, 2 * round < queue, pool_has_room);
        }
        if self.has_room() && ahead == 0 {
            self.running += 1;
            return Decision::Enter;
        }
        let expected_ns = (ahead as f64 + 1.0) * self.took_ns / self.limit;
        if expected_ns > most.as_nanos() as f64 && !is_one_of_few {
            return Decision::Refuse(Refusal::Queue);
        }
        Decision::WaitUntil(deadline.map_or(now + PATIENCE_MAX, |deadline| deadline.min(now + queue)))
    }

    /// Adds a request to the queue.
    pub(crate) fn wait(&mut self, waiter: W, has_deadline: bool) {
        let queue = if has_deadline { &mut self.urgent } else { &mut self.patient };
        queue.push_back(waiter);
    }

    /// Admits the next in the queue, if there is room.
    pub(crate) fn next(&mut self) -> Option<W> {
        if !self.has_room() {
            return None;
        }
        let next = self.urgent.pop_front().or_else(|| self.patient.pop_front())?;
        self.running += 1;
        Some(next)
    }

    /// An admitted request has ended.
    pub(crate) fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Learns from a run that has ended, before it leaves.
    pub(crate) fn learn(&mut self, ran: &RunUsage) {
        // Waiting for less time than it works is never too long; but a run that timed out had no time to work.
        let worked = if ran.timed_out { Duration::ZERO } else { ran.worked };
        let strain = ran.waited.as_secs_f64() / (self.settings.queue + worked).as_secs_f64();
        let strain = strain.min(STRAIN_MAX);
        self.strain += SMOOTH * (strain - self.strain);
        self.took_ns += SMOOTH * (ran.took.as_nanos() as f64 - self.took_ns);
        let is_used = 2.0 * f64::from(self.running) >= self.limit;
        let change = match self.strain {
            // Each run that times out lowers the limit by one.
            average if average > 1.0 && ran.timed_out => -1.0,
            average if average > 1.0 => -(1.0 - 1.0 / average).min(0.5),
            // A limit that is not reached is not a reason to move it up, and neither is a run that waited too long.
            _ if !is_used || strain > 1.0 => 0.0,
            average if average.max(strain) < RELAXED => 1.0,
            _ => 1.0 / self.limit.sqrt(),
        };
        self.set_limit(self.limit + change);
    }

    /// The limit is reached. Where the processor is idle all the same, it is raised.
    fn widen(&mut self, now: Instant, loop_has_room: bool, pool_has_room: impl FnOnce() -> bool) {
        let lately = self.widened.is_some_and(|at| now < at + WIDEN_EVERY);
        if !lately && loop_has_room && pool_has_room() {
            self.widened = Some(now);
            self.set_limit(2.0 * self.limit);
        }
    }

    fn set_limit(&mut self, limit: f64) {
        self.limit = limit.clamp(LIMIT_MIN, self.settings.limit_max);
    }

    fn has_room(&self) -> bool {
        f64::from(self.running) < self.limit.floor()
    }

    pub(crate) fn limit(&self) -> f64 {
        self.limit
    }

    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    pub(crate) fn queue_len(&self) -> usize {
        self.urgent.len() + self.patient.len()
    }
}

#[cfg(test)]
mod simulation;
