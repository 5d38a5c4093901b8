//! What sends long jobs to the background: a thread that looks now and then which job has computed for how long.
//!
//! By the processor time of its thread, not by the clock: a short job on a busy core takes long, too. A thread that has given way cannot
//! come back without privileges, so it ends with its job, and a new one takes its place in the pool.

use super::{BEHIND_EVERYTHING, Doing, Shared};
use rustix::process::{Pid, setpriority_process};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A job that has computed for longer is not a short one. Most take well under a millisecond.
const LONG: Duration = Duration::from_millis(5);
/// How often running jobs are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// So many looks at a pool without jobs, and the next is when there is one.
const IDLE_LOOKS: u32 = 50;

/// The thread that looks; ends when dropped.
pub(super) struct Watch {
    state: Arc<WatchState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct WatchState {
    sleeps: AtomicBool,
    ends: AtomicBool,
}

impl Watch {
    pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Watch> {
        let state = Arc::new(WatchState::default());
        let (watched, seen) = (shared.clone(), state.clone());
        let thread = thread::Builder::new().name("rankd-cpu-watch".to_owned()).spawn(move || watch(&watched, &seen))?;
        Ok(Watch { state, thread: Some(thread) })
    }

    /// There is a job.
    pub(super) fn begin(&self) {
        if self.state.sleeps.load(Ordering::SeqCst) && self.state.sleeps.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // It has no code that panics.
            let _ = thread.join();
        }
    }
}

/// A job that runs, and what its thread had computed when it was first seen.
#[derive(Clone, Copy, PartialEq)]
struct Seen {
    job: u64,
    worked: Duration,
}

fn watch(shared: &Arc<Shared>, state: &WatchState) {
    let mut seen: Vec<Option<Seen>> = vec![None; shared.slots.len()];
    let mut idle = 0;
    while !state.ends.load(Ordering::SeqCst) {
        if idle < IDLE_LOOKS {
            thread::park_timeout(LOOK);
        } else {
            state.sleeps.store(true, Ordering::SeqCst);
            // A job that came in between is seen.
            if shared.open().count == 0 {
                thread::park();
            }
            state.sleeps.store(false, Ordering::SeqCst);
        }
        idle = if shared.open().count == 0 { idle + 1 } else { 0 };
        for (number, seen) in seen.iter_mut().enumerate() {
            look(shared, number, seen);
        }
    }
}

/// Looks at what one thread does. A job that was seen before and has computed for long since goes to the background.
fn look(shared: &Arc<Shared>, number: usize, seen: &mut Option<Seen>) {
    let slot = &shared.slots[number];
    let Doing::Job(job) = *slot.doing() else {
        *seen = None;
        return;
    };
    let Some(thread) = *slot.thread.lock().unwrap_or_else(PoisonError::into_inner) else { return };
    let Some(worked) = processor_time(thread) else { return };
    match *seen {
        Some(before) if before.job == job => {
            if worked.saturating_sub(before.worked) + LOOK > LONG {
                send_to_background(shared, number, job, thread);
            }
        }
        _ => *seen = Some(Seen { job, worked }),
    }
}

fn send_to_background(shared: &Arc<Shared>, number: usize, job: u64, thread: Pid) {
    // As many jobs as there are slots to spare may be in the background; those beyond stay where they are.
    let free = shared.slots.iter().position(|slot| *slot.doing() == Doing::Absent);
    let Some(free) = free else { return };
    let mut doing = shared.slots[number].doing();
    // Where no other thread can be started, the pool keeps this one.
    if *doing != Doing::Job(job) || shared.start_thread(free).is_err() {
        return;
    }
    *doing = Doing::LastJob;
    shared.open().background += 1;
    // Where it is refused, the job still has a thread of its own.
    let _ = setpriority_process(Some(thread), BEHIND_EVERYTHING);
}

/// How long a thread has computed in all.
fn processor_time(thread: Pid) -> Option<Duration> {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    #[expect(clippy::disallowed_methods, reason = "it is the system's answer to a question, not a file of anybody's")]
    let text = std::fs::read_to_string(path).ok()?;
    let nanos = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}
