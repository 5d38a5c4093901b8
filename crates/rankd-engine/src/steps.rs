//! A plan as the schedulers walk it: steps, what each waits for, and everything counted beforehand.
//!
//! A step is one call of a task and is known by the last of the plan's nodes that it covers; where nodes are fused, the others
//! have no step that starts. What the nodes are called, and where their author wrote them, is in [`crate::link`].

use crate::cost::LearnedCost;
use crate::learned_times::{LearnedTimes, UsualTimes};
use crate::live::Live;
use crate::substitutes::{Substitutes, source};
use crate::task::Task;
use rankd_column::expr::pass::Pass;
use rankd_column::{Key, RowSet, Stop, Stopped};
use rankd_plan::plan::NodeIx;
use rankd_plan::signature::Cost;
use rankd_plan::wire::Scheduling;
use std::sync::Arc;
use std::time::Duration;

/// One way through a plan.
pub struct Steps {
    /// By node.
    steps: Vec<Step>,
    /// The steps that run, each after its inputs.
    pub order: Vec<NodeIx>,
    /// The steps that wait for nothing.
    pub starts: Vec<NodeIx>,
    /// By node: how many steps it waits for, and how often its rows are read.
    pub(crate) waits: Vec<u32>,
    pub(crate) reads: Vec<u32>,
    /// How many of the steps run in every run.
    pub(crate) eager_count: usize,
    /// By node: whether it runs only when another node needs it, and how many may.
    pub(crate) lazy: Vec<bool>,
    pub(crate) users: Vec<u32>,
    /// What stands in for nodes; `None` for most plans.
    pub(crate) substitutes: Option<Arc<Substitutes>>,
    /// How long steps take, where one has a fallback or is anytime.
    pub(crate) times: Option<LearnedTimes>,
    /// Whether a step has a time-out of its own.
    pub(crate) has_timeouts: bool,
    /// Whether a step may ask for more inputs.
    pub(crate) has_reserves: bool,
}

/// What every run looks at comes first.
#[repr(C, align(64))]
pub struct Step {
    pub task: Task,
    /// The steps whose rows it works on.
    pub inputs: Box<[NodeIx]>,
    /// The steps that wait for it, each once.
    pub readers: Box<[NodeIx]>,
    /// A computation that may run on the event loop.
    pub may_inline: bool,
    pub trivial: bool,
    /// Both of these, for any rows and any parameters.
    pub(crate) always_cheap: bool,
    /// Whether others have to do with it besides its readers: it stands in for a node, or another may stand in for it.
    pub(crate) watched: bool,
    /// Whether it makes columns for the rows of its first input: a few rows of a large batch are gathered first.
    pub(crate) gathers: bool,
    /// Whether no input is there twice, so that one may be moved to the task.
    pub(crate) distinct: bool,
    pub cost: LearnedCost,
    /// The only step that waits for this one, when that step waits for nothing else and nothing else reads the rows.
    pub next: Option<NodeIx>,
    /// The parameters that it compiles and matches as regular expressions: a run that has one stays off the event loop.
    pub patterns: Box<[u32]>,
    /// The plan's nodes that this step covers, from first to last.
    pub nodes: Vec<NodeIx>,
    /// What those do, where there are several.
    pub pass: Option<Arc<Pass>>,
    pub timeout: Option<Duration>,
    /// Whether it has a fallback.
    pub(crate) has_fallback: bool,
    /// Whether it can hand over what it has when its time is up.
    pub(crate) is_anytime: bool,
    /// How many of the last inputs are there only once the task has asked for them.
    reserves: usize,
    /// The columns that gathered rows take along; `None` for all.
    live: Option<Arc<[Key]>>,
}

impl Step {
    /// The inputs that it waits for.
    pub(crate) fn awaited(&self) -> &[NodeIx] {
        &self.inputs[..self.inputs.len() - self.reserves]
    }

    /// The inputs that it may ask for, in this order.
    pub(crate) fn reserves(&self) -> &[NodeIx] {
        &self.inputs[self.inputs.len() - self.reserves..]
    }

    /// The rows of the first input, gathered where that is due.
    pub(crate) fn gather(&self, rows: &RowSet, stop: Stop<'_>) -> Result<Option<RowSet>, Stopped> {
        let is_live = |key| self.live.as_ref().is_none_or(|live| live.contains(&key));
        (self.gathers && rows.is_narrow()).then(|| rows.gathered(is_live, stop)).transpose()
    }
}

/// What a step is made of.
#[derive(Clone)]
pub(crate) struct StepSpec {
    pub(crate) task: Task,
    pub(crate) inputs: Vec<NodeIx>,
    /// How many of the last of them are reserves.
    pub(crate) reserves: usize,
    pub(crate) nodes: Vec<NodeIx>,
    pub(crate) pass: Option<Arc<Pass>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) scheduling: Scheduling,
    pub(crate) cost: Cost,
    pub(crate) patterns: Vec<u32>,
    /// What is needed of the rows of its first input, where it makes columns for them.
    pub(crate) live: Option<Live>,
    /// Whether it is on this way through the plan.
    pub(crate) runs: bool,
}

impl Steps {
    /// `order` has every node after all of its inputs. `kept` are the nodes whose rows are wanted when all is done: the outputs, and those that log.
    pub(crate) fn new(
        parts: Vec<StepSpec>,
        order: &[NodeIx],
        kept: &[NodeIx],
        substitutes: Option<Arc<Substitutes>>,
    ) -> Steps {
        let order: Vec<NodeIx> = order.iter().copied().filter(|ix| parts[*ix as usize].runs).collect();
        let mut readers: Vec<Vec<NodeIx>> = parts.iter().map(|_| Vec::new()).collect();
        let (mut waits, mut reads) = (vec![0; parts.len()], vec![0; parts.len()]);
        for &ix in &order {
            let part = &parts[ix as usize];
            for (at, &input) in part.inputs.iter().enumerate() {
                reads[input as usize] += 1;
                let is_awaited = at < part.inputs.len() - part.reserves;
                if is_awaited && readers[input as usize].last() != Some(&ix) {
                    readers[input as usize].push(ix);
                    waits[ix as usize] += 1;
                }
            }
        }
        // Rows that are wanted by others than the readers.
        let mut is_wanted = vec![false; parts.len()];
        for &node in kept {
            reads[node as usize] += 1;
            is_wanted[node as usize] = true;
        }
        let data_waits = waits.clone();
        let (mut lazy, mut users, mut watched) = (Vec::new(), Vec::new(), vec![false; parts.len()]);
        let is_border =
            |ix: NodeIx| substitutes.as_ref().is_some_and(|substitutes| substitutes.of_node(ix).is_border());
        let has_fallback =
            |ix: NodeIx| substitutes.as_ref().is_some_and(|substitutes| substitutes.of_node(ix).fallback.is_some());
        if let Some(substitutes) = &substitutes {
            lazy = (0..parts.len()).map(|at| substitutes.of_node(at as NodeIx).lazy).collect();
            users = vec![0; parts.len()];
            for &ix in &order {
                let (at, of_node) = (ix as usize, substitutes.of_node(ix));
                let inputs = &parts[at].inputs;
                if lazy[at] {
                    // It also waits for being needed.
                    waits[at] += 1;
                    watched[at] = true;
                }
                let (awaited, reserves) = inputs.split_at(inputs.len() - parts[at].reserves);
                for &reserve in reserves {
                    users[reserve as usize] += 1;
                    (is_wanted[reserve as usize], watched[reserve as usize], watched[at]) = (true, true, true);
                }
                if of_node.feeds_reserves {
                    // Whatever it waits for may have ended without rows.
                    awaited.iter().for_each(|input| watched[*input as usize] = true);
                }
                if let Some(source) = of_node.fallback.and_then(|of| source(of, inputs)) {
                    // Its rows are kept for as long as they may have to stand in.
                    reads[source as usize] += 1;
                    users[source as usize] += 1;
                    (is_wanted[source as usize], watched[source as usize]) = (true, true);
                }
                if let Some(source) = of_node.condition.as_ref().and_then(|of| source(of.otherwise, inputs)) {
                    (is_wanted[source as usize], watched[source as usize]) = (true, true);
                }
                watched[at] |= of_node.is_border();
            }
            for &ix in order.iter().filter(|ix| lazy[**ix as usize]) {
                let part = &parts[ix as usize];
                let inputs = &part.inputs[..part.inputs.len() - part.reserves];
                let distinct = inputs.iter().enumerate().filter(|(at, input)| !inputs[..*at].contains(input));
                distinct.for_each(|(_, input)| users[*input as usize] += 1);
            }
        }
        let eager_count = order.iter().filter(|ix| !lazy.get(**ix as usize).is_some_and(|lazy| *lazy)).count();
        let starts = order.iter().copied().filter(|ix| waits[*ix as usize] == 0).collect();
        let computes: Vec<bool> = parts.iter().map(|part| matches!(part.task, Task::Compute(_))).collect();
        let anytime: Vec<bool> = parts.iter().map(|part| part.task.is_anytime()).collect();
        let asks: Vec<bool> = parts.iter().map(|part| part.reserves > 0).collect();
        let is_border = |ix: NodeIx| is_border(ix) || anytime[ix as usize] || asks[ix as usize];
        let steps = parts.into_iter().zip(readers).enumerate().map(|(at, (part, readers))| {
            let next = match readers[..] {
                [next] if data_waits[next as usize] == 1 && computes[next as usize] && !is_wanted[at] => {
                    Some(next).filter(|next| !is_border(*next) && !is_border(at as NodeIx))
                }
                _ => None,
            };
            // What can be cut must not hold the loop.
            let feeds_reserves = substitutes.as_ref().is_some_and(|of| of.of_node(at as NodeIx).feeds_reserves);
            let has_fallback = has_fallback(at as NodeIx) || (feeds_reserves && !computes[at]);
            let may_inline = computes[at] && part.scheduling.inline != Some(false) && !has_fallback;
            Step {
                task: part.task,
                distinct: part.inputs.len() - part.reserves == data_waits[at] as usize,
                watched: watched[at],
                has_fallback,
                is_anytime: anytime[at],
                reserves: part.reserves,
                inputs: part.inputs.into(),
                readers: readers.into(),
                next,
                always_cheap: may_inline && part.cost == Cost::Trivial && part.patterns.is_empty(),
                patterns: part.patterns.into(),
                nodes: part.nodes,
                pass: part.pass,
                timeout: part.timeout,
                may_inline,
                trivial: part.cost == Cost::Trivial,
                gathers: part.live.is_some(),
                live: part.live.and_then(|live| live.keys()),
                cost: LearnedCost::new(part.cost, part.scheduling.cost_estimate_us),
            }
        });
        let steps: Vec<Step> = steps.collect();
        let has_timeouts = order.iter().any(|ix| steps[*ix as usize].timeout.is_some());
        let has_anytime = order.iter().any(|ix| steps[*ix as usize].is_anytime);
        let learns = has_anytime || substitutes.as_ref().is_some_and(|substitutes| substitutes.has_fallbacks);
        let times = learns.then(|| LearnedTimes::new(steps.len()));
        let has_reserves = order.iter().any(|ix| steps[*ix as usize].reserves > 0);
        Steps {
            has_timeouts,
            has_reserves,
            steps,
            order,
            starts,
            waits,
            reads,
            eager_count,
            lazy,
            users,
            substitutes,
            times,
        }
    }

    /// Whether a node runs only when another needs it.
    pub(crate) fn is_lazy(&self, node: NodeIx) -> bool {
        self.lazy.get(node as usize).is_some_and(|lazy| *lazy)
    }

    /// How many nodes the plan has, fused or not.
    pub(crate) fn node_count(&self) -> usize {
        self.steps.len()
    }

    #[inline]
    pub fn step(&self, ix: NodeIx) -> &Step {
        &self.steps[ix as usize]
    }

    /// How long a step usually takes, and what follows it; `None` in a plan without fallbacks and anytime nodes.
    pub fn usual_times(&self, ix: NodeIx) -> Option<UsualTimes> {
        self.times.as_ref().map(|times| times.usual(ix))
    }

    /// How many other steps a step waits for.
    pub fn waits(&self, ix: NodeIx) -> u32 {
        self.waits[ix as usize]
    }
}
