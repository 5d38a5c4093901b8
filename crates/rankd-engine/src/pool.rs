//! The CPU pool: threads that take jobs from one queue. It is a seam: the simulation has a pool in virtual time in its place.

use crate::clock::Instant;
use crossbeam_channel::{Sender, unbounded};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// What runs a job.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    pub number: u16,
    /// When the job counts as started, where that is not the moment at which it is called.
    pub started: Option<Instant>,
}

/// Work that owns all it needs: it may still run when the run that sent it has answered.
pub type Job = Box<dyn FnOnce(Worker) + Send>;

/// Anything that takes jobs.
pub trait Offload {
    fn submit(&self, job: Job);
}

/// How much the pool gives way to the event loops where there are fewer cores than threads: a loop that has to wait for the time
/// slice of a long job keeps all of its requests waiting.
#[cfg(target_os = "linux")]
const BEHIND_THE_LOOPS: i32 = 5;

/// Real threads.
pub struct Pool {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    open: Arc<OpenJobs>,
}

/// How many jobs are waiting or running.
#[derive(Default)]
struct OpenJobs {
    count: Mutex<usize>,
    idle: Condvar,
}

impl Pool {
    pub fn start(threads: usize) -> io::Result<Pool> {
        let (jobs, queue) = unbounded::<Job>();
        let open = Arc::new(OpenJobs::default());
        let mut pool = Pool { jobs: Some(jobs), threads: Vec::with_capacity(threads), open };
        for number in 0..threads {
            let (queue, open) = (queue.clone(), pool.open.clone());
            let thread = thread::Builder::new().name(format!("rankd-cpu-{number}")).spawn(move || {
                // Linux keeps this for each thread. Elsewhere, and where it is refused, all threads are alike.
                #[cfg(target_os = "linux")]
                let _ = rustix::process::nice(BEHIND_THE_LOOPS);
                for job in queue {
                    // A job catches its own panics; should one escape all the same, the thread and the count survive it.
                    let worker = Worker { number: number as u16, started: None };
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(worker)));
                    open.done();
                }
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Waits until no job is waiting or running.
    pub fn wait_idle(&self) {
        let mut count = self.open.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.open.idle.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// How many jobs are waiting or running.
    pub fn depth(&self) -> usize {
        *self.open.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenJobs {
    fn done(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            self.idle.notify_all();
        }
    }
}

impl Offload for Pool {
    fn submit(&self, job: Job) {
        *self.open.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            self.open.done();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A worker catches all panics, so joining cannot fail.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_idle_pool_has_done_every_job() {
        let pool = Pool::start(2).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for n in 0..100 {
            let done = done.clone();
            pool.submit(Box::new(move |_| {
                done.fetch_add(1, Ordering::Relaxed);
                assert!(n != 50, "one job panics");
            }));
        }
        pool.wait_idle();
        assert_eq!(done.load(Ordering::Relaxed), 100);
    }
}
