//! One event loop's side of the server: its listener, its connections, and how both are shut down.
//!
//! A connection is accepted, read and answered on the same loop. When descriptors or connections run out, the connection that has
//! been idle for longest is closed to make room; one that waits for a body counts as idle. When none is idle, a few connections are
//! still accepted for health checks. Accepting never spins.

use crate::app::App;
use crate::connection::{Connection, LoopExecutor, protocol};
use crate::connection_state::ConnectionClass;
use crate::console::keep_figures;
use crate::listen::stop_new_connections;
use crate::loop_state::{LoopState, ShutdownStage};
use futures_util::future::{Either, join_all, select};
use hyper_util::server::conn::auto;
use rankd_engine::LoopHandle;
use rankd_engine::clock::{self, Instant};
use rankd_engine::loop_handle::LoopService;
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
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
/// The classes of connections to the public listener, in the order in which they are tried.
const PUBLIC_CLASSES: [ConnectionClass; 2] = [ConnectionClass::Clients, ConnectionClass::Health];

/// What one loop has: its listeners, and the connections that it accepts from them.
pub(crate) struct Acceptor {
    state: Rc<LoopState>,
    protocol: auto::Builder<LoopExecutor>,
}

impl Acceptor {
    /// Serves on one loop until `stop` is set and the requests in flight then are done.
    pub(crate) fn open(app: Arc<App>, loop_handle: LoopHandle, stop: watch::Receiver<Option<Instant>>) -> LoopService {
        let listener = app.take_listener(loop_handle.number());
        let (admin, console) = match loop_handle.number() {
            0 => (app.take_admin(), app.take_console()),
            _ => (None, None),
        };
        let protocol = protocol(&loop_handle);
        let acceptor = Acceptor { state: Rc::new(LoopState::new(app, loop_handle)), protocol };
        Box::pin(async move {
            // Only a second service on the same loop would find none.
            let Some(listener) = listener else { return };
            let of = |listener: Option<std::net::TcpListener>| listener.map(TcpListener::from_std).transpose();
            let listeners = TcpListener::from_std(listener).and_then(|listener| {
                Ok([
                    (Some(listener), &PUBLIC_CLASSES[..]),
                    (of(admin)?, &[ConnectionClass::Admin]),
                    (of(console)?, &[ConnectionClass::Console]),
                ])
            });
            match listeners {
                Ok(listeners) => acceptor.serve(listeners, stop).await,
                Err(error) => acceptor.state.app.log.event("error", &format!("a listener cannot be used: {error}")),
            }
        })
    }

    async fn serve(
        &self,
        listeners: [(Option<TcpListener>, &'static [ConnectionClass]); 3],
        mut stop: watch::Receiver<Option<Instant>>,
    ) {
        let listeners: Vec<(TcpListener, &[ConnectionClass])> =
            listeners.into_iter().filter_map(|(listener, classes)| Some((listener?, classes))).collect();
        let has_console = listeners.iter().any(|(_, classes)| classes.contains(&ConnectionClass::Console));
        {
            let accepting = pin!(join_all(listeners.iter().map(|(listener, classes)| self.accept(listener, classes))));
            let figures = pin!(async {
                match self.state.app.console.as_ref().filter(|_| has_console) {
                    Some(console) => keep_figures(console, &self.state.app.catalog).await,
                    None => std::future::pending().await,
                }
            });
            let accepting = select(accepting, figures);
            let told = pin!(stop.wait_for(Option::is_some));
            if let Either::Left(_) = select(accepting, told).await {
                return;
            }
        }
        self.state.enter(ShutdownStage::Closing);
        let until = stop.borrow().unwrap_or_else(clock::now);
        let accepting = join_all(listeners.iter().map(|(listener, classes)| self.accept(listener, classes)));
        // It never ends by itself.
        let _ = timeout(STILL_ACCEPTING.min(until.saturating_duration_since(clock::now())), accepting).await;
        join_all(listeners.into_iter().map(|(listener, classes)| self.close(listener, classes))).await;
        sleep(GRACE.min(until.saturating_duration_since(clock::now()))).await;
        self.state.enter(ShutdownStage::LastCall);
        if timeout(until.saturating_duration_since(clock::now()), self.state.wait_until_empty()).await.is_err() {
            self.state.cancel_runs();
            // Clients that still do not read their answer are cut off.
            let _ = timeout(FAREWELL, self.state.wait_until_empty()).await;
        }
        self.state.enter(ShutdownStage::Over);
        self.state.wait_until_empty().await;
    }

    /// Closes a listener. Closing it resets the connections that wait to be accepted, so new ones are held off first, and those that
    /// were begun get the time to be completed.
    async fn close(&self, listener: TcpListener, classes: &[ConnectionClass]) {
        if let Err(error) = stop_new_connections(&listener) {
            let message = format!("new connections cannot be held off, so some may be reset: {error}");
            self.state.app.log.event("error", &message);
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

    async fn accept(&self, listener: &TcpListener, classes: &[ConnectionClass]) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    self.open_connection(stream, classes);
                    // What was evicted for it is closed before the next one is accepted.
                    if self.state.evicting.replace(false) {
                        tokio::task::yield_now().await;
                    }
                }
                // The client went away before it was accepted.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(_) => {
                    // Out of descriptors or memory. The listener stays ready, so without a pause this would spin.
                    self.state.metrics.accept_failures.add(1);
                    let _ = classes.iter().any(|class| self.state.evict(*class));
                    sleep(BREATH).await;
                }
            }
        }
    }

    fn open_connection(&self, stream: TcpStream, classes: &[ConnectionClass]) {
        let Some(class) = self.state.class_with_room(classes) else {
            self.state.metrics.refused.add(1);
            return;
        };
        // Answers are written whole, so there is nothing to wait for. Without it they are merely later.
        let _ = stream.set_nodelay(true);
        self.state.metrics.accepted.add(1);
        self.state.loop_handle.spawn(Connection::new(&self.state, &self.protocol, stream, class));
    }
}
