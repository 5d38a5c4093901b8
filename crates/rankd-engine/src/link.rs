//! A checked plan made ready to run: tasks made, counts counted, so that a request looks nothing up.

use crate::error::{FailedNode, RunError, TaskError};
use crate::task::{Args, Definition, Task};
use rankd_column::RowSet;
use rankd_plan::diagnostic::SourceSpan;
use rankd_plan::plan::{NodeIx, Plan};
use rankd_plan::wire::{Scheduling, Sources};
use rankd_plan::{Diagnostic, Registry};
use std::sync::Arc;
use std::time::Duration;

/// A plan that can run. Shared by all requests for it; nothing in it changes.
pub struct Linked {
    pub name: String,
    pub nodes: Vec<LinkedNode>,
    pub outputs: Vec<NodeIx>,
    /// The needed nodes, each after its inputs.
    pub order: Vec<NodeIx>,
    /// The needed nodes that wait for nothing.
    pub starts: Vec<NodeIx>,
    sources: Sources,
}

pub struct LinkedNode {
    pub id: Arc<str>,
    pub op: &'static str,
    pub label: Option<String>,
    pub task: Task,
    pub inputs: Vec<NodeIx>,
    /// The needed nodes that wait for this one, each once.
    pub readers: Vec<NodeIx>,
    /// How many nodes it waits for.
    pub waits: u32,
    /// How often its rows are read: by readers, and once for being an output.
    pub reads: u32,
    pub timeout: Option<Duration>,
    pub trivial: bool,
    pub scheduling: Scheduling,
    /// Whether some output needs it; other nodes never run.
    pub needed: bool,
    at: Option<String>,
}

impl Linked {
    /// Makes every task of the plan. `definitions` are those that the plan was checked against.
    pub fn link(plan: &Plan, definitions: &[Definition], registry: &Registry) -> Result<Linked, Box<Diagnostic>> {
        let mut nodes = Vec::with_capacity(plan.nodes.len());
        for (ix, node) in plan.nodes.iter().enumerate() {
            let Some(definition) = definitions.iter().find(|definition| definition.signature.op == node.signature.op)
            else {
                let message = format!("the task {} was declared but is not here", node.signature.op);
                let pointer = format!("/nodes/{ix}/op");
                return Err(Box::new(Diagnostic::new(rankd_plan::Code::UnknownOp, pointer, message)));
            };
            let mut distinct = node.inputs.clone();
            distinct.sort_unstable();
            distinct.dedup();
            nodes.push(LinkedNode {
                id: node.id.clone(),
                op: node.signature.op,
                label: node.label.clone(),
                task: (definition.make)(&Args { node, registry }),
                inputs: node.inputs.clone(),
                readers: node.readers.iter().copied().filter(|reader| plan.nodes[*reader as usize].needed).collect(),
                waits: distinct.len() as u32,
                reads: 0,
                timeout: node.timeout_ms.map(|ms| Duration::from_millis(ms.into())),
                trivial: node.signature.contract.trivial,
                scheduling: node.scheduling,
                needed: node.needed,
                at: node.source.as_ref().map(|span| span.at()),
            });
        }
        let needed = |ix: &NodeIx| plan.nodes[*ix as usize].needed;
        for ix in plan.order.iter().filter(|ix| needed(ix)) {
            for input in &plan.nodes[*ix as usize].inputs {
                nodes[*input as usize].reads += 1;
            }
        }
        for output in &plan.outputs {
            nodes[*output as usize].reads += 1;
        }
        let order: Vec<NodeIx> = plan.order.iter().copied().filter(needed).collect();
        let starts = order.iter().copied().filter(|ix| nodes[*ix as usize].waits == 0).collect();
        let (name, outputs, sources) = (plan.name.clone(), plan.outputs.clone(), plan.sources.clone());
        Ok(Linked { name, nodes, outputs, order, starts, sources })
    }

    pub fn node(&self, ix: NodeIx) -> &LinkedNode {
        &self.nodes[ix as usize]
    }

    /// A node's failure as the run's: with the node's name and the author's place.
    pub(crate) fn blame(&self, ix: NodeIx, error: TaskError) -> RunError {
        let at = error.source.and_then(|source| self.sources.span(source));
        let TaskError { kind, code, message, .. } = error;
        self.failed(ix, RunError::new(kind, code, message), at)
    }

    /// Names the node in an error that came to it from outside.
    pub(crate) fn at_node(&self, ix: NodeIx, error: RunError) -> RunError {
        self.failed(ix, error, None)
    }

    fn failed(&self, ix: NodeIx, error: RunError, source: Option<SourceSpan>) -> RunError {
        let node = self.node(ix);
        let at = source.as_ref().map(SourceSpan::at).or_else(|| node.at.clone());
        RunError {
            node: Some(FailedNode { id: node.id.to_string(), op: node.op, at, source: source.map(Box::new) }),
            ..error
        }
    }
}

/// How far one run has come: who still waits, and the rows that are there. Used by one thread at a time.
pub(crate) struct Progress<'p> {
    plan: &'p Linked,
    waiting: Vec<u32>,
    reads_left: Vec<u32>,
    slots: Vec<Option<RowSet>>,
    left: usize,
}

impl<'p> Progress<'p> {
    pub(crate) fn new(plan: &'p Linked) -> Progress<'p> {
        Progress {
            plan,
            waiting: plan.nodes.iter().map(|node| node.waits).collect(),
            reads_left: plan.nodes.iter().map(|node| node.reads).collect(),
            slots: plan.nodes.iter().map(|_| None).collect(),
            left: plan.order.len(),
        }
    }

    /// The rows that a node works on. The last reader of a slot empties it.
    pub(crate) fn inputs(&mut self, ix: NodeIx) -> Result<Vec<RowSet>, RunError> {
        let node = self.plan.node(ix);
        node.inputs.iter().map(|input| self.read(*input)).collect()
    }

    /// The rows of all outputs, in the plan's order.
    pub(crate) fn outputs(&mut self) -> Result<Vec<RowSet>, RunError> {
        self.plan.outputs.iter().map(|output| self.read(*output)).collect()
    }

    fn read(&mut self, ix: NodeIx) -> Result<RowSet, RunError> {
        let at = ix as usize;
        self.reads_left[at] = self.reads_left[at].saturating_sub(1);
        let rows = if self.reads_left[at] == 0 { self.slots[at].take() } else { self.slots[at].clone() };
        rows.ok_or_else(|| RunError::bug(format!("the rows of node {} were read when they were not there", ix)))
    }

    /// Keeps a node's rows and calls `ready` for each node that waited only for it.
    pub(crate) fn finish(&mut self, ix: NodeIx, rows: RowSet, mut ready: impl FnMut(NodeIx)) {
        self.left -= 1;
        if self.reads_left[ix as usize] > 0 {
            self.slots[ix as usize] = Some(rows);
        }
        for &reader in &self.plan.node(ix).readers {
            let waiting = &mut self.waiting[reader as usize];
            *waiting -= 1;
            if *waiting == 0 {
                ready(reader);
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }
}
