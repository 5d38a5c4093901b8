//! What the runs of one loop share, and what each of them needs while it goes on: kept from run to run, so that a run allocates
//! none of it. What a run does with it is in [`crate::run`].

use crate::job::{Landed, Whereabouts};
use crate::place::Policy;
use crate::pool::Offload;
use crate::progress::Progress;
use crate::stats::Stats;
use crate::store::Stores;
use crate::timeouts::Watch;
use crate::turn::Pace;
use futures_util::stream::FuturesUnordered;
use rankd_plan::plan::NodeIx;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What the runs of one loop share.
pub struct Host {
    pub(crate) stores: Stores,
    pub(crate) pool: Arc<dyn Offload + Send + Sync>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) policy: Policy,
    /// The state of runs that are over, for the next ones.
    #[expect(clippy::vec_box, reason = "a state is large and changes hands twice a run")]
    spare: RefCell<Vec<Box<State>>>,
}

/// More runs at once than this are rare, and what they needed is given back.
const SPARE_MAX: usize = 256;

impl Host {
    pub fn new(stores: Stores, pool: Arc<dyn Offload + Send + Sync>, stats: Arc<Stats>, policy: Policy) -> Host {
        Host { stores, pool, stats, policy, spare: RefCell::default() }
    }
}

pub(crate) type Fetching = Pin<Box<dyn Future<Output = Landed>>>;

/// What a run needs while it goes on. Kept by the loop from run to run, so that a run allocates none of it.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) progress: Progress,
    /// Steps for the loop, from `next_ready` on, with what they are predicted to take.
    pub(crate) ready: Vec<(NodeIx, f32)>,
    pub(crate) next_ready: usize,
    /// Reads that nobody has polled yet.
    pub(crate) fresh: Vec<Fetching>,
    pub(crate) fetches: FuturesUnordered<Fetching>,
    pub(crate) landed: VecDeque<Landed>,
    pub(crate) watch: Watch,
    /// Those in flight, by their first step, so that the trace can tell what became of them.
    pub(crate) stretches: Vec<(NodeIx, Arc<Whereabouts>)>,
    pub(crate) pace: Pace,
}

/// A state for as long as a run goes on.
pub(crate) struct Lease<'h> {
    host: &'h Host,
    state: Option<Box<State>>,
}

impl<'h> Lease<'h> {
    pub(crate) fn new(host: &'h Host) -> Lease<'h> {
        Lease { host, state: None }
    }

    pub(crate) fn take(&mut self) -> &mut State {
        let host = self.host;
        self.state.get_or_insert_with(|| host.spare.borrow_mut().pop().unwrap_or_default())
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut spare = self.host.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.extend(self.state.take());
        }
    }
}
