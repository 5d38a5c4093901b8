//! A new version of a plan is linked and run once before it replaces the one that is served.
//!
//! The run is for user 1, on the real stores. What fails by the plan's own fault is refused. What fails because a store is down or
//! slow is not: the plan may be right all the same.

use crate::catalog::GoodVersion;
use rankd_edge::prepare::{Tracing, prepare};
use rankd_engine::{Engine, ErrorKind, Linked, RunError, Tasks};
use rankd_plan::{Plan, Registry};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a trial run may take where requests have no deadline, and the most where they have a long one.
const DEADLINE: Duration = Duration::from_secs(1);
const DEADLINE_MAX: Duration = Duration::from_secs(5);
/// A version that times out this many times in a row always does.
const TRIES: usize = 2;

/// A version that is served, and the registry that it was linked with.
pub(crate) struct CurrentVersion<'a> {
    pub(crate) good: &'a GoodVersion,
    pub(crate) registry: &'a Registry,
}

/// Why a new version of a plan is not served.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// The plan has another name than its file.
    Name { file: String, plan: String },
    /// Its nodes cannot be linked to their tasks.
    Link(Box<RunError>),
    /// Its trial run failed by its own fault.
    Failed(Box<RunError>),
    /// Its trial runs timed out, and one of the version that is served did not.
    TimedOut { ms: u128 },
}

impl std::error::Error for Unfit {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Unfit::Link(error) => Some(&**error),
            Unfit::Failed(error) => Some(&**error),
            Unfit::Name { .. } | Unfit::TimedOut { .. } => None,
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Name { file, plan } => write!(f, "the file is named {file:?}, but the plan in it {plan:?}"),
            Unfit::Link(error) => f.write_str(&error.message),
            Unfit::Failed(error) => write!(f, "its trial run failed: {error}"),
            Unfit::TimedOut { ms } => write!(
                f,
                "its trial run timed out {TRIES} times at {ms} ms, and the version that is served does not; if it may take that \
                 long, start the server with --no_trial"
            ),
        }
    }
}

/// Links a plan.
pub(crate) fn link(plan: &Plan, name: &str, tasks: &Tasks, registry: &Registry) -> Result<Arc<Linked>, Unfit> {
    if plan.name != name {
        return Err(Unfit::Name { file: name.to_owned(), plan: plan.name.clone() });
    }
    let linked = Linked::link(plan, tasks, registry).map_err(Unfit::Link)?;
    Ok(Arc::new(linked))
}

/// Runs a new version. Says why it must not replace the one that is served.
pub(crate) fn run(
    engine: &Engine,
    new: &Arc<Linked>,
    registry: &Registry,
    served: &CurrentVersion<'_>,
) -> Result<(), Unfit> {
    for _ in 0..TRIES {
        match run_once(engine, new, registry) {
            Ok(()) => return Ok(()),
            Err(error) => match error.code.kind {
                ErrorKind::Task | ErrorKind::Bug => return Err(Unfit::Failed(error)),
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
        _ => Err(Unfit::TimedOut { ms: deadline(engine).as_millis() }),
    }
}

fn deadline(engine: &Engine) -> Duration {
    engine.settings().deadline.unwrap_or(DEADLINE).min(DEADLINE_MAX)
}

fn run_once(engine: &Engine, plan: &Arc<Linked>, registry: &Registry) -> Result<(), Box<RunError>> {
    let deadline_ms = deadline(engine).as_millis().max(1);
    let request = format!(r#"{{"user_id":1,"request_id":"trial","deadline_ms":{deadline_ms}}}"#);
    let prepared = prepare(request.as_bytes(), registry, &plan.name, Tracing::AsAsked);
    let prepared = prepared.map_err(|refused| refused.error)?;
    engine.run(plan, prepared.request).result.map(drop)
}
