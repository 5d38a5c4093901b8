//! What became of an item in a run, and why: an item is an id, a row is one occurrence of it.
//!
//! A run that is asked about is linked for itself, with every task wrapped so that its rows are kept (`keep`); it walks the plan as written, on
//! any scheduler. Other runs are untouched by all of this. When it is over, rows are followed from where they came in to their ends (`trail`).
//! What dropped a row is told by its task and filled in from the rows that were kept (`dropped`), a score or a predicate is taken apart
//! (`parts`, `words`), and what a model gave by what each feature adds to it (`scored`). For an item that was in no source, each source says why
//! (`never`), and stores are asked for it (`inquiry`). For one that was dropped, a number is looked for whose change would bring it into the answer
//! (`change`), by runs on what was read (`replay`). Nothing is printed here.

mod change;
mod dropped;
mod inquiry;
mod keep;
mod never;
mod parts;
mod replay;
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
use crate::request::Request;
use crate::run::Outcome;
use crate::run_limit::TIME_MAX;
use crate::tasks::Tasks;
use change::ChangeFinder;
use rankd_column::Id;
use rankd_plan::Registry;
use rankd_plan::plan::Plan;
use std::sync::Arc;
use trail::Walked;

/// So many items a question may be about.
pub const ITEMS_MAX: usize = 20;

/// A plan made ready for one run that is asked about.
pub struct AskedPlan {
    linked: Arc<Linked>,
    kept: Arc<Kept>,
    tasks: Tasks,
}

impl AskedPlan {
    /// The tasks and the registry are those that the plan was checked against.
    pub fn link(plan: &Plan, tasks: &Tasks, registry: &Registry) -> Result<AskedPlan, Box<RunError>> {
        let kept = Arc::<Kept>::default();
        let linked = Arc::new(Linked::link_wrapped(plan, tasks, registry, Some(&kept))?);
        Ok(AskedPlan { linked, kept, tasks: tasks.clone() })
    }

    /// What runs, once.
    pub fn linked(&self) -> &Arc<Linked> {
        &self.linked
    }

    /// A request as such a run takes it: it has its time from the start, so that it can be told what the run saw, and no limits of its own but
    /// the one of all such runs.
    pub fn request(&self, request: Request) -> Request {
        let mut request = request;
        request.now_ms.get_or_insert_with(crate::clock::since_1970_ms);
        Request { deadline: Some(TIME_MAX), node_timeout: None, pressure: 0, trace: false, ..request }
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
        // The run's own has more, such as its tables; what is needed of it here is the same.
        let mut request = self.linked.begin(request.clone(), None);
        let kept = self.kept.take();
        if let (Some(models), Some(request)) = (&kept.taken.models, Arc::get_mut(&mut request)) {
            // Those that the run scored with, whatever is in use by now.
            request.models = Some(models.clone());
        }
        let walked = Walked::new(plan, &self.linked, &request, kept, outcome);
        let mut changes = ChangeFinder::new(&walked, registry, &self.tasks);
        let items = items.iter().take(ITEMS_MAX).map(|id| AskedItem::of(&walked, registry, id, changes.as_mut()));
        let items: Vec<AskedItem> = items.collect();
        let inquiry = Inquiry::of(&self.linked, &items);
        (items, inquiry)
    }
}
