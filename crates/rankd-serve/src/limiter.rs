//! How many runs may be in progress, which requests queue and which are refused: the decisions of admission, without a clock or a task.
//!
//! The scarce resource is the processor: the loop's time and the pool's. So the limit on runs follows how long runs were ready and
//! waited for a thread. How long they took does not count, nor whether they gave rows: a store that is slow or down, a short deadline
//! or a new version of a plan does not make the processor scarcer. The limit shrinks while runs wait for longer than they may, and
//! grows while they do not. When the limit is reached and the processor is idle all the same, it doubles, because the runs in progress
//! must be waiting for something else. Nothing else is learned, so there is nothing to forget. [`crate::admission`] is what requests use.

use rankd_engine::clock::{Instant, nanos_between};
pub(crate) use rankd_engine::dials::PRESSURE_MAX;
use std::collections::VecDeque;
use std::time::Duration;

/// How many runs are admitted, and how long requests queue.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    /// The longest that a request with a deadline may queue. `None`: a part of the time that it has left.
    pub queue: Option<Duration>,
    /// The most runs in progress on each loop.
    pub limit_max: f64,
}

/// A request with a deadline may queue as long as its answer can be expected within this part of the time that it has left. The rest is for
/// what the estimates are wrong by.
const USABLE: f64 = 0.75;
/// Of the time left, without what runs take by themselves, its run may wait for a thread for one in so many parts.
const WAIT_PART: f64 = 4.0;
/// Whatever runs took lately, it may queue, and its run wait, for one in so many parts of the time left.
const PART_LEAST: f64 = 8.0;
/// A loop takes on one in so many parts of that wait in a round: the round takes about twice as long as the work that is counted, because reading,
/// writing and refusing are not.
const ROUND_PART: u32 = 2;
/// The most work that a loop takes on in one round, however much time requests have: others on the loop wait for it, health checks too.
const ROUND_MAX: Duration = Duration::from_millis(50);
/// How long a run without a deadline may wait for a thread before the limit shrinks. A loop that has taken on half as much has room.
const RUN_WAIT: Duration = Duration::from_millis(10);
/// Pressure falls by one part in this time at most, so that what follows it does not swing.
pub(crate) const RELIEF: Duration = Duration::from_millis(100);
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
    /// How long it may have waited for that.
    pub(crate) may_wait: Duration,
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
    /// How long a run takes these days, how long without what it waits for the processor, and how much of what it may wait that is.
    took_ns: f64,
    alone_ns: f64,
    strain: f64,
    widened: Option<Instant>,
    /// The pressure that was last told, and since when it could have fallen.
    pressure: u8,
    relieved: Option<Instant>,
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
            alone_ns: 0.0,
            strain: 0.0,
            widened: None,
            pressure: 0,
            relieved: None,
        }
    }

    /// How long the run of a request may wait for a thread.
    pub(crate) fn may_wait(&self, now: Instant, deadline: Option<Instant>) -> Duration {
        let part = |deadline: Instant| {
            let left_ns = nanos_between(now, deadline) as f64;
            Duration::from_nanos(((left_ns - self.alone_ns) / WAIT_PART).max(left_ns / PART_LEAST) as u64)
        };
        self.settings.queue.unwrap_or_else(|| deadline.map_or(RUN_WAIT, part))
    }

    /// How long a request with this deadline may queue.
    fn may_queue(&self, now: Instant, deadline: Instant) -> Duration {
        self.settings.queue.unwrap_or_else(|| {
            let left_ns = nanos_between(now, deadline) as f64;
            Duration::from_nanos((USABLE * left_ns - self.took_ns).max(left_ns / PART_LEAST) as u64)
        })
    }

    /// How many requests are ahead of one, how long it may queue and how much work the loop may have taken on in this round.
    fn bounds(&self, now: Instant, deadline: Option<Instant>) -> (usize, Duration, Duration) {
        match deadline {
            Some(at) => {
                let round = ROUND_MAX.min(self.may_wait(now, deadline) / ROUND_PART);
                (self.urgent.len(), self.may_queue(now, at), self.settings.queue.unwrap_or(round))
            }
            None => {
                let patience = self.settings.queue.unwrap_or_default().max(PATIENCE);
                (self.queue_len(), patience, patience)
            }
        }
    }

    /// Whether a request would be refused now, and why. `round` is how much work the loop has taken on in this round, `pool_has_room`
    /// whether a thread of the pool has nothing to do.
    pub(crate) fn refusal(
        &mut self,
        now: Instant,
        deadline: Option<Instant>,
        round: Duration,
        pool_has_room: impl FnOnce() -> bool,
    ) -> Option<Refusal> {
        let (ahead, queue, round_max) = self.bounds(now, deadline);
        let is_one_of_few = deadline.is_none() && ahead < FEW;
        if round > round_max && !is_one_of_few {
            self.press(now, 1.0);
            return Some(Refusal::Behind);
        }
        if !self.has_room() {
            self.widen(now, 2 * round < RUN_WAIT, pool_has_room);
        }
        let is_too_long = !self.enters(ahead) && self.expected(ahead) > queue && !is_one_of_few;
        is_too_long.then(|| {
            self.press(now, 1.0);
            Refusal::Queue
        })
    }

    /// Decides on a request, given what [`Limiter::refusal`] is given. A request that may queue is then added with [`Limiter::wait`].
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        deadline: Option<Instant>,
        round: Duration,
        pool_has_room: impl FnOnce() -> bool,
    ) -> Decision {
        if let Some(refusal) = self.refusal(now, deadline, round, pool_has_room) {
            return Decision::Refuse(refusal);
        }
        let (ahead, queue, _) = self.bounds(now, deadline);
        if self.enters(ahead) {
            self.running += 1;
            return Decision::Enter;
        }
        Decision::WaitUntil(deadline.map_or(now + PATIENCE_MAX, |deadline| deadline.min(now + queue)))
    }

    /// How hard the loop is pressed, in eighths: the larger of its round, what the next request would queue and what runs wait for a
    /// thread, each against what a request with this deadline may wait. It rises at once and falls by one part in [`RELIEF`].
    pub(crate) fn pressure(&mut self, now: Instant, deadline: Option<Instant>, round: Duration) -> u8 {
        let (ahead, queue, round_max) = self.bounds(now, deadline);
        let part = |time: Duration, of: Duration| time.as_secs_f64() / of.as_secs_f64().max(1e-9);
        let queued = if self.enters(ahead) { 0.0 } else { part(self.expected(ahead), queue) };
        let waited = if self.is_used() { self.strain } else { 0.0 };
        let most = part(round, round_max).max(queued).max(waited).min(1.0);
        self.press(now, most);
        self.pressure
    }

    /// Pressure is this part of the most there can be, or what was told before and has not fallen yet.
    fn press(&mut self, now: Instant, part: f64) {
        let pressed = (part * f64::from(PRESSURE_MAX)).round() as u8;
        let since = *self.relieved.get_or_insert(now);
        let relief = now.saturating_duration_since(since).as_millis() / RELIEF.as_millis();
        let fallen = self.pressure.saturating_sub(u8::try_from(relief).unwrap_or(u8::MAX));
        if pressed >= self.pressure {
            self.relieved = Some(now);
        } else if fallen < self.pressure {
            self.relieved = Some(since + RELIEF * u32::from(self.pressure - fallen));
        }
        self.pressure = pressed.max(fallen);
    }

    /// The pressure that was last told.
    pub(crate) fn last_pressure(&self) -> u8 {
        self.pressure
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
        let strain = ran.waited.as_secs_f64() / (ran.may_wait + worked).as_secs_f64().max(1e-9);
        let strain = strain.min(STRAIN_MAX);
        self.strain += SMOOTH * (strain - self.strain);
        self.took_ns += SMOOTH * (ran.took.as_nanos() as f64 - self.took_ns);
        self.alone_ns += SMOOTH * (ran.took.saturating_sub(ran.waited).as_nanos() as f64 - self.alone_ns);
        let change = match self.strain {
            // Each run that times out lowers the limit by one.
            average if average > 1.0 && ran.timed_out => -1.0,
            average if average > 1.0 => -(1.0 - 1.0 / average).min(0.5),
            // A limit that is not reached is not a reason to move it up, and neither is a run that waited too long.
            _ if !self.is_used() || strain > 1.0 => 0.0,
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

    /// Whether the next request runs immediately.
    fn enters(&self, ahead: usize) -> bool {
        self.has_room() && ahead == 0
    }

    /// How long a request will queue behind so many others.
    fn expected(&self, ahead: usize) -> Duration {
        // Where the limit has shrunk, some have to end before a place is free.
        let (running, limit) = (f64::from(self.running), self.limit);
        let ends = (running - limit).max(0.0) + ahead as f64 + 1.0;
        let nanos = ends * self.took_ns / running.max(limit);
        Duration::from_nanos(nanos as u64)
    }

    /// Whether at least half of the places are taken.
    fn is_used(&self) -> bool {
        2.0 * f64::from(self.running) >= self.limit
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
