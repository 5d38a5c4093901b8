//! What an engine counts over its whole life, from all of its threads.

use crate::store::Open;
use crate::store::health::Health;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Stats {
    /// Nodes that finished after their run had answered.
    late_completions: AtomicU64,
    /// The CPU time that went into them.
    wasted_ns: AtomicU64,
    /// Trips to the CPU pool and back.
    offloads: AtomicU64,
    /// Computations that ran on an event loop, between other things.
    inlined: AtomicU64,
    /// Computations that went on in another's trip to the CPU pool.
    chained: AtomicU64,
    /// Panics caught in tasks.
    panics: AtomicU64,
    /// By endpoint: commands that tasks sent.
    commands: Vec<AtomicU64>,
    /// By endpoint: how it is doing, where it counts that.
    health: Vec<Option<Arc<Health>>>,
}

impl Stats {
    pub fn new(endpoints: &[Arc<dyn Open>]) -> Stats {
        Stats {
            commands: endpoints.iter().map(|_| AtomicU64::new(0)).collect(),
            health: endpoints.iter().map(|endpoint| endpoint.health()).collect(),
            ..Stats::default()
        }
    }

    /// How the endpoint at this place of the registry is doing; `None` where it counts nothing, as the embedded store.
    pub fn health(&self, endpoint: usize) -> Option<&Health> {
        self.health.get(endpoint)?.as_deref()
    }

    pub(crate) fn count_commands(&self, endpoint: u32, count: u64) {
        if let Some(commands) = self.commands.get(endpoint as usize) {
            commands.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Commands to each endpoint, in registry order.
    pub fn commands(&self) -> impl Iterator<Item = u64> {
        self.commands.iter().map(|count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn count_late(&self, wasted_ns: u64) {
        self.late_completions.fetch_add(1, Ordering::Relaxed);
        self.wasted_ns.fetch_add(wasted_ns, Ordering::Relaxed);
    }

    pub(crate) fn count_offloads(&self, count: u64) {
        self.offloads.fetch_add(count, Ordering::Relaxed);
    }

    /// What a run did beside its trips.
    pub(crate) fn count_steps(&self, inlined: u64, chained: u64) {
        for (counter, count) in [(&self.inlined, inlined), (&self.chained, chained)] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub fn late_completions(&self) -> u64 {
        self.late_completions.load(Ordering::Relaxed)
    }

    pub fn wasted_ns(&self) -> u64 {
        self.wasted_ns.load(Ordering::Relaxed)
    }

    pub fn offloads(&self) -> u64 {
        self.offloads.load(Ordering::Relaxed)
    }

    pub fn inlined(&self) -> u64 {
        self.inlined.load(Ordering::Relaxed)
    }

    pub fn chained(&self) -> u64 {
        self.chained.load(Ordering::Relaxed)
    }

    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
}
