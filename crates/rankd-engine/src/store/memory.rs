//! The embedded store: answers the tasks' reads in the process, from data that was read at start and never changes.
//!
//! `data` has the data and its answers. The store can be configured to be slow or to fail, so that plans and schedulers can be tried without a network.

mod data;

pub use data::{BadLine, Data, Held};

use crate::clock;
use crate::store::{Answer, Keyed, Open, Opened, ReadBatch, StoreError, redis};
use rankd_plan::registry::Inject;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The data of an endpoint and the faults that it is to inject.
pub struct MemoryEndpoint {
    name: String,
    pub data: Arc<Data>,
    pub inject: Vec<Inject>,
    /// How many commands each rule has seen, on all threads.
    seen: Arc<[AtomicU64]>,
}

impl MemoryEndpoint {
    pub fn new(name: &str, data: Arc<Data>, inject: Vec<Inject>) -> MemoryEndpoint {
        let seen = inject.iter().map(|_| AtomicU64::new(0)).collect();
        MemoryEndpoint { name: name.to_owned(), data, inject, seen }
    }
}

impl Open for MemoryEndpoint {
    fn open(&self) -> Opened {
        Opened::keyed(MemoryStore { data: self.data.clone(), inject: self.inject.clone(), seen: self.seen.clone() })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

struct MemoryStore {
    data: Arc<Data>,
    inject: Vec<Inject>,
    seen: Arc<[AtomicU64]>,
}

impl Keyed for MemoryStore {
    fn read<'a>(&'a self, batch: ReadBatch<'a>) -> Answer<'a> {
        Box::pin(async move {
            let command = redis::command(batch.read);
            let (mut latency_us, mut fails) = (0, false);
            for (rule, seen) in self.inject.iter().zip(&*self.seen) {
                if rule.command.as_ref().is_some_and(|only| only != command) {
                    continue;
                }
                latency_us = latency_us.max(rule.latency_us);
                if rule.fail_every > 0 {
                    let every = u64::from(rule.fail_every);
                    let before = seen.fetch_add(batch.keys.len() as u64, Ordering::Relaxed);
                    fails |= (before + batch.keys.len() as u64) / every > before / every;
                }
            }
            if latency_us > 0 {
                clock::sleep(Duration::from_micros(latency_us)).await;
            }
            if fails { Err(StoreError::Injected { command }) } else { self.data.answer(&batch) }
        })
    }
}
