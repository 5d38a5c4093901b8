//! Who may run now, who waits a little, and who is sent away at once.
//!
//! Two things are bounded, each by time and not by a length. The loop: how much work it takes on in one round, from the moment
//! that a probe gets into the loop's line to the moment that it is through. The runs: how many are under way, by a limit that
//! shrinks when runs wait inside, for the pool or a store, for longer than that, and grows when they do not; who does not fit waits
//! in line for at most the same time. Sending somebody away is not work: it must not keep the next one out. But it takes the
//! processor from computations in the pool, so while some wait there, clients who ask again at once are answered a little later. One of these for each
//! loop; nothing here is shared.

use crate::serve::metrics::Count;
use rankd_engine::Seat;
use rankd_engine::clock::{self, Instant, nanos_between};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep_until, timeout_at};

#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionSettings {
    /// The longest that a request may be in line.
    pub(crate) queue: Duration,
    /// Bounds of the limit on runs under way, for each loop.
    pub(crate) limit_min: f64,
    pub(crate) limit_max: f64,
}

/// So much longer than alone may runs take, besides the time in line, before fewer are let in.
const TOLERANCE: f64 = 1.5;
/// How much of the way to a new value one run moves the limit, and the averages.
const SMOOTH: f64 = 0.1;
const LIMIT_FIRST: f64 = 64.0;
/// So many are sent away at once in so much time; those after them when it has passed. A loop goes before the pool's threads, so
/// without it a few clients that ask again and again would leave the pool no time.
const PROMPT: u32 = 16;
const PAUSE: Duration = Duration::from_millis(10);

/// The most that one turn of a run counts for. Runs give way long before; where one seems not to, it was the system that kept
/// the thread waiting, and those who are next have nothing to do with it.
const TURN_NS_MAX: u64 = 1_000_000;

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

pub(crate) struct Admission {
    settings: AdmissionSettings,
    limit: Cell<f64>,
    under_way: Cell<u32>,
    line: RefCell<VecDeque<oneshot::Sender<Permit>>>,
    /// How long a run takes these days, and how much longer than it may.
    took_ns: Cell<f64>,
    slowdown: Cell<f64>,
    /// Whether a probe is in the loop's line, and what runs have done on the loop since it got there.
    probing: Cell<bool>,
    round_ns: Cell<u64>,
    /// When the pause under way is over, and how many have been sent away in it.
    pause: Cell<(Option<Instant>, u32)>,
}

impl Admission {
    pub(crate) fn new(settings: &AdmissionSettings) -> Rc<Admission> {
        Rc::new(Admission {
            settings: *settings,
            limit: Cell::new(LIMIT_FIRST.clamp(settings.limit_min, settings.limit_max)),
            under_way: Cell::new(0),
            line: RefCell::default(),
            took_ns: Cell::new(0.0),
            slowdown: Cell::new(0.0),
            probing: Cell::new(false),
            round_ns: Cell::new(0),
            pause: Cell::default(),
        })
    }

    /// Lets a request in, at once or after a while in line: for so many nanoseconds. `pool_is_behind` is whether computations
    /// wait for a thread.
    pub(crate) async fn enter(
        self: &Rc<Admission>,
        seat: &Seat,
        pool_is_behind: impl FnOnce() -> bool,
    ) -> Result<(Permit, u64), Refused> {
        let entered = self.try_enter(seat).await;
        // Where all is done on the loop, there is nobody to make room for, and waiting would only be more work.
        if entered.is_err() && pool_is_behind() {
            self.pace().await;
        }
        entered
    }

    async fn try_enter(self: &Rc<Admission>, seat: &Seat) -> Result<(Permit, u64), Refused> {
        self.probe(seat);
        if u128::from(self.round_ns.get()) > self.settings.queue.as_nanos() {
            return Err(Refused::Behind);
        }
        if f64::from(self.under_way.get()) < self.limit.get() {
            return Ok((self.permit(), 0));
        }
        let ahead = self.line.borrow().len() as f64 + 1.0;
        if ahead * self.took_ns.get() / self.limit.get() > self.settings.queue.as_nanos() as f64 {
            return Err(Refused::Line);
        }
        let (turn, come) = oneshot::channel();
        self.line.borrow_mut().push_back(turn);
        let asked = clock::now();
        match timeout_at(asked + self.settings.queue, come).await {
            Ok(Ok(permit)) => Ok((permit, nanos_between(asked, clock::now()))),
            _ => Err(Refused::Line),
        }
    }

    /// Comes back when one who is sent away may be told so.
    async fn pace(&self) {
        let now = clock::now();
        let (over, told) = match self.pause.get() {
            (Some(over), told) if now < over => (over, told),
            _ => (now + PAUSE, 0),
        };
        self.pause.set((Some(over), told + 1));
        if told >= PROMPT {
            sleep_until(over).await;
        }
    }

    /// Puts a probe into the loop's line, if none is there: with it a new round begins.
    fn probe(self: &Rc<Admission>, seat: &Seat) {
        if self.probing.replace(true) {
            return;
        }
        self.round_ns.set(0);
        let admission = self.clone();
        seat.spawn(async move {
            // Comes back after everything that the loop has found ready by then.
            tokio::task::yield_now().await;
            admission.probing.set(false);
        });
    }

    /// Does a piece of a run on the loop; its time is counted for the round.
    pub(crate) fn timed<T>(&self, piece: impl FnOnce() -> T) -> T {
        let began = clock::now();
        let done = piece();
        self.round_ns.set(self.round_ns.get() + nanos_between(began, clock::now()).min(TURN_NS_MAX));
        done
    }

    fn permit(self: &Rc<Admission>) -> Permit {
        self.under_way.set(self.under_way.get() + 1);
        Permit { admission: Some(self.clone()) }
    }

    /// Learns from a run that has ended. `alone_ns` is what such a run takes while no other is under way.
    pub(crate) fn learn(&self, took: Duration, alone_ns: &Count) {
        let took_ns = took.as_nanos() as f64;
        let (under_way, limit) = (f64::from(self.under_way.get()), self.limit.get());
        let alone = alone_ns.get() as f64;
        if alone == 0.0 || under_way <= 1.0 {
            let next = if alone == 0.0 { took_ns } else { alone + SMOOTH * (took_ns - alone) };
            alone_ns.set(next.max(1.0) as u64);
        }
        let may_take = TOLERANCE * alone_ns.get() as f64 + self.settings.queue.as_nanos() as f64;
        let average = |cell: &Cell<f64>, value: f64| cell.set(cell.get() + SMOOTH * (value - cell.get()));
        average(&self.took_ns, took_ns);
        average(&self.slowdown, took_ns / may_take);
        let gradient = (1.0 / self.slowdown.get().max(0.01)).clamp(0.5, 1.0);
        // A limit that is not reached is not a reason to move it up.
        let room = if under_way * 2.0 >= limit && gradient >= 1.0 { limit.sqrt() } else { 0.0 };
        let next = limit + SMOOTH * (limit * gradient + room - limit);
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn admission(queue_ms: u64) -> Rc<Admission> {
        let queue = Duration::from_millis(queue_ms);
        Admission::new(&AdmissionSettings { queue, limit_min: 2.0, limit_max: 1000.0 })
    }

    /// Runs that take what so many under way at once make of them.
    fn drive(admission: &Rc<Admission>, alone: &Count, took: impl Fn(f64) -> Duration) -> f64 {
        for _ in 0..2000 {
            let permits: Vec<Permit> = (0..admission.limit() as u32).map(|_| admission.permit()).collect();
            admission.learn(took(permits.len() as f64), alone);
        }
        admission.limit()
    }

    #[test]
    fn the_limit_settles_where_runs_wait_as_long_as_they_may() {
        let (admission, alone) = (admission(20), Count::default());
        admission.learn(Duration::from_millis(1), &alone);
        // One processor: so many runs of a millisecond take that many milliseconds each.
        let limit = drive(&admission, &alone, |runs| Duration::from_millis(1).mul_f64(runs));
        assert!((10.0..40.0).contains(&limit), "{limit}");
    }

    #[test]
    fn runs_that_do_not_hinder_each_other_are_not_limited() {
        let (admission, alone) = (admission(20), Count::default());
        let limit = drive(&admission, &alone, |_| Duration::from_millis(5));
        assert!(limit > 900.0, "{limit}");
    }

    #[test]
    fn a_permit_lets_in_who_waits_and_passes_over_who_has_gone() {
        let admission = admission(20);
        admission.limit.set(2.0);
        let first = admission.permit();
        let _second = admission.permit();
        let (gone, _) = oneshot::channel();
        let (turn, mut come) = oneshot::channel();
        admission.line.borrow_mut().extend([gone, turn]);
        drop(first);
        assert_eq!((admission.under_way(), admission.in_line()), (2, 0));
        assert!(come.try_recv().is_ok());
        assert_eq!(admission.under_way(), 1, "it went with the one who took it and let it go");
    }

    #[test]
    fn a_thread_that_was_held_up_has_not_worked_all_the_time() {
        let admission = admission(10);
        admission.timed(|| {
            let until = clock::now() + Duration::from_millis(12);
            while clock::now() < until {}
        });
        assert_eq!(admission.round_ns.get(), TURN_NS_MAX);
    }

    #[test]
    fn a_few_are_sent_away_at_once_and_the_others_after_a_pause() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let admission = admission(20);
            let began = clock::now();
            let mut paces: Vec<_> = (0..2 * PROMPT).map(|_| Box::pin(admission.pace())).collect();
            let later: Vec<_> =
                paces.iter_mut().filter_map(|pace| pace.now_or_never().is_none().then_some(pace)).collect();
            assert_eq!(later.len(), PROMPT as usize);
            futures_util::future::join_all(later).await;
            assert!(clock::now() >= began + PAUSE);
            assert!(admission.pace().now_or_never().is_some(), "the pause is over");
        });
    }
}
