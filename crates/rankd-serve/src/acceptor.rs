//! One event loop's side of the server: its listener, its connections, and how both are shut down.
//!
//! A connection is accepted, read and answered on the same loop. When descriptors or connections run out, the connection that has
//! been idle for longest is closed to make room; one that waits for a body counts as idle. When none is idle, a few connections are
//! still accepted for health checks. Accepting never spins.

use crate::admission::Admission;
use crate::app::App;
use crate::connection::{Connection, LoopExecutor, protocol};
use crate::connection_state::{ConnectionClass, ConnectionState};
use crate::listen::stop_new_connections;
use crate::metrics::LoopMetrics;
use crate::off_loop;
use crate::unread_answers;
use futures_util::future::{Either, join_all, select};
use hyper_util::server::conn::auto;
use rankd_engine::LoopHandle;
use rankd_engine::clock::{self, Instant};
use rankd_engine::loop_handle::LoopService;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// How long idle connections are kept once the process stops, so that a request already on its way is answered.
const GRACE: Duration = Duration::from_millis(300);
/// How long new connections are still accepted once the process stops: balancers need that long to see that it is not ready. One that
/// connects after that is refused at once and can go elsewhere.
const STILL_ACCEPTING: Duration = Duration::from_millis(200);
/// How long connections that were begun before a listener is closed may take to be completed. A client that begins in this time
/// retries after a second, so it is short.
const LAST_ARRIVALS: Duration = Duration::from_millis(1);
/// How long answers to stopped runs may take to leave.
const FAREWELL: Duration = Duration::from_millis(300);
/// The pause after a failure to accept a connection.
const BREATH: Duration = Duration::from_millis(20);
/// Connections kept for health checks, on all loops together; each loop has at least one.
pub const HEALTH_CONNECTIONS: usize = 16;
/// Connections to the listener for operators.
pub const ADMIN_CONNECTIONS: usize = 32;
/// The classes of connections to the public listener, in the order in which they are tried.
const PUBLIC_CLASSES: [ConnectionClass; 2] = [ConnectionClass::Clients, ConnectionClass::Health];
/// One connection may leave this part of the memory for answers unread.
const SHARE: usize = 4;
/// An answer this short is sent even where there is no memory left for answers: health checks and refusals.
const SHORT: usize = 1 << 10;

/// The least time between two log lines about a store that does not answer; otherwise each request would have one.
const STORE_LINES_APART: Duration = Duration::from_secs(1);

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

pub(crate) struct Acceptor {
    pub(crate) app: Arc<App>,
    pub(crate) loop_handle: LoopHandle,
    pub(crate) metrics: Arc<LoopMetrics>,
    pub(crate) protocol: auto::Builder<LoopExecutor>,
    pub(crate) admission: Rc<Admission>,
    pub(crate) stage: Cell<ShutdownStage>,
    /// Bytes of bodies that have come and are not yet read.
    pub(crate) body_bytes: Cell<usize>,
    /// The cost of the answers that clients have not read.
    unread: Cell<usize>,
    /// When a store that did not answer was last logged.
    store_failure_logged: Cell<Option<Instant>>,
    /// Limits the work that is too large for the loop.
    pub(crate) off_loop: Semaphore,
    connections: RefCell<HashMap<*const ConnectionState, Rc<ConnectionState>>>,
    /// Connections that were evicted have not been polled yet.
    evicting: Cell<bool>,
    /// The last connection has gone.
    empty: Notify,
}

impl Acceptor {
    /// Serves on one loop until `stop` is set and the requests in flight then are done.
    pub(crate) fn open(app: Arc<App>, loop_handle: LoopHandle, stop: watch::Receiver<Option<Instant>>) -> LoopService {
        let listener = app.take_listener(loop_handle.number());
        let admin = if loop_handle.number() == 0 { app.take_admin() } else { None };
        let metrics = app.metrics.of_loop(loop_handle.number());
        let acceptor = Rc::new(Acceptor {
            protocol: protocol(&loop_handle),
            admission: Admission::new(&app.settings.admission),
            stage: Cell::new(ShutdownStage::Open),
            body_bytes: Cell::new(0),
            unread: Cell::new(0),
            store_failure_logged: Cell::new(None),
            off_loop: Semaphore::new(off_loop::AT_A_TIME),
            connections: RefCell::default(),
            evicting: Cell::new(false),
            empty: Notify::new(),
            app,
            loop_handle,
            metrics,
        });
        Box::pin(async move {
            // Only a second service on the same loop would find none.
            let Some(listener) = listener else { return };
            let listeners = TcpListener::from_std(listener)
                .and_then(|listener| Ok((listener, admin.map(TcpListener::from_std).transpose()?)));
            match listeners {
                Ok((listener, admin)) => acceptor.serve(listener, admin, stop).await,
                Err(error) => acceptor.app.log.event("error", &format!("a listener cannot be used: {error}")),
            }
        })
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

    async fn serve(
        self: &Rc<Acceptor>,
        listener: TcpListener,
        admin: Option<TcpListener>,
        mut stop: watch::Receiver<Option<Instant>>,
    ) {
        let listeners: Vec<(TcpListener, &[ConnectionClass])> =
            [(Some(listener), &PUBLIC_CLASSES[..]), (admin, &[ConnectionClass::Admin])]
                .into_iter()
                .filter_map(|(listener, classes)| Some((listener?, classes)))
                .collect();
        {
            let accepting = join_all(listeners.iter().map(|(listener, classes)| self.accept(listener, classes)));
            let told = pin!(stop.wait_for(Option::is_some));
            if let Either::Left(_) = select(pin!(accepting), told).await {
                return;
            }
        }
        self.enter(ShutdownStage::Closing);
        let until = stop.borrow().unwrap_or_else(clock::now);
        let accepting = join_all(listeners.iter().map(|(listener, classes)| self.accept(listener, classes)));
        // It never ends by itself.
        let _ = timeout(STILL_ACCEPTING.min(until.saturating_duration_since(clock::now())), accepting).await;
        join_all(listeners.into_iter().map(|(listener, classes)| self.close(listener, classes))).await;
        sleep(GRACE.min(until.saturating_duration_since(clock::now()))).await;
        self.enter(ShutdownStage::LastCall);
        if timeout(until.saturating_duration_since(clock::now()), self.wait_until_empty()).await.is_err() {
            self.connections.borrow().values().for_each(|state| {
                state.runs.borrow().iter().for_each(|run| run.cancel());
            });
            // Clients that still do not read their answer are cut off.
            let _ = timeout(FAREWELL, self.wait_until_empty()).await;
        }
        self.enter(ShutdownStage::Over);
        self.wait_until_empty().await;
    }

    /// Closes a listener. Closing it resets the connections that wait to be accepted, so new ones are held off first, and those that
    /// were begun get the time to be completed.
    async fn close(self: &Rc<Acceptor>, listener: TcpListener, classes: &[ConnectionClass]) {
        if let Err(error) = stop_new_connections(&listener) {
            let message = format!("new connections cannot be held off, so some may be reset: {error}");
            self.app.log.event("error", &message);
        }
        // It never ends by itself.
        let _ = timeout(LAST_ARRIVALS, self.accept(&listener, classes)).await;
        // On a crowded loop it may have had no turn. What cannot be accepted now is lost in any case.
        let Ok(listener) = listener.into_std() else { return };
        while let Ok((stream, _)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                self.open_connection(stream, classes);
            }
        }
    }

    async fn accept(self: &Rc<Acceptor>, listener: &TcpListener, classes: &[ConnectionClass]) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    self.open_connection(stream, classes);
                    // What was evicted for it is closed before the next one is accepted.
                    if self.evicting.replace(false) {
                        tokio::task::yield_now().await;
                    }
                }
                // The client went away before it was accepted.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(_) => {
                    // Out of descriptors or memory. The listener stays ready, so without a pause this would spin.
                    self.metrics.accept_failures.add(1);
                    let _ = classes.iter().any(|class| self.evict(*class));
                    sleep(BREATH).await;
                }
            }
        }
    }

    fn open_connection(self: &Rc<Acceptor>, stream: TcpStream, classes: &[ConnectionClass]) {
        let Some(class) = self.class_with_room(classes) else {
            self.metrics.refused.add(1);
            return;
        };
        // Answers are written whole, so there is nothing to wait for. Without it they are merely later.
        let _ = stream.set_nodelay(true);
        self.metrics.accepted.add(1);
        self.loop_handle.spawn(Connection::new(self, stream, class));
    }

    /// The first of these classes that has room for one more connection, or can make room; `None` where none has.
    fn class_with_room(&self, classes: &[ConnectionClass]) -> Option<ConnectionClass> {
        let free = |class: ConnectionClass| match class {
            ConnectionClass::Clients => self.app.open(class) < self.app.settings.connections_max,
            ConnectionClass::Health => {
                let here = self.connections.borrow().values().filter(|state| state.class == class).count();
                here < (HEALTH_CONNECTIONS / self.app.metrics.loops().len()).max(1)
            }
            ConnectionClass::Admin => self.app.open(class) < ADMIN_CONNECTIONS,
        };
        classes.iter().copied().find(|class| free(*class) || self.evict(*class))
    }

    /// Closes the connection of this class that has been idle for longest; false where all are busy.
    fn evict(&self, class: ConnectionClass) -> bool {
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

    /// Publishes the state of admission as metrics.
    pub(crate) fn publish_admission(&self) {
        self.metrics.running.set(self.admission.running().into());
        self.metrics.queue_len.set(self.admission.queue_len() as u64);
        self.metrics.limit.set(self.admission.limit() as u64);
    }

    async fn wait_until_empty(&self) {
        loop {
            let gone = self.empty.notified();
            if self.connections.borrow().is_empty() {
                return;
            }
            gone.await;
        }
    }

    fn enter(&self, stage: ShutdownStage) {
        self.stage.set(stage);
        self.connections.borrow().values().for_each(|state| state.wake());
    }
}
