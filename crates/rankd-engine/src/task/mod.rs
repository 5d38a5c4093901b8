//! What a task is to the engine. Which of the two traits it implements decides where it runs.
//!
//! `inputs` has the rows that a computation works on, `context` what a task may use besides, `ids` how it sees ids, and a file for
//! each protocol of [`crate::store`] what a task can ask of an endpoint: `keyed` with `members`, `calls`, `table`. `decode` makes rows of what was read,
//! and `layout` says what is read of a store. `draws` has random numbers, `model` trained models. `lost` is what tasks say of rows that they leave out, `source` where the rows come from
//! that they bring in.

mod calls;
mod context;
mod decode;
mod draws;
mod ids;
mod inputs;
mod keyed;
mod layout;
mod lost;
mod members;
mod model;
mod source;
mod table;

pub use calls::ServiceCalls;
pub(crate) use context::stop;
pub use context::{ComputeContext, FetchContext, Field, LinkContext, RowCounts, Tally};
pub(crate) use decode::DecodePool;
pub use decode::{Decoding, Load, PoolTrip, Unread};
pub use draws::NodeDraws;
pub use ids::{IdKeys, code as code_id};
pub use inputs::InputRows;
pub use keyed::KeyedReads;
pub use layout::{Inspect, KeyPattern, Misread, StoredLayout};
pub use lost::{Among, Lost, LostRow};
pub use members::AskedMembers;
pub use model::ModelScore;
pub use source::{ElementKey, Elements, RowSource, StoredElements};

use crate::error::TaskError;
use crate::request::Request;
use rankd_column::expr::Scratch;
use rankd_column::expr::pass::Part;
use rankd_column::{Key, RowSet, Stop};
use rankd_plan::Registry;
use rankd_plan::signature::typed::Params;
use rankd_plan::signature::{Contract, Signature};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Computes: a plain function of its inputs that cannot wait. Runs on the CPU pool, or on the loop where that is cheaper.
pub trait Compute: Send + Sync {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError>;

    /// The same as a step of a pass over the rows of its one input, if it is one: then it may be done together with its
    /// neighbours in the plan.
    fn as_part(&self) -> Option<Part> {
        None
    }

    /// The same for a task that is several parts, all of which see the rows that come in: each after the first is a sibling of those before it.
    fn as_parts(&self) -> Vec<Part> {
        self.as_part().into_iter().collect()
    }

    /// Whether it picks or works off rows one by one and can hand over what it has, with the other rows as they came in, when its time
    /// is up ([`ComputeContext::picking`]). Such a node has a limit as one with a fallback has.
    fn is_anytime(&self) -> bool {
        false
    }

    /// Whether it may miss rows that an exact search would find.
    fn is_approximate(&self) -> bool {
        false
    }

    /// Why a row of an input is not among the rows that came out, for whoever asks about that row.
    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::Unsaid
    }

    /// The keys that it orders or picks rows by, the most important first.
    fn orders_by(&self) -> Vec<Key> {
        Vec::new()
    }

    /// Which model gives the values of a key that it writes, if one does, with the dials where they stand.
    fn scored_by(&self, _: Key, _dials: &[i64]) -> Option<ModelScore> {
        None
    }

    /// Where the rows come from that it brings in, for whoever asks why an item is not among them.
    fn row_source(&self) -> RowSource<'_> {
        RowSource::Unsaid
    }
}

/// Reads or waits: runs on the event loop and gives the loop back while it waits.
pub trait Fetch: Send + Sync {
    fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> impl Future<Output = Result<RowSet, TaskError>>;

    /// What it reads of a store, for those who want to look at some of it; `None` for what does not read by key.
    fn layout(&self, _: &Registry) -> Option<StoredLayout<'_>> {
        None
    }

    /// The same as [`Compute::why_lost`].
    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::Unsaid
    }

    /// The same as [`Compute::row_source`].
    fn row_source(&self) -> RowSource<'_> {
        RowSource::Unsaid
    }
}

/// The rows of a fetch that is under way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<RowSet, TaskError>> + 'a>>;

/// `Fetch` for tasks of unlike types.
pub trait AnyFetch: Send + Sync {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a>;

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>>;

    fn why_lost(&self, row: &LostRow<'_>) -> Lost;

    fn row_source(&self) -> RowSource<'_>;
}

impl<T: Fetch> AnyFetch for T {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a> {
        Box::pin(self.run(inputs, cx))
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        Fetch::layout(self, registry)
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        Fetch::why_lost(self, row)
    }

    fn row_source(&self) -> RowSource<'_> {
        Fetch::row_source(self)
    }
}

/// A task with its parameters, ready to run any number of times.
#[derive(Clone)]
pub enum Task {
    Compute(Arc<dyn Compute>),
    Fetch(Arc<dyn AnyFetch>),
}

impl Task {
    pub(crate) fn is_anytime(&self) -> bool {
        match self {
            Task::Compute(task) => task.is_anytime(),
            Task::Fetch(_) => false,
        }
    }

    /// Why a row of an input is not among the rows that came out.
    pub(crate) fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        match self {
            Task::Compute(task) => task.why_lost(row),
            Task::Fetch(task) => task.why_lost(row),
        }
    }

    /// Where the rows come from that it brings in.
    pub(crate) fn row_source(&self) -> RowSource<'_> {
        match self {
            Task::Compute(task) => task.row_source(),
            Task::Fetch(task) => task.row_source(),
        }
    }

    /// The keys that it orders or picks rows by.
    pub(crate) fn orders_by(&self) -> Vec<Key> {
        match self {
            Task::Compute(task) => task.orders_by(),
            Task::Fetch(_) => Vec::new(),
        }
    }

    /// Which model gives the values of a key that it writes, if one does.
    pub(crate) fn scored_by(&self, key: Key, dials: &[i64]) -> Option<ModelScore> {
        match self {
            Task::Compute(task) => task.scored_by(key, dials),
            Task::Fetch(_) => None,
        }
    }

    /// Calls a computation by itself on this thread, with rows of the caller's own: for tests and measurements of tasks. `None` for a
    /// task that reads. The request is one that its plan has begun.
    pub fn compute(&self, inputs: Vec<RowSet>, request: &Request, stop: Stop<'_>) -> Option<Result<RowSet, TaskError>> {
        let Task::Compute(task) = self else { return None };
        let mut slots: Vec<Option<RowSet>> = inputs.into_iter().map(Some).collect();
        let mut scratch = Scratch::default();
        let mut cx = ComputeContext::new(request, &mut scratch, stop);
        Some(task.run(&mut InputRows::owned(&mut slots), &mut cx))
    }
}

/// How a task is made from its parameters, once, when a plan is linked. A task that is nothing but its parameters has this
/// by itself.
pub trait Make: Sized {
    type Params: Params;

    fn make(params: Self::Params, cx: &LinkContext<'_>) -> Self;
}

impl<P: Params> Make for P {
    type Params = P;

    fn make(params: P, _: &LinkContext<'_>) -> P {
        params
    }
}

/// A task's declaration, and the code behind it.
#[derive(Clone, Copy)]
pub struct Definition {
    pub signature: Signature,
    pub maker: Maker,
}

/// A task that is a computation or a read by what its parameters name, such as an endpoint of one kind or another.
pub trait Decide {
    type Params: Params;

    /// Made once, when a plan is linked.
    fn decide(params: Self::Params, cx: &LinkContext<'_>) -> Task;
}

/// How to make the task of a node, by where it runs.
#[derive(Clone, Copy)]
pub enum Maker {
    /// On the event loop, waiting without blocking it.
    Fetch(fn(&LinkContext<'_>) -> Arc<dyn AnyFetch>),
    /// Computing: on the pool, or on the loop when that is cheaper.
    Compute(fn(&LinkContext<'_>) -> Arc<dyn Compute>),
    /// One or the other: it is decided when a plan is linked.
    Decided(fn(&LinkContext<'_>) -> Task),
}

impl Definition {
    /// The definition of a task whose code is of this type. In a constant, a contract that does not hold together is an error
    /// of the build.
    pub const fn of<T: Runs<By>, By>(
        op: &'static str,
        summary: &'static str,
        contract: &'static Contract,
    ) -> Definition {
        contract.check();
        assert!(
            contract.declares(<T::Params as Params>::LIST),
            "the contract declares other parameters than the task's code reads"
        );
        Definition { signature: Signature { op, summary, contract }, maker: T::MAKER }
    }

    pub(crate) fn make(&self, cx: &LinkContext<'_>) -> Task {
        match self.maker {
            Maker::Fetch(make) => Task::Fetch(make(cx)),
            Maker::Compute(make) => Task::Compute(make(cx)),
            Maker::Decided(make) => make(cx),
        }
    }
}

impl Maker {
    /// Where the task runs, for listings.
    pub fn runs_on(&self) -> &'static str {
        match self {
            Maker::Fetch(_) => "loop",
            Maker::Compute(_) => "cpu",
            Maker::Decided(_) => "loop or cpu",
        }
    }
}

/// Where the code of a type runs: it follows from the one trait of [`Compute`], [`Fetch`] and [`Decide`] that the type has. `By` is
/// inferred.
pub trait Runs<By> {
    type Params: Params;
    const MAKER: Maker;
}

/// Stands for [`Compute`] in [`Runs`].
pub enum ByComputing {}

/// Stands for [`Fetch`] in [`Runs`].
pub enum ByFetching {}

/// Stands for [`Decide`] in [`Runs`].
pub enum ByDeciding {}

impl<T: Decide> Runs<ByDeciding> for T {
    type Params = <T as Decide>::Params;
    const MAKER: Maker = Maker::Decided(|cx| T::decide(cx.params(), cx));
}

impl<T: Make + Compute + 'static> Runs<ByComputing> for T {
    type Params = <T as Make>::Params;
    const MAKER: Maker = Maker::Compute(|cx| Arc::new(make::<T>(cx)));
}

impl<T: Make + Fetch + 'static> Runs<ByFetching> for T {
    type Params = <T as Make>::Params;
    const MAKER: Maker = Maker::Fetch(|cx| Arc::new(make::<T>(cx)));
}

fn make<T: Make>(cx: &LinkContext<'_>) -> T {
    T::make(cx.params(), cx)
}
