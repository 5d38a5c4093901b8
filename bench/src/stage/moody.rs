//! A plan with a node that changes its cost, and a plan of real tasks to run beside it.

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, Maker};
use rankd_engine::{Linked, Tasks, clock};
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Registry, check};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether the node takes 5 ms or 5 µs.
pub static SLOW: AtomicBool = AtomicBool::new(false);

struct Moody;

impl Compute for Moody {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let busy = if SLOW.load(Ordering::Relaxed) { Duration::from_millis(5) } else { Duration::from_micros(5) };
        let began = clock::now();
        while clock::now() - began < busy {
            std::hint::spin_loop();
        }
        Ok(inputs.take(0))
    }
}

static CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Nothing,
    params: &[],
    cost: Cost::About { fixed_ns: 5_000.0, per_row_ns: 0.0 },
};

static MOODY: Definition = Definition {
    signature: Signature { op: "moody", summary: "", contract: &CONTRACT },
    maker: Maker::Compute(|_| Arc::new(Moody)),
};

/// The plan of the others: four real nodes on a hundred rows; and the plan with the moody node.
pub fn plans() -> (Arc<Linked>, Arc<Linked>) {
    let none = |file| Text { file, text: "" };
    let (registry, _) = Registry::parse(Text { file: "keys.toml", text: super::KEYS }, none(""), none(""));
    let tasks = Tasks::new([MOODY].into_iter().chain(rankd_tasks::definitions())).expect("each op is there once");
    let link = |text: &str| {
        let checked = check(text.as_bytes(), &registry, tasks.signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
        Arc::new(Linked::link(&plan, &tasks, &registry).expect("a checked plan links"))
    };
    let half = super::HALF;
    let others = format!(
        r#"{{"schema_version":1,"plan_name":"others","nodes":[
            {{"node_id":"a","op":"fixed_source","params":{{"row_count":100}}}},
            {{"node_id":"b","op":"vm","inputs":["a"],"params":{{"out_key":"score","expr":"half"}}}},
            {{"node_id":"c","op":"filter","inputs":["b"],"params":{{"pred":"large"}}}},
            {{"node_id":"d","op":"sort","inputs":["c"],"params":{{"key":"score","order":"desc"}}}},
            {{"node_id":"e","op":"take","inputs":["d"],"params":{{"count":10}}}}],
        "outputs":["e"],"expr_table":{{"half":{half}}},
        "pred_table":{{"large":{{"op":"cmp","cmp":">=","a":{{"op":"key_ref","key":"score"}},"b":{{"op":"const_number","value":10}}}}}}}}"#
    );
    let moody = r#"{"schema_version":1,"plan_name":"moody","nodes":[
        {"node_id":"a","op":"fixed_source","params":{"row_count":100}},{"node_id":"b","op":"moody","inputs":["a"]}],"outputs":["b"]}"#;
    (link(&others), link(moody))
}
