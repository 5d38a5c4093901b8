//! What a seed makes: some plans, some runs of them, their latencies, faults and limits.

use crate::plan::Tasks;
use crate::rng::Rng;
use crate::tasks::{Fate, MORE_INPUTS, op, rows};
use rankd_column::RowSet;
use rankd_engine::{Linked, Policy};
use std::sync::Arc;
use std::time::Duration;

/// A node as it was scripted.
#[derive(Debug)]
pub(crate) struct NodeScript {
    pub(crate) inputs: Vec<usize>,
    pub(crate) reads: bool,
    pub(crate) latency_ms: u64,
    pub(crate) yields: u64,
    pub(crate) fate: Fate,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) hint: Hint,
}

/// What the author of a plan says about a computation's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    None,
    Cheap,
    Dear,
    /// Cheap, and yet not to be run on the loop.
    NotOnTheLoop,
}

impl Hint {
    fn text(self) -> &'static str {
        match self {
            Hint::None => "",
            Hint::Cheap => r#","scheduling":{"cost_estimate_us":1}"#,
            Hint::Dear => r#","scheduling":{"cost_estimate_us":5000}"#,
            Hint::NotOnTheLoop => r#","scheduling":{"cost_estimate_us":1,"inline":false}"#,
        }
    }
}

pub(crate) struct PlanScript {
    pub(crate) nodes: Vec<NodeScript>,
    pub(crate) linked: Arc<Linked>,
    /// The same without the nodes' own time-outs: a rehearsal is in real time, where a machine may be slow.
    pub(crate) untimed: Arc<Linked>,
}

impl PlanScript {
    /// The rows of the outputs by the script alone: no scheduler, no part of the engine.
    pub(crate) fn rows(&self) -> Vec<RowSet> {
        let mut all: Vec<RowSet> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let inputs: Vec<RowSet> = node.inputs.iter().map(|input| all[*input].clone()).collect();
            all.push(rows(at, &inputs));
        }
        self.linked.outputs.iter().map(|output| all[*output as usize].clone()).collect()
    }
}

/// How a run is ended from outside, so many ms after it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    Cancel(u64),
    /// Its future is dropped.
    Drop(u64),
}

#[derive(Debug)]
pub(crate) struct RunScript {
    pub(crate) plan: usize,
    pub(crate) begins_ms: u64,
    pub(crate) deadline: Option<Duration>,
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) interruption: Option<Interruption>,
    pub(crate) costs_ms: Vec<u64>,
}

pub(crate) struct Scene {
    pub(crate) plans: Vec<PlanScript>,
    pub(crate) runs: Vec<RunScript>,
    pub(crate) workers: usize,
    pub(crate) policy: Policy,
}

/// More workers than there can be jobs: nobody waits for another's job.
pub(crate) const WORKERS_UNBOUNDED: usize = 1 << 16;

/// How the nodes of a plan hang together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Anything of up to so many nodes.
    Any(usize),
    FanOut(usize),
    Layered(usize),
    Chain(usize),
}

/// Which nodes each node reads.
fn edges(shape: Shape, rng: &mut Rng) -> Vec<Vec<usize>> {
    match shape {
        Shape::Any(nodes_max) => {
            let nodes = 1 + if rng.percent(50) { rng.below(nodes_max.min(12)) } else { rng.below(nodes_max) };
            let sources = [0, 10, 30][rng.below(3)];
            let near = [3, 10, nodes][rng.below(3)];
            (0..nodes)
                .map(|at| {
                    let count = if at == 0 || rng.percent(sources) { 0 } else { 1 + [0, 0, 1, 3][rng.below(4)] };
                    // The same node twice is allowed: it is read twice and waited for once.
                    (0..count).map(|_| at - 1 - rng.below(near.min(at))).collect()
                })
                .collect()
        }
        Shape::FanOut(width) => {
            let mut edges = vec![vec![]];
            edges.extend((0..width).map(|_| vec![0]));
            let (mut from, mut to) = (1, edges.len());
            while to - from > 1 {
                edges.extend((from..to).step_by(4).map(|at| (at..to.min(at + 4)).collect::<Vec<usize>>()));
                (from, to) = (to, edges.len());
            }
            edges
        }
        Shape::Layered(nodes) => {
            let mut edges = Vec::new();
            let (mut from, mut to) = (0, 0);
            while edges.len() < nodes {
                let width = (1 + rng.below(40)).min(nodes - edges.len());
                for _ in 0..width {
                    let count = if to == 0 { 0 } else { 1 + rng.below(4) };
                    edges.push((0..count).map(|_| from + rng.below(to - from)).collect());
                }
                (from, to) = (to, edges.len());
            }
            edges
        }
        Shape::Chain(nodes) => (0..nodes).map(|at| if at == 0 { vec![] } else { vec![at - 1] }).collect(),
    }
}

fn span_ms(rng: &mut Rng) -> u64 {
    match rng.below(10) {
        0 | 1 => 0,
        2..=7 => 1 + rng.below(8) as u64,
        8 => 10 + rng.below(60) as u64,
        _ => 100 + rng.below(400) as u64,
    }
}

fn plan(shape: Shape, tasks: &Tasks, rng: &mut Rng) -> PlanScript {
    let faults = [0, 0, 0, 2, 8, 30][rng.below(6)];
    let (readers, timeouts) = ([10, 50, 90][rng.below(3)], [0, 0, 10][rng.below(3)]);
    let brittle = [0, 0, 30][rng.below(3)];
    let cheap = [0, 20, 60, 90][rng.below(4)];
    let nodes: Vec<NodeScript> = edges(shape, rng)
        .into_iter()
        .map(|inputs| NodeScript {
            inputs,
            reads: rng.percent(readers),
            latency_ms: span_ms(rng),
            yields: if rng.percent(10) { rng.below(4) as u64 } else { 0 },
            fate: match rng.percent(faults) {
                true => [Fate::Fails, Fate::Upstream, Fate::WrongType, Fate::Panics, Fate::PanicsAtOnce][rng.below(5)],
                false if rng.percent(brittle) => Fate::Brittle,
                false => Fate::Well,
            },
            timeout_ms: rng.percent(timeouts).then(|| 1 + span_ms(rng)),
            hint: match rng.percent(cheap) {
                true => Hint::Cheap,
                false => [Hint::None, Hint::None, Hint::Dear, Hint::NotOnTheLoop][rng.below(4)],
            },
        })
        .collect();
    let texts = |timed| -> Vec<String> {
        let timeout = |node: &NodeScript| node.timeout_ms.filter(|_| timed);
        nodes.iter().enumerate().map(|(at, node)| node_text(at, node, timeout(node))).collect()
    };
    let outputs: Vec<String> = outputs(&nodes, rng).iter().map(|at| format!("n{at}")).collect();
    let linked = tasks.link(&texts(true), &outputs);
    let timed = nodes.iter().any(|node| node.timeout_ms.is_some());
    let untimed = if timed { tasks.link(&texts(false), &outputs) } else { linked.clone() };
    PlanScript { linked, untimed, nodes }
}

fn node_text(at: usize, node: &NodeScript, timeout_ms: Option<u64>) -> String {
    let first: Vec<String> = node.inputs.iter().take(1).map(|input| format!("\"n{input}\"")).collect();
    let mut params = format!(r#""number":{at},"fate":"{}""#, node.fate.name());
    if node.reads {
        params += &format!(r#","latency_ms":{},"yields":{}"#, node.latency_ms, node.yields);
    }
    for (name, input) in MORE_INPUTS.iter().zip(node.inputs.iter().skip(1)) {
        params += &format!(r#","{name}":"n{input}""#);
    }
    let timeout = timeout_ms.map(|ms| format!(r#","timeout_ms":{ms}"#)).unwrap_or_default();
    let (op, hint) = (op(node.reads, node.inputs.len()), node.hint.text());
    format!(r#"{{"node_id":"n{at}","op":"{op}","inputs":[{}],"params":{{{params}}}{timeout}{hint}}}"#, first.join(","))
}

/// Most of what nobody reads, so that there are also nodes that are not needed; and some of what is read as well.
fn outputs(nodes: &[NodeScript], rng: &mut Rng) -> Vec<usize> {
    let mut read = vec![false; nodes.len()];
    nodes.iter().flat_map(|node| &node.inputs).for_each(|input| read[*input] = true);
    let mut outputs: Vec<usize> = (0..nodes.len()).filter(|at| rng.percent(if read[*at] { 3 } else { 90 })).collect();
    if outputs.is_empty() {
        outputs.push(nodes.len() - 1);
    }
    outputs.truncate(64);
    outputs
}

impl Scene {
    /// Everything in it follows from the seed.
    pub(crate) fn new(shape: Shape, runs_max: usize, tasks: &Tasks, seed: u64) -> Scene {
        let rng = &mut Rng::new(seed);
        let runs = 1 + rng.below(runs_max);
        let plans: Vec<PlanScript> = (0..1 + rng.below(runs.min(3))).map(|_| plan(shape, tasks, rng)).collect();
        let runs = (0..runs).map(|_| run(plans.len(), rng)).collect();
        let policy = Policy {
            inline: rng.percent(70),
            chaining: rng.percent(70),
            max_inline_depth: [10_000, 10_000, 1, 3][rng.below(4)],
            ..Policy::default()
        };
        Scene { plans, runs, workers: [1, 2, 4, WORKERS_UNBOUNDED, WORKERS_UNBOUNDED][rng.below(5)], policy }
    }

    /// One node, one job, and a drop of the run when the job ends.
    pub(crate) fn dropped_as_its_job_ends(tasks: &Tasks) -> Scene {
        let rng = &mut Rng::new(0);
        let (fate, hint) = (Fate::Well, Hint::None);
        let node = NodeScript { inputs: vec![], reads: false, latency_ms: 0, yields: 0, fate, timeout_ms: None, hint };
        let linked = tasks.link(&[node_text(0, &node, None)], &["n0".into()]);
        let plan = PlanScript { nodes: vec![node], untimed: linked.clone(), linked };
        let interruption = Some(Interruption::Drop(5));
        let limits = RunScript { deadline: None, node_timeout: None, ..run(1, rng) };
        let run = RunScript { begins_ms: 0, interruption, costs_ms: vec![5], ..limits };
        Scene { plans: vec![plan], runs: vec![run], workers: 1, policy: Policy::default() }
    }

    pub(crate) fn plan(&self, run: usize) -> &PlanScript {
        &self.plans[self.runs[run].plan]
    }
}

fn run(plans: usize, rng: &mut Rng) -> RunScript {
    // Also limits between two ticks of the clock, and a deadline that has passed before anything starts.
    let fine = |rng: &mut Rng| if rng.percent(20) { rng.below(1000) as u64 } else { 0 };
    RunScript {
        plan: rng.below(plans),
        begins_ms: [0, rng.below(30) as u64][rng.below(2)],
        deadline: rng.percent(50).then(|| Duration::from_micros(span_ms(rng) * 3000 + fine(rng))),
        node_timeout: rng.percent(30).then(|| Duration::from_micros((1 + span_ms(rng)) * 1000 + fine(rng))),
        interruption: match rng.below(10) {
            0 => Some(Interruption::Cancel(span_ms(rng) * 2)),
            1 => Some(Interruption::Drop(span_ms(rng) * 2)),
            _ => None,
        },
        costs_ms: (0..1 + rng.below(20)).map(|_| span_ms(rng)).collect(),
    }
}
