//! What became of an item in a run, and why: an item is an id, a row is one occurrence of it.
//!
//! A run that is asked about is linked for itself, with every task wrapped so that its rows are kept (`keep`); it walks the plan as written, on
//! any scheduler. Other runs are untouched by all of this. When it is over, rows are followed from where they came in to their ends (`trail`).
//! What dropped a row is told by its task and filled in from the rows that were kept (`dropped`), a score or a predicate is taken apart
//! (`parts`, `words`), and what a model gave by what each feature adds to it (`scored`). For an item that was in no source, each source says why
//! (`never`), and stores are asked for it (`inquiry`). For one that was dropped, a number is looked for whose change would bring it into the answer
//! (`change`), by runs on what was read (`changed_runs`). What was read is recorded, or the run is itself one on what another run recorded
//! ([`crate::recorded`]). Nothing is printed here.

mod change;
mod changed_runs;
mod dropped;
mod inquiry;
mod keep;
mod never;
mod parts;
mod scored;
mod story;
mod trail;
mod words;

pub use change::{Change, ChangePlace, NoChange};
pub use dropped::{DropReason, Dropped, Named, OtherRow};
pub use inquiry::Inquiry;
pub(crate) use keep::{Kept, TaskWrapper};
pub use never::{AbsentReason, NotGiven, PARENTS_MAX, StoredAbsence, StoredFinding};
pub use parts::{DEPTH_MAX, PARTS_MAX, Part, PartKind};
pub use story::{AskedItem, PathStep, RowStory, SourceRow, StoryEnd, Verdict};
pub use trail::RowAt;
pub use words::expression_text;

use crate::error::RunError;
use crate::link::Linked;
use crate::recorded::{Reads, Replay, RunRecorder};
use crate::request::Request;
use crate::run::Outcome;
use crate::run_limit::TIME_MAX;
use crate::tasks::Tasks;
use change::ChangeFinder;
use keep::KeptRun;
use rankd_column::Id;
use rankd_plan::Registry;
use rankd_plan::plan::{NodeIx, Plan};
use std::sync::Arc;
use trail::Walked;

/// So many items a question may be about.
pub const ITEMS_MAX: usize = 20;

/// A plan made ready for one run that is asked about.
pub struct AskedPlan {
    linked: Arc<Linked>,
    kept: Arc<Kept>,
    /// What the run reads, where it reads from stores.
    recorder: Arc<RunRecorder>,
    tasks: Tasks,
}

impl AskedPlan {
    /// The tasks and the registry are those that the plan was checked against.
    pub fn link(plan: &Plan, tasks: &Tasks, registry: &Registry) -> Result<AskedPlan, Box<RunError>> {
        let kept = Arc::<Kept>::default();
        let linked = Arc::new(Linked::link_wrapped(plan, tasks, registry, Some(&kept))?);
        Ok(AskedPlan { linked, kept, recorder: Arc::default(), tasks: tasks.clone() })
    }

    /// What runs, once.
    pub fn linked(&self) -> &Arc<Linked> {
        &self.linked
    }

    /// A request as such a run takes it: it has its time from the start, so that it can be told what the run saw, and no limits of its own but
    /// the one of all such runs. Its reads are recorded. A request for what another run recorded keeps its reads and how hard that run was pressed.
    pub fn request(&self, request: Request) -> Request {
        let mut request = request;
        request.now_ms.get_or_insert_with(crate::clock::since_1970_ms);
        if !matches!(request.reads, Reads::Replayed(_)) {
            (request.reads, request.pressure) = (Reads::Recorded(self.recorder.clone()), 0);
        }
        Request { deadline: Some(TIME_MAX), node_timeout: None, trace: false, ..request }
    }

    /// What the run has read, for other runs; nothing where that is not all, or where it contradicts itself.
    fn reads(&self, request: &Request) -> Option<Arc<Replay>> {
        match &request.reads {
            Reads::Replayed(replay) => Some(replay.clone()),
            Reads::Live | Reads::Recorded(_) => {
                let record = self.recorder.take();
                let replay = (!record.is_cut).then(|| Arc::new(Replay::new(record)));
                replay.filter(|replay| replay.conflicts() == 0)
            }
        }
    }

    /// What became of items in the run, which is over: `request` is what it was asked, and `outcome` what came of it. Where stores are to be asked about
    /// them, that is a run of its own, for the same request.
    pub fn items(
        &self,
        plan: &Plan,
        registry: &Registry,
        request: &Request,
        outcome: &Outcome,
        items: &[Id],
    ) -> (Vec<AskedItem>, Option<Inquiry>) {
        let reads = self.reads(request);
        let (request, kept) = self.ran(request);
        let walked = Walked::new(plan, &self.linked, &request, kept, outcome);
        let mut changes = reads.as_ref().and_then(|reads| ChangeFinder::new(&walked, registry, &self.tasks, reads));
        let items = items.iter().take(ITEMS_MAX).map(|id| AskedItem::of(&walked, registry, id, changes.as_mut()));
        let items: Vec<AskedItem> = items.collect();
        let inquiry = Inquiry::of(&self.linked, &items);
        (items, inquiry)
    }

    /// The nodes that brought in rows of the answer, of which each is given by its output and its id: of several rows with an id, the first. Nothing for
    /// what is not in the answer.
    pub fn sources(
        &self,
        plan: &Plan,
        request: &Request,
        outcome: &Outcome,
        rows: &[(usize, Id)],
    ) -> Vec<Option<NodeIx>> {
        let (request, kept) = self.ran(request);
        let walked = Walked::new(plan, &self.linked, &request, kept, outcome);
        rows.iter().map(|(output, id)| walked.source_of(*output, id)).collect()
    }

    /// The request as the run had it, and what the run left behind.
    fn ran(&self, request: &Request) -> (Arc<Request>, KeptRun) {
        // The run's own has more, such as its tables; what is needed of it here is the same.
        let mut request = self.linked.begin(Request { reads: Reads::Live, ..request.clone() }, None);
        let kept = self.kept.take();
        if let (Some(models), Some(request)) = (&kept.taken.models, Arc::get_mut(&mut request)) {
            // Those that the run scored with, whatever is in use by now.
            request.models = Some(models.clone());
        }
        (request, kept)
    }
}
