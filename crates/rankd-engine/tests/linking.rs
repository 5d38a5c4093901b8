//! Tasks that cannot be made: the plan is refused with the node named, and the process goes on.

#![expect(clippy::panic, reason = "what tests call fails the test, as an assertion would")]

use rankd_column::RowSet;
use rankd_engine::codes::ErrorKind;
use rankd_engine::error::{RunError, TaskError};
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, LinkContext, Make};
use rankd_engine::{Linked, Tasks};
use rankd_plan::registry::Text;
use rankd_plan::signature::typed::Count;
use rankd_plan::signature::*;
use rankd_plan::{Registry, check, params};

params! {
    struct Params {
        /// Which number it cannot be made with
        count: Count = 1,
    }
}

struct Unlucky;

impl Make for Unlucky {
    type Params = Params;

    fn make(params: Params, _: &LinkContext<'_>) -> Unlucky {
        assert!(params.count != 13, "not with 13");
        Unlucky
    }
}

impl Compute for Unlucky {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(RowSet::empty())
    }
}

static CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Nothing,
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

static UNLUCKY: Definition = Definition::of::<Unlucky, _>("unlucky", "Be made, or not.", &CONTRACT);

fn link(count: usize, definitions: &[Definition]) -> Result<Linked, Box<RunError>> {
    let keys =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n";
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(keys), text(""), text(""));
    assert!(problems.is_empty());
    let plan = format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"n7","op":"unlucky","params":{{"count":{count}}}}}],"outputs":["n7"]}}"#
    );
    let tasks = |definitions: &[Definition]| Tasks::new(definitions.iter().copied()).expect("each op is there once");
    let plan = check(plan.as_bytes(), &registry, tasks(&[UNLUCKY]).signatures()).plan;
    Linked::link(&plan.unwrap_or_else(|| panic!("the plan is good")), &tasks(definitions), &registry)
}

#[test]
fn a_task_that_panics_while_it_is_made_is_a_bug_of_its_node() {
    assert!(link(12, &[UNLUCKY]).is_ok());
    let error = link(13, &[UNLUCKY]).err().unwrap_or_else(|| panic!("it cannot be made"));
    assert_eq!((error.code.kind, &*error.message), (ErrorKind::Bug, "the task panicked: not with 13"));
    assert_eq!(error.node.map(|node| node.id).as_deref(), Some("n7"));
}

#[test]
fn a_task_that_was_declared_and_is_not_there_is_a_bug_of_its_node() {
    let error = link(12, &[]).err().unwrap_or_else(|| panic!("it is not there"));
    assert_eq!((error.code.kind, &*error.message), (ErrorKind::Bug, "the task unlucky was declared but is not here"));
}
