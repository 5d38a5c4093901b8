//! The CPU pool: threads that take jobs from one queue. It is a seam: the simulation has a pool in virtual time in its place.
//!
//! Most jobs are short, and a few are not. On Linux a job that has computed for some milliseconds goes to the background: its thread gives
//! way to everything else from then on and leaves the pool when the job is done, and another thread takes its place, so that short jobs
//! wait neither behind it nor beside it. Nothing has to be known of a job for this, and nothing is asked of it.

use crate::clock::Instant;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

#[cfg(target_os = "linux")]
mod background;

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
const BEHIND_THE_LOOPS: i32 = 5;
/// The lowest priority there is: about a seventieth of a loop's share where both want the processor.
const BEHIND_EVERYTHING: i32 = 19;

/// Whom the threads of an engine work for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Requests, for which callers wait.
    #[default]
    Requests,
    /// Runs that nobody waits for: its threads give way to everything else.
    Background,
}

impl Standing {
    /// What the names of its threads begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Standing::Requests => "rankd",
            Standing::Background => "rankd-bg",
        }
    }

    /// Called on the thread of an event loop when it starts.
    pub(crate) fn take_loop(self) {
        match self {
            Standing::Requests => {}
            Standing::Background => give_way(BEHIND_EVERYTHING),
        }
    }

    /// Called on a thread of the pool when it starts.
    fn take_pool_thread(self) {
        give_way(match self {
            Standing::Requests => BEHIND_THE_LOOPS,
            Standing::Background => BEHIND_EVERYTHING,
        });
    }
}

/// Lets the calling thread give way this much. Linux keeps that for each thread. Elsewhere, and where it is refused, all threads are alike.
fn give_way(priority: i32) {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), priority);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = priority;
}

/// Real threads.
pub struct Pool {
    jobs: Option<Sender<Job>>,
    shared: Arc<Shared>,
    threads: usize,
    #[cfg(target_os = "linux")]
    watch: Option<background::Watch>,
}

/// What the threads of a pool share.
struct Shared {
    standing: Standing,
    queue: Receiver<Job>,
    open: Mutex<OpenJobs>,
    idle: Condvar,
    /// By their numbers: more than the threads of the pool, because those in the background have numbers, too.
    slots: Vec<PoolThread>,
    joins: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct OpenJobs {
    /// How many jobs are waiting or running.
    count: usize,
    /// How many of them run in the background.
    background: usize,
}

/// What a thread of the pool is doing.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    /// There is no thread with this number.
    Absent,
    Nothing,
    /// A job, of which it has begun so many before.
    Job(u64),
    /// A job, after which it ends.
    LastJob,
}

struct PoolThread {
    doing: Mutex<Doing>,
    #[cfg(target_os = "linux")]
    thread: Mutex<Option<rustix::process::Pid>>,
}

impl PoolThread {
    fn doing(&self) -> std::sync::MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    pub fn start(threads: usize) -> io::Result<Pool> {
        Pool::start_as(Standing::default(), threads)
    }

    pub(crate) fn start_as(standing: Standing, threads: usize) -> io::Result<Pool> {
        let (jobs, queue) = unbounded::<Job>();
        let slot = || PoolThread {
            doing: Mutex::new(Doing::Absent),
            #[cfg(target_os = "linux")]
            thread: Mutex::default(),
        };
        let shared = Arc::new(Shared {
            standing,
            queue,
            open: Mutex::default(),
            idle: Condvar::new(),
            slots: (0..threads + in_background_max(standing, threads)).map(|_| slot()).collect(),
            joins: Mutex::default(),
        });
        let mut pool = Pool {
            jobs: Some(jobs),
            shared: shared.clone(),
            threads,
            #[cfg(target_os = "linux")]
            watch: None,
        };
        for number in 0..threads {
            shared.start_thread(number)?;
        }
        #[cfg(target_os = "linux")]
        if standing == Standing::Requests {
            pool.watch = Some(background::Watch::start(&shared)?);
        }
        // Elsewhere nothing is assigned to it after this.
        #[cfg(not(target_os = "linux"))]
        let _ = &mut pool;
        Ok(pool)
    }

    /// Waits until no job is waiting or running.
    pub fn wait_idle(&self) {
        let mut open = self.shared.open();
        while open.count > 0 {
            open = self.shared.idle.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// How many jobs are waiting or running.
    pub fn depth(&self) -> usize {
        self.shared.open().count
    }

    /// Whether a thread has nothing to do.
    pub fn has_room(&self) -> bool {
        let open = self.shared.open();
        open.count - open.background < self.threads
    }
}

/// How many jobs may be in the background at a time. Those beyond stay where they are: work that is divided among too many threads is
/// done late everywhere.
fn in_background_max(standing: Standing, threads: usize) -> usize {
    match standing {
        Standing::Requests => threads.div_ceil(2),
        // All of its jobs are there already.
        Standing::Background => 0,
    }
}

impl Shared {
    fn open(&self) -> std::sync::MutexGuard<'_, OpenJobs> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread with this number.
    fn start_thread(self: &Arc<Shared>, number: usize) -> io::Result<()> {
        *self.slots[number].doing() = Doing::Nothing;
        let shared = self.clone();
        let thread = thread::Builder::new().name(format!("{}-cpu-{number}", self.standing.prefix())).spawn(move || {
            shared.standing.take_pool_thread();
            #[cfg(target_os = "linux")]
            {
                let slot = &shared.slots[number].thread;
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(rustix::thread::gettid());
            }
            shared.work(number);
        });
        match thread {
            Ok(thread) => {
                let mut joins = self.joins.lock().unwrap_or_else(PoisonError::into_inner);
                joins.retain(|thread| !thread.is_finished());
                joins.push(thread);
                Ok(())
            }
            Err(error) => {
                *self.slots[number].doing() = Doing::Absent;
                Err(error)
            }
        }
    }

    /// What a thread does until there are no more jobs, or its place is taken.
    fn work(&self, number: usize) {
        let slot = &self.slots[number];
        for (begun, job) in (0..).zip(&self.queue) {
            *slot.doing() = Doing::Job(begun);
            // A job catches its own panics; should one escape all the same, the thread and the count survive it.
            let worker = Worker { number: number as u16, started: None };
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(worker)));
            let was = std::mem::replace(&mut *slot.doing(), Doing::Nothing);
            self.done(was == Doing::LastJob);
            if was == Doing::LastJob {
                break;
            }
        }
        *slot.doing() = Doing::Absent;
    }

    fn done(&self, in_background: bool) {
        let mut open = self.open();
        open.count -= 1;
        open.background -= usize::from(in_background);
        if open.count == 0 {
            self.idle.notify_all();
        }
    }
}

impl Offload for Pool {
    fn submit(&self, job: Job) {
        self.shared.open().count += 1;
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            self.shared.done(false);
        }
        #[cfg(target_os = "linux")]
        if let Some(watch) = &self.watch {
            watch.begin();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        // No thread is started any more once this one has ended.
        #[cfg(target_os = "linux")]
        drop(self.watch.take());
        let threads = std::mem::take(&mut *self.shared.joins.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A worker catches all panics, so joining cannot fail.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

    /// Computes until it is told to stop.
    fn hog(stop: &Arc<AtomicBool>, tell: &crossbeam_channel::Sender<u16>) -> Job {
        let (stop, tell) = (stop.clone(), tell.clone());
        Box::new(move |worker| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            tell.send(worker.number).unwrap();
        })
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn short_jobs_do_not_wait_for_a_long_one() {
        let pool = Pool::start(1).unwrap();
        let (tell, told) = unbounded();
        for _ in 0..3 {
            let stop = Arc::new(AtomicBool::new(false));
            pool.submit(hog(&stop, &tell));
            let (short, done) = unbounded();
            pool.submit(Box::new(move |worker| short.send(worker.number).unwrap()));
            // The long one runs until this has been done by the only other thread.
            let by = done.recv().unwrap();
            // It has told so before it has ended.
            while pool.depth() > 1 || !pool.has_room() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            assert_ne!(told.recv().unwrap(), by);
            pool.wait_idle();
        }
        assert_eq!(pool.threads(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_long_jobs_than_half_of_the_threads_are_in_the_background() {
        let pool = Pool::start(2).unwrap();
        let (tell, told) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        (0..4).for_each(|_| pool.submit(hog(&stop, &tell)));
        while pool.shared.queue.len() > 1 || pool.shared.open().background == 0 {
            std::thread::yield_now();
        }
        assert_eq!(pool.shared.open().background, 1);
        assert!(!pool.has_room());
        stop.store(true, Ordering::Relaxed);
        pool.wait_idle();
        assert_eq!(told.iter().take(4).count(), 4);
    }
}
