//! The feature log: the rows of nodes that say `log`, or where a plan has none, the rows of its outputs, as files to learn from.
//!
//! Rows are handed over as they are, views on shared columns, when the answer is there; a thread of its own gathers and writes them. Reading order: this file
//! (what is handed over), `stream` (which rows go into which file), `columns` (rows as record batches), `writer` (the thread).

mod columns;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

use crate::date;
use crate::pii::Pii;
use crate::stream_files::{QueuedWriter, Sampling, StreamFolderError, StreamLimits, WriteCounts};
use rankd_column::{Id, RowSet};
use rankd_engine::arms::Arms;
use rankd_engine::{Linked, Outcome};
use rankd_plan::Registry;
use rankd_plan::plan::NodeIx;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stream::{LogKeys, LoggedNode};
use writer::FeatureWriter;

/// Goes before the request's id where it is decided whose rows are logged.
const SALT: &str = "feature_log";
/// What a run counts as, and each of its row sets, besides its batch and its view.
const RUN_BYTES: usize = 512;

/// A version of a plan whose rows are logged.
#[derive(Debug)]
pub struct LoggedPlan {
    /// Its name.
    pub name: Arc<str>,
    /// The SHA-256 of its artifact.
    pub sha256: Arc<str>,
    /// By position.
    nodes: Vec<LoggedNode>,
    /// Whether a node of it logs its rows: otherwise outputs do.
    logs_nodes: bool,
    outputs: Vec<NodeIx>,
    keys: Arc<LogKeys>,
}

impl LoggedPlan {
    fn new(plan: &Linked, sha256: &str, keys: Arc<LogKeys>) -> LoggedPlan {
        LoggedPlan {
            name: plan.name.as_str().into(),
            sha256: sha256.into(),
            nodes: plan.nodes.iter().map(LoggedNode::of).collect(),
            logs_nodes: !plan.logging.is_empty(),
            outputs: plan.outputs.clone(),
            keys,
        }
    }
}

/// The rows of one run, and what is written with each of them.
struct LoggedRun {
    request_id: String,
    user_id: Id,
    at_ms: i64,
    plan: Arc<LoggedPlan>,
    arms: Option<Arc<Arms>>,
    rows: RunRows,
}

/// Whose rows a run logs.
enum RunRows {
    /// Those of nodes that say so.
    OfNodes(Vec<(NodeIx, RowSet)>),
    /// Those of the plan's outputs, in its order.
    OfOutputs(Vec<RowSet>),
}

impl LoggedRun {
    fn row_sets(&self) -> impl Iterator<Item = (NodeIx, &RowSet)> {
        let (of_nodes, of_outputs): (&[_], &[_]) = match &self.rows {
            RunRows::OfNodes(rows) => (rows, &[]),
            RunRows::OfOutputs(rows) => (&[], rows),
        };
        let of_outputs = self.plan.outputs.iter().copied().zip(of_outputs);
        of_nodes.iter().map(|(node, rows)| (*node, rows)).chain(of_outputs)
    }

    /// About how much memory it holds: a row set counts as its batch.
    fn byte_count(&self) -> usize {
        let of_rows = |rows: &RowSet| RUN_BYTES + rows.batch().made_bytes() + rows.len() * size_of::<u32>();
        RUN_BYTES + self.row_sets().map(|(_, rows)| of_rows(rows)).sum::<usize>()
    }
}

/// A request whose rows are to be logged, once it has run.
pub struct LoggedRequest {
    /// Its id.
    pub request_id: String,
    /// The user that it is for.
    pub user_id: Id,
}

/// Where rows are logged.
pub struct FeatureLog {
    sampling: Sampling,
    writer: QueuedWriter<LoggedRun>,
    /// Those of the registry that a plan was last made with: most plans share them.
    keys: Mutex<Option<Arc<LogKeys>>>,
    pii: Pii,
}

impl FeatureLog {
    /// Logs the rows of a share of the requests into a folder, which is made where it is not there, values about persons as `pii` says. `tell` is told once of what cannot be written.
    pub fn start(
        folder: &Path,
        share: f64,
        limits: StreamLimits,
        pii: Pii,
        tell: impl FnMut(String) + Send + 'static,
    ) -> Result<FeatureLog, StreamFolderError> {
        let writer = FeatureWriter::open(folder, limits)?;
        let writer = QueuedWriter::start("rankd-features", "rows cannot be logged", writer, tell);
        let failed = |error| StreamFolderError { what: writer::WHAT, path: folder.to_owned(), error };
        Ok(FeatureLog {
            sampling: Sampling { share, salt: SALT },
            writer: writer.map_err(failed)?,
            keys: Mutex::default(),
            pii,
        })
    }

    /// What is logged of a version of a plan, which has this artifact, and was linked with this registry.
    pub fn plan(&self, plan: &Linked, sha256: &str, registry: &Registry) -> Arc<LoggedPlan> {
        let mut kept = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = match kept.take().filter(|keys| keys.registry == registry.id()) {
            Some(keys) => keys,
            None => Arc::new(LogKeys::of(registry, &self.pii)),
        };
        *kept = Some(keys.clone());
        Arc::new(LoggedPlan::new(plan, sha256, keys))
    }

    /// Whether the rows of the request with this id are logged: always the same for one id.
    #[inline]
    pub fn takes(&self, request_id: &str) -> bool {
        self.sampling.takes(request_id)
    }

    /// Hands over the rows of a run that has been answered, or drops them where too much waits already: the outcome is left without. A run
    /// without an answer has none, and one whose arms the request chose says nothing about its user.
    pub fn keep(&self, request: LoggedRequest, plan: &Arc<LoggedPlan>, outcome: &mut Outcome) {
        let Outcome { result: Ok(outputs), logged, arms, .. } = outcome else { return };
        if arms.as_ref().is_some_and(|arms| arms.is_forced) {
            return;
        }
        let run = LoggedRun {
            request_id: request.request_id,
            user_id: request.user_id,
            at_ms: date::millis() as i64,
            plan: plan.clone(),
            arms: arms.clone(),
            rows: match plan.logs_nodes {
                true => RunRows::OfNodes(std::mem::take(logged)),
                false => RunRows::OfOutputs(std::mem::take(outputs)),
            },
        };
        let bytes = run.byte_count();
        self.writer.send(run, bytes);
    }

    /// What became of requests so far.
    pub fn counts(&self) -> &WriteCounts {
        self.writer.counts()
    }

    /// Takes nothing more, and waits for what is still to be written, but no longer than this.
    pub fn end(&self, within: Duration) {
        self.writer.end(within);
    }
}
