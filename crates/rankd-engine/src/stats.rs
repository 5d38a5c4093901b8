//! What an engine counts over its whole life, from all of its threads.

use crate::store::Open;
use crate::store::health::Health;
use crate::task::Unread;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
pub struct Stats {
    /// Nodes that finished after their run had answered.
    late_completions: AtomicU64,
    /// The CPU time that went into them.
    wasted_ns: AtomicU64,
    /// Both by the name of the plan. Touched only where there are some.
    wasted: Mutex<BTreeMap<Box<str>, Wasted>>,
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
    /// By endpoint and the name of a key: values that could not be read. As many as the registry allows, and touched only where there
    /// are some.
    unread: Mutex<BTreeMap<(u32, Arc<str>), u64>>,
    /// By endpoint: how it is doing, where it counts that.
    health: Vec<Option<Arc<Health>>>,
}

/// What the runs of a plan computed that nobody waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wasted {
    /// Nodes that finished after their run had answered.
    pub late_completions: u64,
    /// The time that went into them.
    pub ns: u64,
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

    pub(crate) fn count_unread(&self, endpoint: u32, unread: &Unread) {
        let mut counts = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, count) in unread.list() {
            *counts.entry((endpoint, key.clone())).or_default() += count;
        }
    }

    /// Values that could not be read as what their keys take: the endpoint's place in the registry, the key, and how many.
    pub fn unread(&self) -> Vec<(u32, Arc<str>, u64)> {
        let counts = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((endpoint, key), count)| (*endpoint, key.clone(), *count)).collect()
    }

    /// A node of this plan finished after its run had answered.
    pub(crate) fn count_late(&self, plan: &str, wasted_ns: u64) {
        self.late_completions.fetch_add(1, Ordering::Relaxed);
        self.wasted_ns.fetch_add(wasted_ns, Ordering::Relaxed);
        let mut plans = self.wasted.lock().unwrap_or_else(PoisonError::into_inner);
        if !plans.contains_key(plan) {
            plans.insert(plan.into(), Wasted::default());
        }
        if let Some(wasted) = plans.get_mut(plan) {
            wasted.late_completions += 1;
            wasted.ns += wasted_ns;
        }
    }

    /// What was computed for nobody, by the name of the plan; plans without any are left out.
    pub fn wasted(&self) -> Vec<(Box<str>, Wasted)> {
        let plans = self.wasted.lock().unwrap_or_else(PoisonError::into_inner);
        plans.iter().map(|(plan, wasted)| (plan.clone(), *wasted)).collect()
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
