//! Nodes that one pass over the rows can do are made one step, once, when a plan is linked.
//!
//! A run of parts is a line of computations that each say what part of a pass they are, each the only reader of the one before. It
//! is cut into as few passes as it takes. Borders: an output, a node that logs its rows, rows that several nodes read or that may stand in for those of another
//! node, a node that must stay off the event loop, and a node with a time-out, a fallback or a condition of its own, because those are
//! promises about one node alone. For the same reason a run whose nodes have a time limit each walks the plan as written.

use crate::clock;
use crate::error::TaskError;
use crate::live::LiveKeys;
use crate::steps::StepSpec;
use crate::substitutes::{Substitutes, source};
use crate::task::{Compute, ComputeContext, InputRows, Task};
use rankd_column::RowSet;
use rankd_column::expr::pass::{self, PARTS_MAX, Pass};
use rankd_plan::plan::NodeIx;
use rankd_plan::signature::Cost;
use rankd_plan::wire::Scheduling;
use std::sync::Arc;

/// What several nodes do, as one pass.
struct Fused {
    pass: Arc<Pass>,
    nodes: Vec<NodeIx>,
}

impl Compute for Fused {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (values, stop) = (cx.values, cx.stop());
        cx.scratch.time_parts(cx.is_traced.then_some(clock::nanos));
        self.pass.run(&inputs[0], values, cx.scratch, stop).map_err(|failed| {
            let node = self.nodes.get(self.pass.group_of(failed.part)).copied();
            match self.pass.parts().get(failed.part).and_then(pass::Part::program) {
                Some(program) => TaskError { node, ..TaskError::eval(failed.error, program) },
                None => TaskError { node, ..TaskError::stopped() },
            }
        })
    }
}

/// The plan's nodes with those joined that can be; nothing where none can. `written` are by node; `kept` are the nodes whose rows are wanted when
/// all is done.
pub(crate) fn fuse(
    written: &[StepSpec],
    live: &LiveKeys,
    order: &[NodeIx],
    kept: &[NodeIx],
    substitutes: Option<&Substitutes>,
) -> Option<Vec<StepSpec>> {
    let mut parts: Vec<StepSpec> = written.to_vec();
    let mut joined = false;
    for run_of_parts in runs_of_parts(written, order, kept, substitutes) {
        let steps: Vec<Vec<pass::Part>> = run_of_parts.iter().map(|ix| parts_of(&written[*ix as usize])).collect();
        let mut from = 0;
        while from < steps.len() {
            // More than one pass takes, so that it shows where the next node begins.
            let ahead: Vec<pass::Part> = steps[from..].iter().flatten().take(2 * PARTS_MAX).cloned().collect();
            let (fitting, mut counted) = (Pass::reach(&ahead), 0);
            let fits = |of_node: &&Vec<pass::Part>| {
                counted += of_node.len();
                counted <= fitting
            };
            let reach = steps[from..].iter().take_while(fits).count().max(1);
            let nodes = &run_of_parts[from..from + reach];
            let needed = live.taken[nodes[0] as usize].keys();
            if let (2.., Some(pass)) = (reach, Pass::with_live(steps[from..from + reach].concat(), needed)) {
                join(&mut parts, nodes, Arc::new(pass));
                joined = true;
            }
            from += reach;
        }
    }
    joined.then_some(parts)
}

/// What a node does in a pass; nothing where it is not free to be in one.
fn parts_of(part: &StepSpec) -> Vec<pass::Part> {
    let free = part.runs && part.inputs.len() == 1 && part.timeout.is_none() && part.scheduling.inline != Some(false);
    match &part.task {
        Task::Compute(task) if free => task.as_parts(),
        _ => Vec::new(),
    }
}

/// Lines of nodes that may be joined, each the only reader of the one before.
fn runs_of_parts(
    parts: &[StepSpec],
    order: &[NodeIx],
    kept: &[NodeIx],
    substitutes: Option<&Substitutes>,
) -> Vec<Vec<NodeIx>> {
    let mut reads = vec![0u32; parts.len()];
    let running = order.iter().filter(|ix| parts[**ix as usize].runs);
    let read = running.clone().flat_map(|ix| &parts[*ix as usize].inputs).chain(kept);
    read.for_each(|input| reads[*input as usize] += 1);
    let is_border = |ix: NodeIx| substitutes.is_some_and(|substitutes| substitutes.of_node(ix).is_border());
    for (&ix, of_node) in running.clone().filter_map(|ix| Some((ix, substitutes?.of_node(*ix)))) {
        let of = [of_node.fallback, of_node.condition.as_ref().map(|condition| condition.otherwise)];
        let sources = of.into_iter().flatten().filter_map(|of| source(of, &parts[ix as usize].inputs));
        sources.for_each(|source| reads[source as usize] += 1);
    }
    // By node: the run of parts that it is the last of.
    let mut ends: Vec<Option<usize>> = vec![None; parts.len()];
    let mut runs_of_parts: Vec<Vec<NodeIx>> = Vec::new();
    for &ix in running {
        let part = &parts[ix as usize];
        if is_border(ix) || parts_of(part).is_empty() {
            continue;
        }
        let before = part.inputs.first().map(|input| *input as usize);
        let before = before.filter(|input| reads[*input] == 1).and_then(|input| ends[input]);
        let at = before.unwrap_or_else(|| {
            runs_of_parts.push(Vec::new());
            runs_of_parts.len() - 1
        });
        runs_of_parts[at].push(ix);
        ends[ix as usize] = Some(at);
    }
    // What is kept is read once for that, so a node after it begins a run of its own: nothing is joined across it.
    runs_of_parts.retain(|run_of_parts| run_of_parts.len() > 1);
    runs_of_parts
}

/// Makes the last of these nodes do the work of all of them.
fn join(parts: &mut [StepSpec], nodes: &[NodeIx], pass: Arc<Pass>) {
    let covered: Vec<&StepSpec> = nodes.iter().map(|ix| &parts[*ix as usize]).collect();
    let estimates: Option<Vec<u32>> = covered.iter().map(|part| part.scheduling.cost_estimate_us).collect();
    let joined = StepSpec {
        task: Task::Compute(Arc::new(Fused { pass: pass.clone(), nodes: nodes.to_vec() })),
        inputs: covered[0].inputs.clone(),
        reserves: 0,
        nodes: nodes.to_vec(),
        pass: Some(pass),
        timeout: None,
        scheduling: Scheduling {
            inline: None,
            cost_estimate_us: estimates.map(|estimates| estimates.iter().fold(0u32, |sum, us| sum.saturating_add(*us))),
        },
        patterns: covered.iter().flat_map(|part| &part.patterns).copied().collect(),
        // A pass gathers by itself.
        live: None,
        cost: covered.iter().fold(Cost::Trivial, |sum, part| add(sum, part.cost)),
        runs: true,
    };
    let Some((last, others)) = nodes.split_last() else { return };
    others.iter().for_each(|ix| parts[*ix as usize].runs = false);
    parts[*last as usize] = joined;
}

fn add(a: Cost, b: Cost) -> Cost {
    match (a, b) {
        (Cost::Unknown, _) | (_, Cost::Unknown) => Cost::Unknown,
        (Cost::Trivial, other) | (other, Cost::Trivial) => other,
        (Cost::About { fixed_ns: a, per_row_ns: x }, Cost::About { fixed_ns: b, per_row_ns: y }) => {
            Cost::About { fixed_ns: a + b, per_row_ns: x + y }
        }
    }
}
