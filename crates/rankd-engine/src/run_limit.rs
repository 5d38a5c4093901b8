//! What a run may cost that no caller waits for: one that is asked about, or the shadow of another.
//!
//! One limit for all of them: rows a node, bytes a run, time a run. Runs for requests have limits of their own ([`crate::deadline`]). Rows are looked
//! at when a node ends, by a wrapper around its task, so that runs which have no such limit know nothing of it.

use crate::codes;
use crate::error::{RunError, TaskError};
use crate::link::Linked;
use crate::task::{
    AnyFetch, Compute, ComputeContext, FetchContext, Fetching, InputRows, Lost, LostRow, RowSource, StoredLayout, Task,
};
use crate::tasks::Tasks;
use crate::why::TaskWrapper;
use rankd_column::RowSet;
use rankd_plan::Registry;
use rankd_plan::plan::{NodeIx, Plan};
use std::sync::Arc;
use std::time::Duration;

/// So many rows a node may give, but for rows that are there anyway.
pub const ROWS_MAX: usize = 100_000;

/// So many bytes of rows a run may hold.
pub const BYTES_MAX: usize = 64 << 20;

/// So long a run may take.
pub const TIME_MAX: Duration = Duration::from_secs(5);

/// How many rows too many a node has given; nothing where it may give as many.
pub(crate) fn too_many(rows: &RowSet) -> Option<usize> {
    Some(rows.len()).filter(|count| *count > ROWS_MAX && !rows.batch().is_kept())
}

/// Links a plan once more, for runs beside those of another plan: every node has a limit, and what is learned of its steps is learned here alone. It goes by
/// the other plan's name, so that it takes that plan's cursors.
pub fn link_beside(plan: &Plan, tasks: &Tasks, registry: &Registry, other: &str) -> Result<Arc<Linked>, Box<RunError>> {
    let mut linked = Linked::link_wrapped(plan, tasks, registry, Some(&RowLimit))?;
    other.clone_into(&mut linked.name);
    Ok(Arc::new(linked))
}

/// Wraps tasks whose rows are limited.
struct RowLimit;

impl TaskWrapper for RowLimit {
    fn wrap(&self, _: NodeIx, task: Task) -> Task {
        match task {
            Task::Compute(task) => Task::Compute(Arc::new(RowLimited(task))),
            Task::Fetch(task) => Task::Fetch(Arc::new(RowLimited(task))),
        }
    }

    fn follows_rows(&self) -> bool {
        false
    }
}

/// A task whose rows are limited.
struct RowLimited<T>(T);

fn limited(rows: RowSet) -> Result<RowSet, TaskError> {
    match too_many(&rows) {
        None => Ok(rows),
        Some(count) => {
            let message = format!("the node gives {count} rows, and a run beside others may have {ROWS_MAX} of a node");
            Err(TaskError::new(codes::RUN_TOO_LARGE, message))
        }
    }
}

impl Compute for RowLimited<Arc<dyn Compute>> {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        limited(self.0.run(inputs, cx)?)
    }

    fn is_anytime(&self) -> bool {
        self.0.is_anytime()
    }

    fn is_approximate(&self) -> bool {
        self.0.is_approximate()
    }
}

impl AnyFetch for RowLimited<Arc<dyn AnyFetch>> {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a> {
        Box::pin(async move { limited(self.0.start(inputs, cx).await?) })
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        self.0.layout(registry)
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        self.0.why_lost(row)
    }

    fn row_source(&self) -> RowSource<'_> {
        self.0.row_source()
    }
}
