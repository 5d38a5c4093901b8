//! For tests: a plan with fallbacks, linked to tasks that never run, and an outcome with some of them taken.

use rankd_column::{Batch, RowSet};
use rankd_engine::degraded::{Degraded, Reason, StandIn};
use rankd_engine::error::TaskError;
use rankd_engine::run::Cpu;
use rankd_engine::task::RowCounts;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, Maker};
use rankd_engine::trace::{End, NodeTrace, Trace, Where};
use rankd_engine::{Linked, Outcome, Tasks, codes};
use rankd_plan::plan::{NodeIx, Plan, Substitute};
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Registry, check};
use std::sync::Arc;
use std::time::Duration;

struct Never;

impl Compute for Never {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        unreachable!("nothing runs here")
    }
}

const fn contract(inputs: Inputs, rows: RowEffect) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: &[], cost: Cost::Unknown }
}

static SOURCE: Contract = contract(Inputs::None, RowEffect::Source);
static KEEP: Contract = contract(Inputs::One, RowEffect::Same);

fn tasks() -> Tasks {
    let define = |op, contract| {
        let signature = Signature { op, summary: "", contract };
        Definition { signature, maker: Maker::Compute(|_| Arc::new(Never)) }
    };
    Tasks::new([define("source", &SOURCE), define("keep", &KEEP)]).unwrap()
}

pub(crate) fn registry() -> Registry {
    let key = "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n";
    let text = |text| Text { file: "", text };
    Registry::parse(text(key), text(""), text("")).0
}

/// `kept` reads `n0`, which falls back to no rows; `other` reads `n1`, which falls back to `stand in`. `kept` falls back to its input, and runs
/// on a condition.
pub(crate) fn plan(registry: &Registry) -> Linked {
    let mut linked = Linked::link(&checked(registry), &tasks(), registry).unwrap_or_else(|error| panic!("{error}"));
    linked.nodes[3].has_condition = true;
    linked
}

/// What it is linked from.
pub(crate) fn checked(registry: &Registry) -> Plan {
    let text = r#"{"schema_version":1,"plan_name":"feed","nodes":[
        {"node_id":"n0","op":"source","inputs":[],"params":{"trace":"the \u0007 first"}},
        {"node_id":"n1","op":"source","inputs":[],"params":{}},
        {"node_id":"stand in","op":"source","inputs":[],"params":{}},
        {"node_id":"kept","op":"keep","inputs":["n0"],"params":{}},
        {"node_id":"other","op":"keep","inputs":["n1"],"params":{}}],
        "outputs":["kept","other"],"expr_table":{},"pred_table":{}}"#;
    let checked = check(text.as_bytes(), registry, tasks().signatures());
    let mut plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
    plan.nodes[0].fallback = Some(Substitute::NoRows);
    plan.nodes[1].fallback = Some(Substitute::Node(2));
    (plan.nodes[2].needed, plan.nodes[2].lazy) = (true, true);
    plan.nodes[3].fallback = Some(Substitute::FirstInput);
    plan
}

/// Rows of both outputs, after `n0` was too slow, `n1` was not reached, and `kept` was not started.
pub(crate) fn outcome() -> Outcome {
    let degraded = |node: NodeIx, reason, code, fallback, micros| Degraded {
        node,
        reason,
        code: Some(code),
        fallback: StandIn::Substitute(fallback),
        after: Duration::from_micros(micros),
    };
    let record = |node: NodeIx, end| NodeTrace {
        node,
        ready_ns: 0,
        start_ns: 1_000,
        end_ns: 2_000,
        on: Where::Loop,
        inlined: None,
        chained_after: None,
        fused_into: None,
        fused_after: None,
        end,
        rows_in: 0,
        rows_out: 0,
        commands: 0,
        bytes: 0,
        skipped: 0,
        counts: RowCounts::default(),
        detail: None,
        keys_in: Arc::default(),
        keys_out: Arc::default(),
        critical: false,
    };
    let nodes = vec![record(0, End::Failed), record(1, End::Failed), record(2, End::Done), record(4, End::Done)];
    Outcome {
        result: Ok(vec![RowSet::new(Batch::new(vec![7])), RowSet::new(Batch::new(vec![8, 9]))]),
        logged: Vec::new(),
        short: Vec::new(),
        degraded: vec![
            degraded(1, Reason::Upstream, codes::UNREACHABLE, Substitute::Node(2), 1_249),
            degraded(0, Reason::Timeout, codes::NODE_TIMEOUT, Substitute::NoRows, 41_150),
            degraded(3, Reason::NoTime, codes::LEARNED_LIMIT, Substitute::FirstInput, 41_200),
        ],
        trace: Some(Trace { nodes, failures: vec![1, 0], total_ns: 50_000 }),
        took: Duration::from_micros(50),
        cpu: Cpu::default(),
        dials: Vec::new(),
        cursor: None,
        seed: None,
        arms: None,
        models: None,
        tables: None,
    }
}
