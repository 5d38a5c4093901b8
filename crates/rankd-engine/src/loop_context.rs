//! What the runs of one loop share, and what each of them needs while it goes on: kept from run to run, so that a run allocates
//! none of it. What a run does with it is in [`crate::run`].

use crate::place::Policy;
use crate::pool::Offload;
use crate::progress::Progress;
use crate::run::job::{JobProgress, StepResult};
use crate::run::timeouts::Timeouts;
use crate::run::turn::InlineClock;
use crate::stats::Stats;
use crate::store::Stores;
use futures_util::stream::FuturesUnordered;
use rankd_plan::plan::NodeIx;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What the runs of one loop share.
pub struct LoopContext {
    pub(crate) stores: Stores,
    pub(crate) pool: Arc<dyn Offload + Send + Sync>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) policy: Policy,
    /// The state of runs that are over, for the next ones.
    #[expect(clippy::vec_box, reason = "a state is large and changes hands twice a run")]
    spare: RefCell<Vec<Box<RunBuffers>>>,
}

/// More runs at once than this are rare, and what they needed is given back.
const SPARE_MAX: usize = 256;

impl LoopContext {
    pub fn new(stores: Stores, pool: Arc<dyn Offload + Send + Sync>, stats: Arc<Stats>, policy: Policy) -> LoopContext {
        LoopContext { stores, pool, stats, policy, spare: RefCell::default() }
    }
}

pub(crate) type PendingRead = Pin<Box<dyn Future<Output = StepResult>>>;

/// What a run needs while it goes on. Kept by the loop from run to run, so that a run allocates none of it.
#[derive(Default)]
pub(crate) struct RunBuffers {
    pub(crate) progress: Progress,
    /// Steps for the loop, from `next_ready` on, with what they are predicted to take.
    pub(crate) ready: Vec<(NodeIx, f32)>,
    pub(crate) next_ready: usize,
    /// Reads that nobody has polled yet.
    pub(crate) fresh: Vec<PendingRead>,
    pub(crate) fetches: FuturesUnordered<PendingRead>,
    pub(crate) finished: VecDeque<StepResult>,
    pub(crate) timeouts: Timeouts,
    /// Those in flight, by their first step, so that the trace can tell what became of them.
    pub(crate) chains: Vec<(NodeIx, Arc<JobProgress>)>,
    pub(crate) inline_clock: InlineClock,
}

/// A state for as long as a run goes on.
pub(crate) struct BorrowedBuffers<'h> {
    context: &'h LoopContext,
    buffers: Option<Box<RunBuffers>>,
}

impl<'h> BorrowedBuffers<'h> {
    pub(crate) fn new(context: &'h LoopContext) -> BorrowedBuffers<'h> {
        BorrowedBuffers { context, buffers: None }
    }

    pub(crate) fn take(&mut self) -> &mut RunBuffers {
        let context = self.context;
        self.buffers.get_or_insert_with(|| context.spare.borrow_mut().pop().unwrap_or_default())
    }
}

impl Drop for BorrowedBuffers<'_> {
    fn drop(&mut self) {
        let mut spare = self.context.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.extend(self.buffers.take());
        }
    }
}
