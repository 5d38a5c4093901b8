//! One event loop's side of the server: its listener, its connections, and how both come to their end.
//!
//! A connection is accepted, read and answered on the loop that its desk is on. When descriptors or room run out, the
//! connection that has been idle for longest makes room, and one that waits for a body counts as idle; when none is idle, some
//! places are left for connections that ask for health. Accepting never spins.

use crate::admission::Admission;
use crate::app::App;
use crate::connection::{Connection, OnThisLoop, protocol};
use crate::connection_state::{Place, Vitals};
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

/// How long idle connections are kept once the process stops: a request that is on its way is answered.
const GRACE: Duration = Duration::from_millis(300);
/// How long new connections are still accepted once the process stops: balancers need that long to see that it is not ready. One that
/// connects after that is refused at once and can go elsewhere.
const STILL_ACCEPTING: Duration = Duration::from_millis(200);
/// How long connections that have begun before a listener is closed may take to be completed. Whoever begins in this time has to
/// ask again after a second, so it is short.
const LAST_ARRIVALS: Duration = Duration::from_millis(1);
/// How long answers to stopped runs may take to leave.
const FAREWELL: Duration = Duration::from_millis(300);
/// The pause after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(20);
/// Places that are kept for health, on all loops together; each loop has at least one.
pub const HEALTH_PLACES: usize = 16;
/// Places for those who come in by the listener for operators.
pub const ADMIN_PLACES: usize = 32;
/// The places of those who come in by the other one, the first that is free.
const PUBLIC_PLACES: [Place; 2] = [Place::Clients, Place::Health];
/// One connection may leave this part of the room for answers untaken.
const SHARE: usize = 4;
/// An answer that is so short is given even where there is no room for answers: health, and refusals.
const SHORT: usize = 1 << 10;

/// The least time between two lines about a store that does not answer: each request would have one.
const STORE_LINES_APART: Duration = Duration::from_secs(1);

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Open,
    /// Answers say that the connection closes.
    Closing,
    /// Idle connections are closed, half-sent requests are cut.
    LastCall,
    /// Everything is cut.
    Over,
}

pub(crate) struct Desk {
    pub(crate) app: Arc<App>,
    pub(crate) loop_handle: LoopHandle,
    pub(crate) metrics: Arc<LoopMetrics>,
    pub(crate) protocol: auto::Builder<OnThisLoop>,
    pub(crate) admission: Rc<Admission>,
    pub(crate) stage: Cell<Stage>,
    /// Bytes of bodies that have come and are not yet read.
    pub(crate) body_bytes: Cell<usize>,
    /// What the answers count for that clients have not taken.
    untaken: Cell<usize>,
    /// When the log was last told why a store did not answer.
    told_of_a_store: Cell<Option<Instant>>,
    /// Places for what is too large to be done on the loop.
    pub(crate) heavy: Semaphore,
    connections: RefCell<HashMap<*const Vitals, Rc<Vitals>>>,
    /// Connections that were told to go have not had their turn yet.
    evicting: Cell<bool>,
    /// The last connection has gone.
    empty: Notify,
}

impl Desk {
    /// Serves on one loop until told to stop, and until what is under way then is done.
    pub(crate) fn open(app: Arc<App>, loop_handle: LoopHandle, stop: watch::Receiver<Option<Instant>>) -> LoopService {
        let listener = app.take_listener(loop_handle.number());
        let admin = if loop_handle.number() == 0 { app.take_admin() } else { None };
        let metrics = app.metrics.of_loop(loop_handle.number());
        let desk = Rc::new(Desk {
            protocol: protocol(&loop_handle),
            admission: Admission::new(&app.settings.admission),
            stage: Cell::new(Stage::Open),
            body_bytes: Cell::new(0),
            untaken: Cell::new(0),
            told_of_a_store: Cell::new(None),
            heavy: Semaphore::new(off_loop::AT_A_TIME),
            connections: RefCell::default(),
            evicting: Cell::new(false),
            empty: Notify::new(),
            app,
            loop_handle,
            metrics,
        });
        Box::pin(async move {
            // Only a second guest on the same loop would find none.
            let Some(listener) = listener else { return };
            let listeners = TcpListener::from_std(listener)
                .and_then(|listener| Ok((listener, admin.map(TcpListener::from_std).transpose()?)));
            match listeners {
                Ok((listener, admin)) => desk.serve(listener, admin, stop).await,
                Err(error) => desk.app.log.event("error", &format!("a listener cannot be used: {error}")),
            }
        })
    }

    /// Whether the log is told why a store did not answer: once in a while.
    pub(crate) fn tells_of_a_store(&self) -> bool {
        let now = clock::now();
        let is_time = self.told_of_a_store.get().is_none_or(|last| now >= last + STORE_LINES_APART);
        if is_time {
            self.told_of_a_store.set(Some(now));
        }
        is_time
    }

    async fn serve(
        self: &Rc<Desk>,
        listener: TcpListener,
        admin: Option<TcpListener>,
        mut stop: watch::Receiver<Option<Instant>>,
    ) {
        let listeners: Vec<(TcpListener, &[Place])> = [(Some(listener), &PUBLIC_PLACES[..]), (admin, &[Place::Admin])]
            .into_iter()
            .filter_map(|(listener, places)| Some((listener?, places)))
            .collect();
        {
            let accepting = join_all(listeners.iter().map(|(listener, places)| self.accept(listener, places)));
            let told = pin!(stop.wait_for(Option::is_some));
            if let Either::Left(_) = select(pin!(accepting), told).await {
                return;
            }
        }
        self.enter(Stage::Closing);
        let until = stop.borrow().unwrap_or_else(clock::now);
        let accepting = join_all(listeners.iter().map(|(listener, places)| self.accept(listener, places)));
        // It never ends by itself.
        let _ = timeout(STILL_ACCEPTING.min(until.saturating_duration_since(clock::now())), accepting).await;
        join_all(listeners.into_iter().map(|(listener, places)| self.close(listener, places))).await;
        sleep(GRACE.min(until.saturating_duration_since(clock::now()))).await;
        self.enter(Stage::LastCall);
        if timeout(until.saturating_duration_since(clock::now()), self.emptied()).await.is_err() {
            self.connections.borrow().values().for_each(|vitals| {
                vitals.runs.borrow().iter().for_each(|run| run.cancel());
            });
            // Those who still do not take their answer are cut.
            let _ = timeout(FAREWELL, self.emptied()).await;
        }
        self.enter(Stage::Over);
        self.emptied().await;
    }

    /// Closes a listener. Closing it resets those who have connected and wait to be accepted: so nobody new may connect from now
    /// on, and those who have begun to do so get the time that this takes them.
    async fn close(self: &Rc<Desk>, listener: TcpListener, places: &[Place]) {
        if let Err(error) = stop_new_connections(&listener) {
            let message = format!("new connections cannot be held off, so some may be reset: {error}");
            self.app.log.event("error", &message);
        }
        // It never ends by itself.
        let _ = timeout(LAST_ARRIVALS, self.accept(&listener, places)).await;
        // On a crowded loop it may have had no turn. What cannot be accepted now is lost in any case.
        let Ok(listener) = listener.into_std() else { return };
        while let Ok((stream, _)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                self.welcome(stream, places);
            }
        }
    }

    async fn accept(self: &Rc<Desk>, listener: &TcpListener, places: &[Place]) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    self.welcome(stream, places);
                    // Whoever had to make room for it is gone before the next one is let in.
                    if self.evicting.replace(false) {
                        tokio::task::yield_now().await;
                    }
                }
                // The client went away before it was let in.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(_) => {
                    // Out of descriptors or memory. The listener stays ready, so without a pause this would spin.
                    self.metrics.accept_failures.add(1);
                    let _ = places.iter().any(|place| self.evict(*place));
                    sleep(BREATH).await;
                }
            }
        }
    }

    fn welcome(self: &Rc<Desk>, stream: TcpStream, places: &[Place]) {
        let Some(place) = self.place(places) else {
            self.metrics.refused.add(1);
            return;
        };
        // Answers are written whole, so there is nothing to wait for. Without it they are merely later.
        let _ = stream.set_nodelay(true);
        self.metrics.accepted.add(1);
        self.loop_handle.spawn(Connection::new(self, stream, place));
    }

    /// A place of these kinds for one more connection; `None` where there is none and nobody can make room.
    fn place(&self, places: &[Place]) -> Option<Place> {
        let free = |place: Place| match place {
            Place::Clients => self.app.open(place) < self.app.settings.connections_max,
            Place::Health => {
                let here = self.connections.borrow().values().filter(|vitals| vitals.place == place).count();
                here < (HEALTH_PLACES / self.app.metrics.loops().len()).max(1)
            }
            Place::Admin => self.app.open(place) < ADMIN_PLACES,
        };
        places.iter().copied().find(|place| free(*place) || self.evict(*place))
    }

    /// Closes the connection in such a place that has been idle for longest; false where all are busy.
    fn evict(&self, place: Place) -> bool {
        let connections = self.connections.borrow();
        let idle = connections.values().filter(|vitals| vitals.place == place && !vitals.evicted.get());
        let oldest = idle.filter_map(|vitals| Some((vitals.idle_since()?, vitals))).min_by_key(|(at, _)| *at);
        let Some((_, oldest)) = oldest else { return false };
        self.cut(oldest);
        true
    }

    fn cut(&self, vitals: &Vitals) {
        vitals.evicted.set(true);
        vitals.wake();
        self.evicting.set(true);
    }

    /// Whether an answer of so many bytes may be handed over to a connection. One connection may leave a part of the room untaken.
    /// Where all of it is taken, whoever has left most of it untaken is cut, so that one who takes its answers is not refused for
    /// those who do not.
    pub(crate) fn fits(&self, bytes: usize, asker: &Vitals) -> bool {
        let all = self.app.settings.answer_bytes_max / self.app.metrics.loops().len();
        let cost = unread_answers::cost(bytes);
        let own = asker.untaken.bytes();
        if bytes > SHORT && own > 0 && own + cost > all / SHARE {
            return false;
        }
        if self.untaken.get() + cost <= all {
            return true;
        }
        let connections = self.connections.borrow();
        // What those still have who were cut already is as good as free.
        let staying = || connections.values().filter(|vitals| !vitals.evicted.get());
        if staying().map(|vitals| vitals.untaken.bytes()).sum::<usize>() + cost <= all {
            return true;
        }
        match staying().max_by_key(|vitals| vitals.untaken.bytes()) {
            Some(most) if most.untaken.bytes() > own => {
                self.cut(most);
                true
            }
            // Nobody has left more untaken than the one who asks.
            _ => bytes <= SHORT || own == 0,
        }
    }

    pub(crate) fn count_untaken(&self, change: impl FnOnce(usize) -> usize) {
        self.untaken.set(change(self.untaken.get()));
        self.metrics.untaken.set(self.untaken.get() as u64);
    }

    pub(crate) fn came(&self, vitals: &Rc<Vitals>) {
        self.app.open[vitals.place as usize].fetch_add(1, Ordering::Relaxed);
        self.connections.borrow_mut().insert(Rc::as_ptr(vitals), vitals.clone());
    }

    pub(crate) fn went(&self, vitals: &Rc<Vitals>) {
        self.app.open[vitals.place as usize].fetch_sub(1, Ordering::Relaxed);
        let mut connections = self.connections.borrow_mut();
        connections.remove(&Rc::as_ptr(vitals));
        if connections.is_empty() {
            self.empty.notify_waiters();
        }
    }

    /// Lets the metrics see how full it is.
    pub(crate) fn note_admission(&self) {
        self.metrics.under_way.set(self.admission.under_way().into());
        self.metrics.in_line.set(self.admission.in_line() as u64);
        self.metrics.limit.set(self.admission.limit() as u64);
    }

    async fn emptied(&self) {
        loop {
            let gone = self.empty.notified();
            if self.connections.borrow().is_empty() {
                return;
            }
            gone.await;
        }
    }

    fn enter(&self, stage: Stage) {
        self.stage.set(stage);
        self.connections.borrow().values().for_each(|vitals| vitals.wake());
    }
}
