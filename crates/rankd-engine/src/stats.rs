//! What an engine counts over its whole life, from all of its threads.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Stats {
    /// Nodes that finished after their run had answered.
    late_completions: AtomicU64,
    /// The CPU time that went into them.
    wasted_ns: AtomicU64,
    /// Trips of a node to the CPU pool and back.
    offloads: AtomicU64,
    /// Panics caught in tasks.
    panics: AtomicU64,
    /// By endpoint: commands that tasks sent.
    commands: Vec<AtomicU64>,
}

impl Stats {
    pub fn new(endpoints: usize) -> Stats {
        Stats { commands: (0..endpoints).map(|_| AtomicU64::new(0)).collect(), ..Stats::default() }
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

    pub(crate) fn count_offload(&self) {
        self.offloads.fetch_add(1, Ordering::Relaxed);
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

    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
}
