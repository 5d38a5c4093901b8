//! A linked plan explained to people and programs: as it was written, as it runs, and what one run of it was like.
//!
//! Reading order: this file (what is shown of a step), `experiments`, `json`, `tree` (for a terminal), `graph` (DOT and Mermaid), `picture` (SVG,
//! HTML and data for a page that draws by itself). Nothing here runs anything or prints.

mod experiments;
mod graph;
mod json;
mod picture;
#[cfg(test)]
mod tests;
mod tree;

pub use picture::Form;

use crate::experiments::PlanExperiments;
use rankd_engine::degraded::{Degraded, StandIn, fallback_name};
use rankd_engine::learned_times::UsualTimes;
use rankd_engine::place::{self, Expected, Way};
use rankd_engine::steps::{Step, Steps};
use rankd_engine::task::Task;
use rankd_engine::trace::NodeTrace;
use rankd_engine::{Linked, Outcome, Policy, Scheduler};
use rankd_plan::Registry;
use rankd_plan::plan::NodeIx;
use std::time::Duration;

/// To a thousandth of a millisecond.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// A plan, how it is to be run, and a run of it if there was one.
pub struct Explanation<'a> {
    /// The plan.
    pub plan: &'a Linked,
    /// The scheduler that would run it.
    pub scheduler: Scheduler,
    /// How that scheduler decides where steps run.
    pub policy: &'a Policy,
    /// Whether each node has a time limit: then each runs by itself.
    pub limits_nodes: bool,
    /// Its run, where there was one.
    pub analyzed: Option<&'a Outcome>,
    /// The experiments that can change its answers, and the registry that names parameters.
    pub experiments: Option<(&'a PlanExperiments, &'a Registry)>,
}

impl Explanation<'_> {
    /// The way through the plan that a run takes.
    fn steps(&self) -> &Steps {
        self.plan.steps(Way::of(self.scheduler, self.policy, self.limits_nodes))
    }

    /// Where a step is expected to run.
    fn expected(&self, step: &Step) -> String {
        match place::expected(step, self.scheduler, self.policy) {
            Expected::Caller => "caller".into(),
            Expected::Loop => "loop".into(),
            Expected::IoPool => "io pool".into(),
            Expected::Inline => "loop, inline".into(),
            Expected::InlineUpTo(rows) => format!("loop, inline up to {rows} rows"),
            Expected::CpuPool => "cpu pool".into(),
        }
    }

    /// What is special about how a step does its work.
    fn ways(&self, step: &Step) -> Vec<&'static str> {
        let is_approximate = matches!(&step.task, Task::Compute(task) if task.is_approximate());
        let mut ways = Vec::from_iter(is_approximate.then_some("approximate"));
        let Some(pass) = &step.pass else { return ways };
        ways.push("one pass");
        if pass.picks_best() {
            ways.push("keeps only the best rows");
        }
        if pass.takes_early() {
            ways.push("ends when enough rows are taken");
        }
        ways
    }

    /// The step that goes on in the same job, where the first one is a job.
    fn chains_into(&self, step: &Step) -> Option<NodeIx> {
        let is_job = self.scheduler == Scheduler::Async && !matches!(step.task, Task::Fetch(_));
        place::chains_into(step, self.policy).filter(|_| is_job)
    }

    /// The nodes that no output needs.
    fn unneeded(&self) -> impl Iterator<Item = NodeIx> {
        (0..).zip(&self.plan.nodes).filter(|(_, node)| !node.needed).map(|(ix, _)| ix)
    }

    /// The nodes of the plan: those of each fused step together, all others by themselves.
    fn groups(&self) -> Vec<(Option<usize>, Vec<NodeIx>)> {
        let steps = self.steps();
        let running = steps.order.iter().map(|ix| steps.step(*ix)).enumerate();
        let groups = running.map(|(at, step)| (step.pass.is_some().then_some(at), step.nodes.clone()));
        groups.chain(self.unneeded().map(|ix| (None, vec![ix]))).collect()
    }

    /// What the answer calls a node's rows, where that is an output with a name.
    fn output_name(&self, ix: NodeIx) -> Option<&str> {
        let at = self.plan.outputs.iter().position(|output| *output == ix)?;
        self.plan.output_names.as_ref()?.get(at).map(String::as_str)
    }

    /// Where the trees begin: the outputs, and what runs only in place of other nodes.
    fn roots(&self) -> Vec<NodeIx> {
        let mut is_read = vec![false; self.plan.nodes.len()];
        for node in self.plan.nodes.iter().filter(|node| node.needed) {
            node.inputs.iter().for_each(|input| is_read[*input as usize] = true);
        }
        self.plan.outputs.iter().for_each(|output| is_read[*output as usize] = true);
        let others = (0..).zip(&self.plan.nodes).filter(|(ix, node)| node.needed && !is_read[*ix as usize]);
        self.plan.outputs.iter().copied().chain(others.map(|(ix, _)| ix)).collect()
    }

    /// How long a step usually takes, where the plan has fallbacks and the step has run. With a deadline, a node that has a fallback
    /// may take what is left of it, less the reserve.
    fn usual_times(&self, step: &Step) -> Option<UsualTimes> {
        let times = self.steps().usual_times(*step.nodes.last()?)?;
        (times.samples > 0).then_some(times)
    }

    /// What the readers of a node get when weather strikes it, in words.
    fn fallback(&self, ix: NodeIx) -> Option<String> {
        self.plan.node(ix).fallback.map(|fallback| fallback_name(self.plan, StandIn::Substitute(fallback)).to_string())
    }

    /// What a node logs of its rows, in words.
    fn logs(&self, ix: NodeIx) -> Option<String> {
        let names = self.plan.node(ix).log.as_ref()?.iter().map(|(_, name)| name.as_str());
        Some(std::iter::once("id").chain(names).collect::<Vec<_>>().join(", "))
    }

    /// When a node runs, where that is not in every run.
    fn runs(&self, ix: NodeIx) -> Option<&'static str> {
        let node = self.plan.node(ix);
        match (node.lazy, node.has_condition) {
            (true, true) => Some("lazily, on a condition"),
            (true, false) => Some("lazily"),
            (false, true) => Some("on a condition"),
            (false, false) => None,
        }
    }

    /// The fallbacks that were taken in the run, if there was one.
    fn degraded(&self) -> &[Degraded] {
        self.analyzed.map_or(&[], |outcome| &outcome.degraded)
    }

    /// That a node gave less than its rows, in words.
    fn shortcoming(&self, ix: NodeIx) -> Option<String> {
        self.taken(ix).map(shortcoming)
    }

    /// What the readers of a node got, where that is not its rows.
    fn taken(&self, ix: NodeIx) -> Option<StandIn> {
        self.degraded().iter().find(|degraded| degraded.node == ix).map(|degraded| degraded.fallback)
    }

    fn name(&self, ix: NodeIx) -> &str {
        &self.plan.node(ix).id
    }

    /// A node as people know it: `n3 vm`.
    fn title(&self, ix: NodeIx) -> String {
        let node = self.plan.node(ix);
        format!("{} {}", node.id, node.op)
    }

    fn record(&self, ix: NodeIx) -> Option<&NodeTrace> {
        self.analyzed?.trace.as_ref()?.nodes.iter().find(|record| record.node == ix)
    }

    /// The nodes that the answer waited for, in order.
    fn critical_path(&self) -> Vec<NodeIx> {
        let trace = self.analyzed.and_then(|outcome| outcome.trace.as_ref());
        let critical = trace.into_iter().flat_map(|trace| &trace.nodes).filter(|record| record.critical);
        critical.map(|record| record.node).collect()
    }
}

/// What it means for a node that its readers got this, in words.
fn shortcoming(taken: StandIn) -> String {
    match taken {
        StandIn::Substitute(_) => "fallback taken".to_owned(),
        StandIn::Prefix(picked) => format!("out of time after {picked} picks"),
        StandIn::Finished(rows) => format!("out of time after {rows} rows"),
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// What became of a node's rows besides those that it dropped, which the numbers of rows show.
fn remarks(record: &NodeTrace) -> impl Iterator<Item = String> {
    record.noted_rows().filter(|(name, _)| *name != "dropped").map(|(name, rows)| format!("{rows} {name}"))
}
