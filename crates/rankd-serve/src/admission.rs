//! Which requests run now, which queue, and which are refused.
//!
//! Two things are bounded, each by time and not by a length. The loop: how much work it takes on in one round, measured from the
//! moment a probe is put into the loop's queue to the moment it is polled. The runs: how many are in progress, by a limit that
//! follows how long runs wait for a thread (`limiter`); requests over it queue. A refusal is not counted as work: it must not keep
//! the next request out. But it takes processor time from computations in the pool, so while some wait there, clients that retry
//! immediately get their refusal a little later. There is one per loop; nothing here is shared between loops.

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

    /// Starts a run when it is admitted, immediately or after queueing, and sees it to its end. What it does on the loop is counted,
    /// and how long it waited for a thread is learned from. Gives its outcome and for how many nanoseconds it queued.
    pub(crate) async fn run<R: Future<Output = Outcome>>(
        self: &Rc<Admission>,
        machine: &impl Machine,
        deadline: Option<Instant>,
        plan: Option<&Arc<PlanCounters>>,
        start: impl FnOnce() -> R,
    ) -> Result<(Outcome, u64), Refusal> {
        let (permit, queued_ns) = match self.enter(machine, deadline).await {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(machine, refusal).await,
        };
        let _published = Published::new(self, permit);
        let Some(_counted) = plan.map(|plan| plan.enter()).unwrap_or_default() else {
            self.metrics.rejected[Refusal::PlanLimit as usize].add(1);
            return Err(Refusal::PlanLimit);
        };
        self.metrics.queued.add(queued_ns);
        let (mut run, mut on_loop_ns) = (pin!(start()), 0);
        let outcome = poll_fn(|cx| {
            let (polled, took_ns) = self.timed(|| run.as_mut().poll(cx));
            on_loop_ns += took_ns;
            polled
        })
        .await;
        self.limiter.borrow_mut().learn(&RunUsage {
            took: outcome.took,
            waited: outcome.cpu.waited,
            worked: outcome.cpu.worked + Duration::from_nanos(on_loop_ns),
            timed_out: outcome.result.as_ref().is_err_and(|error| error.code.kind == ErrorKind::Timeout),
        });
        Ok((outcome, queued_ns))
    }

    /// Counts a refusal, and returns it when it may be sent.
    async fn refuse<T>(&self, machine: &impl Machine, refusal: Refusal) -> Result<T, Refusal> {
        // Where everything is done on the loop there is no pool to protect, and waiting would only be more work.
        if machine.pool_is_busy() {
            self.throttle_refusals().await;
        }
        self.metrics.rejected[refusal as usize].add(1);
        Err(refusal)
    }

    /// Admits a request; the number is how many nanoseconds it queued.
    async fn enter(
        self: &Rc<Admission>,
        machine: &impl Machine,
        deadline: Option<Instant>,
    ) -> Result<(Permit, u64), Refusal> {
        self.probe(machine);
        let (asked, round) = (clock::now(), Duration::from_nanos(self.round_ns.get()));
        let decision = self.limiter.borrow_mut().ask(asked, deadline, round, || machine.pool_has_room());
        let until = match decision {
            Decision::Enter => return Ok((Permit::new(self), 0)),
            Decision::Refuse(refusal) => return Err(refusal),
            Decision::WaitUntil(until) => until,
        };
        let (admit, admitted) = oneshot::channel();
        self.limiter.borrow_mut().wait(admit, deadline.is_some());
        // There may be more room than there was.
        self.admit_next();
        match timeout_at(until, admitted).await {
            Some(Ok(permit)) => Ok((permit, nanos_between(asked, clock::now()))),
            _ => Err(Refusal::Queue),
        }
    }

    /// Returns when a refusal may be sent.
    async fn throttle_refusals(&self) {
        let now = clock::now();
        let (over, told) = match self.refusal_window.get() {
            (Some(over), told) if now < over => (over, told),
            _ => (now + REFUSAL_WINDOW, 0),
        };
        self.refusal_window.set((Some(over), told + 1));
        if told >= PROMPT_REFUSALS {
            Timer::new(over).await;
        }
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
        let settings = AdmissionSettings { queue: Duration::from_millis(20), limit_max };
        Admission::new(&settings, &Arc::default())
    }

    fn on_runtime<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn a_permit_lets_in_who_waits_and_passes_over_who_has_gone() {
        on_runtime(async {
            let (admission, machine) = (admission(1.0), Idle { pool: true });
            let (first, queued_ns) = admission.enter(&machine, None).await.unwrap();
            assert_eq!((queued_ns, admission.limiter.borrow().running()), (0, 1));
            let mut gone = Box::pin(admission.enter(&machine, None));
            let mut next = Box::pin(admission.enter(&machine, None));
            assert!(gone.as_mut().now_or_never().is_none() && next.as_mut().now_or_never().is_none());
            drop(gone);
            assert_eq!((admission.limiter.borrow().running(), admission.limiter.borrow().queue_len()), (1, 2));
            drop(first);
            let (permit, _) = next.await.unwrap();
            assert_eq!((admission.limiter.borrow().running(), admission.limiter.borrow().queue_len()), (1, 0));
            drop(permit);
            assert_eq!(admission.limiter.borrow().running(), 0);
        });
    }

    #[test]
    fn who_has_a_deadline_goes_first_and_does_not_wait_beyond_it() {
        on_runtime(async {
            let (admission, machine) = (admission(1.0), Idle { pool: true });
            let (first, _) = admission.enter(&machine, None).await.unwrap();
            let hour = Duration::from_secs(3600);
            let mut patient = Box::pin(admission.enter(&machine, None));
            assert!(patient.as_mut().now_or_never().is_none());
            let soon = clock::now() + Duration::from_millis(2);
            assert_eq!(admission.enter(&machine, Some(soon)).await.err(), Some(Refusal::Queue));
            assert!(clock::now() >= soon);
            let mut urgent = Box::pin(admission.enter(&machine, Some(clock::now() + hour)));
            assert!(urgent.as_mut().now_or_never().is_none());
            drop(first);
            let (permit, _) = urgent.await.unwrap();
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
        on_runtime(async {
            let admission = admission(20.0);
            let began = clock::now();
            let mut paces: Vec<_> = (0..2 * PROMPT_REFUSALS).map(|_| Box::pin(admission.throttle_refusals())).collect();
            let later: Vec<_> =
                paces.iter_mut().filter_map(|pace| pace.now_or_never().is_none().then_some(pace)).collect();
            assert_eq!(later.len(), PROMPT_REFUSALS as usize);
            futures_util::future::join_all(later).await;
            assert!(clock::now() >= began + REFUSAL_WINDOW);
            assert!(admission.throttle_refusals().now_or_never().is_some(), "the pause is over");
        });
    }
}
