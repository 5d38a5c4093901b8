//! Endpoints on a Redis server: our own thin client for the reads of a request.
//!
//! One set of connections for each event loop. All commands of a step leave in one pipeline, and what several nodes and several
//! requests ask in the same turn of the loop shares a flush. A step that is the same as one under way shares its answer. A server that does not answer is told at once, never waited for:
//! see [`connection`]. Not here: clusters, TLS.

mod address;
mod connection;
mod load;
mod resp;

pub use address::Address;
pub use load::load;

use crate::store::{Answer, Open, Step, Store};
use connection::Connection;
use hashbrown::DefaultHashBuilder;
use rankd_plan::registry::Policy;
use std::hash::BuildHasher;
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
            spread: DefaultHashBuilder::default(),
        })
    }
}

struct RedisStore {
    connections: Vec<Rc<Connection>>,
    spread: DefaultHashBuilder,
}

impl Store for RedisStore {
    fn read<'a>(&'a self, step: Step<'a>) -> Answer<'a> {
        let mut commands = Vec::new();
        resp::push_step(&mut commands, &step);
        // By what is asked, so that the same step finds its twin; different ones spread evenly.
        let connection = match self.connections.as_slice() {
            [one] => one.clone(),
            several => several[self.spread.hash_one(&commands) as usize % several.len()].clone(),
        };
        Box::pin(async move { connection.read(step, commands).await })
    }
}
