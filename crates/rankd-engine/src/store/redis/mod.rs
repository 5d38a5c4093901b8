//! Endpoints on Redis, one server or a cluster: our own thin client for the reads of a request.
//!
//! One set of connections for each event loop. All commands of a step are sent in one pipeline to each server, and what several
//! nodes and several requests ask in the same turn of the loop shares a flush. A step that is the same as one in flight shares
//! its answer. While a server does not answer, reads of it fail at once and never wait. Reading order: `resp.rs` and `flat.rs`
//! (the protocol), `greeting.rs`, `trouble.rs` (error lines), `pulse.rs`, `connection.rs`, `server.rs` (one server), `slots.rs` and
//! `cluster.rs` (many), `load.rs` (set-up).

mod address;
mod cluster;
mod connection;
mod flat;
mod greeting;
mod load;
mod pulse;
mod resp;
mod server;
mod slots;
mod trouble;

pub use address::{Address, BadAddress};
pub use load::{Entry, Preview, SetUpError};
pub(crate) use resp::command;
pub use trouble::Trouble;

use crate::store::health::Health;
use crate::store::keyed::limits;
use crate::store::tls::Trust;
use crate::store::{Open, Opened, ReadBatch, Replies, StoreError, TooLarge};
use cluster::ClusterStore;
use greeting::Peer;
use rankd_plan::registry::Policy;
use server::ServerStore;
use std::sync::Arc;
use std::time::Duration;

/// The keys of a huge step that are asked for at a time, so that neither side holds all its commands and others get their turn.
const BATCH_KEYS: usize = 10_000;

/// How often a step is asked again: once for each connection that it may find closed.
const SECOND_TRIES: usize = 2;

/// An endpoint as the registry describes it.
pub struct RedisEndpoint {
    name: String,
    servers: Servers,
    policy: Policy,
    health: Arc<Health>,
}

enum Servers {
    One(Peer),
    /// Nodes of a cluster, any of which can name the others.
    Cluster(Vec<Peer>),
}

impl RedisEndpoint {
    /// An endpoint on one server. `trust` is needed where the address asks for TLS.
    pub fn server(name: &str, address: Address, policy: Policy, trust: Option<Trust>) -> RedisEndpoint {
        RedisEndpoint::on(name, Servers::One(peer(address, policy, trust)), policy)
    }

    /// An endpoint on a cluster of which these nodes are known.
    pub fn cluster(name: &str, seeds: Vec<Address>, policy: Policy, trust: Option<Trust>) -> RedisEndpoint {
        let peers = seeds.into_iter().map(|address| peer(address, policy, trust.clone()));
        RedisEndpoint::on(name, Servers::Cluster(peers.collect()), policy)
    }

    fn on(name: &str, servers: Servers, policy: Policy) -> RedisEndpoint {
        RedisEndpoint { name: name.to_owned(), servers, policy, health: Arc::default() }
    }

    /// The addresses without their secrets.
    pub fn shown(&self) -> String {
        match &self.servers {
            Servers::One(peer) => peer.address.shown(),
            Servers::Cluster(peers) => {
                let shown: Vec<String> = peers.iter().map(|peer| peer.address.shown()).collect();
                shown.join(", ")
            }
        }
    }
}

fn peer(address: Address, policy: Policy, trust: Option<Trust>) -> Peer {
    Peer { address, trust, connect_timeout: Duration::from_millis(policy.connect_timeout_ms.into()) }
}

impl Open for RedisEndpoint {
    fn open(&self) -> Opened {
        match &self.servers {
            Servers::One(peer) => Opened::keyed(ServerStore::new(peer, self.policy, &self.health)),
            Servers::Cluster(peers) => Opened::keyed(ClusterStore::new(peers, self.policy, &self.health)),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn health(&self) -> Option<Arc<Health>> {
        Some(self.health.clone())
    }
}

/// Asks for the keys of a huge step part by part. All answers together are bounded like one.
async fn in_batches<'a, F>(batch: ReadBatch<'a>, send: impl Fn(ReadBatch<'a>) -> F) -> Result<Replies, StoreError>
where
    F: Future<Output = Result<Replies, StoreError>>,
{
    let mut all = Replies::default();
    for start in (0..batch.keys.len()).step_by(BATCH_KEYS) {
        let keys = batch.keys.part(start..batch.keys.len().min(start + BATCH_KEYS));
        all.append(&send(ReadBatch { keys, ..batch }).await?);
        if all.byte_count() > limits::BATCH_BYTES {
            return Err(too_large(&batch, all.len() - 1, TooLarge::Batch));
        }
    }
    Ok(all)
}

/// The error of a step one of whose commands was refused.
fn refused(batch: &ReadBatch<'_>, at: usize, line: &str) -> StoreError {
    StoreError::from_server(batch.keys.show(at), line.to_owned())
}

/// The error of a step one of whose replies is more than is read.
fn too_large(batch: &ReadBatch<'_>, at: usize, what: TooLarge) -> StoreError {
    StoreError::TooLarge { key: batch.keys.show(at), what }
}
