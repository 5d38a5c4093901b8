//! What the system says about this process. Nothing where it does not say.

use crate::files;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::time::Duration;

/// The CPU time of the whole process so far.
pub fn cpu_seconds() -> f64 {
    cpu(ClockId::ProcessCPUTime).as_secs_f64()
}

/// The CPU time of the calling thread so far.
pub fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The memory that the process has now.
pub fn resident_bytes() -> Option<u64> {
    status("VmRSS:")
}

/// The most memory that the process has had.
pub fn peak_bytes() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = files::read_text(Path::new("/proc/self/status"), 1 << 16).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// How many descriptors are open.
pub fn open_descriptors() -> Option<usize> {
    files::list(Path::new("/proc/self/fd")).ok().map(|all| all.len())
}
