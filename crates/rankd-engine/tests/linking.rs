//! Tasks that cannot be made: the plan is refused with the node named, and the process goes on.

#![expect(clippy::panic, reason = "what tests call fails the test, as an assertion would")]

use rankd_column::{RowSet, Value};
use rankd_engine::codes::{self, ErrorKind};
use rankd_engine::error::{RunError, TaskError};
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, LinkContext, Make};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings, Tasks};
use rankd_plan::registry::Text;
use rankd_plan::signature::typed::Count;
use rankd_plan::signature::*;
use rankd_plan::{Registry, check, params};
use std::sync::Arc;

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

const KEYS: &str =
    "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n";

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
    let registry = registry("");
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

fn registry(more: &str) -> Registry {
    let keys = format!("{KEYS}{more}");
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(&keys), text(""), text(""));
    assert!(problems.is_empty());
    registry
}

#[test]
fn what_was_made_with_different_registries_is_refused() {
    let more = "[[key]]\nkey_id = 2\nname = \"x\"\ntype = \"int\"\nnullable = true\ndoc = \"\"\n";
    let (one, same, other) = (registry(""), registry(""), registry(more));
    assert_eq!(one.id(), same.id());
    let tasks = Tasks::new([UNLUCKY]).expect("each op is there once");
    let plan = r#"{"schema_version":1,"plan_name":"p","nodes":[{"node_id":"n","op":"unlucky"}],"outputs":["n"]}"#;
    let plan = check(plan.as_bytes(), &one, tasks.signatures()).plan.unwrap_or_else(|| panic!("the plan is good"));
    let refused = Linked::link(&plan, &tasks, &other).err().unwrap_or_else(|| panic!("it was checked with another"));
    assert_eq!(refused.code, codes::DIFFERENT_REGISTRY);
    let plan = Arc::new(Linked::link(&plan, &tasks, &same).unwrap_or_else(|error| panic!("{error}")));
    for scheduler in [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential] {
        let settings = Settings { scheduler, ..Settings::default() };
        let engine = Engine::start(settings, Vec::new()).unwrap_or_else(|error| panic!("{error}"));
        let code = |request: Request| engine.run(&plan, request).result.err().map(|error| error.code);
        assert_eq!(code(Request::new(&same)), None);
        assert_eq!(code(Request::default()), None, "a request without positions fits every plan");
        assert_eq!(code(Request::new(&other)), Some(codes::DIFFERENT_REGISTRY));
        let by_hand = Request { params: vec![Value::Int(1)], ..Request::default() };
        assert_eq!(code(by_hand), Some(codes::DIFFERENT_REGISTRY), "positions of no registry");
        let by_text = Request { user_id: "anna".into(), ..Request::new(&same) };
        assert_eq!(code(by_text), Some(codes::DIFFERENT_REGISTRY), "a user of a registry with other ids");
    }
}

#[test]
fn a_plan_that_was_checked_with_another_task_of_the_same_name_is_refused() {
    static OTHER: Contract = Contract { params: &[], ..CONTRACT };
    let other = Definition { signature: Signature { contract: &OTHER, ..UNLUCKY.signature }, ..UNLUCKY };
    let error = link(12, &[other]).err().unwrap_or_else(|| panic!("its parameters are others"));
    assert_eq!((error.code.kind, &*error.message), (ErrorKind::Bug, "the plan was checked with another task unlucky"));
}
