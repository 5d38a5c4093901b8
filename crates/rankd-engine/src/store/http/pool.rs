//! The connections of one event loop to one service: kept while they are good, and never more than the endpoint allows.
//!
//! Whoever has a [`Permit`] finds a connection with room, or may open one. Those who wait for a permit get it in order.

use crate::clock::{self, Instant};
use crate::store::StoreError;
use crate::store::breaker::Breaker;
use crate::store::health::Health;
use crate::store::http::connect::{Connected, NotConnected, SendMany, SendOne, connect};
use crate::store::http::site::Site;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Requests that are under way at a time on one connection of HTTP/2.
const STREAMS_MAX: usize = 32;
/// A connection that was not used for longer is not trusted: what lies between may have forgotten it.
const IDLE_MAX: Duration = Duration::from_secs(30);

pub(super) type Permit = OwnedSemaphorePermit;

pub(super) struct ConnectionPool {
    site: Arc<Site>,
    health: Arc<Health>,
    breaker: Rc<Breaker>,
    permits: Arc<Semaphore>,
    /// Whether the service spoke HTTP/2 when it was last connected to.
    is_second: Cell<Option<bool>>,
    idle: RefCell<Vec<(SendOne, Instant)>>,
    shared: RefCell<Vec<Rc<Multiplexed>>>,
    /// Held while connecting, unless each request needs a connection of its own.
    connecting: Mutex<()>,
    /// The last attempt that failed, and how many have.
    failed: RefCell<Option<StoreError>>,
    failures: Cell<u64>,
}

/// A connection that several requests use at a time.
pub(super) struct Multiplexed {
    sender: SendMany,
    streams: Cell<usize>,
}

/// A connection for one request.
pub(super) enum Lease {
    One(SendOne),
    Many(Stream),
}

/// One of the requests on a connection.
pub(super) struct Stream(Rc<Multiplexed>);

impl Stream {
    pub(super) fn sender(&self) -> SendMany {
        self.0.sender.clone()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get() - 1);
    }
}

/// Whether a connection had been used before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Kept,
}

impl ConnectionPool {
    pub(super) fn new(site: Arc<Site>, health: Arc<Health>, breaker: Rc<Breaker>) -> ConnectionPool {
        let permits = Arc::new(Semaphore::new(site.policy.connections as usize));
        let is_second = match (site.policy.http2, site.tls.is_some()) {
            (None, true) => None,
            (wanted, _) => Some(wanted == Some(true)),
        };
        let pool = ConnectionPool {
            site,
            health,
            breaker,
            permits,
            is_second: Cell::new(None),
            idle: RefCell::default(),
            shared: RefCell::default(),
            connecting: Mutex::new(()),
            failed: RefCell::default(),
            failures: Cell::new(0),
        };
        is_second.inspect(|is_second| pool.learn(*is_second));
        pool
    }

    /// The right to one request at a time.
    pub(super) async fn permit(&self) -> Option<Permit> {
        match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            // The semaphore is never closed.
            Err(_) => self.permits.clone().acquire_owned().await.ok(),
        }
    }

    /// A connection with room for one request, for whoever has a permit.
    pub(super) async fn lease(&self) -> Result<(Lease, Age), StoreError> {
        if let Some(kept) = self.find() {
            return Ok((kept, Age::Kept));
        }
        if self.is_second.get() == Some(false) {
            return Ok((self.open().await?, Age::New));
        }
        // One connection may do for all that wait here.
        let failures = self.failures.get();
        let _connecting = self.connecting.lock().await;
        if let Some(kept) = self.find() {
            return Ok((kept, Age::Kept));
        }
        if self.failures.get() != failures
            && let Some(why) = self.failed.borrow().clone()
        {
            return Err(why);
        }
        Ok((self.open().await?, Age::New))
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(&self, sender: SendOne) {
        self.idle.borrow_mut().push((sender, clock::now()));
    }

    /// Gives nobody else a connection on which something went wrong. What is under way on it goes on.
    pub(super) fn retire(&self, stream: &Stream) {
        self.shared.borrow_mut().retain(|shared| !Rc::ptr_eq(shared, &stream.0));
    }

    fn find(&self) -> Option<Lease> {
        let mut idle = self.idle.borrow_mut();
        let since = clock::now();
        idle.retain(|(sender, used)| !sender.is_closed() && since.saturating_duration_since(*used) < IDLE_MAX);
        // The one that was used last: what is not needed grows old and is closed.
        if let Some((sender, _)) = idle.pop() {
            return Some(Lease::One(sender));
        }
        let mut shared = self.shared.borrow_mut();
        shared.retain(|connection| !connection.sender.is_closed());
        shared.iter().find(|connection| connection.streams.get() < STREAMS_MAX).map(stream)
    }

    async fn open(&self) -> Result<Lease, StoreError> {
        self.health.count(|health| &health.connects, 1);
        match connect(&self.site).await {
            Ok(Connected::One(sender)) => {
                self.learn(false);
                Ok(Lease::One(sender))
            }
            Ok(Connected::Many(sender)) => {
                self.learn(true);
                let connection = Rc::new(Multiplexed { sender, streams: Cell::new(0) });
                let lease = stream(&connection);
                self.shared.borrow_mut().push(connection);
                Ok(lease)
            }
            Err(NotConnected(why)) => {
                let why = StoreError::Unavailable(format!("{}: {why}", self.site.shown()));
                self.failures.set(self.failures.get() + 1);
                self.failed.replace(Some(why.clone()));
                self.breaker.refuse(why.clone());
                Err(why)
            }
        }
    }

    /// Counts with as many requests at a time as the version of HTTP allows.
    fn learn(&self, is_second: bool) {
        let more = self.site.policy.connections as usize * (STREAMS_MAX - 1);
        match (self.is_second.replace(Some(is_second)), is_second) {
            (None | Some(false), true) => self.permits.add_permits(more),
            (Some(true), false) => drop(self.permits.forget_permits(more)),
            (None | Some(false), false) | (Some(true), true) => {}
        }
    }
}

fn stream(connection: &Rc<Multiplexed>) -> Lease {
    connection.streams.set(connection.streams.get() + 1);
    Lease::Many(Stream(connection.clone()))
}
