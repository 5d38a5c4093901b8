//! What the runs of one loop share: stores, the pool, counters, the policy, and buffers that go from run to run. What a run does
//! with them is in [`crate::run`].

use crate::place::Policy;
use crate::pool::Offload;
use crate::run::RunBuffers;
use crate::stats::Stats;
use crate::store::Stores;
use std::cell::RefCell;
use std::sync::Arc;

/// What the runs of one loop share.
pub struct LoopContext {
    pub(crate) stores: Stores,
    pub(crate) pool: Arc<dyn Offload + Send + Sync>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) policy: Policy,
    /// The buffers of runs that are over, for the next ones.
    #[expect(clippy::vec_box, reason = "buffers are large and change hands twice a run")]
    spare: RefCell<Vec<Box<RunBuffers>>>,
}

/// More runs at once than this are rare, and their buffers are freed.
const SPARE_MAX: usize = 256;

impl LoopContext {
    pub fn new(stores: Stores, pool: Arc<dyn Offload + Send + Sync>, stats: Arc<Stats>, policy: Policy) -> LoopContext {
        LoopContext { stores, pool, stats, policy, spare: RefCell::default() }
    }
}

/// Buffers for the duration of a run.
pub(crate) struct BorrowedBuffers<'c> {
    context: &'c LoopContext,
    buffers: Option<Box<RunBuffers>>,
}

impl<'c> BorrowedBuffers<'c> {
    pub(crate) fn new(context: &'c LoopContext) -> BorrowedBuffers<'c> {
        BorrowedBuffers { context, buffers: context.spare.borrow_mut().pop() }
    }

    pub(crate) fn get(&mut self) -> &mut RunBuffers {
        self.buffers.get_or_insert_default()
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
