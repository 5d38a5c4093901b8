//! Why an item was in no source: each node that brings rows in, and why the item is not among them.
//!
//! A task says where its rows come from ([`RowSource`]). What is kept answers for the request, the plan and tables; stores are asked
//! once, after the run and for all items together ([`super::inquiry`]).

use super::trail::Walked;
use super::words::{filled, plain};
use crate::degraded::Degraded;
use crate::task::{ElementKey, Elements, RowSource, StoredElements};
use crate::why::trail::positions_of;
use rankd_column::{Id, Key, RowSet, Value};
use rankd_plan::Registry;
use rankd_plan::plan::NodeIx;
use std::collections::HashSet;

/// So many input rows of a node are asked for.
pub const PARENTS_MAX: usize = 100;
/// So many keys are named.
const KEYS_SHOWN: usize = 3;

/// A source that did not give an item.
#[derive(Clone, Debug)]
pub struct NotGiven {
    pub node: NodeIx,
    pub why: AbsentReason,
}

/// Why a source did not give an item.
#[derive(Clone, Debug)]
pub enum AbsentReason {
    /// The task does not say where its rows come from.
    Unsaid,
    /// The node did not run: its condition does not hold, or nothing needed it.
    NotRun,
    /// Weather struck the node.
    Fallback(Degraded),
    /// No rows came in that it could read for.
    NoInput,
    /// It is not among the rows that the request brought along.
    Request,
    /// It is not among the rows that the plan has.
    Plan,
    /// It is not the user whom the request is for.
    User,
    /// A service was asked, and its answer does not have it.
    Service { endpoint: String },
    /// A table has no row with this id.
    NoRow { table: String },
    /// The table's row has this value, which no input row has.
    NoMatch { table: String, left: Key, right: Key, value: Value },
    /// The table's row matches an input row, and so do more before it than are taken.
    RowsCut { table: String, right: Key, value: Value, fanout: usize },
    /// A store was asked.
    Stored(StoredAbsence),
}

/// What a store has of an item.
#[derive(Clone, Debug)]
pub struct StoredAbsence {
    pub endpoint: String,
    /// The keys that were asked, or the first of them.
    pub keys: Vec<String>,
    /// How many were asked, and how many the run has read.
    pub asked: usize,
    pub read: usize,
    /// How many elements are read of each.
    pub fanout: usize,
    pub found: StoredFinding,
    /// What to ask for.
    pub(super) question: StoredQuestion,
}

/// What came of asking a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredFinding {
    /// It was not asked: this cannot be asked for, or there was something to ask already.
    NotAsked,
    /// It did not answer.
    Failed(String),
    /// It is under none of the keys.
    Absent,
    /// It is under this key, behind what is read of it: at this position, where there is one.
    Cut { key: String, position: Option<usize> },
    /// It is under this key now, and was not given: it came meanwhile, or is no id.
    There { key: String, position: Option<usize> },
}

/// What a store is asked for.
#[derive(Clone, Debug)]
pub(super) struct StoredQuestion {
    pub(super) endpoint: u32,
    pub(super) keys: Vec<String>,
    pub(super) elements: Elements,
}

impl AbsentReason {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            AbsentReason::Unsaid => "unsaid",
            AbsentReason::NotRun => "not_run",
            AbsentReason::Fallback(_) => "fallback",
            AbsentReason::NoInput => "no_input",
            AbsentReason::Request => "request",
            AbsentReason::Plan => "plan",
            AbsentReason::User => "user",
            AbsentReason::Service { .. } => "service",
            AbsentReason::NoRow { .. } => "no_row",
            AbsentReason::NoMatch { .. } => "no_match",
            AbsentReason::RowsCut { .. } => "cut",
            AbsentReason::Stored(stored) => match stored.found {
                StoredFinding::NotAsked => "not_asked",
                StoredFinding::Failed(_) => "failed",
                StoredFinding::Absent => "absent",
                StoredFinding::Cut { .. } => "cut",
                StoredFinding::There { .. } => "there_now",
            },
        }
    }
}

impl NotGiven {
    /// All nodes of a run that bring rows in and did not give the item, in the plan's order.
    pub(super) fn by_all(walked: &Walked<'_>, registry: &Registry, id: &Id) -> Vec<NotGiven> {
        let mut all = Vec::new();
        for &node in walked.plan.order.iter().filter(|node| walked.node(**node).needed) {
            let task = &walked.linked.written.step(node).task;
            let why = match (walked.degraded(node), walked.call(node)) {
                (Some(degraded), _) if walked.node(node).inputs.is_empty() => AbsentReason::Fallback(degraded.clone()),
                (None, None) if walked.node(node).inputs.is_empty() => AbsentReason::NotRun,
                (_, Some(call)) if walked.is_source(node, call) => {
                    if call.given.as_ref().is_some_and(|rows| positions_of(rows, id).next().is_some()) {
                        continue;
                    }
                    of_source(walked, registry, task.row_source(), call.inputs.first(), id)
                }
                _ => continue,
            };
            all.push(NotGiven { node, why });
        }
        all
    }
}

fn of_source(
    walked: &Walked<'_>,
    registry: &Registry,
    source: RowSource<'_>,
    parents: Option<&RowSet>,
    id: &Id,
) -> AbsentReason {
    if parents.is_some_and(RowSet::is_empty) {
        return AbsentReason::NoInput;
    }
    let name = |endpoint: u32| registry.endpoints.get(endpoint).name.clone();
    match source {
        RowSource::Unsaid => AbsentReason::Unsaid,
        RowSource::Request => AbsentReason::Request,
        RowSource::Plan => AbsentReason::Plan,
        RowSource::User => AbsentReason::User,
        RowSource::Service(endpoint) => AbsentReason::Service { endpoint: name(endpoint) },
        RowSource::Table(endpoint) => AbsentReason::NoRow { table: name(endpoint.0) },
        RowSource::TableRows { endpoint, on, fanout } => {
            let table = name(endpoint.0);
            let Some(held) = walked.taken.tables.as_ref().and_then(|tables| tables.get(endpoint)) else {
                return AbsentReason::Unsaid;
            };
            let rows = held.rows(parents.and_then(|rows| rows.batch().id_texts()));
            let Some(position) = positions_of(&rows, id).next() else { return AbsentReason::NoRow { table } };
            let value = rows.value(on.right, position);
            let is_same = |parents: &RowSet| (0..parents.len()).any(|at| parents.value(on.left, at) == value);
            match value != Value::Null && parents.is_some_and(is_same) {
                true => {
                    AbsentReason::RowsCut { table, right: on.right, value, fanout: fanout.count(&walked.request.dials) }
                }
                false => AbsentReason::NoMatch { table, left: on.left, right: on.right, value },
            }
        }
        RowSource::Stored(stored) => {
            let (keys, read) = keys_of(walked, &stored, parents);
            if read == 0 {
                return AbsentReason::NoInput;
            }
            AbsentReason::Stored(StoredAbsence {
                endpoint: name(stored.endpoint),
                keys: keys.iter().take(KEYS_SHOWN).cloned().collect(),
                asked: 0,
                read,
                fanout: stored.fanout.count(&walked.request.dials),
                found: StoredFinding::NotAsked,
                question: StoredQuestion { endpoint: stored.endpoint, keys, elements: stored.elements },
            })
        }
    }
}

/// The first keys that a node has read, each once, and how many there are.
fn keys_of(walked: &Walked<'_>, stored: &StoredElements<'_>, parents: Option<&RowSet>) -> (Vec<String>, usize) {
    let key = |row: Option<(&RowSet, usize)>| match stored.key {
        ElementKey::Template(template) => filled(template, row, walked.request),
        ElementKey::Prefix(prefix) => {
            row.and_then(|(rows, at)| Some(format!("{prefix}:{}", plain(&rows.value(Key::ID, at))?)))
        }
    };
    let Some(parents) = parents else {
        let keys: Vec<String> = key(None).into_iter().collect();
        let read = keys.len();
        return (keys, read);
    };
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    for key in (0..parents.len()).filter_map(|at| key(Some((parents, at)))) {
        if keys.len() < PARENTS_MAX && !seen.contains(&key) {
            keys.push(key.clone());
        }
        seen.insert(key);
    }
    (keys, seen.len())
}
