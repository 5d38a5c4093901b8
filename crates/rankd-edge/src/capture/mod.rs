//! Captures: requests with all that their runs depended on and the answers that they got, as files from which the runs can be repeated.
//!
//! Reading order: this file (one captured request), `facts` (what is JSON in it), `columns` (requests as record batches), `folder` (a folder of
//! captures: rotation, retention, plans and registries beside them), `recorder` (the thread that writes), `read` (captures in), `replay` (the same
//! run once more).

mod columns;
mod facts;
mod folder;
mod read;
mod recorder;
mod replay;

pub use folder::{CaptureLimits, FolderError};
pub use read::{CaptureFileError, CaptureFiles, CaptureSeen};
pub use recorder::{Capture, CaptureCounts, CapturedPlan};
pub use replay::{Comparison, NotComparable, Replayed, Replays};

use rankd_engine::recorded::{RunRecord, Weather};
use rankd_engine::seed::Seed;
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
    pub answer: Vec<u8>,
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
    /// The tables that the plan names.
    pub tables: Vec<String>,
}

impl CapturedRequest {
    /// About how many bytes it takes.
    pub fn byte_count(&self) -> usize {
        size_of::<CapturedRequest>() + self.request.len() + self.answer.len() + self.record.byte_count()
    }

    /// What struck the nodes of the run.
    pub fn weather(&self) -> &Weather {
        &self.record.weather
    }
}
