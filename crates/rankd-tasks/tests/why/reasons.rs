//! What the engine says of a row's end, in the model's words.

use crate::model::{End, Why};
use rankd_column::{Id, Key, Value};
use rankd_engine::why::{DropReason, Dropped, Named, OtherRow, PartKind, StoryEnd};
use rankd_plan::Registry;

/// An end as the model has it.
pub(crate) fn seen(registry: &Registry, end: &StoryEnd) -> End {
    match end {
        StoryEnd::Answered { position, .. } => End::Answered { position: *position },
        StoryEnd::Dropped(dropped) => {
            let Dropped { by, position, reason } = &**dropped;
            End::Dropped { by: *by as usize, position: *position, why: why(registry, reason) }
        }
        StoryEnd::Expanded { by, children } => End::Expanded(*by as usize, children.expect("the task says it")),
        StoryEnd::Grouped { by } => End::Grouped(*by as usize),
        StoryEnd::Aside { .. } => End::Aside,
        StoryEnd::Failed => unreachable!("the run did not fail"),
    }
}

/// The reason for which a row was dropped, in a word.
pub(crate) fn name(end: &StoryEnd) -> Option<&'static str> {
    match end {
        StoryEnd::Dropped(dropped) => Some(dropped.reason.name()),
        StoryEnd::Answered { .. }
        | StoryEnd::Expanded { .. }
        | StoryEnd::Grouped { .. }
        | StoryEnd::Aside { .. }
        | StoryEnd::Failed => None,
    }
}

fn why(registry: &Registry, reason: &DropReason) -> Why {
    let key = |key: Key| match &*registry.key(key).name {
        "id" => "id",
        "likes" => "likes",
        "score" => "score",
        "country" => "country",
        other => unreachable!("{other} is no key of the model"),
    };
    match reason {
        DropReason::Predicate(parts) => Why::Predicate(
            parts
                .iter()
                .map(|part| {
                    let what = match &part.kind {
                        PartKind::Operation(name) => name,
                        PartKind::Key { key: of, .. } => key(*of),
                        PartKind::Literal => "literal",
                        other => unreachable!("{other:?}"),
                    };
                    (part.depth, what, shown(part.value.as_ref().expect("it has one")), part.is_culprit)
                })
                .collect(),
        ),
        DropReason::Cut { from, to, score } => Why::Cut {
            from: *from,
            to: *to,
            score: score.as_ref().map(|(of, own, last)| (key(*of), shown(own), shown(last))),
        },
        DropReason::Same { by, kept } => {
            let [(of, value)] = &by[..] else { unreachable!("{by:?}") };
            Why::Same { by: key(*of), value: shown(value), kept: row(kept.as_ref().expect("a row was kept")) }
        }
        DropReason::Full { by, value, max, window, kept } => {
            assert_eq!(key(*by), "country");
            Why::Full { value: shown(value), max: *max, window: *window, kept: kept.iter().map(row).collect() }
        }
        DropReason::Named { by, among } => Why::Named { id: id(by), among: node(among) },
        DropReason::NotNamed { by, among } => Why::NotNamed { id: id(by), among: node(among) },
        DropReason::NoMatch { on: Some((left, right, value)), node } => {
            assert_eq!((key(*left), key(*right)), ("id", "id"));
            Why::NoMatch { id: int(value), among: *node as usize }
        }
        DropReason::Enough(count) => Why::Enough(*count),
        DropReason::Fallback(_) => Why::Fallback,
        DropReason::NotAsked => Why::NotAsked,
        DropReason::Unsaid
        | DropReason::NoMatch { on: None, .. }
        | DropReason::Served
        | DropReason::Chance(_)
        | DropReason::NoPlace
        | DropReason::Condition => unreachable!("{reason:?} cannot be in these plans"),
    }
}

fn row(other: &OtherRow) -> (i64, usize) {
    match other.id {
        Id::Int(id) => (id, other.position),
        Id::Text(_) => unreachable!("ids are ints"),
    }
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(value) => *value,
        other => unreachable!("{other:?} is no int"),
    }
}

fn id(by: &[(Key, Value)]) -> i64 {
    match by {
        [(Key::ID, value)] => int(value),
        other => unreachable!("{other:?}"),
    }
}

fn node(named: &Named) -> usize {
    match named {
        Named::Node(node) => *node as usize,
        other => unreachable!("{other:?}"),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Str(text) => text.to_string(),
        Value::List(_) | Value::Vector(_) => unreachable!("{value:?}"),
    }
}
