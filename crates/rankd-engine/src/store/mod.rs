//! Where a task's reads go. A seam: each protocol that tasks speak is a trait in a file here ([`keyed`], [`calls`]), each backend a file or
//! folder that implements the traits of the protocols it answers: [`memory`], [`redis`], [`http`], a scripted one in the simulation. What
//! backends on servers share: `breaker`, `budget` (second tries), `parcel` (shared answers), [`health`], [`tls`]. Tables
//! ([`mod@table`]) are read in the process, where they lie.

mod breaker;
mod budget;
pub mod calls;
pub mod closing;
mod error;
pub mod health;
pub mod http;
pub mod keyed;
mod keys;
pub mod memory;
mod parcel;
pub mod redis;
mod replies;
mod sample;
pub mod table;
pub mod tls;

pub use calls::{Call, CallMethod, Called, Calls, CallsEndpoint};
pub use error::{StoreError, TooLarge};
pub use keyed::{Answer, Keyed, KeyedEndpoint, KeyedRead, MemberOf, PositionIn, ReadBatch};
pub(crate) use keys::PickedKeys;
pub use keys::{DistinctKeys, KeyBuffer, Keys, WrittenKeys};
pub use replies::{Replies, parse_id};
pub use sample::read_each;
pub use table::{Table, TableEndpoint, TableVersions, Tables};

use health::Health;
use rankd_plan::registry::EndpointsId;
use std::sync::Arc;

/// An endpoint as one event loop uses it: a store for each protocol that it answers.
#[derive(Default)]
pub struct Opened {
    pub keyed: Option<Box<dyn Keyed>>,
    pub calls: Option<Box<dyn Calls>>,
}

impl Opened {
    /// An endpoint that answers keyed reads and nothing else.
    pub fn keyed(store: impl Keyed + 'static) -> Opened {
        Opened { keyed: Some(Box::new(store)), ..Opened::default() }
    }

    /// An endpoint that answers calls and nothing else.
    pub fn calls(store: impl Calls + 'static) -> Opened {
        Opened { calls: Some(Box::new(store)), ..Opened::default() }
    }
}

/// Opens an endpoint on the thread that will use it.
pub trait Open: Send + Sync {
    fn open(&self) -> Opened;

    /// The endpoint's name in the registry.
    fn name(&self) -> &str;

    /// The tables that this endpoint is one of, where it is a table. All endpoints that are tables have the same.
    fn tables(&self) -> Option<Arc<Tables>> {
        None
    }

    /// The counters of what was opened here, where there is something to count.
    fn health(&self) -> Option<Arc<Health>> {
        None
    }
}

/// An endpoint that answers nothing, for an engine whose runs read what others recorded.
pub struct ClosedEndpoint(pub String);

impl Open for ClosedEndpoint {
    fn open(&self) -> Opened {
        Opened::default()
    }

    fn name(&self) -> &str {
        &self.0
    }
}

/// Which endpoints these are, as plans know them: their names, in order.
pub(crate) fn identify(endpoints: &[Arc<dyn Open>]) -> EndpointsId {
    EndpointsId::of(endpoints.iter().map(|endpoint| endpoint.name()))
}

/// The tables among these endpoints.
pub(crate) fn tables_of(endpoints: &[Arc<dyn Open>]) -> Option<Arc<Tables>> {
    endpoints.iter().find_map(|endpoint| endpoint.tables())
}

/// All endpoints, by registry position, on one thread.
pub struct Stores {
    endpoints: Vec<(Box<str>, Opened)>,
    id: EndpointsId,
    pub(crate) tables: Option<Arc<Tables>>,
}

impl Stores {
    pub fn open(endpoints: &[Arc<dyn Open>]) -> Stores {
        let opened = endpoints.iter().map(|endpoint| (endpoint.name().into(), endpoint.open())).collect();
        Stores { endpoints: opened, id: identify(endpoints), tables: tables_of(endpoints) }
    }

    /// Which endpoints these are.
    pub(crate) fn id(&self) -> EndpointsId {
        self.id
    }

    /// An endpoint's name in the registry.
    pub(crate) fn name(&self, endpoint: u32) -> Option<&str> {
        self.endpoints.get(endpoint as usize).map(|(name, _)| &**name)
    }

    /// An endpoint's name and what answers its keyed reads.
    pub fn keyed(&self, endpoint: u32) -> Option<(&str, &dyn Keyed)> {
        let (name, opened) = self.endpoints.get(endpoint as usize)?;
        Some((name, &**opened.keyed.as_ref()?))
    }

    /// An endpoint's name and what answers its calls.
    pub fn calls(&self, endpoint: u32) -> Option<(&str, &dyn Calls)> {
        let (name, opened) = self.endpoints.get(endpoint as usize)?;
        Some((name, &**opened.calls.as_ref()?))
    }
}
