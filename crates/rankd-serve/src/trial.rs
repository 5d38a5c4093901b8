//! A new version of a plan is linked and run once before it replaces the one that is served.
//!
//! The run is for user 1, on the real stores. What fails by the plan's own fault is refused. What fails because a store is down or
//! slow is not: the plan may be right all the same.

use crate::catalog::GoodVersion;
use rankd_engine::{Engine, ErrorKind, Linked, Request, RunError, Tasks};
use rankd_plan::{Plan, Registry};
use std::sync::Arc;
use std::time::Duration;

/// How long a trial run may take where requests have no deadline, and the most where they have a long one.
const DEADLINE: Duration = Duration::from_secs(1);
const DEADLINE_MAX: Duration = Duration::from_secs(5);
/// A version that times out so many times in a row always does.
const TRIES: usize = 2;

/// A version that is served, and the registry that it was linked with.
pub(crate) struct CurrentVersion<'a> {
    pub(crate) good: &'a GoodVersion,
    pub(crate) registry: &'a Registry,
}

/// Links a plan. What keeps it from running is said in a sentence.
pub(crate) fn link(plan: &Plan, name: &str, tasks: &Tasks, registry: &Registry) -> Result<Arc<Linked>, String> {
    if plan.name != name {
        return Err(format!("the file is named {name:?}, but the plan in it {:?}", plan.name));
    }
    let linked = Linked::link(plan, tasks, registry).map_err(|error| error.message)?;
    Ok(Arc::new(linked))
}

/// Runs a new version. Says why it must not replace the one that is served.
pub(crate) fn run(
    engine: &Engine,
    new: &Arc<Linked>,
    registry: &Registry,
    served: &CurrentVersion<'_>,
) -> Result<(), String> {
    for _ in 0..TRIES {
        match run_once(engine, new, registry) {
            Ok(()) => return Ok(()),
            Err(error) => match error.code.kind {
                ErrorKind::Task | ErrorKind::Bug => return Err(format!("its trial run failed: {error}")),
                ErrorKind::Timeout => {}
                // Not the plan's fault, as far as one run can tell.
                ErrorKind::BadRequest
                | ErrorKind::UnknownPlan
                | ErrorKind::InvalidPlan
                | ErrorKind::Upstream
                | ErrorKind::Overloaded
                | ErrorKind::Cancelled => return Ok(()),
            },
        }
    }
    // The stores may be slow: then the version that is served times out, too.
    match run_once(engine, &served.good.linked, served.registry) {
        Err(error) if error.code.kind == ErrorKind::Timeout => Ok(()),
        _ => Err(format!(
            "its trial run timed out {TRIES} times at {} ms, and the version that is served does not; \
             if it may take that long, start the server with --no_trial",
            deadline(engine).as_millis()
        )),
    }
}

fn deadline(engine: &Engine) -> Duration {
    engine.settings().deadline.unwrap_or(DEADLINE).min(DEADLINE_MAX)
}

fn run_once(engine: &Engine, plan: &Arc<Linked>, registry: &Registry) -> Result<(), Box<RunError>> {
    let request = Request {
        user_id: 1,
        request_id: "trial".to_owned(),
        deadline: Some(deadline(engine)),
        ..Request::new(registry)
    };
    engine.run(plan, request).result.map(drop)
}
