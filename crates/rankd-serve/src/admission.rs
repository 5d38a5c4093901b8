//! Which requests run now, which queue, and which are refused.
//!
//! Two things are bounded, each by time and not by a length. The loop: how much work it takes on in one round, measured from the
//! moment a probe is put into the loop's queue to the moment it is polled. The runs: how many are in progress, by a limit that
//! follows how long runs wait for a thread (`limiter`); requests over it queue. Where the server has a deadline of its own, a request that
//! would be refused is refused before it is read; the limit that a request sets itself is known later, and counts then.
//!
//! A refusal is not counted as work: it must not keep the next request out. But it takes processor time from computations in the pool,
//! so while some wait there, clients that retry immediately get their refusal a little later. There is one admission per loop; nothing
//! here is shared between loops.

use crate::catalog::PlanCounters;
use crate::limiter::{AdmissionSettings, Decision, Limiter, Refusal, RunUsage};
use crate::metrics::LoopMetrics;
use rankd_engine::clock::{self, Instant, Timer, nanos_between, timeout_at};
use rankd_engine::{ErrorKind, Outcome};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// This many requests are refused immediately in each window; further refusals wait for its end. A loop takes precedence over the
/// pool's threads, so without it a few clients that retry immediately would starve the pool.
const PROMPT_REFUSALS: u32 = 16;
const REFUSAL_WINDOW: Duration = Duration::from_millis(10);

/// The most that one poll of a run counts for. Runs yield long before; where one seems not to, the system kept the thread waiting,
/// and the next requests have nothing to do with that.
const POLL_NS_MAX: u64 = 1_000_000;

/// The loop and the pool, as admission sees them.
pub(crate) trait Machine {
    /// Calls back when the loop has been through everything that it has found ready by now.
    fn after_this_round(&self, then: impl FnOnce() + 'static);
    /// Whether a thread of the pool has nothing to do.
    fn pool_has_room(&self) -> bool;
    /// Whether the pool has anything to do.
    fn pool_is_busy(&self) -> bool;
}

pub(crate) struct Admission {
    metrics: Arc<LoopMetrics>,
    limiter: RefCell<Limiter<oneshot::Sender<Permit>>>,
    /// Whether a probe is in the loop's queue, and how long runs have worked on the loop since it got there.
    probing: Cell<bool>,
    round_ns: Cell<u64>,
    /// When the current window ends, and how many refusals there were in it.
    refusal_window: Cell<(Option<Instant>, u32)>,
}

impl Admission {
    pub(crate) fn new(settings: &AdmissionSettings, metrics: &Arc<LoopMetrics>) -> Rc<Admission> {
        Rc::new(Admission {
            metrics: metrics.clone(),
            limiter: RefCell::new(Limiter::new(settings)),
            probing: Cell::new(false),
            round_ns: Cell::new(0),
            refusal_window: Cell::default(),
        })
    }

    /// Whether a request is refused before it is read, and why. `deadline` is the one that the server sets; without one, nobody can be
    /// refused who might have more time than others.
    pub(crate) fn refuses_unread(
        self: &Rc<Admission>,
        machine: &impl Machine,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Option<Refusal> {
        let deadline = deadline?;
        self.probe(machine);
        self.limiter.borrow_mut().refusal(now, Some(deadline), self.round(), || machine.pool_has_room())
    }

    /// Counts a refusal. Gives the moment at which it may be sent, if that is not now.
    pub(crate) fn count_refusal(&self, machine: &impl Machine, now: Instant, refusal: Refusal) -> Option<Instant> {
        self.metrics.rejected[refusal as usize].add(1);
        // Where everything is done on the loop there is no pool to protect, and waiting would only be more work.
        if machine.pool_is_busy() { self.refusal_time(now) } else { None }
    }

    /// Starts a run when it is admitted, immediately or after queueing, and sees it to its end. What it does on the loop is counted,
    /// and how long it waited for a thread is learned from. The run is given the pressure under which it starts. Gives its outcome and
    /// for how many nanoseconds it queued.
    pub(crate) async fn run<R: Future<Output = Outcome>>(
        self: &Rc<Admission>,
        machine: &impl Machine,
        deadline: Option<Instant>,
        plan: Option<&Arc<PlanCounters>>,
        purpose: Purpose,
        start: impl FnOnce(u8) -> R,
    ) -> Result<(Outcome, u64), Refusal> {
        let Admitted { permit, queued_ns, may_wait, pressure } = match self.enter(machine, deadline).await {
            Ok(admitted) => admitted,
            Err(refusal) => {
                if let Some(at) = self.count_refusal(machine, clock::now(), refusal) {
                    Timer::new(at).await;
                }
                return Err(refusal);
            }
        };
        let _published = Published::new(self, permit);
        let Some(_counted) = plan.map(|plan| plan.enter()).unwrap_or_default() else {
            self.metrics.rejected[Refusal::PlanLimit as usize].add(1);
            return Err(Refusal::PlanLimit);
        };
        self.metrics.queued.add(queued_ns);
        let (mut run, mut on_loop_ns) = (pin!(start(pressure)), 0);
        let outcome = poll_fn(|cx| {
            let (polled, took_ns) = self.timed(|| run.as_mut().poll(cx));
            on_loop_ns += took_ns;
            polled
        })
        .await;
        if purpose == Purpose::Answer {
            self.limiter.borrow_mut().learn(&RunUsage {
                took: outcome.took,
                waited: outcome.cpu.waited,
                may_wait,
                worked: outcome.cpu.worked + Duration::from_nanos(on_loop_ns),
                timed_out: outcome.result.as_ref().is_err_and(|error| error.code.kind == ErrorKind::Timeout),
            });
        }
        Ok((outcome, queued_ns))
    }

    /// Admits a request, now or after it has queued.
    async fn enter(
        self: &Rc<Admission>,
        machine: &impl Machine,
        deadline: Option<Instant>,
    ) -> Result<Admitted, Refusal> {
        self.probe(machine);
        let asked = clock::now();
        let may_wait = self.limiter.borrow().may_wait(asked, deadline);
        let decision = self.limiter.borrow_mut().ask(asked, deadline, self.round(), || machine.pool_has_room());
        let until = match decision {
            Decision::Enter => {
                let pressure = self.pressure(asked, deadline);
                return Ok(Admitted { permit: Permit::new(self), queued_ns: 0, may_wait, pressure });
            }
            Decision::Refuse(refusal) => return Err(refusal),
            Decision::WaitUntil(until) => until,
        };
        let (admit, admitted) = oneshot::channel();
        self.limiter.borrow_mut().wait(admit, deadline.is_some());
        // There may be more room than there was.
        self.admit_next();
        match timeout_at(until, admitted).await {
            Some(Ok(permit)) => {
                let now = clock::now();
                let (queued_ns, pressure) = (nanos_between(asked, now), self.pressure(now, deadline));
                Ok(Admitted { permit, queued_ns, may_wait, pressure })
            }
            _ => Err(Refusal::Queue),
        }
    }

    /// How hard this loop is pressed, from 0 to [`crate::limiter::PRESSURE_MAX`], as a request with this deadline sees it.
    fn pressure(&self, now: Instant, deadline: Option<Instant>) -> u8 {
        self.limiter.borrow_mut().pressure(now, deadline, self.round())
    }

    /// How hard the loop was pressed when that was last asked.
    pub(crate) fn last_pressure(&self) -> u8 {
        self.limiter.borrow().last_pressure()
    }

    /// How long runs have worked on the loop in this round.
    fn round(&self) -> Duration {
        Duration::from_nanos(self.round_ns.get())
    }

    /// When a refusal may be sent, if that is not now.
    fn refusal_time(&self, now: Instant) -> Option<Instant> {
        let (over, told) = match self.refusal_window.get() {
            (Some(over), told) if now < over => (over, told),
            _ => (now + REFUSAL_WINDOW, 0),
        };
        self.refusal_window.set((Some(over), told + 1));
        (told >= PROMPT_REFUSALS).then_some(over)
    }

    /// Puts a probe into the loop's queue, if none is there: with it a new round begins.
    fn probe(self: &Rc<Admission>, machine: &impl Machine) {
        if self.probing.replace(true) {
            return;
        }
        self.round_ns.set(0);
        let admission = self.clone();
        machine.after_this_round(move || admission.probing.set(false));
    }

    /// Does a piece of work on the loop; its time is counted for the round, and given back with what came of it.
    pub(crate) fn timed<T>(&self, piece: impl FnOnce() -> T) -> (T, u64) {
        let began = clock::now();
        let done = piece();
        let took_ns = nanos_between(began, clock::now());
        self.round_ns.set(self.round_ns.get() + took_ns.min(POLL_NS_MAX));
        (done, took_ns)
    }

    /// Publishes how full the loop is as metrics.
    fn publish(&self) {
        let limiter = self.limiter.borrow();
        self.metrics.running.set(limiter.running().into());
        self.metrics.queue_len.set(limiter.queue_len() as u64);
        self.metrics.limit.set(limiter.limit() as u64);
        self.metrics.pressure.set(limiter.last_pressure().into());
    }

    /// Admits the next in the queue, as far as the limit allows. Requests that were given up meanwhile are skipped.
    fn admit_next(self: &Rc<Admission>) {
        loop {
            let Some(admit) = self.limiter.borrow_mut().next() else { return };
            if let Err(permit) = admit.send(Permit::new(self)) {
                permit.give_back();
            }
        }
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An answer with rows.
    Answer,
    /// A question about items. It takes longer than other runs do, so nothing is learned from it, and its dials do not follow the load.
    Question,
}

/// A request that may run.
struct Admitted {
    permit: Permit,
    queued_ns: u64,
    /// How long its run may wait for a thread.
    may_wait: Duration,
    pressure: u8,
}

/// The right to run; given back when dropped.
pub(crate) struct Permit {
    /// `None` once given back.
    admission: Option<Rc<Admission>>,
}

impl Permit {
    /// For a request that the limiter has admitted.
    fn new(admission: &Rc<Admission>) -> Permit {
        Permit { admission: Some(admission.clone()) }
    }

    /// Gives it back without admitting the next: the caller does that.
    fn give_back(mut self) {
        if let Some(admission) = self.admission.take() {
            admission.limiter.borrow_mut().leave();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.limiter.borrow_mut().leave();
            admission.admit_next();
        }
    }
}

/// A permit whose coming and going the metrics show, also when the client goes away.
struct Published {
    admission: Rc<Admission>,
    permit: Option<Permit>,
}

impl Published {
    fn new(admission: &Rc<Admission>, permit: Permit) -> Published {
        admission.publish();
        Published { admission: admission.clone(), permit: Some(permit) }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.permit = None;
        self.admission.publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    /// A loop that is never behind, and a pool that has nothing to do or all it can.
    struct Idle {
        pool: bool,
    }

    impl Machine for Idle {
        fn after_this_round(&self, then: impl FnOnce() + 'static) {
            then();
        }

        fn pool_has_room(&self) -> bool {
            self.pool
        }

        fn pool_is_busy(&self) -> bool {
            false
        }
    }

    fn admission(limit_max: f64) -> Rc<Admission> {
        let settings = AdmissionSettings { queue: Some(Duration::from_millis(20)), limit_max };
        Admission::new(&settings, &Arc::default())
    }

    fn on_runtime<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn a_permit_lets_in_who_waits_and_passes_over_who_has_gone() {
        on_runtime(async {
            let (admission, machine) = (admission(1.0), Idle { pool: true });
            let first = admission.enter(&machine, None).await.unwrap();
            assert_eq!((first.queued_ns, admission.limiter.borrow().running()), (0, 1));
            let mut gone = Box::pin(admission.enter(&machine, None));
            let mut next = Box::pin(admission.enter(&machine, None));
            assert!(gone.as_mut().now_or_never().is_none() && next.as_mut().now_or_never().is_none());
            drop(gone);
            assert_eq!((admission.limiter.borrow().running(), admission.limiter.borrow().queue_len()), (1, 2));
            drop(first);
            let permit = next.await.unwrap();
            assert_eq!((admission.limiter.borrow().running(), admission.limiter.borrow().queue_len()), (1, 0));
            drop(permit);
            assert_eq!(admission.limiter.borrow().running(), 0);
        });
    }

    #[test]
    fn who_has_a_deadline_goes_first_and_does_not_wait_beyond_it() {
        on_runtime(async {
            let (admission, machine) = (admission(1.0), Idle { pool: true });
            let first = admission.enter(&machine, None).await.unwrap();
            let hour = Duration::from_secs(3600);
            let mut patient = Box::pin(admission.enter(&machine, None));
            assert!(patient.as_mut().now_or_never().is_none());
            let soon = clock::now() + Duration::from_millis(2);
            assert_eq!(admission.enter(&machine, Some(soon)).await.err(), Some(Refusal::Queue));
            assert!(clock::now() >= soon);
            let mut urgent = Box::pin(admission.enter(&machine, Some(clock::now() + hour)));
            assert!(urgent.as_mut().now_or_never().is_none());
            drop(first);
            let permit = urgent.await.unwrap();
            assert!(patient.as_mut().now_or_never().is_none());
            drop(permit);
            assert!(patient.await.is_ok());
        });
    }

    #[test]
    fn a_thread_that_was_held_up_has_not_worked_all_the_time() {
        let admission = admission(10.0);
        let (_, took_ns) = admission.timed(|| {
            let until = clock::now() + Duration::from_millis(12);
            while clock::now() < until {}
        });
        assert!(took_ns >= 12_000_000);
        assert_eq!(admission.round_ns.get(), POLL_NS_MAX);
    }

    #[test]
    fn a_few_are_sent_away_at_once_and_the_others_after_a_pause() {
        let (admission, now) = (admission(20.0), clock::now());
        let times: Vec<_> = (0..2 * PROMPT_REFUSALS).map(|_| admission.refusal_time(now)).collect();
        let (prompt, later) = times.split_at(PROMPT_REFUSALS as usize);
        assert!(prompt.iter().all(Option::is_none));
        assert!(later.iter().all(|time| *time == Some(now + REFUSAL_WINDOW)));
        assert_eq!(admission.refusal_time(now + REFUSAL_WINDOW), None, "the pause is over");
    }

    #[test]
    fn who_is_refused_unread_would_be_refused_later_as_well() {
        let (admission, machine) = (admission(10.0), Idle { pool: true });
        let now = clock::now();
        let unread = |deadline| admission.refuses_unread(&machine, now, deadline);
        let (own, longer) = (now + Duration::from_millis(50), now + Duration::from_secs(1));
        assert_eq!((unread(Some(own)), unread(Some(longer)), unread(None)), (None, None, None));
        admission.probing.set(true);
        admission.round_ns.set(21_000_000);
        assert_eq!((unread(Some(own)), unread(None)), (Some(Refusal::Behind), None));
        let asked = admission.limiter.borrow_mut().ask(now, Some(own), admission.round(), || true);
        assert_eq!(asked, Decision::Refuse(Refusal::Behind));
    }
}
