//! What a run keeps for questions: the rows of every node, each with where it came from.
//!
//! A task is wrapped, as it is for the defaults of keys: the wrapper puts a column into each input that numbers its rows
//! ([`Key::ORIGIN`]), and what comes out of the task still has it, because kernels carry all columns along. So no task and no scheduler
//! knows that rows are followed. A view keeps the column where it lies; a new batch has it copied like any other. Only what makes new rows,
//! one for many or many for one, has to say where they come from: a fan-out carries one key more
//! ([`LinkContext::carried`](crate::task::LinkContext::carried)), and the rows of groups are new ones.

use crate::codes;
use crate::error::TaskError;
use crate::request::Request;
use crate::run_limit::{BYTES_MAX, ROWS_MAX, too_many};
use crate::store::TableVersions;
use crate::task::{
    AnyFetch, Compute, ComputeContext, FetchContext, Fetching, InputRows, Lost, LostRow, ModelScore, RowSource,
    StoredLayout, Task,
};
use rankd_column::{Cells, Column, IdTexts, Key, RowSet};
use rankd_plan::Registry;
use rankd_plan::model::ModelVersions;
use rankd_plan::plan::NodeIx;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one node was given and gave, the last time that it was called.
#[derive(Clone)]
pub(crate) struct KeptCall {
    /// Its inputs as far as they were there, each row with its number.
    pub(crate) inputs: Vec<RowSet>,
    /// Nothing where it failed.
    pub(crate) given: Option<RowSet>,
}

/// What a run has left behind.
pub(crate) struct KeptRun {
    pub(crate) calls: HashMap<NodeIx, KeptCall>,
    pub(crate) taken: TakenAlong,
}

/// What the tasks of a plan are wrapped into when it is linked for runs beside those for requests.
pub(crate) trait TaskWrapper {
    fn wrap(&self, node: NodeIx, task: Task) -> Task;

    /// Whether rows are followed through the plan, so that tasks which make new rows carry along where they come from.
    fn follows_rows(&self) -> bool;
}

impl TaskWrapper for Arc<Kept> {
    fn wrap(&self, node: NodeIx, task: Task) -> Task {
        self.watch(node, task)
    }

    fn follows_rows(&self) -> bool {
        true
    }
}

/// What a run took along when it began, besides its request.
#[derive(Clone, Default)]
pub(crate) struct TakenAlong {
    pub(crate) tables: Option<Arc<TableVersions>>,
    pub(crate) models: Option<Arc<ModelVersions>>,
    pub(crate) id_texts: Option<Arc<IdTexts>>,
}

/// What is kept of one run.
#[derive(Default)]
pub(crate) struct Kept(Mutex<KeptCalls>);

#[derive(Default)]
struct KeptCalls {
    calls: HashMap<NodeIx, KeptCall>,
    /// The numbers of an input's rows, by the input's position and the length of its batch: shared by all that are alike.
    numbers: HashMap<(usize, usize), Arc<Column>>,
    taken: TakenAlong,
    /// Where the parts lie that are held, and how many bytes they take.
    parts: HashSet<usize>,
    bytes: usize,
}

/// A row of one of several inputs, as one number.
fn number(input: usize, row: usize) -> i64 {
    (input as i64) << 32 | row as i64
}

/// The input that a row of the output came from, and the stored row there. Nothing where the task does not say.
pub(crate) fn origin(rows: &RowSet, position: usize) -> Option<(usize, usize)> {
    match &**rows.batch().column(Key::ORIGIN)? {
        Column::Int(cells) => {
            let number = cells.get(rows.rows().at(position))?;
            Some(((number >> 32) as usize, (number & i64::from(u32::MAX)) as usize))
        }
        Column::Float(_) | Column::Bool(_) | Column::Str(..) | Column::List(..) | Column::Vector(..) => None,
    }
}

/// Where the rows are in an output that came from this stored row of an input.
pub(crate) fn positions_from(rows: &RowSet, input: usize, row: usize) -> Vec<usize> {
    let Some(Column::Int(cells)) = rows.batch().column(Key::ORIGIN).map(|column| &**column) else { return Vec::new() };
    let wanted = Some(number(input, row));
    rows.rows().iter().enumerate().filter(|(_, stored)| cells.get(*stored) == wanted).map(|(at, _)| at).collect()
}

impl Kept {
    /// The same task, with its rows kept.
    pub(crate) fn watch(self: &Arc<Kept>, node: NodeIx, task: Task) -> Task {
        let kept = self.clone();
        match task {
            Task::Compute(task) => Task::Compute(Arc::new(Watched { task, node, kept })),
            Task::Fetch(task) => Task::Fetch(Arc::new(Watched { task, node, kept })),
        }
    }

    /// What was kept, for whoever asks once the run is over.
    pub(crate) fn take(&self) -> KeptRun {
        let mut held = self.held();
        KeptRun { calls: std::mem::take(&mut held.calls), taken: std::mem::take(&mut held.taken) }
    }

    /// Keeps what the run has taken along, which is the same for all of its nodes.
    fn take_along(
        &self,
        tables: Option<&Arc<TableVersions>>,
        models: Option<&Arc<ModelVersions>>,
        id_texts: Option<&Arc<IdTexts>>,
    ) {
        let taken = &mut self.held().taken;
        taken.tables = taken.tables.take().or_else(|| tables.cloned());
        taken.models = taken.models.take().or_else(|| models.cloned());
        taken.id_texts = taken.id_texts.take().or_else(|| id_texts.cloned());
    }

    fn held(&self) -> MutexGuard<'_, KeptCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inputs with their rows numbered.
    fn numbered<'r>(&self, inputs: impl Iterator<Item = &'r RowSet>) -> Vec<RowSet> {
        let mut held = self.held();
        let mut numbered = |(input, rows): (usize, &RowSet)| {
            let length = rows.batch().len();
            let of_rows = || Arc::new(Column::Int(Cells::full((0..length).map(|row| number(input, row)).collect())));
            rows.with(Key::ORIGIN, held.numbers.entry((input, length)).or_insert_with(of_rows).clone())
        };
        inputs.enumerate().map(&mut numbered).collect()
    }

    /// Keeps what a node was given and gave, as far as there is room.
    fn keep(&self, node: NodeIx, inputs: Vec<RowSet>, given: Option<&RowSet>) -> Result<(), TaskError> {
        let mut held = self.held();
        let held = &mut *held;
        for (part, bytes) in inputs.iter().chain(given).flat_map(|rows| rows.batch().made_parts()) {
            if held.parts.insert(part as usize) {
                held.bytes += bytes;
            }
        }
        held.calls.insert(node, KeptCall { inputs, given: given.cloned() });
        let message = match (given.and_then(too_many), held.bytes > BYTES_MAX) {
            (Some(rows), _) => {
                format!("the node gives {rows} rows, and a run that is asked about keeps at most {ROWS_MAX} of a node")
            }
            (None, true) => format!(
                "the rows of all nodes take more than {BYTES_MAX} bytes, the most that a run keeps that is asked about"
            ),
            (None, false) => return Ok(()),
        };
        Err(TaskError::new(codes::RUN_TOO_LARGE, message))
    }
}

/// A task whose rows are kept.
struct Watched<T> {
    task: T,
    node: NodeIx,
    kept: Arc<Kept>,
}

impl Compute for Watched<Arc<dyn Compute>> {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let numbered = self.kept.numbered(inputs.iter());
        self.kept.take_along(cx.tables, cx.models, cx.id_texts);
        let mut slots: Vec<Option<RowSet>> = numbered.iter().cloned().map(Some).collect();
        let given = self.task.run(&mut InputRows::owned(&mut slots), cx);
        self.kept.keep(self.node, numbered, given.as_ref().ok())?;
        given
    }

    fn is_anytime(&self) -> bool {
        self.task.is_anytime()
    }

    fn is_approximate(&self) -> bool {
        self.task.is_approximate()
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        self.task.why_lost(row)
    }

    fn orders_by(&self) -> Vec<Key> {
        self.task.orders_by()
    }

    fn scored_by(&self, key: Key, dials: &[i64]) -> Option<ModelScore> {
        self.task.scored_by(key, dials)
    }

    fn row_source(&self) -> RowSource<'_> {
        self.task.row_source()
    }
}

impl AnyFetch for Watched<Arc<dyn AnyFetch>> {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a> {
        Box::pin(async move {
            let numbered = self.kept.numbered(inputs.iter());
            let Request { tables, models, id_texts, .. } = cx.request;
            self.kept.take_along(tables.as_ref(), models.as_ref(), id_texts.as_ref());
            let given = self.task.start(&numbered, cx).await;
            self.kept.keep(self.node, numbered, given.as_ref().ok())?;
            given
        })
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        self.task.layout(registry)
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        self.task.why_lost(row)
    }

    fn row_source(&self) -> RowSource<'_> {
        self.task.row_source()
    }
}
