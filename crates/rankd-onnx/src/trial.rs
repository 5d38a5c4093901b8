//! A process that loads the library first, to see whether it can be loaded. It may hang or crash: nothing is lost but that process.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A library that starts computes or reads from the disk. One that sleeps for so long waits for something that does not come.
const SLEEP_MAX: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What is read of a reason.
const REASON_BYTES_MAX: u64 = 1_000;

/// Runs a trial that may take so long. Why the library cannot be used is a short sentence without a full stop.
pub(crate) fn must_pass(mut command: Command, limit: Duration) -> Result<(), String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("it cannot be tried in a process of its own: {error}"))?;
    let Some(status) = end(&mut child, limit) else {
        // Both fail only where it has ended by itself by now.
        let _ = child.kill();
        let _ = child.wait();
        return Err("it hangs while it starts".to_owned());
    };
    if status.success() {
        return Ok(());
    }
    if let Some(signal) = status.signal() {
        return Err(format!("it crashes while it starts (signal {signal})"));
    }
    let mut reason = String::new();
    if let Some(stderr) = child.stderr.take() {
        // Without a reason, the status has to do.
        let _ = stderr.take(REASON_BYTES_MAX).read_to_string(&mut reason);
    }
    match reason.trim() {
        "" => Err(format!("it cannot be started ({status})")),
        reason => Err(reason.to_owned()),
    }
}

/// How the process ended; nothing where it hangs.
#[expect(clippy::disallowed_methods, reason = "the thread that reads models waits for another process")]
fn end(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    let mut awake = began;
    loop {
        // A process that cannot be waited for is gone, and then has not shown that the library is good.
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        let now = Instant::now();
        if !is_asleep(child.id()) {
            awake = now;
        }
        if now - awake > SLEEP_MAX || now - began > limit {
            return None;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Whether the first thread of a process waits for something other than a processor or a disk. Where the system does not say, it does not.
#[expect(clippy::disallowed_methods, reason = "it is not a file of the user's")]
fn is_asleep(process: u32) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The program's name, which may contain anything, is in parentheses before the state.
    about.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}
