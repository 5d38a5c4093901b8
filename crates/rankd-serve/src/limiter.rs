//! How many runs may be under way, who waits for a place and who is refused: the decisions of admission, without a clock or a task.
//!
//! What is scarce is the processor: the loop's time and the pool's. So the limit on runs follows what runs say about just that: how
//! long they were ready and waited for a thread. How long they took is not looked at, nor whether they gave rows: a store that is
//! slow or down, a short deadline or a new version of a plan does not make the processor scarcer. The limit shrinks while runs
//! wait for longer than they may, and grows while they do not. When all places are taken and the processor is idle all the same, it
//! doubles, because those under way must be waiting for something else. Nothing else is learned, so there is nothing to
//! forget. [`crate::admission`] is what requests meet.

use rankd_engine::clock::Instant;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    /// The longest that a request with a deadline may be in line.
    pub queue: Duration,
    /// The most runs under way on each loop.
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
/// A request without a deadline is in line for about this long rather than being told to come back after as long.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many without a deadline are never too many, however long each of them takes.
const FEW: usize = 32;
/// The longest that a request without a deadline is in line, whatever was expected.
const PATIENCE_MAX: Duration = Duration::from_secs(30);

/// Why a request was sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The loop has taken on enough for this round.
    Behind,
    /// The line is so long that it would be in it for too long.
    Line,
}

impl Refused {
    pub(crate) const ALL: [Refused; 2] = [Refused::Behind, Refused::Line];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Refused::Behind => "loop_behind",
            Refused::Line => "line_too_long",
        }
    }
}

/// What becomes of a request that asks to come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It has a place.
    Enter,
    /// It may be in line until then.
    WaitUntil(Instant),
    Refuse(Refused),
}

/// What a run that has ended had of the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) took: Duration,
    /// How long it was ready and waited for the loop or the pool.
    pub(crate) waited: Duration,
    /// How long it computed.
    pub(crate) worked: Duration,
    /// Whether it was cut at its deadline.
    pub(crate) timed_out: bool,
}

/// The places of one loop. `W` stands for somebody in line.
#[derive(Debug)]
pub(crate) struct Gate<W> {
    settings: AdmissionSettings,
    limit: f64,
    under_way: u32,
    /// Those with a deadline go before those without.
    urgent: VecDeque<W>,
    patient: VecDeque<W>,
    /// How long a run takes these days, and how much of what it may wait for the processor it waits.
    took_ns: f64,
    strain: f64,
    widened: Option<Instant>,
}

impl<W> Gate<W> {
    pub(crate) fn new(settings: &AdmissionSettings) -> Gate<W> {
        Gate {
            settings: *settings,
            limit: LIMIT_FIRST.clamp(LIMIT_MIN, settings.limit_max),
            under_way: 0,
            urgent: VecDeque::new(),
            patient: VecDeque::new(),
            took_ns: 0.0,
            strain: 0.0,
            widened: None,
        }
    }

    /// Decides on a request. `round` is how much work the loop has taken on in this round, `pool_has_room` whether a thread of the
    /// pool has nothing to do. Who may wait has to [`Gate::wait`].
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
            None => (self.in_line(), queue.max(PATIENCE)),
        };
        let is_one_of_few = deadline.is_none() && ahead < FEW;
        if round > most && !is_one_of_few {
            return Decision::Refuse(Refused::Behind);
        }
        if !self.has_room() {
            self.widen(now, 2 * round < queue, pool_has_room);
        }
        if self.has_room() && ahead == 0 {
            self.under_way += 1;
            return Decision::Enter;
        }
        let expected_ns = (ahead as f64 + 1.0) * self.took_ns / self.limit;
        if expected_ns > most.as_nanos() as f64 && !is_one_of_few {
            return Decision::Refuse(Refused::Line);
        }
        Decision::WaitUntil(deadline.map_or(now + PATIENCE_MAX, |deadline| deadline.min(now + queue)))
    }

    /// Puts somebody in line.
    pub(crate) fn wait(&mut self, who: W, has_deadline: bool) {
        let line = if has_deadline { &mut self.urgent } else { &mut self.patient };
        line.push_back(who);
    }

    /// Lets in who is next, if there is room.
    pub(crate) fn next(&mut self) -> Option<W> {
        if !self.has_room() {
            return None;
        }
        let next = self.urgent.pop_front().or_else(|| self.patient.pop_front())?;
        self.under_way += 1;
        Some(next)
    }

    /// A place is free again.
    pub(crate) fn leave(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Learns from a run that has ended, before it leaves.
    pub(crate) fn learn(&mut self, ran: &Ran) {
        // Nobody waits too long who waits for less than it works; but who was cut had no time for that.
        let worked = if ran.timed_out { Duration::ZERO } else { ran.worked };
        let strain = ran.waited.as_secs_f64() / (self.settings.queue + worked).as_secs_f64();
        let strain = strain.min(STRAIN_MAX);
        self.strain += SMOOTH * (strain - self.strain);
        self.took_ns += SMOOTH * (ran.took.as_nanos() as f64 - self.took_ns);
        let is_used = 2.0 * f64::from(self.under_way) >= self.limit;
        let change = match self.strain {
            // As many as are given up need not come again.
            average if average > 1.0 && ran.timed_out => -1.0,
            average if average > 1.0 => -(1.0 - 1.0 / average).min(0.5),
            // A limit that is not reached is not a reason to move it up, and neither is a run that waited too long.
            _ if !is_used || strain > 1.0 => 0.0,
            average if average.max(strain) < RELAXED => 1.0,
            _ => 1.0 / self.limit.sqrt(),
        };
        self.set_limit(self.limit + change);
    }

    /// All places are taken. Where the processor has nothing to do all the same, there may be more.
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
        f64::from(self.under_way) < self.limit.floor()
    }

    pub(crate) fn limit(&self) -> f64 {
        self.limit
    }

    pub(crate) fn under_way(&self) -> u32 {
        self.under_way
    }

    pub(crate) fn in_line(&self) -> usize {
        self.urgent.len() + self.patient.len()
    }
}

#[cfg(test)]
mod simulation;
