//! What the connections and requests of one event loop share: admission, memory accounts, the connections themselves and how far the
//! shutdown has come. Only the loop's thread touches it.

use crate::admission::{Admission, Machine};
use crate::app::App;
use crate::connection_state::{ConnectionClass, ConnectionState};
use crate::limiter::Refusal;
use crate::metrics::LoopMetrics;
use crate::refusal_answer::RefusalAnswer;
use crate::request_outcome::RequestOutcome;
use crate::unread_answers;
use rankd_engine::clock::{self, Instant};
use rankd_engine::{ErrorKind, LoopHandle};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// Connections kept for health checks, on all loops together; each loop has at least one.
pub const HEALTH_CONNECTIONS: usize = 16;
/// Connections to the listener for operators.
pub const ADMIN_CONNECTIONS: usize = 32;
/// Connections to the listener of the console: a browser opens six.
pub const CONSOLE_CONNECTIONS: usize = 32;
/// One connection may leave this part of the memory for answers unread.
const SHARE: usize = 4;
/// An answer this short is sent even where there is no memory left for answers: health checks and refusals.
const SHORT: usize = 1 << 10;
/// The least time between two log lines about a store that does not answer; otherwise each request would have one.
const STORE_LINES_APART: Duration = Duration::from_secs(1);
/// The least time between two log lines about requests that were refused before they were read. They have no lines of their own.
const REFUSAL_LINES_APART: Duration = Duration::from_secs(1);
/// How many large parts of a loop's requests are on the pool at a time. Others wait: a plan's computations must not queue behind a
/// crowd of them.
const OFF_LOOP_AT_A_TIME: usize = 2;

/// How far the shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownStage {
    Open,
    /// Answers say that the connection closes.
    Closing,
    /// Idle connections are closed, half-sent requests are cut.
    LastCall,
    /// Everything is cut.
    Over,
}

pub(crate) struct LoopState {
    pub(crate) app: Arc<App>,
    pub(crate) loop_handle: LoopHandle,
    pub(crate) metrics: Arc<LoopMetrics>,
    pub(crate) admission: Rc<Admission>,
    pub(crate) stage: Cell<ShutdownStage>,
    /// Bytes of bodies that have arrived, of requests that are not answered yet.
    pub(crate) body_bytes: Cell<usize>,
    /// The cost of the answers that clients have not read.
    unread: Cell<usize>,
    /// When a store that did not answer was last logged.
    store_failure_logged: Cell<Option<Instant>>,
    /// What requests are told that are refused before they are read; when that was last logged, and how often it was told since.
    pub(crate) refusal_answer: RefusalAnswer,
    refusals_logged: Cell<(Option<Instant>, u64)>,
    /// The positions of the pages that rank: with the plan in the request, and in the path.
    ranking_routes: [Option<usize>; 2],
    /// Limits the work that is too large for the loop.
    pub(crate) off_loop: Semaphore,
    /// One question about items at a time.
    pub(crate) questions: Semaphore,
    /// What the next random number follows from.
    drawn: Cell<u64>,
    connections: RefCell<HashMap<*const ConnectionState, Rc<ConnectionState>>>,
    /// Connections that were evicted have not been polled yet.
    pub(crate) evicting: Cell<bool>,
    /// The last connection has gone.
    empty: Notify,
}

impl Machine for LoopState {
    fn after_this_round(&self, then: impl FnOnce() + 'static) {
        self.loop_handle.spawn(async move {
            tokio::task::yield_now().await;
            then();
        });
    }

    fn pool_has_room(&self) -> bool {
        self.app.gauges.pool_has_room()
    }

    fn pool_is_busy(&self) -> bool {
        self.app.gauges.pool_depth() > 0
    }
}

impl LoopState {
    pub(crate) fn new(app: Arc<App>, loop_handle: LoopHandle) -> LoopState {
        let metrics = app.metrics.of_loop(loop_handle.number());
        LoopState {
            admission: Admission::new(&app.settings.admission, &metrics),
            stage: Cell::new(ShutdownStage::Open),
            body_bytes: Cell::new(0),
            unread: Cell::new(0),
            store_failure_logged: Cell::new(None),
            refusal_answer: RefusalAnswer::new(),
            refusals_logged: Cell::default(),
            ranking_routes: ["/rank", "/rank/{plan}"]
                .map(|path| app.metrics.routes.iter().position(|route| *route == path)),
            off_loop: Semaphore::new(OFF_LOOP_AT_A_TIME),
            questions: Semaphore::new(1),
            // Loops draw different numbers.
            drawn: Cell::new(loop_handle.number() as u64),
            connections: RefCell::default(),
            evicting: Cell::new(false),
            empty: Notify::new(),
            app,
            loop_handle,
            metrics,
        }
    }

    /// A random number (SplitMix64). Requests are drawn by it for shadows: a hash of their ids would cost those that are not drawn, too.
    pub(crate) fn draw(&self) -> u64 {
        let state = self.drawn.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.drawn.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Whether to log that a store did not answer; true at most once in [`STORE_LINES_APART`].
    pub(crate) fn should_log_store_failure(&self) -> bool {
        let now = clock::now();
        let is_time = self.store_failure_logged.get().is_none_or(|last| now >= last + STORE_LINES_APART);
        if is_time {
            self.store_failure_logged.set(Some(now));
        }
        is_time
    }

    /// Whether a ranking request that comes now is refused before it is read, and why.
    pub(crate) fn refuses_unread(&self) -> Option<(Instant, Refusal)> {
        let now = clock::now();
        let deadline = self.loop_handle.deadline(now, None).map(|deadline| deadline.at);
        self.admission.refuses_unread(self, now, deadline).map(|refusal| (now, refusal))
    }

    /// The same before anything is known but the connection that it comes on. While the process stops, answers say more than a refusal does.
    pub(crate) fn refuses_unread_on(&self, state: &ConnectionState) -> Option<(Instant, Refusal)> {
        let is_client = state.class == ConnectionClass::Clients && self.stage.get() == ShutdownStage::Open;
        if is_client { self.refuses_unread() } else { None }
    }

    /// Counts a request for this plan that HTTP never sees. Gives the moment at which its client may be told, if that is not now.
    pub(crate) fn count_unread_refusal(&self, plan: &str, now: Instant, refusal: Refusal) -> Option<Instant> {
        self.metrics.count_response(self.ranking_routes[usize::from(!plan.is_empty())], 503);
        let catalog = self.app.catalog.load();
        let counts = match catalog.get(plan) {
            Some(plan) => &plan.counters.metrics.loops[self.loop_handle.number()],
            None => &self.metrics.no_plan,
        };
        counts.count(RequestOutcome::Failed(ErrorKind::Overloaded), 0);
        let (logged, told) = self.refusals_logged.get();
        let is_time = logged.is_none_or(|last| now >= last + REFUSAL_LINES_APART);
        if is_time {
            let message = format!("overloaded: {} requests were refused before they were read", told + 1);
            self.app.log.event("warn", &message);
        }
        self.refusals_logged.set(if is_time { (Some(now), 0) } else { (logged, told + 1) });
        self.admission.count_refusal(self, now, refusal)
    }

    /// The first of these classes that has room for one more connection, or can make room; `None` where none has.
    pub(crate) fn class_with_room(&self, classes: &[ConnectionClass]) -> Option<ConnectionClass> {
        let free = |class: ConnectionClass| match class {
            ConnectionClass::Clients => self.app.open(class) < self.app.settings.connections_max,
            ConnectionClass::Health => {
                let here = self.connections.borrow().values().filter(|state| state.class == class).count();
                here < (HEALTH_CONNECTIONS / self.app.metrics.loops().len()).max(1)
            }
            ConnectionClass::Admin => self.app.open(class) < ADMIN_CONNECTIONS,
            ConnectionClass::Console => self.app.open(class) < CONSOLE_CONNECTIONS,
        };
        classes.iter().copied().find(|class| free(*class) || self.evict(*class))
    }

    /// Closes the connection of this class that has been idle for longest; false where all are busy.
    pub(crate) fn evict(&self, class: ConnectionClass) -> bool {
        let connections = self.connections.borrow();
        let idle = connections.values().filter(|state| state.class == class && !state.evicted.get());
        let oldest = idle.filter_map(|state| Some((state.idle_since()?, state))).min_by_key(|(at, _)| *at);
        let Some((_, oldest)) = oldest else { return false };
        self.close_connection(oldest);
        true
    }

    fn close_connection(&self, state: &ConnectionState) {
        state.evicted.set(true);
        state.wake();
        self.evicting.set(true);
    }

    /// Whether an answer of so many bytes may be handed to a connection. One connection may leave only a part of the memory for answers
    /// unread. Where all of it is in use, the connection with the most unread bytes is closed, so that a client that reads its answers
    /// is not refused for those that do not.
    pub(crate) fn has_room_for_answer(&self, bytes: usize, asker: &ConnectionState) -> bool {
        let all = self.app.settings.answer_bytes_max / self.app.metrics.loops().len();
        let cost = unread_answers::cost(bytes);
        let own = asker.unread.bytes();
        if bytes > SHORT && own > 0 && own + cost > all / SHARE {
            return false;
        }
        if self.unread.get() + cost <= all {
            return true;
        }
        let connections = self.connections.borrow();
        // The bytes of connections that were evicted already are as good as free.
        let staying = || connections.values().filter(|state| !state.evicted.get());
        if staying().map(|state| state.unread.bytes()).sum::<usize>() + cost <= all {
            return true;
        }
        match staying().max_by_key(|state| state.unread.bytes()) {
            Some(most) if most.unread.bytes() > own => {
                self.close_connection(most);
                true
            }
            // No connection has left more unread than this one.
            _ => bytes <= SHORT || own == 0,
        }
    }

    pub(crate) fn count_unread(&self, change: impl FnOnce(usize) -> usize) {
        self.unread.set(change(self.unread.get()));
        self.metrics.unread.set(self.unread.get() as u64);
    }

    pub(crate) fn register(&self, state: &Rc<ConnectionState>) {
        self.app.open[state.class as usize].fetch_add(1, Ordering::Relaxed);
        self.connections.borrow_mut().insert(Rc::as_ptr(state), state.clone());
    }

    pub(crate) fn unregister(&self, state: &Rc<ConnectionState>) {
        self.app.open[state.class as usize].fetch_sub(1, Ordering::Relaxed);
        let mut connections = self.connections.borrow_mut();
        connections.remove(&Rc::as_ptr(state));
        if connections.is_empty() {
            self.empty.notify_waiters();
        }
    }

    pub(crate) async fn wait_until_empty(&self) {
        loop {
            let gone = self.empty.notified();
            if self.connections.borrow().is_empty() {
                return;
            }
            gone.await;
        }
    }

    pub(crate) fn enter(&self, stage: ShutdownStage) {
        self.stage.set(stage);
        self.connections.borrow().values().for_each(|state| state.wake());
    }

    /// Cancels the runs in progress.
    pub(crate) fn cancel_runs(&self) {
        self.connections.borrow().values().for_each(|state| {
            state.runs.borrow().iter().for_each(|run| run.cancel());
        });
    }
}
