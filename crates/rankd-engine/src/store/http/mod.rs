//! Endpoints on HTTP services: one client for each event loop.
//!
//! Connections are kept and bounded. An identical GET that is in flight is shared. While the service fails, calls fail at once and
//! never wait. Redirects are not followed. Reading order: `site.rs` (where it is), `connect.rs` (one connection), `pool.rs` (all of
//! them), `client.rs` (a call).

mod client;
mod connect;
mod pool;
mod site;

pub(crate) use client::is_the_services;
pub use connect::ProbeError;
pub use site::{BadSite, Site};

use crate::store::health::Health;
use crate::store::{Open, Opened};
use client::HttpClient;
use std::sync::Arc;

/// An endpoint as the registry describes it.
pub struct HttpEndpoint {
    name: String,
    site: Arc<Site>,
    health: Arc<Health>,
}

impl HttpEndpoint {
    pub fn new(name: &str, site: Site) -> HttpEndpoint {
        HttpEndpoint { name: name.to_owned(), site: Arc::new(site), health: Arc::default() }
    }

    /// Whether a connection can be made, by the endpoint's own policy. No request is sent: which paths are harmless is not known.
    pub fn probe(&self) -> Result<(), ProbeError> {
        connect::probe(&self.site)
    }
}

impl Open for HttpEndpoint {
    fn open(&self) -> Opened {
        Opened::calls(HttpClient::new(self.site.clone(), self.health.clone()))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn health(&self) -> Option<Arc<Health>> {
        Some(self.health.clone())
    }
}
