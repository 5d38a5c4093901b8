//! Endpoints on a Redis server: our own thin client for the reads of a request.
//!
//! One set of connections for each event loop. All commands of a step leave in one pipeline, and what several nodes and several
//! requests ask in the same turn of the loop shares a flush. A server that does not answer is told at once, never waited for:
//! see [`connection`]. Not here: clusters, TLS.

mod address;
mod connection;
mod load;
mod resp;

pub use address::Address;
pub use load::load;

use crate::store::{Answer, Open, Step, Store};
use connection::Connection;
use rankd_plan::registry::Policy;
use std::cell::Cell;
use std::rc::Rc;

/// An endpoint as the registry describes it.
pub struct RedisEndpoint {
    pub address: Address,
    pub policy: Policy,
}

impl Open for RedisEndpoint {
    fn open(&self) -> Box<dyn Store> {
        let connect = |_| Connection::new(self.address.clone(), self.policy);
        Box::new(RedisStore {
            connections: (0..self.policy.connections.max(1)).map(connect).collect(),
            next: Cell::new(0),
        })
    }
}

struct RedisStore {
    connections: Vec<Rc<Connection>>,
    next: Cell<usize>,
}

impl Store for RedisStore {
    fn read<'a>(&'a self, step: Step<'a>) -> Answer<'a> {
        let at = self.next.get();
        self.next.set((at + 1) % self.connections.len());
        let connection = self.connections[at].clone();
        Box::pin(async move { connection.read(step).await })
    }
}
