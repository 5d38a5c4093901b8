//! Keeps what a run depends on while it runs. Whoever wants the record makes a recorder, hands it in with the request and takes the record when the
//! run is over.

use super::read::{RecordedCall, RecordedFault, RecordedKeys, RecordedRead};
use super::weather::Weather;
use crate::arms::Arms;
use crate::request::Request;
use crate::seed::Seed;
use crate::store::{Call, KeyBuffer, KeyedRead, Keys, Replies, StoreError, TableVersions};
use bytes::Bytes;
use rankd_plan::model::ModelVersions;
use std::sync::{Arc, Mutex, PoisonError};

/// A run that reads more than this has no record: what is kept for one run is bounded.
pub const RECORD_BYTES_MAX: usize = 32 << 20;

/// What a run has besides its request and its reads.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// The request's time, where the plan asks for it or the request says it.
    pub now_ms: Option<i64>,
    /// What random choices followed from, where the plan makes any.
    pub seed: Option<Seed>,
    /// How hard the process was pressed when the run began, in eighths.
    pub pressure: u8,
    /// Where the plan's dials stood, in its order.
    pub dials: Vec<i64>,
    /// The versions of tables and of models, where the plan names one.
    pub tables: Option<Arc<TableVersions>>,
    pub models: Option<Arc<ModelVersions>>,
    /// The arms of experiments that the request was in.
    pub arms: Option<Arc<Arms>>,
}

/// What a run depended on besides its request and its plan.
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// Whether the run began: a request may be turned away before it does.
    pub has_begun: bool,
    pub facts: RunFacts,
    /// In the order in which they were answered.
    pub reads: Vec<RecordedKeys>,
    pub calls: Vec<RecordedCall>,
    /// What struck its nodes.
    pub weather: Weather,
    /// Whether there is more than is kept, so that this is not all.
    pub is_cut: bool,
    bytes: usize,
}

impl RunRecord {
    /// About how many bytes it takes.
    pub fn byte_count(&self) -> usize {
        size_of::<RunRecord>() + self.bytes
    }

    fn make_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > RECORD_BYTES_MAX {
            // What is not whole is of no use to anybody.
            (self.is_cut, self.reads, self.calls) = (true, Vec::new(), Vec::new());
        }
        !self.is_cut
    }
}

/// Keeps what one run depends on. Its reads may end on several threads.
#[derive(Debug, Default)]
pub struct RunRecorder(Mutex<RunRecord>);

impl RunRecorder {
    /// What has been recorded so far; afterwards it is empty.
    pub fn take(&self) -> RunRecord {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with(&self, keep: impl FnOnce(&mut RunRecord)) {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !record.is_cut {
            keep(&mut record);
        }
    }

    /// The run begins with this request.
    pub(crate) fn begin(&self, request: &Request) {
        let facts = RunFacts {
            now_ms: request.now_ms,
            seed: request.seed.clone(),
            pressure: request.pressure,
            dials: request.dials.clone(),
            tables: request.tables.clone(),
            models: request.models.clone(),
            arms: request.arms.clone(),
        };
        self.with(|record| (record.has_begun, record.facts) = (true, facts));
    }

    /// The run is over.
    pub(crate) fn end(&self, weather: Weather) {
        self.with(|record| record.weather = weather);
    }

    pub(crate) fn keep_keys(
        &self,
        endpoint: &str,
        read: &KeyedRead<'_>,
        keys: &Keys<'_>,
        given: &Result<Replies, StoreError>,
    ) {
        let mut own = KeyBuffer::default();
        (0..keys.len()).for_each(|at| own.push(|out| keys.append(at, out)));
        let given = given.clone().map_err(|error| RecordedFault::of(endpoint, &error));
        let kept = RecordedKeys { endpoint: endpoint.into(), read: RecordedRead::of(read), keys: own, given };
        self.with(|record| {
            if record.make_room(kept.byte_count()) {
                record.reads.push(kept);
            }
        });
    }

    pub(crate) fn keep_call(&self, endpoint: &str, call: Call, given: &Result<Option<Bytes>, StoreError>) {
        let Call { method, path, body } = call;
        let given = given.clone().map_err(|error| RecordedFault::of(endpoint, &error));
        let kept = RecordedCall { endpoint: endpoint.into(), method, path, body, given };
        self.with(|record| {
            if record.make_room(kept.byte_count()) {
                record.calls.push(kept);
            }
        });
    }
}
