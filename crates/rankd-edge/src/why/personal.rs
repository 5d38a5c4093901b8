//! What is left out of an answer: the values of keys and parameters that the registry marks with `pii`, and what an expression made of them on its way to another
//! key. Whether a condition held is told. A value that a plan writes to another key is that key's own.

use rankd_column::{Key, Value};
use rankd_engine::why::{AbsentReason, AskedItem, Change, ChangePlace, DropReason, Part, PartKind, RowStory, StoryEnd};
use rankd_plan::Registry;
use rankd_plan::registry::Entry;
use std::borrow::Cow;

/// The same items without values about persons.
pub(super) fn without_pii<'i>(items: &'i [AskedItem], registry: &Registry) -> Cow<'i, [AskedItem]> {
    let is_marked = |entries: &[Entry]| entries.iter().any(|entry| entry.pii);
    if !is_marked(registry.keys.list()) && !is_marked(registry.params.list()) {
        return Cow::Borrowed(items);
    }
    let mut items = items.to_vec();
    items.iter_mut().for_each(|item| Personal { registry }.leave_out(item));
    Cow::Owned(items)
}

struct Personal<'r> {
    registry: &'r Registry,
}

impl Personal<'_> {
    fn is_key(&self, key: Key) -> bool {
        self.registry.key(key).pii
    }

    fn is_param(&self, param: u32) -> bool {
        self.registry.params.get(param).pii
    }

    fn leave_out(&self, item: &mut AskedItem) {
        item.rows.iter_mut().for_each(|row| self.row(row));
        for never in &mut item.never {
            match &mut never.why {
                AbsentReason::NoMatch { left, right, value, .. } if self.is_key(*left) || self.is_key(*right) => {
                    *value = Value::Null;
                }
                AbsentReason::RowsCut { right, value, .. } if self.is_key(*right) => *value = Value::Null,
                AbsentReason::NoMatch { .. }
                | AbsentReason::RowsCut { .. }
                | AbsentReason::Unsaid
                | AbsentReason::NotRun
                | AbsentReason::Fallback(_)
                | AbsentReason::NoInput
                | AbsentReason::Request
                | AbsentReason::Plan
                | AbsentReason::User
                | AbsentReason::Service { .. }
                | AbsentReason::NoRow { .. }
                | AbsentReason::Stored(_) => {}
            }
        }
        if let Some(Ok(Change { place: ChangePlace::Param(param), .. })) = &item.change
            && self.is_param(*param)
        {
            item.change = None;
        }
    }

    fn row(&self, row: &mut RowStory) {
        self.values(&mut row.source.columns);
        if self.registry.keys.named("parent_id").is_some_and(|key| self.is_key(Key(key))) {
            row.source.parent = None;
        }
        row.path.iter_mut().for_each(|step| self.values(&mut step.written));
        self.parts(&mut row.score);
        let StoryEnd::Dropped(dropped) = &mut row.end else { return };
        match &mut dropped.reason {
            DropReason::Predicate(parts) => self.parts(parts),
            DropReason::Cut { score, .. } => score.take_if(|(key, ..)| self.is_key(*key)).map_or((), drop),
            DropReason::Same { by, .. } | DropReason::Named { by, .. } | DropReason::NotNamed { by, .. } => {
                self.values(by);
            }
            DropReason::Full { by, value, .. } if self.is_key(*by) => *value = Value::Null,
            DropReason::NoMatch { on: Some((left, right, value)), .. } if self.is_key(*left) || self.is_key(*right) => {
                *value = Value::Null;
            }
            DropReason::Full { .. }
            | DropReason::NoMatch { .. }
            | DropReason::Unsaid
            | DropReason::Served
            | DropReason::Enough(_)
            | DropReason::Chance(_)
            | DropReason::NoPlace
            | DropReason::Fallback(_)
            | DropReason::Condition
            | DropReason::NotAsked => {}
        }
    }

    fn values(&self, values: &mut Vec<(Key, Value)>) {
        values.retain(|(key, _)| !self.is_key(*key));
    }

    /// From the last part to the first, so that those below a part come before it.
    fn parts(&self, parts: &mut [Part]) {
        let deepest = parts.iter().map(|part| part.depth).max().unwrap_or(0);
        // By depth: whether a part that is seen there tells a value about a person.
        let mut tells = vec![false; deepest + 2];
        for part in parts.iter_mut().rev() {
            let below = std::mem::take(&mut tells[part.depth + 1]);
            let is_told = match &part.kind {
                PartKind::Key { key, .. } | PartKind::Feature { key, .. } => self.is_key(*key),
                PartKind::Param(param) => self.is_param(*param),
                PartKind::Operation(_) => below && !matches!(part.value, Some(Value::Bool(_))),
                PartKind::Literal | PartKind::RawScore { .. } | PartKind::Expected | PartKind::More => false,
            };
            if is_told {
                part.value = None;
                tells[part.depth] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_plan::registry::Text;

    #[test]
    fn what_an_expression_makes_of_a_personal_value_is_left_out_up_to_the_next_key() {
        let keys = "[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n\
                    [[key]]\nname = \"score\"\ntype = \"float\"\nnullable = true\n\
                    [[key]]\nname = \"age\"\ntype = \"int\"\nnullable = true\npii = true\n";
        let text = |text| Text { file: "", text };
        let registry = Registry::parse(text(keys), text(""), text("")).0;
        let part = |depth: usize, kind: PartKind, value: Value| Part {
            depth,
            text: String::new(),
            kind,
            value: Some(value),
            is_culprit: false,
            at: None,
        };
        let key = |key: u32| PartKind::Key { key: Key(key), by: None };
        let op = || PartKind::Operation("op");
        let mut parts = [
            part(0, key(1), Value::Float(4.0)),
            part(1, op(), Value::Float(4.0)),
            part(2, op(), Value::Float(3.0)),
            part(3, key(2), Value::Int(30)),
            part(3, PartKind::Literal, Value::Float(0.1)),
            part(2, op(), Value::Float(1.0)),
            part(3, op(), Value::Bool(true)),
            part(4, key(2), Value::Int(30)),
        ];
        Personal { registry: &registry }.parts(&mut parts);
        let told: Vec<bool> = parts.iter().map(|part| part.value.is_some()).collect();
        assert_eq!(told, [true, false, false, false, true, true, true, false]);
    }
}
