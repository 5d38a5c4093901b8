//! The flags that say how the engine works, for every command that starts one.

use clap::{Args, ValueEnum};
use rankd_engine::engine::RUN_BYTES_MAX;
use rankd_engine::{Policy, Scheduler, Settings, Standing};
use std::time::Duration;

#[derive(Args, Clone, Debug)]
pub(crate) struct EngineArgs {
    /// Deadline for each request, in ms; a request that misses it fails with a timeout
    #[arg(long, help_heading = "Limits", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    deadline_ms: Option<u64>,
    /// Timeout for each node, in ms
    #[arg(long, help_heading = "Limits", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    node_timeout_ms: Option<u64>,
    /// Memory for the rows that one request makes on its way, in bytes; a request that needs more fails as overloaded
    #[arg(long, help_heading = "Limits", value_name = "N", default_value_t = RUN_BYTES_MAX as u64, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    run_bytes_max: u64,
    /// Threads of the CPU pool [default: the number of cores, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpu_threads: Option<u16>,
    /// Number of event loops, one thread each; a request stays on one of them
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1024))]
    loops: u16,
    /// Whether cheap computations run on the event loop instead of the CPU pool
    #[arg(long, help_heading = "Scheduler tuning", value_name = "on|off", value_enum, default_value = "on")]
    inline: Switch,
    /// Whether consecutive computations are fused or go to the CPU pool together
    #[arg(long, help_heading = "Scheduler tuning", value_name = "on|off", value_enum, default_value = "on")]
    chaining: Switch,
    /// Run computations predicted to take less than N ns on the event loop
    #[arg(long, help_heading = "Scheduler tuning", value_name = "N", default_value_t = Policy::default().inline_threshold_ns)]
    inline_threshold_ns: u32,
    /// How many consecutive nodes may run on the event loop before one must leave it
    #[arg(long, help_heading = "Scheduler tuning", value_name = "N", default_value_t = Policy::default().max_inline_depth)]
    max_inline_depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl EngineArgs {
    pub(crate) fn settings(&self, scheduler: Scheduler) -> Settings {
        // Never only one: whatever goes to the pool would wait behind the first computation that takes long.
        let threads = std::thread::available_parallelism().map_or(1, usize::from).max(2);
        Settings {
            scheduler,
            loops: self.loops.into(),
            cpu_threads: self.cpu_threads.map_or(threads, usize::from),
            deadline: self.deadline_ms.map(Duration::from_millis),
            node_timeout: self.node_timeout_ms.map(Duration::from_millis),
            run_bytes_max: usize::try_from(self.run_bytes_max).unwrap_or(usize::MAX),
            policy: Policy {
                inline: self.inline == Switch::On,
                chaining: self.chaining == Switch::On,
                inline_threshold_ns: self.inline_threshold_ns,
                max_inline_depth: self.max_inline_depth,
            },
            standing: Standing::Requests,
        }
    }
}
