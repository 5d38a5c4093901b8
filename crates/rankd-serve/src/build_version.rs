//! Links a kept artifact again, against the registry and the models of today. No file is read and nothing is run: the version has been in
//! service before.

use crate::trial;
use rankd_edge::library::PlanProblem;
use rankd_engine::{Engine, Linked, Tasks};
use rankd_plan::{Checked, Plan, Registry, check};
use std::sync::Arc;

/// The plan of an artifact, or everything that keeps it from being served.
pub(crate) fn build(
    name: &str,
    artifact: &str,
    registry: &Registry,
    tasks: &Tasks,
    engine: &Engine,
) -> Result<(Plan, Arc<Linked>), PlanProblem> {
    let Checked { plan, diagnostics } = check(artifact.as_bytes(), registry, tasks.signatures());
    let plan = plan.ok_or_else(|| PlanProblem::of_artifact(name, artifact, &diagnostics))?;
    let linked = trial::link(&plan, name, tasks, registry).map_err(|why| PlanProblem::in_words(why.to_string()))?;
    if let Some(tables) = engine.tables() {
        tables.prepare(&linked);
    }
    Ok((plan, linked))
}
