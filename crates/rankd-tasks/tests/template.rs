//! What `cargo xtask new-task` writes is a task that compiles, and whose example and tests hold.

#[path = "../../../xtask/src/new_task/template.rs"]
mod template;

use rankd_engine::task::Definition;
use rankd_testing::{registry_in, run_examples};

#[test]
fn a_new_task_runs_as_it_is() {
    let definition = Definition::of::<template::Task, _>("template", "Keep one row in `step`.", &template::CONTRACT);
    let registry = registry_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../registry"));
    run_examples([definition], concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/src/new_task"), &registry);
}
