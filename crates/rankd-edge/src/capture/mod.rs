//! Captures: requests with all that their runs depended on and the answers that they got, as files from which the runs can be repeated.
//!
//! Reading order: this file (one captured request), `facts` (what is JSON in it), `columns` (requests as record batches), `folder` (a folder of
//! captures: rotation, retention, plans and registries beside them), `counts`, `writer` (the thread that writes), `recorder` (which requests, and the queue to it), `read`
//! (captures in), `replay` (the same run once more).

mod columns;
mod counts;
mod facts;
mod folder;
mod read;
mod recorder;
mod replay;
#[cfg(test)]
mod tests;
mod writer;

pub use counts::{CaptureCounts, Dropped};
pub use folder::{CaptureLimits, FolderError};
pub use read::{CaptureFileError, CaptureFiles, CaptureSeen};
pub use recorder::Capture;
pub use replay::{CapturedRun, Comparison, ExperimentsBeside, LiveStores, NotComparable, Replayed, Replays};

use crate::date;
use crate::registry_files::RegistryTexts;
use bytes::Bytes;
use rankd_engine::Linked;
use rankd_engine::recorded::{RunRecord, Weather};
use rankd_engine::seed::Seed;
use rankd_plan::Registry;
use std::sync::Arc;

/// A request, what its run depended on, and its answer.
#[derive(Debug)]
pub struct CapturedRequest {
    /// The id of the request.
    pub request_id: String,
    /// When it was answered, in milliseconds since 1970.
    pub at_ms: i64,
    /// The plan's name, and the SHA-256 of its artifact.
    pub plan: String,
    /// See [`CapturedRequest::plan`].
    pub plan_sha256: Arc<str>,
    /// The SHA-256 of what the registry's files say.
    pub registry_sha256: Arc<str>,
    /// The version of rankd.
    pub engine_version: String,
    /// What the caller sent: JSON.
    pub request: Vec<u8>,
    /// What the caller got, byte for byte: JSON or an Arrow stream.
    pub answer: Bytes,
    /// What the run had besides.
    pub run: RunState,
    /// Its reads, and what struck its nodes.
    pub record: RunRecord,
}

/// What a run had besides its request, its plan and its reads, by name, so that it can be written down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// The request's time, where the plan asks for it or the request says it.
    pub now_ms: Option<i64>,
    /// What random choices followed from.
    pub seed: Option<Seed>,
    /// How hard the process was pressed, in eighths.
    pub pressure: u8,
    /// Where the plan's dials stood, by name.
    pub dials: Vec<(String, i64)>,
    /// The models that the plan names, each with the SHA-256 of its file.
    pub models: Vec<(String, String)>,
    /// The tables that the plan names, each with the SHA-256 of its file.
    pub tables: Vec<(String, String)>,
    /// The arms of experiments that the request was in, or that it chose.
    pub arms: Option<CapturedArms>,
}

/// The arms of experiments that a request was in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapturedArms {
    /// The SHA-256 of the file of experiments.
    pub experiments_sha256: String,
    /// Experiments and their arms, by name.
    pub taken: Vec<(String, String)>,
    /// Whether the request chose any.
    pub is_forced: bool,
}

impl CapturedRequest {
    /// A request that was answered just now, by a plan and with a registry: what was sent, what was given, and what its run depended on.
    pub fn new(
        request_id: String,
        (plan, registry): (&Linked, &Registry),
        request: Vec<u8>,
        answer: Bytes,
        record: RunRecord,
    ) -> CapturedRequest {
        CapturedRequest {
            request_id,
            at_ms: date::millis() as i64,
            plan: plan.name.clone(),
            plan_sha256: plan.sha256.clone(),
            registry_sha256: registry.sha256().clone(),
            engine_version: crate::VERSION.to_owned(),
            request,
            answer,
            run: RunState::of(&record.facts, plan, registry),
            record,
        }
    }

    /// About how many bytes it takes.
    pub fn byte_count(&self) -> usize {
        size_of::<CapturedRequest>() + self.request.len() + self.answer.len() + self.record.byte_count()
    }

    /// What struck the nodes of the run.
    pub fn weather(&self) -> &Weather {
        &self.record.weather
    }
}

/// The plan and the registry that a request ran with, as they are written down.
#[derive(Clone, Debug)]
pub struct CapturedPlan {
    /// The SHA-256 of the artifact, and the artifact.
    pub sha256: Arc<str>,
    /// See [`CapturedPlan::sha256`].
    pub artifact: Arc<str>,
    /// The SHA-256 of the registry, and what its files say.
    pub registry_sha256: Arc<str>,
    /// See [`CapturedPlan::registry_sha256`].
    pub registry: Arc<RegistryTexts>,
}

impl CapturedPlan {
    /// Of a plan and its artifact, and of a registry and its files.
    pub fn new(plan: &Linked, artifact: Arc<str>, registry: &Registry, texts: Arc<RegistryTexts>) -> CapturedPlan {
        let (sha256, registry_sha256) = (plan.sha256.clone(), registry.sha256().clone());
        CapturedPlan { sha256, artifact, registry_sha256, registry: texts }
    }
}
