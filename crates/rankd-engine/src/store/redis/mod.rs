//! Endpoints on a Redis server: our own thin client for the reads of a request.
//!
//! One set of connections for each event loop. All commands of a step leave in one pipeline, and what several nodes and several
//! requests ask in the same turn of the loop shares a flush. A step that is the same as one under way shares its answer. While
//! a server does not answer, that is said at once and never waited for: see `connection.rs`. Not here: clusters, TLS.

mod address;
mod connection;
mod load;
mod resp;

pub use address::Address;
pub use load::load;

use crate::store::{Answer, Open, Replies, Step, Store, StoreError};
use connection::Connection;
use hashbrown::DefaultHashBuilder;
use rankd_plan::registry::Policy;
use std::hash::BuildHasher;
use std::rc::Rc;

/// Of a huge step so many ids are asked for at a time, so that neither side holds all of its commands and others get their turn.
const BATCH_IDS: usize = 10_000;

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
        if step.ids.len() <= BATCH_IDS {
            return self.send(step);
        }
        Box::pin(async move {
            let mut all = Replies::default();
            for ids in step.ids.chunks(BATCH_IDS) {
                all.append(&self.send(Step { ids, ..step }).await?);
                if all.byte_count() > resp::STEP_BYTES_MAX {
                    return Err(StoreError::Unavailable("the answer is more bytes than a step may take".into()));
                }
            }
            Ok(all)
        })
    }
}

impl RedisStore {
    /// Sends a batch of a step, or all of it.
    fn send<'a>(&'a self, step: Step<'a>) -> Answer<'a> {
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
