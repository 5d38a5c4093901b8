//! The record of a fused step as the records of its nodes: the trace speaks of nodes, however they ran.
//!
//! Rows and keys are those of each node, and so is the time: what was spent on its parts, chunk by chunk, added up. The nodes of a pass take
//! turns with every chunk; their records follow each other, so that the time of each is there once.

use crate::steps::{Step, Steps};
use crate::trace::{End, NodeTrace};
use rankd_column::Key;
use rankd_column::expr::Scratch;
use rankd_column::expr::pass::Part;
use rankd_plan::plan::NodeIx;
use std::sync::Arc;

/// What a fused step reports about its nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassReport {
    /// How many rows each gave, as far as they came.
    pub(crate) rows_out: Vec<usize>,
    /// By part: how long it took. Nothing where the step did not come to that.
    pub(crate) nanos: Vec<u64>,
    /// The one that failed.
    pub(crate) failed: Option<NodeIx>,
}

impl PassReport {
    /// Of the pass that was run last with this scratch.
    pub(crate) fn new(scratch: &Scratch, failed: Option<NodeIx>) -> PassReport {
        PassReport { rows_out: scratch.rows_out().to_vec(), nanos: scratch.part_nanos().to_vec(), failed }
    }

    /// How long the first so many parts took.
    fn nanos_of_first(&self, parts: usize) -> u64 {
        self.nanos.iter().take(parts).sum()
    }
}

/// Puts the records of all its nodes in place of each fused step's. `reports` are by step.
pub(crate) fn expand_passes(
    records: Vec<NodeTrace>,
    steps: &Steps,
    reports: &[(NodeIx, PassReport)],
) -> Vec<NodeTrace> {
    if records.iter().all(|record| steps.step(record.node).pass.is_none()) {
        return records;
    }
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        let step = steps.step(record.node);
        if step.pass.is_none() {
            all.push(record);
            continue;
        }
        let nothing = PassReport::default();
        let report = reports.iter().find(|(ix, _)| *ix == record.node).map_or(&nothing, |(_, report)| report);
        all.extend((0..step.nodes.len()).map(|at| of_node(at, &record, step, report)));
    }
    all
}

/// The record of the node at this position of a step.
fn of_node(at: usize, record: &NodeTrace, step: &Step, report: &PassReport) -> NodeTrace {
    let (node, last) = (step.nodes[at], record.node);
    let failed = match record.end {
        End::Failed => step.nodes.iter().position(|ix| Some(*ix) == report.failed).unwrap_or(0),
        End::Done | End::Abandoned | End::Skipped => step.nodes.len(),
    };
    let end = match record.end {
        End::Abandoned | End::Skipped => record.end,
        _ if at < failed => End::Done,
        _ if at == failed => End::Failed,
        _ => End::Abandoned,
    };
    // A node has the rows of the last of its parts.
    let parts_to = |at: usize| step.pass.as_ref().map_or(at + 1, |pass| parts_of_nodes(pass.parts(), at + 1));
    let out_of = |at: usize| report.rows_out.get(parts_to(at) - 1).map_or(0, |rows| *rows as u64);
    let reached = |at: usize| (record.start_ns + report.nanos_of_first(parts_to(at))).min(record.end_ns);
    let start_ns = if at == 0 { record.start_ns } else { reached(at - 1) };
    NodeTrace {
        node,
        // The first of them waited for a thread, and the others only for the one before.
        ready_ns: if at == 0 { record.ready_ns } else { start_ns },
        start_ns,
        end_ns: if node == last || report.nanos.is_empty() { record.end_ns } else { reached(at) },
        fused_into: (node != last).then_some(last),
        fused_after: at.checked_sub(1).map(|before| step.nodes[before]),
        end,
        rows_in: if at == 0 { record.rows_in } else { out_of(at - 1) },
        rows_out: if end == End::Done { out_of(at) } else { 0 },
        keys_in: keys_after(at, record, step),
        keys_out: if end == End::Done { keys_after(at + 1, record, step) } else { Arc::default() },
        ..record.clone()
    }
}

/// How many parts the first `count` nodes have.
fn parts_of_nodes(parts: &[Part], count: usize) -> usize {
    let next = parts.iter().enumerate().filter(|(_, part)| part.begins()).nth(count);
    next.map_or(parts.len(), |(at, _)| at)
}

/// The keys that are there after the first `count` nodes of the step.
fn keys_after(count: usize, record: &NodeTrace, step: &Step) -> Arc<[Key]> {
    let parts = step.pass.iter().flat_map(|pass| &pass.parts()[..parts_of_nodes(pass.parts(), count)]);
    let written = parts.filter_map(|part| match part {
        Part::Compute { key, .. } => Some(*key),
        _ => None,
    });
    let mut keys: Vec<Key> = record.keys_in.iter().copied().chain(written).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into()
}
