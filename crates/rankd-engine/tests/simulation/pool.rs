//! A CPU pool in virtual time: a queue and some workers, none of which is a thread.
//!
//! How long a job takes is known when it is submitted: the nth job of a run takes what the run's script says. So the moments
//! at which it starts and ends are known, too, and the job is called at its end.

use rankd_engine::clock::{self, Instant};
use rankd_engine::pool::{Job, Offload, Worker};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::JoinHandle;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// A future whose jobs are known to be those of this run.
pub(crate) struct OfRun<F> {
    pub(crate) run: usize,
    pub(crate) inner: Pin<Box<F>>,
}

impl<F: Future> Future for OfRun<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        CURRENT.set(self.run);
        self.inner.as_mut().poll(cx)
    }
}

/// A job as the pool knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobLog {
    pub(crate) run: usize,
    pub(crate) worker: u16,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

pub(crate) struct VirtualPool {
    workers_max: usize,
    /// By run: what its jobs take, one after the other, over and over.
    costs_ms: Vec<Vec<u64>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By worker: when it has nothing more to do.
    free_at: Vec<Instant>,
    jobs: Vec<JobLog>,
    open: Vec<JoinHandle<()>>,
}

impl VirtualPool {
    pub(crate) fn new(workers_max: usize, costs_ms: Vec<Vec<u64>>) -> VirtualPool {
        VirtualPool { workers_max, costs_ms, state: Mutex::default() }
    }

    /// Waits until every job was called, and tells of all of them in order of submission.
    pub(crate) async fn drain(&self) -> Vec<JobLog> {
        loop {
            let open = std::mem::take(&mut self.state.lock().unwrap().open);
            if open.is_empty() {
                return std::mem::take(&mut self.state.lock().unwrap().jobs);
            }
            for job in open {
                job.await.unwrap();
            }
        }
    }
}

impl State {
    /// The worker that is free first; one more is hired while there may be more.
    fn worker(&mut self, now: Instant, workers_max: usize) -> usize {
        let first = (0..self.free_at.len()).min_by_key(|worker| self.free_at[*worker]);
        match first {
            Some(worker) if self.free_at[worker] <= now || self.free_at.len() >= workers_max => worker,
            _ => {
                self.free_at.push(now);
                self.free_at.len() - 1
            }
        }
    }
}

impl Offload for VirtualPool {
    fn submit(&self, job: Job) {
        let mut state = self.state.lock().unwrap();
        let (now, run) = (clock::now(), CURRENT.get());
        let worker = state.worker(now, self.workers_max);
        let costs = &self.costs_ms[run];
        let nth = state.jobs.iter().filter(|job| job.run == run).count();
        let start = now.max(state.free_at[worker]);
        let end = start + Duration::from_millis(costs[nth % costs.len()]);
        state.free_at[worker] = end;
        state.jobs.push(JobLog { run, worker: worker as u16, start, end });
        state.open.push(tokio::task::spawn_local(async move {
            tokio::time::sleep_until(end).await;
            job(Worker { number: worker as u16, started: Some(start) });
        }));
    }
}
