//! How far one run has come: which steps still wait, and the rows that are there. Used by one thread at a time.
//!
//! Knows nothing of when or where a step runs. A slot is emptied by its last reader. `substitution` has what stands in for nodes.

mod substitution;

pub(crate) use substitution::NodeNews;

use crate::clock::Instant;
use crate::error::RunError;
use crate::link::Linked;
use crate::recorded::Struck;
use crate::settle::{NodeFailure, RunFailure, missing};
use crate::steps::{Step, Steps};
use crate::task::InputRows;
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use substitution::Substitution;

/// Kept from run to run, so that a run allocates nothing here.
#[derive(Default)]
pub(crate) struct Progress {
    waiting: Vec<u32>,
    reads_left: Vec<u32>,
    slots: Vec<Option<RowSet>>,
    left: usize,
    /// How many bytes of rows the run may hold, and how many more its steps may give before what it holds is added up.
    bytes_max: usize,
    bytes_left: usize,
    substitution: Substitution,
    /// The rows of the nodes that log them, once the run is over.
    logged: Vec<(NodeIx, RowSet)>,
    /// Whether the node that pages has rows for another page.
    pub(crate) has_more: bool,
    /// The failure that ended the run: of its node, and how long after the start.
    last: Option<Box<(NodeIx, RunError, Duration)>>,
    /// In a replay: what struck the nodes of the recorded run, and the rows of one that was left off.
    struck: Option<(Arc<Struck>, RowSet)>,
}

impl Progress {
    pub(crate) fn of(steps: &Steps, bytes_max: usize) -> Progress {
        let mut progress = Progress::default();
        progress.begin(steps, bytes_max);
        progress
    }

    pub(crate) fn begin(&mut self, steps: &Steps, bytes_max: usize) {
        self.waiting.clear();
        self.waiting.extend_from_slice(&steps.waits);
        self.reads_left.clear();
        self.reads_left.extend_from_slice(&steps.reads);
        // Left empty by the run before.
        self.slots.resize_with(steps.waits.len(), || None);
        self.left = steps.eager_count;
        (self.bytes_max, self.bytes_left) = (bytes_max, bytes_max);
        self.has_more = false;
        (self.last, self.struck) = (None, None);
    }

    /// A replay begins, in this weather.
    pub(crate) fn strike(&mut self, struck: Arc<Struck>, no_rows: RowSet) {
        self.struck = Some((struck, no_rows));
    }

    /// The rows of a node that cannot end a replay, because the recorded run failed elsewhere.
    pub(crate) fn left_off(&self, node: NodeIx) -> Option<RowSet> {
        self.struck.as_ref().filter(|(struck, _)| struck.has_left_off(node)).map(|(_, no_rows)| no_rows.clone())
    }

    /// The run ends because this node failed. What fails while the rest is still waited for does not count.
    pub(crate) fn note_last(&mut self, node: NodeIx, error: &RunError, now: Instant) {
        if self.last.is_none() {
            self.last = Some(Box::new((node, error.clone(), self.after(node, now))));
        }
    }

    /// How long after the start a node ended: in a replay, as it was recorded.
    fn after(&self, node: NodeIx, now: Instant) -> Duration {
        let recorded = self.struck.as_ref().and_then(|(struck, _)| struck.after(node));
        recorded.unwrap_or_else(|| now.saturating_duration_since(self.began_at().unwrap_or(now)))
    }

    /// Forgets the rows of a run that ended early.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.end_substitution();
    }

    /// The rows that a step works on, for it to keep.
    pub(crate) fn inputs(&mut self, node: NodeIx, step: &Step) -> Result<Vec<RowSet>, NodeFailure> {
        if !step.reserves().is_empty() {
            return self.asked_inputs(node, step);
        }
        step.inputs.iter().map(|input| self.read(*input).ok_or(NodeFailure::InputMissing(*input))).collect()
    }

    /// The rows of all outputs, in the plan's order. An answer without any row is no answer where something is missing from it. The rows of nodes
    /// that log them are kept for [`Progress::take_logged`].
    pub(crate) fn outputs(&mut self, plan: &Linked) -> Result<Vec<RowSet>, RunFailure> {
        if !plan.logging.is_empty() {
            self.keep_logged(&plan.logging);
        }
        let rows =
            plan.outputs.iter().map(|output| self.read(*output).ok_or_else(|| RunFailure::bug(missing(*output))));
        let rows: Vec<RowSet> = rows.collect::<Result<_, _>>()?;
        self.end_substitution();
        match self.first_error() {
            Some(error) if rows.iter().all(RowSet::is_empty) => Err(RunFailure::nothing_left(error.clone())),
            _ => Ok(rows),
        }
    }

    /// Rows that stand in for those of a node are not its own, and are not logged.
    #[cold]
    #[inline(never)]
    fn keep_logged(&mut self, logging: &[NodeIx]) {
        for &node in logging {
            let rows = self.read(node).filter(|_| !self.is_substituted(node));
            self.logged.extend(rows.map(|rows| (node, rows)));
        }
    }

    /// The rows of the nodes that log them, in the order of the plan, where the run has ended with an answer.
    pub(crate) fn take_logged(&mut self) -> Vec<(NodeIx, RowSet)> {
        std::mem::take(&mut self.logged)
    }

    fn read(&mut self, ix: NodeIx) -> Option<RowSet> {
        let at = ix as usize;
        self.reads_left[at] = self.reads_left[at].saturating_sub(1);
        if self.reads_left[at] == 0 { self.slots[at].take() } else { self.slots[at].clone() }
    }

    /// How many rows a step would work on.
    #[inline]
    pub(crate) fn rows_in(&self, step: &Step) -> usize {
        step.inputs.iter().map(|input| self.slots[*input as usize].as_ref().map_or(0, RowSet::len)).sum()
    }

    /// The rows that a step would work on.
    pub(crate) fn peek(&self, step: &Step) -> impl Iterator<Item = &RowSet> {
        step.inputs.iter().filter_map(|input| self.slots[*input as usize].as_ref())
    }

    /// Counts a step's reads, before it is called: a bit for each input that no other step will read.
    #[inline(always)]
    pub(crate) fn claim(&mut self, step: &Step) -> u64 {
        // Most steps have one.
        if let [input] = *step.inputs {
            let left = &mut self.reads_left[input as usize];
            *left = left.wrapping_sub(1);
            return u64::from(*left == 0);
        }
        let mut last = 0;
        for (at, &input) in step.inputs.iter().enumerate() {
            let left = &mut self.reads_left[input as usize];
            *left = left.wrapping_sub(1);
            last |= u64::from(*left == 0) << at;
        }
        last
    }

    /// A step's rows where they lie.
    #[inline(always)]
    pub(crate) fn lend<'a>(&'a mut self, step: &'a Step, last: u64) -> InputRows<'a> {
        InputRows::new(&mut self.slots, &step.inputs, if step.distinct { last } else { 0 })
    }

    /// Empties the slots that have no readers left, after the step was called.
    #[inline(always)]
    pub(crate) fn release(&mut self, step: &Step, mut last: u64) {
        if let [input] = *step.inputs {
            if last != 0 {
                self.empty(input);
            }
            return;
        }
        while last != 0 {
            self.empty(step.inputs[last.trailing_zeros() as usize]);
            last &= last - 1;
        }
    }

    /// Most tasks have taken their rows along, and then there is nothing to write.
    #[inline(always)]
    fn empty(&mut self, ix: NodeIx) {
        if let slot @ Some(_) = &mut self.slots[ix as usize] {
            *slot = None;
        }
    }

    /// Keeps a step's rows. Someone reads them, or the step would not be needed. False where the run may now hold too many bytes:
    /// see [`Progress::holds_too_much`].
    #[inline(always)]
    pub(crate) fn finish(&mut self, ix: NodeIx, rows: RowSet) -> bool {
        self.left -= 1;
        let bytes = rows.batch().made_bytes();
        self.slots[ix as usize] = Some(rows);
        // Rows that several steps give are counted for each, and rows that were let go stay counted.
        let (bytes_left, is_too_much) = self.bytes_left.overflowing_sub(bytes);
        self.bytes_left = bytes_left;
        !is_too_much
    }

    /// Whether the rows that are there take more bytes than they may. What several of them share counts once, and what is there
    /// anyway does not count.
    #[cold]
    #[inline(never)]
    pub(crate) fn holds_too_much(&mut self) -> bool {
        let mut seen = HashSet::new();
        let parts = self.slots.iter().flatten().flat_map(|rows| rows.batch().made_parts());
        let held: usize = parts.filter(|(part, _)| seen.insert(*part)).map(|(_, bytes)| bytes).sum();
        self.bytes_left = self.bytes_max.saturating_sub(held);
        held > self.bytes_max
    }

    /// A step is done whose rows went straight to the next one.
    pub(crate) fn pass(&mut self) {
        self.left -= 1;
    }

    /// One of those that a step waits for is there; whether it was the last.
    #[inline]
    pub(crate) fn count_down(&mut self, reader: NodeIx) -> bool {
        let waiting = &mut self.waiting[reader as usize];
        *waiting = waiting.wrapping_sub(1);
        *waiting == 0
    }

    /// Whether a step waits for nothing.
    pub(crate) fn is_ready(&self, ix: NodeIx) -> bool {
        self.waiting[ix as usize] == 0
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }
}
