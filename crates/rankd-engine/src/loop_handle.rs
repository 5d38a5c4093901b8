//! An event loop as a service on it sees it: requests that arrive on the loop are run there, without crossing threads.
//!
//! The program starts a service on every loop, such as a listener with its connections. A service runs plans on its own thread, and
//! every task that it spawns there has its polls timed: the longest one says how long others had to wait.

use crate::clock;
use crate::deadline::{Allowed, Deadline, Limits};
use crate::error::RunError;
use crate::link::Linked;
use crate::loop_context::LoopContext;
use crate::request::Request;
use crate::run::{self, Cancel, Outcome};
use crate::run_limit::TIME_MAX;
use crate::stats::Stats;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// What a service on a loop does until it is done; it never leaves its thread.
pub type LoopService = Pin<Box<dyn Future<Output = ()>>>;

/// Makes a loop's service, on that loop's thread.
pub(crate) type MakeService = Arc<dyn Fn(LoopHandle) -> LoopService + Send + Sync>;

/// One loop, as a service on it sees it.
#[derive(Clone)]
pub struct LoopHandle {
    number: usize,
    context: Rc<LoopContext>,
    allowed: Allowed,
    longest_poll: Arc<LongestPoll>,
}

impl LoopHandle {
    pub(crate) fn new(
        number: usize,
        context: Rc<LoopContext>,
        allowed: Allowed,
        longest_poll: Arc<LongestPoll>,
    ) -> LoopHandle {
        LoopHandle { number, context, allowed, longest_poll }
    }

    /// Which loop this is, counted from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    pub fn stats(&self) -> &Stats {
        &self.context.stats
    }

    /// When a request that came in at `since` must be answered, if it must. `asked` is the limit that the request itself sets.
    pub fn deadline(&self, since: clock::Instant, asked: Option<Duration>) -> Option<Deadline> {
        Limits::tighter(since, self.allowed, Allowed { deadline: asked, ..Allowed::default() }).request
    }

    /// The limits of a run for a request that came in at `since`.
    pub fn limits(&self, since: clock::Instant, request: &Request) -> Limits {
        request.limits(since, self.allowed)
    }

    /// The limits of a run that is asked about and starts now: neither the request's time nor that of the process's requests, but its own.
    pub fn limits_of_question(&self) -> Limits {
        let allowed = Allowed { deadline: Some(TIME_MAX), node_timeout: None, ..self.allowed };
        Limits::tighter(clock::now(), allowed, Allowed::default())
    }

    /// The limits of a run beside those for requests, which starts now. Its nodes have as long as it has: it waits for everybody else, and what a node
    /// takes then says nothing about the node.
    pub fn limits_beside(&self) -> Limits {
        Limits { times_nodes: false, ..self.limits_of_question() }
    }

    /// Runs a plan on this loop within these limits. Dropping the future cancels the run.
    pub async fn run(&self, plan: &Arc<Linked>, request: Request, limits: Limits, cancel: Arc<Cancel>) -> Outcome {
        let request = plan.begin(request, self.context.stores.tables.as_deref());
        run::run(plan.clone(), request, self.context.clone(), limits, cancel).await
    }

    /// Does work on the CPU pool that would hold this loop for too long, and returns its result. Nothing waits beyond the
    /// deadline. Work that nothing waits for any more is not begun, and a panic in it goes no further.
    pub async fn offload<T: Send + 'static>(
        &self,
        deadline: Option<Deadline>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let (done, result) = oneshot::channel();
        self.context.pool.submit(Box::new(move |_| {
            if !done.is_closed() {
                // The caller may have gone meanwhile; then the result is not needed.
                let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
            }
        }));
        let result = match deadline {
            None => result.await,
            Some(deadline) => match clock::timeout_at(deadline.at, result).await {
                Some(result) => result,
                None => return Err(RunError::timeout(&deadline)),
            },
        };
        match result {
            Ok(Ok(given)) => Ok(given),
            Ok(Err(_)) => {
                self.context.stats.count_panic();
                Err(RunError::bug("a panic while a request was read or answered"))
            }
            Err(_) => Err(RunError::bug("the CPU pool dropped a job")),
        }
    }

    /// Spawns a task on this loop, with its polls timed.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        tokio::task::spawn_local(Timed { task: Box::pin(task), longest_poll: self.longest_poll.clone() });
    }
}

/// The longest that a loop was held by one poll of one task.
#[derive(Debug, Default)]
pub struct LongestPoll {
    ns: AtomicU64,
}

impl LongestPoll {
    /// The longest since this was last asked.
    pub fn take_ns(&self) -> u64 {
        self.ns.swap(0, Ordering::Relaxed)
    }

    fn note(&self, took_ns: u64) {
        // Only the loop's own thread writes, so a plain comparison before the write is enough.
        if took_ns > self.ns.load(Ordering::Relaxed) {
            self.ns.store(took_ns, Ordering::Relaxed);
        }
    }
}

struct Timed<F> {
    task: Pin<Box<F>>,
    longest_poll: Arc<LongestPoll>,
}

impl<F: Future<Output = ()>> Future for Timed<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let began = clock::now();
        let polled = self.task.as_mut().poll(cx);
        self.longest_poll.note(clock::nanos_between(began, clock::now()));
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::ErrorKind;
    use crate::{Engine, Settings};
    use crossbeam_channel::bounded;

    #[test]
    fn work_on_the_pool_comes_back_or_fails_by_itself() {
        let engine = Engine::start(Settings::default(), Vec::new()).unwrap();
        let (tell, told) = bounded(1);
        assert!(engine.on_every_loop(move |loop_handle| {
            let tell = tell.clone();
            Box::pin(async move {
                let done = loop_handle.offload(None, || std::thread::current().name().map(str::to_owned)).await;
                let panicked = loop_handle.offload(None, || unreachable!("as the test wants it")).await;
                let (release, held) = bounded::<()>(0);
                let deadline = loop_handle.deadline(clock::now(), Some(Duration::from_millis(20)));
                // Goes on until the other side is dropped.
                let late = loop_handle.offload(deadline, move || held.recv().is_err()).await;
                drop(release);
                tell.send((done, panicked, late)).unwrap();
            })
        }));
        let (done, panicked, late) = told.recv().unwrap();
        assert_eq!(done.unwrap().as_deref(), Some("rankd-cpu-0"));
        assert_eq!(panicked.unwrap_err().code.kind, ErrorKind::Bug);
        assert_eq!(late.unwrap_err().code.kind, ErrorKind::Timeout);
        assert_eq!(engine.stats().panics(), 1);
        engine.stop(Duration::from_secs(10));
    }
}
