//! Who may run now, who waits a little, and who is sent away at once.
//!
//! Two things are bounded, each by time and not by a length. The loop: how long it takes to get around to a request that has
//! come, measured by a probe that goes through the same line. The runs: how many are under way, by a limit that shrinks when
//! runs take much longer than they did while few were under way, and grows when they do not; who does not fit waits in line
//! for at most the same time. One of these for each loop; nothing here is shared.

use crate::serve::metrics::Count;
use rankd_engine::Seat;
use rankd_engine::clock::{self, Instant};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionSettings {
    /// The longest that a request may be in line.
    pub(crate) queue: Duration,
    /// Bounds of the limit on runs under way, for each loop.
    pub(crate) limit_min: f64,
    pub(crate) limit_max: f64,
}

/// So much longer than when few are under way may runs take before fewer are let in.
const TOLERANCE: f64 = 2.0;
/// How much of the way to a new value one run moves the limit, and the averages.
const SMOOTH: f64 = 0.1;
const LIMIT_FIRST: f64 = 64.0;

/// Why a request was sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The loop took too long to get around to it.
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

pub(crate) struct Admission {
    settings: AdmissionSettings,
    limit: Cell<f64>,
    under_way: Cell<u32>,
    line: RefCell<VecDeque<oneshot::Sender<Permit>>>,
    /// How long a run takes these days, and how much longer than when few are under way.
    took_ns: Cell<f64>,
    slowdown: Cell<f64>,
    /// When the probe that is in the loop's line got into it.
    probe_since: Cell<Option<Instant>>,
}

impl Admission {
    pub(crate) fn new(settings: &AdmissionSettings) -> Rc<Admission> {
        Rc::new(Admission {
            settings: *settings,
            limit: Cell::new(LIMIT_FIRST.clamp(settings.limit_min, settings.limit_max)),
            under_way: Cell::new(0),
            line: RefCell::default(),
            took_ns: Cell::new(0.0),
            slowdown: Cell::new(1.0),
            probe_since: Cell::new(None),
        })
    }

    /// Lets a request in, at once or after a while in line.
    pub(crate) async fn enter(self: &Rc<Admission>, seat: &Seat) -> Result<Permit, Refused> {
        let now = clock::now();
        if self.behind(seat, now) > self.settings.queue {
            return Err(Refused::Behind);
        }
        if f64::from(self.under_way.get()) < self.limit.get() {
            return Ok(self.permit());
        }
        let ahead = self.line.borrow().len() as f64 + 1.0;
        if ahead * self.took_ns.get() / self.limit.get() > self.settings.queue.as_nanos() as f64 {
            return Err(Refused::Line);
        }
        let (turn, come) = oneshot::channel();
        self.line.borrow_mut().push_back(turn);
        match timeout_at(now + self.settings.queue, come).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Refused::Line),
        }
    }

    /// How long ago the probe that is still in the loop's line got into it; puts one there if none is.
    fn behind(self: &Rc<Admission>, seat: &Seat, now: Instant) -> Duration {
        if let Some(since) = self.probe_since.get() {
            return now.saturating_duration_since(since);
        }
        self.probe_since.set(Some(now));
        let admission = self.clone();
        seat.spawn(async move {
            // Comes back after everything that the loop has found ready by then.
            tokio::task::yield_now().await;
            admission.probe_since.set(None);
        });
        Duration::ZERO
    }

    fn permit(self: &Rc<Admission>) -> Permit {
        self.under_way.set(self.under_way.get() + 1);
        Permit { admission: Some(self.clone()) }
    }

    /// Learns from a run that has ended. `calm_ns` is what such a run takes while few are under way.
    pub(crate) fn learn(&self, took: Duration, calm_ns: &Count) {
        let took_ns = took.as_nanos() as f64;
        let (under_way, limit) = (f64::from(self.under_way.get()), self.limit.get());
        let calm = calm_ns.get() as f64;
        if calm == 0.0 || under_way * 4.0 <= limit {
            let next = if calm == 0.0 { took_ns } else { calm + SMOOTH * (took_ns - calm) };
            calm_ns.set(next.max(1.0) as u64);
        }
        let average = |cell: &Cell<f64>, value: f64| cell.set(cell.get() + SMOOTH * (value - cell.get()));
        average(&self.took_ns, took_ns);
        average(&self.slowdown, took_ns / (calm_ns.get() as f64).max(1.0));
        // A limit that is not reached is not a reason to move it up.
        let gradient = (TOLERANCE / self.slowdown.get()).clamp(0.5, 1.0);
        let room = if under_way * 2.0 >= limit { limit.sqrt() } else { 0.0 };
        let target = limit * gradient + room;
        let next = limit + SMOOTH * (target - limit);
        self.limit.set(next.clamp(self.settings.limit_min, self.settings.limit_max));
    }

    pub(crate) fn limit(&self) -> f64 {
        self.limit.get()
    }

    pub(crate) fn under_way(&self) -> u32 {
        self.under_way.get()
    }

    pub(crate) fn in_line(&self) -> usize {
        self.line.borrow().len()
    }

    /// Lets in who is next, as far as the limit allows. Who has gone meanwhile is passed over.
    fn admit_next(self: &Rc<Admission>) {
        while f64::from(self.under_way.get()) < self.limit.get() {
            let Some(turn) = self.line.borrow_mut().pop_front() else { return };
            if let Err(permit) = turn.send(self.permit()) {
                permit.give_back();
            }
        }
    }
}

/// The right to run; given back when dropped.
pub(crate) struct Permit {
    /// `None` once given back.
    admission: Option<Rc<Admission>>,
}

impl Permit {
    /// Gives it back without letting in the next: who calls this does.
    fn give_back(mut self) {
        if let Some(admission) = self.admission.take() {
            admission.under_way.set(admission.under_way.get() - 1);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.under_way.set(admission.under_way.get() - 1);
            admission.admit_next();
        }
    }
}
