//! What a caller asks for, already typed and checked.

use crate::arms::Arms;
use crate::clock::Instant;
use crate::cursor::{CursorFault, Served};
use crate::deadline::{Allowed, Limits};
use crate::recorded::{Reads, Struck};
use crate::seed::Seed;
use crate::settle::NodeFailure;
use crate::store::TableVersions;
use rankd_column::expr::RunValues;
use rankd_column::{Id, IdTexts, RowSet, Value};
use rankd_plan::Registry;
use rankd_plan::model::ModelVersions;
use rankd_plan::plan::NodeIx;
use rankd_plan::registry::{Entry, RegistryId};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub user_id: Id,
    pub request_id: String,
    /// The registry that the parameters and the candidates' keys are positions of; `None` where there are neither.
    pub registry: Option<RegistryId>,
    /// By position in the parameter registry: what the request set, else the default, else null.
    pub params: Vec<Value>,
    /// Rows that the caller brought along.
    pub candidates: Option<Candidates>,
    /// The request's time in milliseconds since 1970, where the request says it; otherwise it is the time at which a run begins whose
    /// plan asks for it.
    pub now_ms: Option<i64>,
    /// What random choices follow from, where the request says it. A run of a plan that draws random numbers always has one, and others have none.
    pub seed: Option<Seed>,
    /// What the user was served on earlier pages, where the plan pages. A run gets this when it begins, whatever is here.
    pub cursor: Option<Result<Arc<Served>, CursorFault>>,
    pub deadline: Option<Duration>,
    pub node_timeout: Option<Duration>,
    /// The dials that the request sets, by name.
    pub asked_dials: Vec<(String, i64)>,
    /// How hard the process was pressed when the run began, in eighths.
    pub pressure: u8,
    /// Where the plan's dials stand, in its order. A run of a plan with dials gets this when it begins, whatever is here.
    pub dials: Vec<i64>,
    /// The arms of experiments that it is in. What they set is in `params`.
    pub arms: Option<Arc<Arms>>,
    /// Whether the first failure is the answer, whatever fallbacks the plan has.
    pub strict: bool,
    /// Whether a trace of the run is recorded.
    pub trace: bool,
    /// What the run's ids are codes of, where ids are strings. A run gets its own when it begins, whatever is here.
    pub id_texts: Option<Arc<IdTexts>>,
    /// The versions of tables that the run sees. A run whose plan names a table takes them when it begins, whatever is here.
    pub tables: Option<Arc<TableVersions>>,
    /// The versions of models that the run scores with. A run whose plan names a model takes them when it begins, whatever is here.
    pub models: Option<Arc<ModelVersions>>,
    /// Where its reads come from, and whether they are kept.
    pub reads: Reads,
    /// How nodes end that weather struck in the recorded run. A replay gets this when it begins, whatever is here.
    pub struck: Option<Arc<Struck>>,
}

impl Request {
    /// A request with the defaults of a registry's parameters.
    pub fn new(registry: &Registry) -> Request {
        let default = |param: &Entry| param.default.clone().unwrap_or(Value::Null);
        let params = registry.params.list().iter().map(default).collect();
        Request { params, registry: Some(registry.id()), ..Request::default() }
    }

    /// What is the same on all rows of a run.
    pub(crate) fn values(&self) -> RunValues<'_> {
        let Request { params, now_ms, user_id, .. } = self;
        RunValues { params, now_ms: now_ms.unwrap_or_default(), user_id }
    }

    /// The limits of a run that begins at this moment: the process's own, tightened by what the request asks for. A replay has no time limits.
    pub(crate) fn limits(&self, at: Instant, own: Allowed) -> Limits {
        match self.reads {
            Reads::Live | Reads::Recorded(_) => {
                let asked = Allowed { deadline: self.deadline, node_timeout: self.node_timeout, run_bytes_max: None };
                Limits::tighter(at, own, asked)
            }
            Reads::Replayed(_) => Limits::timeless(own.run_bytes_max),
        }
    }

    /// How a node ends that weather struck in the recorded run.
    #[inline]
    pub(crate) fn recorded_failure(&self, node: NodeIx) -> Option<NodeFailure> {
        // Only replays have any.
        match &self.struck {
            None => None,
            Some(struck) => recorded_failure(struck, node),
        }
    }

    /// After how many picks an anytime node hands over what it has, because it did in the recorded run.
    pub(crate) fn recorded_picks(&self, node: NodeIx) -> Option<usize> {
        self.struck.as_ref()?.picks(node)
    }
}

#[cold]
fn recorded_failure(struck: &Struck, node: NodeIx) -> Option<NodeFailure> {
    struck.failure(node).map(|end| NodeFailure::Recorded(Box::new(end.clone())))
}

/// Rows that a caller brought along. Whether an id is repeated is found when they are read, so that no run has to look.
#[derive(Clone, Debug)]
pub struct Candidates {
    rows: RowSet,
    repeated_id: Option<Id>,
}

impl Candidates {
    pub fn new(rows: RowSet) -> Candidates {
        Candidates { repeated_id: rows.repeated_id(), rows }
    }

    /// About how many bytes they take.
    pub fn byte_count(&self) -> usize {
        self.rows.batch().made_parts().map(|(_, bytes)| bytes).sum()
    }

    /// The rows, or an id that two of them have.
    pub fn rows(&self) -> Result<&RowSet, &Id> {
        self.repeated_id.as_ref().map_or(Ok(&self.rows), Err)
    }
}
