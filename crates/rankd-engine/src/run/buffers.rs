//! What a run works with. Its loop keeps the buffers from run to run, so that a run allocates none of them.

use super::job::JobProgress;
use super::timeouts::Timeouts;
use super::turn::InlineClock;
use crate::call::StepResult;
use crate::progress::Progress;
use crate::steps::Steps;
use futures_util::stream::FuturesUnordered;
use rankd_plan::plan::NodeIx;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

pub(crate) type Reading = Pin<Box<dyn Future<Output = StepResult>>>;

/// A read in flight.
pub(crate) struct PendingRead {
    pub(super) step: NodeIx,
    /// Nothing once it was dropped; then it never ends.
    pub(super) reading: Option<Reading>,
}

impl Future for PendingRead {
    type Output = StepResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StepResult> {
        self.reading.as_mut().map_or(Poll::Pending, |reading| reading.as_mut().poll(cx))
    }
}

/// In the order in which a step passes through them.
#[derive(Default)]
pub(crate) struct RunBuffers {
    pub(super) progress: Progress,
    /// Steps whose inputs are all there, and the step that was the last of these.
    pub(super) startable: Vec<(NodeIx, Option<NodeIx>)>,
    /// Steps for the loop, from `next_ready` on, with the nanoseconds that each is predicted to take.
    pub(super) ready: Vec<(NodeIx, f32)>,
    pub(super) next_ready: usize,
    pub(super) inline_clock: InlineClock,
    /// By node: how many steps have followed each other on the loop, 0 for one that ran elsewhere. Empty where it does not matter.
    pub(super) depths: Vec<u32>,
    /// Reads that have not been polled yet, and those that have.
    pub(super) new_reads: Vec<PendingRead>,
    pub(super) reads: FuturesUnordered<PendingRead>,
    /// Chains on the pool by their first step, for the trace.
    pub(super) chains: Vec<(NodeIx, Arc<JobProgress>)>,
    /// Jobs of steps with a fallback: each can be stopped by itself.
    pub(super) job_stops: Vec<(NodeIx, Arc<AtomicBool>)>,
    pub(super) timeouts: Timeouts,
    /// Steps that have ended elsewhere and have not been taken in.
    pub(super) finished: VecDeque<StepResult>,
}

impl RunBuffers {
    /// Everything else is as the run before has left it: empty.
    pub(super) fn begin(&mut self, steps: &Steps, bytes_max: usize, keep_depths: bool) {
        self.progress.begin(steps, bytes_max);
        self.timeouts.begin(steps.node_count());
        self.depths.clear();
        if keep_depths {
            self.depths.resize(steps.node_count(), 0);
        }
        self.inline_clock = InlineClock::default();
        self.startable.extend(steps.starts.iter().map(|step| (*step, None)));
    }

    /// How deep a step would be that ran on the loop after this one.
    pub(super) fn depth_after(&self, parent: Option<NodeIx>) -> u32 {
        1 + parent.and_then(|parent| self.depths.get(parent as usize)).copied().unwrap_or(0)
    }
}
