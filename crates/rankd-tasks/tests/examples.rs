//! The example in each task's header, run as it is written there.

use rankd_testing::{registry_in, run_examples};

#[test]
fn every_example_gives_what_its_header_says() {
    let registry = registry_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../registry"));
    run_examples(rankd_tasks::definitions(), concat!(env!("CARGO_MANIFEST_DIR"), "/src/tasks"), &registry);
}

#[test]
#[should_panic(expected = "the example of take")]
fn an_example_that_gives_something_else_fails() {
    let registry = registry_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../registry"));
    let take = rankd_tasks::definitions().into_iter().find(|task| task.signature.op == "take");
    run_examples(take, concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wrong"), &registry);
}
