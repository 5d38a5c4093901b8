//! What a seed makes: a plan whose nodes have substitutes, and some runs of it.

use crate::plan::Tasks;
use crate::rng::Rng;
use crate::tasks::{Fate, MORE_INPUTS, op};
use rankd_engine::{Linked, Policy};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What stands in for the rows of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    Nothing,
    Input,
    Node(usize),
}

impl StandIn {
    fn text(self) -> String {
        match self {
            StandIn::Nothing => r#""none""#.into(),
            StandIn::Input => r#""input""#.into(),
            StandIn::Node(node) => format!(r#"{{"node":"n{node}"}}"#),
        }
    }
}

/// A node runs for the users whose number has this remainder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    divisor: i64,
    remainder: i64,
    /// Nothing where the plan leaves it to the default.
    pub(crate) otherwise: Option<StandIn>,
}

impl When {
    pub(crate) fn holds(self, user: usize) -> bool {
        user as i64 % self.divisor == self.remainder
    }
}

#[derive(Debug)]
pub(crate) struct NodeScript {
    pub(crate) inputs: Vec<usize>,
    /// How many rows it wants, and which nodes it asks for them; most ask none.
    pub(crate) wanted: usize,
    pub(crate) reserves: Vec<usize>,
    pub(crate) reads: bool,
    pub(crate) latency_ms: u64,
    pub(crate) fate: Fate,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) fallback: Option<StandIn>,
    pub(crate) when: Option<When>,
}

#[derive(Debug)]
pub(crate) struct RunScript {
    pub(crate) deadline: Option<Duration>,
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) strict: bool,
    pub(crate) costs_ms: Vec<u64>,
}

pub(crate) struct Script {
    pub(crate) nodes: Vec<NodeScript>,
    pub(crate) runs: Vec<RunScript>,
    pub(crate) workers: usize,
    pub(crate) policy: Policy,
    pub(crate) linked: Arc<Linked>,
    /// The same without latencies, where no limit can pass.
    pub(crate) at_once: Option<Arc<Linked>>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, node) in self.nodes.iter().enumerate() {
            writeln!(f, "n{at}: {node:?}")?;
        }
        write!(f, "outputs {:?}, {:?}, {:?}", self.linked.outputs, self.policy, self.runs)
    }
}

fn span_ms(rng: &mut Rng) -> u64 {
    [0, 1, 2, 3, 5, 8, 20, 150][rng.below(8)]
}

fn stand_in(at: usize, inputs: &[usize], rng: &mut Rng) -> StandIn {
    if at > 0 && rng.percent(50) {
        return StandIn::Node(rng.below(at));
    }
    if inputs.is_empty() { StandIn::Nothing } else { StandIn::Input }
}

impl Script {
    pub(crate) fn new(tasks: &Tasks, seed: u64) -> Script {
        let rng = &mut Rng::new(seed);
        let count_max = if rng.percent(20) { 30 } else { 9 };
        let count = 2 + rng.below(count_max);
        let (reads, faults, fallbacks) =
            ([30, 60, 90][rng.below(3)], [0, 15, 40][rng.below(3)], [40, 80][rng.below(2)]);
        let (mistakes, conditions) = ([0, 0, 0, 3][rng.below(4)], [0, 0, 25][rng.below(3)]);
        let (timed, asking) = (rng.percent(60), [0, 30, 60][rng.below(3)]);
        let nodes: Vec<NodeScript> = (0..count)
            .map(|at| {
                let count = if at == 0 || rng.percent(30) { 0 } else { 1 + [0, 0, 1, 2][rng.below(4)] };
                let inputs: Vec<usize> = (0..count).map(|_| at - 1 - rng.below(at.min(5))).collect();
                let when = rng.percent(conditions).then(|| {
                    let divisor = 1 + rng.below(3) as i64;
                    let otherwise = rng.percent(70).then(|| stand_in(at, &inputs, rng));
                    When { divisor, remainder: rng.below(divisor as usize) as i64, otherwise }
                });
                let asks = inputs.len() == 1 && rng.percent(asking);
                let reserves = if asks { 1 + rng.below(3) } else { 0 };
                NodeScript {
                    wanted: 1 + rng.below(8),
                    reserves: (0..reserves).map(|_| at - 1 - rng.below(at.min(6))).collect(),
                    reads: rng.percent(reads) && !asks,
                    latency_ms: span_ms(rng),
                    fate: match rng.percent(faults) {
                        true => Fate::Upstream,
                        false if rng.percent(mistakes) => {
                            [Fate::Fails, Fate::WrongType, Fate::Panics, Fate::PanicsAtOnce][rng.below(4)]
                        }
                        false => [Fate::Well, Fate::Well, Fate::Well, Fate::Brittle][rng.below(4)],
                    },
                    timeout_ms: (timed && rng.percent(15)).then(|| 1 + span_ms(rng)),
                    fallback: rng.percent(fallbacks).then(|| stand_in(at, &inputs, rng)),
                    when,
                    inputs,
                }
            })
            .collect();
        let link = |with_time: bool| {
            let texts: Vec<String> = nodes.iter().enumerate().map(|(at, node)| text(at, node, with_time)).collect();
            let preds: Vec<String> =
                nodes.iter().enumerate().filter_map(|(at, node)| Some(pred(at, node.when?))).collect();
            (texts, preds)
        };
        let mut outputs: Vec<usize> = (0..nodes.len()).filter(|_| rng.percent(15)).collect();
        outputs.push(nodes.len() - 1);
        outputs.dedup();
        let outputs: Vec<String> = outputs.iter().map(|at| format!("n{at}")).collect();
        let (texts, preds) = link(true);
        let linked = tasks.link_with_preds(&texts, &outputs, &preds);
        let at_once = (!timed).then(|| {
            let (texts, preds) = link(false);
            tasks.link_with_preds(&texts, &outputs, &preds)
        });
        let runs_max = if timed { 24 } else { 3 };
        let runs = (0..1 + rng.below(runs_max))
            .map(|_| RunScript {
                deadline: (timed && rng.percent(90)).then(|| Duration::from_millis([4, 20, 60, 400][rng.below(4)])),
                node_timeout: (timed && rng.percent(10)).then(|| Duration::from_millis(1 + span_ms(rng))),
                strict: rng.percent(10),
                costs_ms: (0..1 + rng.below(20)).map(|_| span_ms(rng)).collect(),
            })
            .collect();
        let policy = Policy { inline: rng.percent(70), chaining: rng.percent(70), ..Policy::default() };
        Script { nodes, runs, workers: [1, 2, 4, 64][rng.below(4)], policy, linked, at_once }
    }
}

fn text(at: usize, node: &NodeScript, with_time: bool) -> String {
    let first: Vec<String> = node.inputs.iter().take(1).map(|input| format!("\"n{input}\"")).collect();
    let mut params = format!(r#""number":{at},"fate":"{}""#, node.fate.name());
    if node.reads && with_time {
        params += &format!(r#","latency_ms":{}"#, node.latency_ms);
    }
    for (name, input) in MORE_INPUTS.iter().zip(node.inputs.iter().skip(1)) {
        params += &format!(r#","{name}":"n{input}""#);
    }
    let mut fields = node.timeout_ms.map(|ms| format!(r#","timeout_ms":{ms}"#)).unwrap_or_default();
    if let Some(fallback) = node.fallback {
        fields += &format!(r#","fallback":{}"#, fallback.text());
    }
    if let Some(when) = node.when {
        fields += &format!(r#","when":"p{at}""#);
        fields += &when.otherwise.map(|otherwise| format!(r#","otherwise":{}"#, otherwise.text())).unwrap_or_default();
    }
    if !node.reserves.is_empty() {
        let from: Vec<String> = node.reserves.iter().map(|node| format!("\"n{node}\"")).collect();
        params += &format!(r#","count":{},"from":[{}]"#, node.wanted, from.join(","));
    }
    let op = if node.reserves.is_empty() { op(node.reads, node.inputs.len()) } else { "ask" };
    format!(r#"{{"node_id":"n{at}","op":"{op}","inputs":[{}],"params":{{{params}}}{fields}}}"#, first.join(","))
}

fn pred(at: usize, when: When) -> String {
    let remainder =
        format!(r#"{{"op":"mod","a":{{"op":"user_id"}},"b":{{"op":"const_number","value":{}}}}}"#, when.divisor);
    format!(
        r#""p{at}":{{"op":"cmp","cmp":"==","a":{remainder},"b":{{"op":"const_number","value":{}}}}}"#,
        when.remainder
    )
}
