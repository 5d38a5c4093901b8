//! Running a plan once more on what a run has read: every task that reads is replaced by the rows that it gave, so nothing is read and nothing waits.
//!
//! A task that reads by key gives each input row what it gave the same row before, whatever other rows there are; any other that reads gives what it
//! gave only for the same rows in the same order. What was not read then is missing, and the run says so instead of guessing.

use super::keep::{Kept, KeptCall, TakenAlong, TaskWrapper, origin};
use super::parts::{read_keys, written_keys};
use crate::clock::Instant;
use crate::codes;
use crate::deadline::{Deadline, Limit, Limits};
use crate::error::TaskError;
use crate::link::Linked;
use crate::request::Request;
use crate::run::Outcome;
use crate::sequential::Sequential;
use crate::stats::Stats;
use crate::task::{Compute, ComputeContext, InputRows, Task};
use crate::tasks::Tasks;
use rankd_column::kernel::gather::gather_column;
use rankd_column::rowset::Rows;
use rankd_column::{Key, RowSet, Stop};
use rankd_plan::Registry;
use rankd_plan::plan::{NodeIx, Plan};
use rankd_plan::signature::RowEffect;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs plans on what one run has read.
pub(super) struct KeptReplay<'a> {
    pub(super) tasks: &'a Tasks,
    pub(super) registry: &'a Registry,
    pub(super) calls: &'a HashMap<NodeIx, KeptCall>,
    pub(super) taken: &'a TakenAlong,
    sequential: Sequential,
}

/// What came of it.
pub(super) struct Replayed {
    pub(super) outcome: Outcome,
    pub(super) calls: HashMap<NodeIx, KeptCall>,
    /// Whether it wanted to read what was not read.
    pub(super) is_missing: bool,
}

impl<'a> KeptReplay<'a> {
    pub(super) fn new(
        tasks: &'a Tasks,
        registry: &'a Registry,
        calls: &'a HashMap<NodeIx, KeptCall>,
        taken: &'a TakenAlong,
    ) -> io::Result<KeptReplay<'a>> {
        let sequential = Sequential::new(&[], Arc::new(Stats::new(&[])))?;
        Ok(KeptReplay { tasks, registry, calls, taken, sequential })
    }

    /// Runs a plan that is like the one that has run but for a number. Nothing where it cannot be linked.
    pub(super) fn run(&self, plan: &Plan, request: &Request, until: Instant) -> Option<Replayed> {
        let wrapper = Replaying { plan, replay: self, kept: Arc::default(), is_missing: Arc::default() };
        let linked = Linked::link_wrapped(plan, self.tasks, self.registry, Some(&wrapper)).ok()?;
        let linked = Arc::new(linked.without_endpoints());
        let mut request = Request::clone(&linked.begin(request.clone(), None));
        let TakenAlong { tables, models, id_texts } = self.taken.clone();
        request.tables = tables.or(request.tables);
        request.models = models.or(request.models);
        request.id_texts = id_texts.or(request.id_texts);
        let deadline = Deadline { at: until, limit: Limit::Request, allowed: Duration::ZERO };
        let limits = Limits { request: Some(deadline), ..Limits::default() };
        let outcome = self.sequential.run(&linked, &Arc::new(request), limits);
        let is_missing = wrapper.is_missing.load(Ordering::Relaxed);
        Some(Replayed { outcome, calls: wrapper.kept.take().calls, is_missing })
    }
}

/// Puts recorded rows in place of what reads, and keeps what comes out.
struct Replaying<'a> {
    plan: &'a Plan,
    replay: &'a KeptReplay<'a>,
    kept: Arc<Kept>,
    is_missing: Arc<AtomicBool>,
}

impl TaskWrapper for Replaying<'_> {
    fn follows_rows(&self) -> bool {
        true
    }

    fn wrap(&self, node: NodeIx, task: Task) -> Task {
        let of_plan = &self.plan.nodes[node as usize];
        let task = match task {
            Task::Compute(task) => Task::Compute(task),
            Task::Fetch(task) => Task::Compute(Arc::new(Recorded {
                call: self.replay.calls.get(&node).cloned(),
                effect: of_plan.rows(),
                reads: read_keys(of_plan),
                writes: written_keys(of_plan, self.replay.registry),
                by_key: task.layout(self.replay.registry).is_some(),
                is_missing: self.is_missing.clone(),
            })),
        };
        self.kept.watch(node, task)
    }
}

/// What a task gave that reads.
struct Recorded {
    /// Nothing where it was not called.
    call: Option<KeptCall>,
    effect: RowEffect,
    reads: Vec<Key>,
    writes: Vec<Key>,
    /// Whether what it gives for a row depends on no other.
    by_key: bool,
    is_missing: Arc<AtomicBool>,
}

impl Recorded {
    fn missing(&self) -> TaskError {
        self.is_missing.store(true, Ordering::Relaxed);
        TaskError::new(codes::BUG, "this was not read by the run that is asked about")
    }

    /// By position of the rows at hand: the stored row that it was when the task was called.
    fn twins(&self, rows: &RowSet, before: &RowSet) -> Option<Vec<usize>> {
        let is_same =
            |at: usize, then: usize| self.reads.iter().all(|key| rows.value(*key, at) == before.value(*key, then));
        let id = |rows: &RowSet, at: usize| rows.batch().ids()[rows.rows().at(at)];
        if !self.by_key {
            let same = rows.len() == before.len()
                && (0..rows.len()).all(|at| id(rows, at) == id(before, at) && is_same(at, at));
            return same.then(|| before.rows().iter().collect());
        }
        let mut by_id: HashMap<i64, Vec<usize>> = HashMap::new();
        (0..before.len()).for_each(|then| by_id.entry(id(before, then)).or_default().push(then));
        let twin = |at: usize| {
            let then = by_id.get(&id(rows, at))?.iter().copied().find(|then| is_same(at, *then))?;
            Some(before.rows().at(then))
        };
        (0..rows.len()).map(twin).collect()
    }
}

impl Compute for Recorded {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let Some((call, given)) = self.call.as_ref().and_then(|call| Some((call, call.given.as_ref()?))) else {
            return Err(self.missing());
        };
        let (Some(rows), Some(before)) = (inputs.iter().next().cloned(), call.inputs.first()) else {
            return Ok(given.clone());
        };
        let twins = self.twins(&rows, before).ok_or_else(|| self.missing())?;
        // By the stored row that a row came from: where its rows lie in what was given.
        let mut came_of: HashMap<usize, Vec<u32>> = HashMap::new();
        for (position, stored) in given.rows().iter().enumerate() {
            match origin(given, position) {
                Some((0, row)) => came_of.entry(row).or_default().push(stored as u32),
                Some(_) => {}
                None => return Err(self.missing()),
            }
        }
        let of = |twin: &usize| came_of.get(twin).map_or(&[][..], Vec::as_slice);
        match self.effect {
            RowEffect::FanOut => Ok(given.looking_at(twins.iter().flat_map(of).copied().collect())),
            RowEffect::Fewer | RowEffect::FewerWhere(_) => {
                Ok(rows.positions((0..rows.len()).filter(|at| !of(&twins[*at]).is_empty())))
            }
            RowEffect::Same => {
                // Cells of rows that nobody looks at may be anything.
                let mut stored = vec![0; rows.batch().len()];
                for (row, twin) in rows.rows().iter().zip(&twins) {
                    stored[row] = of(twin).first().copied().ok_or_else(|| self.missing())?;
                }
                let mut with = rows;
                for (key, column) in given.batch().columns() {
                    let is_new = self.writes.contains(key) || before.batch().column(*key).is_none();
                    if is_new && *key != Key::ORIGIN && !given.is_empty() {
                        with =
                            with.with(*key, Arc::new(gather_column(column, Rows::Listed(&stored), Stop::default())?));
                    }
                }
                Ok(with)
            }
            RowEffect::Source
            | RowEffect::Reordered
            | RowEffect::Appended
            | RowEffect::Grouped
            | RowEffect::GroupedWhere(_) => Err(self.missing()),
        }
    }
}
