//! Why a node did not pass a row on: what its task says, filled in from the rows that were kept.

use super::keep::origin;
use super::parts::{Part, Parts};
use super::story::ordered_by;
use super::trail::{Drop, RowAt, Walked};
use super::words::filled;
use crate::degraded::Degraded;
use crate::task::{Among, Lost};
use rankd_column::{Id, Key, RowSet, Value};
use rankd_plan::Registry;
use rankd_plan::plan::NodeIx;
use std::collections::HashSet;

/// So many rows are named that stand in the way of another.
const OTHERS_MAX: usize = 10;

/// A row that was not passed on.
#[derive(Clone, Debug)]
pub struct Dropped {
    pub by: NodeIx,
    /// Where it stood among the rows of the input that it came in by.
    pub position: usize,
    pub reason: DropReason,
}

/// Why a row was not passed on.
#[derive(Clone, Debug)]
pub enum DropReason {
    /// The task does not say.
    Unsaid,
    /// A predicate does not hold: its parts, each with its value.
    Predicate(Vec<Part>),
    /// It does not stand at one of the positions that are passed on. The key that the rows are ordered by, with its value here and at the last row that was passed on.
    Cut { from: usize, to: usize, score: Option<(Key, Value, Value)> },
    /// A row that was passed on has the same values of these keys.
    Same { by: Vec<(Key, Value)>, kept: Option<OtherRow> },
    /// So many rows with the same value came before it.
    Full { by: Key, value: Value, max: usize, window: usize, kept: Vec<OtherRow> },
    /// One of its keys is among ids that are left out.
    Named { by: Vec<(Key, Value)>, among: Named },
    /// None of its keys is among the ids that are kept.
    NotNamed { by: Vec<(Key, Value)>, among: Named },
    /// No row of that node has its value.
    NoMatch { on: Option<(Key, Key, Value)>, node: NodeIx },
    /// It was served on an earlier page.
    Served,
    /// There were so many rows before it.
    Enough(usize),
    /// Chance took so many others.
    Chance(usize),
    /// No place was left for it.
    NoPlace,
    /// Weather struck the node, and what stood in for it does not have the row.
    Fallback(Degraded),
    /// The node's condition does not hold.
    Condition,
    /// The node had enough rows without these.
    NotAsked,
}

/// A row that was passed on.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherRow {
    pub id: Id,
    /// Among the rows that came out.
    pub position: usize,
}

/// Where ids are named.
#[derive(Clone, Debug)]
pub enum Named {
    Node(NodeIx),
    Param(String),
    /// A key of an endpoint, as it was asked for the row.
    Stored {
        endpoint: String,
        key: String,
    },
}

impl DropReason {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            DropReason::Unsaid => "unsaid",
            DropReason::Predicate(_) => "predicate",
            DropReason::Cut { .. } => "cut",
            DropReason::Same { .. } => "same",
            DropReason::Full { .. } => "full",
            DropReason::Named { .. } => "named",
            DropReason::NotNamed { .. } => "not_named",
            DropReason::NoMatch { .. } => "no_match",
            DropReason::Served => "served",
            DropReason::Enough(_) => "enough",
            DropReason::Chance(_) => "chance",
            DropReason::NoPlace => "no_place",
            DropReason::Fallback(_) => "fallback",
            DropReason::Condition => "condition",
            DropReason::NotAsked => "not_asked",
        }
    }
}

impl Dropped {
    pub(super) fn of(
        walked: &Walked<'_>,
        registry: &Registry,
        places: &[RowAt],
        (by, input): (NodeIx, usize),
        why: &Drop,
    ) -> Dropped {
        let place = places.len() - 1;
        let position = places[place].position;
        let reason = match why {
            Drop::Task(lost) => of_task(walked, registry, places, (by, input), lost),
            Drop::Fallback(degraded) => DropReason::Fallback(degraded.clone()),
            Drop::Condition => DropReason::Condition,
            Drop::NotAsked => DropReason::NotAsked,
        };
        Dropped { by, position, reason }
    }
}

fn of_task(
    walked: &Walked<'_>,
    registry: &Registry,
    places: &[RowAt],
    (by, input): (NodeIx, usize),
    lost: &Lost,
) -> DropReason {
    let place = places.len() - 1;
    let position = places[place].position;
    let (Some(call), Some(given)) = (walked.call(by), walked.rows(by)) else { return DropReason::Unsaid };
    let Some(seen) = call.inputs.get(input) else { return DropReason::Unsaid };
    let valued = |keys: &[Key]| keys.iter().map(|key| (*key, seen.value(*key, position))).collect::<Vec<_>>();
    let named = |among: &Among| match among {
        Among::Input(at) => Named::Node(walked.node(by).inputs.get(*at).copied().unwrap_or(by)),
        Among::Param(param) => Named::Param(registry.params.get(*param).name.clone()),
        Among::Stored { endpoint, key } => Named::Stored {
            endpoint: registry.endpoints.get(*endpoint).name.clone(),
            key: filled(key, Some((seen, position)), walked.request).unwrap_or_default(),
        },
    };
    match lost {
        Lost::Unsaid => DropReason::Unsaid,
        Lost::Predicate(program) => match Parts::new(walked, registry, places).of_predicate(program, place) {
            Ok(parts) => DropReason::Predicate(parts),
            // The run has tested it, so it can be tested.
            Err(_) => DropReason::Unsaid,
        },
        Lost::Cut(kept) => {
            let at_cut = kept.end.checked_sub(1).filter(|last| *last < seen.len());
            let score = ordered_by(walked, places)
                .zip(at_cut)
                .map(|((key, _), last)| (key, seen.value(key, position), seen.value(key, last)));
            DropReason::Cut { from: kept.start, to: kept.end, score }
        }
        Lost::Same(keys) => DropReason::Same { by: valued(keys), kept: alike(given, (seen, position), keys).next() },
        Lost::Full { by, max, window } => {
            let mut kept: Vec<OtherRow> = before(given, (seen, position), *by);
            kept.drain(..kept.len().saturating_sub((*max).min(OTHERS_MAX)));
            DropReason::Full { by: *by, value: seen.value(*by, position), max: *max, window: *window, kept }
        }
        Lost::Named { by, among } => DropReason::Named { by: valued(by), among: named(among) },
        Lost::NotNamed { by, among } => DropReason::NotNamed { by: valued(by), among: named(among) },
        Lost::NoMatch { on, input } => {
            let on = on.map(|(left, right)| (left, right, seen.value(left, position)));
            match walked.node(by).inputs.get(*input) {
                Some(node) => DropReason::NoMatch { on, node: *node },
                None => DropReason::Unsaid,
            }
        }
        Lost::Served => DropReason::Served,
        Lost::Enough(count) => DropReason::Enough(*count),
        Lost::Chance(count) => DropReason::Chance(*count),
        Lost::NoPlace => DropReason::NoPlace,
    }
}

/// The rows that were passed on and have the same values of these keys as a row that was not.
fn alike<'r>(
    given: &'r RowSet,
    (seen, position): (&'r RowSet, usize),
    keys: &'r [Key],
) -> impl Iterator<Item = OtherRow> + 'r {
    let values: Vec<Value> = keys.iter().map(|key| seen.value(*key, position)).collect();
    let is_alike = move |at: &usize| keys.iter().zip(&values).all(|(key, value)| given.value(*key, *at) == *value);
    (0..given.len()).filter(is_alike).map(|at| other(given, at))
}

/// The same for those that came in before it.
fn before(given: &RowSet, (seen, position): (&RowSet, usize), key: Key) -> Vec<OtherRow> {
    let value = seen.value(key, position);
    let earlier: HashSet<usize> = seen.rows().iter().take(position).collect();
    let came_before = |at: &usize| origin(given, *at).is_some_and(|(_, row)| earlier.contains(&row));
    (0..given.len())
        .filter(came_before)
        .filter(|at| given.value(key, *at) == value)
        .map(|at| other(given, at))
        .collect()
}

fn other(rows: &RowSet, position: usize) -> OtherRow {
    OtherRow { id: rows.batch().id(rows.rows().at(position)), position }
}
