//! One event loop without a server around it: plans made from graphs, run again and again.

pub mod moody;

use crate::graph::Graph;
use rankd_column::{Batch, Cells, Column, RowSet, Value};
use rankd_engine::clock;
use rankd_engine::deadline::Limits;
use rankd_engine::error::TaskError;
use rankd_engine::loop_context::LoopContext;
use rankd_engine::pool::Pool;
use rankd_engine::run;
use rankd_engine::store::Stores;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, Maker};
use rankd_engine::{Linked, Policy, Request, Tasks};
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Registry, check};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, LocalRuntime};

/// What the nodes of a graph do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    /// Hand the first input on.
    Empty,
    /// `score = id * 0.5` on ten rows, by the real task.
    TinyVm,
}

pub struct Stage {
    runtime: LocalRuntime,
    context: Rc<LoopContext>,
    registry: Registry,
    tasks: Tasks,
    traced: bool,
}

impl Stage {
    pub fn new(policy: Policy, traced: bool) -> Stage {
        let text = |file, text| Text { file, text };
        let (registry, problems) = Registry::parse(text("keys.toml", KEYS), text("", ""), text("", ""));
        assert!(problems.is_empty(), "the keys are good");
        let tasks = Tasks::new(OURS.iter().copied().chain(rankd_tasks::definitions())).expect("each op is there once");
        let pool = Arc::new(Pool::start(2).expect("threads start"));
        let context = Rc::new(LoopContext::new(Stores::open(&[]), pool, Arc::default(), policy));
        let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
        let runtime = runtime.expect("a runtime starts");
        Stage { runtime, context, registry, tasks, traced }
    }

    pub fn link(&self, graph: &Graph, bodies: Bodies) -> Arc<Linked> {
        let node = |(at, inputs): (usize, &Vec<u32>)| {
            let name = |input: &u32| format!("\"n{input}\"");
            match (inputs.split_first(), bodies) {
                (None, _) => format!(r#"{{"node_id":"n{at}","op":"first"}}"#),
                (Some((first, [])), Bodies::TinyVm) => format!(
                    r#"{{"node_id":"n{at}","op":"vm","inputs":[{}],"params":{{"out_key":"score","expr":"half"}}}}"#,
                    name(first)
                ),
                (Some((first, rest)), _) => {
                    let more: Vec<String> = rest
                        .iter()
                        .zip(MORE)
                        .map(|(input, param)| format!("\"{}\":{}", param.name, name(input)))
                        .collect();
                    format!(
                        r#"{{"node_id":"n{at}","op":"pass","inputs":[{}],"params":{{{}}}}}"#,
                        name(first),
                        more.join(",")
                    )
                }
            }
        };
        let nodes: Vec<String> = graph.0.iter().enumerate().map(node).collect();
        let outputs: Vec<String> = graph.outputs().iter().map(|output| format!("\"n{output}\"")).collect();
        self.link_text(&format!(
            r#"{{"schema_version":1,"plan_name":"bench","nodes":[{}],"outputs":[{}],"expr_table":{{"half":{HALF}}}}}"#,
            nodes.join(","),
            outputs.join(",")
        ))
    }

    pub fn link_text(&self, text: &str) -> Arc<Linked> {
        let checked = check(text.as_bytes(), &self.registry, self.tasks.signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
        Arc::new(Linked::link(&plan, &self.tasks, &self.registry).expect("a checked plan links"))
    }

    /// Runs a plan so often, each time with a deadline that never passes.
    pub fn runs(&self, plan: &Arc<Linked>, count: usize) {
        let params = vec![Value::Null; self.registry.params.list().len()];
        let registry = Some(self.registry.id());
        let request =
            Arc::new(Request { user_id: 1.into(), params, registry, trace: self.traced, ..Request::default() });
        self.runtime.block_on(async {
            for _ in 0..count {
                let limits = Limits::from_start(clock::now(), Some(Duration::from_secs(60)), None);
                let run = run::run(plan.clone(), request.clone(), self.context.clone(), limits, Arc::default());
                std::hint::black_box(run.await.result.expect("the plan runs"));
            }
        });
    }
}

struct First(RowSet);

impl Compute for First {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(self.0.clone())
    }
}

struct Pass;

impl Compute for Pass {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(inputs.take(0))
    }
}

/// Names for all the inputs that a node can have besides its first.
const MORE: [Param; 63] = {
    const NAMES: [&str; 63] = [
        "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7",
        "b8", "b9", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "d0", "d1", "d2", "d3", "d4", "d5",
        "d6", "d7", "d8", "d9", "e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "f0", "f1", "f2", "f3",
        "f4", "f5", "f6", "f7", "f8", "f9", "g0", "g1", "g2",
    ];
    let mut params =
        [const { Param { name: "", kind: ParamKind::Node, need: Need::Optional, doc: "", uses: &[] } }; 63];
    let mut at = 0;
    while at < params.len() {
        params[at].name = NAMES[at];
        at += 1;
    }
    params
};

/// Declared as such, like `take`.
const EMPTY: Cost = Cost::Trivial;

static FIRST: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Nothing,
    params: &[],
    cost: EMPTY,
};
static PASS: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Nothing,
    params: &MORE,
    cost: EMPTY,
};

static OURS: [Definition; 2] = [
    Definition {
        signature: Signature { op: "first", summary: "", contract: &FIRST },
        maker: Maker::Compute(|_| {
            let rows = Batch::new((1..=10).collect());
            let score = Column::Float(Cells::full((1..=10).map(f64::from).collect()));
            Arc::new(First(RowSet::new(rows.with(rankd_column::Key(1), Arc::new(score)))))
        }),
    },
    Definition {
        signature: Signature { op: "pass", summary: "", contract: &PASS },
        maker: Maker::Compute(|_| Arc::new(Pass)),
    },
];

const HALF: &str = r#"{"op":"mul","a":{"op":"key_ref","key":"id"},"b":{"op":"const_number","value":0.5}}"#;

const KEYS: &str = r#"
[[key]]
key_id = 1
name = "id"
type = "int"
nullable = false
allow_write = false
doc = "The row's own id"

[[key]]
key_id = 2
name = "score"
type = "float"
nullable = true
doc = "A number"
"#;
