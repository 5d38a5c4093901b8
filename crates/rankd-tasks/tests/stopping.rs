//! Work that nobody waits for stops: every task that computes, on a million rows, at any of its looks.

use rankd_testing::{registry_in, stop_computations};

#[test]
fn every_task_that_computes_stops_where_it_looks_and_looks_often() {
    let registry = registry_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../registry"));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tasks");
    stop_computations(rankd_tasks::definitions(), folder, &registry, 1_000_000);
}
