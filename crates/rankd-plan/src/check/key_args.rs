//! Parameters that name keys: one, several, by names, by other keys, with words, orders or rules.

use crate::check::args::{Reading, int};
use crate::check::names::Access;
use crate::check::uses::wrong_key_type;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, quoted};
use crate::json::{Fault, Kind};
use crate::limits::{MAP_NAME_BYTES_MAX, RULE_ROWS_MAX, RULES_MAX};
use crate::plan::{ChosenWords, GroupRule, KeyPair, MadeOf, NamedKeys};
use crate::signature::{KeyTypes, Made, Param, ParamKind};
use crate::wire::cursor::Cursor;
use rankd_column::kernel::sort::{NullPlace, Order, SortKey};
use rankd_column::{Key, Type};
use std::sync::Arc;

impl Reading<'_, '_, '_, '_> {
    /// A key of one of these types.
    pub(super) fn key(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        types: KeyTypes,
    ) -> Result<Option<Key>, Fault> {
        let Some(key) = self.checker.names.key(cursor, self.access(param))? else { return Ok(None) };
        let entry = self.checker.names.registry.key(key);
        if !types.takes(entry.type_of, self.checker.names.registry.key(Key::ID).type_of) {
            cursor.report(Code::WrongParamType, wrong_key_type(param, types, entry));
            return Ok(None);
        }
        Ok(Some(key))
    }

    pub(super) fn keys(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        types: KeyTypes,
    ) -> Result<Option<Vec<Key>>, Fault> {
        let before = cursor.errors();
        let mut keys: Vec<Key> = Vec::new();
        cursor.array(|cursor, _| {
            if let Some(key) = self.key(cursor, param, types)? {
                let name = &self.checker.names.registry.key(key).name;
                if keys.contains(&key) {
                    cursor.report(Code::ParamOutOfRange, "this key is in the list already");
                } else if self.contract.writes_to(param) && self.contract.writes_named(name) {
                    cursor.report(Code::ParamOutOfRange, format!("the task itself writes {name:?}"));
                }
                keys.push(key);
            }
            Ok(())
        })?;
        if cursor.errors() == before && keys.is_empty() {
            cursor.report(Code::ParamOutOfRange, format!("{} needs at least one key", param.name));
        }
        Ok((cursor.errors() == before).then_some(keys))
    }

    /// Keys by name: `{name: key, …}`, each key once.
    pub(super) fn key_map(&self, cursor: &mut Cursor<'_, '_>, param: &Param) -> Result<Option<NamedKeys>, Fault> {
        let before = cursor.errors();
        let mut keys = NamedKeys::new();
        cursor.each_field(|cursor, name| {
            if name.is_empty() || name.len() > MAP_NAME_BYTES_MAX {
                cursor.report(Code::ParamOutOfRange, format!("a name has 1 to {MAP_NAME_BYTES_MAX} bytes"));
            }
            let Some(key) = self.checker.names.key(cursor, self.access(param))? else { return Ok(()) };
            match keys.iter().any(|(_, known)| *known == key) {
                true => cursor.report(Code::ParamOutOfRange, "this key has a name already"),
                false => keys.push((name.as_ref().into(), key)),
            }
            Ok(())
        })?;
        if cursor.errors() == before && keys.is_empty() {
            cursor.report(Code::ParamOutOfRange, format!("{} needs at least one key", param.name));
        }
        Ok((cursor.errors() == before).then_some(keys))
    }

    /// Keys by the key that their values come from: `{right: left, …}`, each left key once.
    pub(super) fn key_pairs(&self, cursor: &mut Cursor<'_, '_>, param: &Param) -> Result<Option<Vec<KeyPair>>, Fault> {
        let before = cursor.errors();
        let mut pairs: Vec<KeyPair> = Vec::new();
        cursor.each_field(|cursor, name| {
            let right = self.checker.names.key_named(cursor, &name, Access::Read);
            let left = self.checker.names.key(cursor, self.access(param))?;
            let Some((left, right)) = left.zip(right) else { return Ok(()) };
            let registry = self.checker.names.registry;
            let (from, into) = (registry.key(right), registry.key(left));
            if from.type_of != into.type_of {
                let message = format!("{:?} is {}, but {:?} is {}", from.name, from.type_of, into.name, into.type_of);
                cursor.report(Code::WrongParamType, message);
            } else if pairs.iter().any(|pair| pair.left == left) {
                cursor.report(Code::ParamOutOfRange, "this key is written already");
            } else {
                pairs.push(KeyPair { left, right });
            }
            Ok(())
        })?;
        if cursor.errors() == before && pairs.is_empty() {
            cursor.report(Code::ParamOutOfRange, format!("{} needs at least one key", param.name));
        }
        Ok((cursor.errors() == before).then_some(pairs))
    }

    /// What rows are sorted by: `{"key": key, "order": "desc", "nulls": "first"}`.
    pub(super) fn sort_keys(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &'static Param,
    ) -> Result<Option<Vec<SortKey>>, Fault> {
        let (before, mut keys): (_, Vec<SortKey>) = (cursor.errors(), Vec::new());
        cursor.array(|cursor, _| {
            if !cursor.expect(Kind::Object)? {
                return Ok(());
            }
            let before = cursor.errors();
            let (mut key, mut order, mut nulls) = (None, Order::Asc, NullPlace::Last);
            cursor.object(&["key", "order", "nulls"], |cursor, field| {
                if field == "key" {
                    key = self.key(cursor, param, KeyTypes::Scalars)?;
                    return Ok(());
                }
                let word = cursor.text()?.unwrap_or_default();
                match (field, &*word) {
                    ("order", "asc") => order = Order::Asc,
                    ("order", "desc") => order = Order::Desc,
                    ("nulls", "first") => nulls = NullPlace::First,
                    ("nulls", "last") => nulls = NullPlace::Last,
                    ("order", _) => cursor.report(Code::ParamOutOfRange, "order is one of asc, desc"),
                    _ => cursor.report(Code::ParamOutOfRange, "nulls is one of first, last"),
                }
                Ok(())
            })?;
            match key {
                _ if cursor.errors() > before => {}
                None => cursor.report(Code::MissingField, "what rows are sorted by has a key"),
                Some(key) if keys.iter().any(|by| by.key == key) => {
                    cursor.report(Code::ParamOutOfRange, "this key is in the list already");
                }
                Some(key) => keys.push(SortKey { key, order, nulls }),
            }
            Ok(())
        })?;
        if cursor.errors() == before && !(1..=RULES_MAX).contains(&keys.len()) {
            cursor.report(Code::ParamOutOfRange, format!("{} takes 1 to {RULES_MAX} keys", param.name));
        }
        Ok((cursor.errors() == before).then_some(keys))
    }

    /// Rules: `{"by": key, "max": 2, "window": 10}`, or `{"by": key, "gap": 3}` for one among four.
    pub(super) fn rules(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &'static Param,
    ) -> Result<Option<Vec<GroupRule>>, Fault> {
        let (before, mut rules) = (cursor.errors(), Vec::new());
        cursor.array(|cursor, _| {
            if !cursor.expect(Kind::Object)? {
                return Ok(());
            }
            let before = cursor.errors();
            let (mut by, mut max, mut window, mut gap) = (None, None, None, None);
            cursor.object(&["by", "max", "window", "gap"], |cursor, field| {
                if field == "by" {
                    by = self.key(cursor, param, KeyTypes::Scalars)?;
                    return Ok(());
                }
                let least = if field == "max" || field == "gap" { 1 } else { 0 };
                let kind = ParamKind::Int { min: least, max: RULE_ROWS_MAX };
                let value = if cursor.expect(Kind::Number)? {
                    int(cursor, &Param { kind, ..*param }, least, RULE_ROWS_MAX)?
                } else {
                    None
                };
                let value = value.and_then(|value| usize::try_from(value).ok());
                *(match field {
                    "max" => &mut max,
                    "window" => &mut window,
                    _ => &mut gap,
                }) = value;
                Ok(())
            })?;
            match (by, max, window, gap) {
                _ if cursor.errors() > before => {}
                (Some(by), Some(max), window, None) => rules.push(GroupRule { by, max, window: window.unwrap_or(0) }),
                (Some(by), None, None, Some(gap)) => rules.push(GroupRule { by, max: 1, window: gap + 1 }),
                _ => cursor.report(Code::MissingField, "a rule has by and max, and perhaps window; or by and gap"),
            }
            Ok(())
        })?;
        if cursor.errors() == before && rules.is_empty() {
            cursor.report(Code::ParamOutOfRange, format!("{} needs at least one rule", param.name));
        }
        if rules.len() > RULES_MAX {
            cursor.report(Code::ParamOutOfRange, format!("{} takes at most {RULES_MAX} rules", param.name));
        }
        Ok((cursor.errors() == before).then_some(rules))
    }

    /// A word for each of several keys: `{key: word, …}`.
    pub(super) fn key_choices(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        choices: &'static [(&'static str, KeyTypes)],
    ) -> Result<Option<ChosenWords>, Fault> {
        let (before, mut chosen) = (cursor.errors(), Vec::new());
        cursor.each_field(|cursor, name| {
            let key = self.checker.names.key_named(cursor, &name, self.access(param));
            let word = cursor.text()?.unwrap_or_default();
            let Some((word, types)) = choices.iter().find(|(known, _)| *known == word) else {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                let message = format!("{} is one of {}, not {}", param.name, words.join(", "), quoted(&word));
                let wrong = Diagnostic::new(Code::ParamOutOfRange, cursor.pointer(), message);
                cursor.report_at(wrong.nearest(&word, words.into_iter()));
                return Ok(());
            };
            let Some(key) = key else { return Ok(()) };
            let entry = self.checker.names.registry.key(key);
            if !types.takes(entry.type_of, self.checker.names.registry.key(Key::ID).type_of) {
                let message =
                    format!("{word:?} takes a {}, and {:?} is {}", types.of("key"), entry.name, entry.type_of);
                cursor.report(Code::WrongParamType, message);
            }
            chosen.push((key, Arc::from(*word)));
            Ok(())
        })?;
        if cursor.errors() == before && chosen.is_empty() {
            cursor.report(Code::ParamOutOfRange, format!("{} needs at least one key", param.name));
        }
        Ok((cursor.errors() == before).then_some(chosen))
    }

    /// What is made of the values of other keys: `{key: [word, key], …}`, or `[word]` alone where that is made of the rows.
    pub(super) fn aggregates(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        words: &'static [Made],
    ) -> Result<Option<Vec<MadeOf>>, Fault> {
        let (before, mut list): (_, Vec<MadeOf>) = (cursor.errors(), Vec::new());
        cursor.each_field(|cursor, name| {
            let into = self.checker.names.key_named(cursor, &name, Access::Write);
            let before = cursor.errors();
            if !cursor.expect(Kind::Array)? {
                return Ok(());
            }
            let (mut made, mut of, mut count) = (None, None, 0);
            cursor.array(|cursor, at| {
                count = at + 1;
                match at {
                    0 => made = self.made(cursor, param, words)?,
                    1 => of = self.checker.names.key(cursor, Access::Read)?,
                    _ => cursor.skip()?,
                }
                Ok(())
            })?;
            let Some(made) = made.filter(|_| cursor.errors() == before) else {
                if cursor.errors() == before {
                    cursor.report(Code::ParamOutOfRange, format!("{} takes a word and a key", param.name));
                }
                return Ok(());
            };
            if !(if made.alone { 1..=2 } else { 2..=2 }).contains(&count) {
                let message = format!(
                    "{:?} takes {} key, such as [{:?}, \"score\"]",
                    made.word,
                    if made.alone { "at most one" } else { "one" },
                    made.word
                );
                cursor.report(Code::ParamOutOfRange, message);
                return Ok(());
            }
            let Some(into) = into else { return Ok(()) };
            let registry = self.checker.names.registry;
            let (entry, id_type) = (registry.key(into), registry.key(Key::ID).type_of);
            let from = of.map(|of| registry.key(of));
            if let Some(from) = from.filter(|from| !made.of.takes(from.type_of, id_type)) {
                let message =
                    format!("{:?} takes a {}, and {:?} is {}", made.word, made.of.of("key"), from.name, from.type_of);
                cursor.report(Code::WrongParamType, message);
                return Ok(());
            }
            // Without a key, what comes out is the same for all.
            let gives = made.gives.type_of(from.map_or(Type::Int, |from| from.type_of));
            if entry.type_of != gives {
                let of = from.map(|from| format!(" of {:?}", from.name)).unwrap_or_default();
                let message = format!("{:?}{of} is {gives}, but {:?} is {}", made.word, entry.name, entry.type_of);
                cursor.report(Code::WrongParamType, message);
            } else if list.iter().any(|known| known.into == into) {
                cursor.report(Code::ParamOutOfRange, "this key is written already");
            } else {
                list.push(MadeOf { into, word: made.word.into(), of });
            }
            Ok(())
        })?;
        if cursor.errors() == before && list.is_empty() {
            cursor.report(Code::ParamOutOfRange, format!("{} needs at least one key", param.name));
        }
        Ok((cursor.errors() == before).then_some(list))
    }

    /// A word for what is made of values.
    fn made(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        words: &'static [Made],
    ) -> Result<Option<&'static Made>, Fault> {
        if !cursor.expect(Kind::String)? {
            return Ok(None);
        }
        let word = cursor.text()?.unwrap_or_default();
        let made = words.iter().find(|made| made.word == word);
        if made.is_none() {
            let names: Vec<&str> = words.iter().map(|made| made.word).collect();
            let message = format!("{} is one of {}, not {}", param.name, names.join(", "), quoted(&word));
            let wrong = Diagnostic::new(Code::ParamOutOfRange, cursor.pointer(), message);
            cursor.report_at(wrong.nearest(&word, names.into_iter()));
        }
        Ok(made)
    }

    /// A key that is matched with the `id` of other rows, or `{"left": key, "right": key}`.
    pub(super) fn on(&self, cursor: &mut Cursor<'_, '_>, kind: Kind) -> Result<Option<KeyPair>, Fault> {
        let names = &self.checker.names;
        let (left, right) = match kind {
            Kind::Object => {
                let (before, mut left, mut right) = (cursor.errors(), None, None);
                cursor.object(&["left", "right"], |cursor, name| {
                    let key = names.key(cursor, Access::Read)?;
                    *(if name == "left" { &mut left } else { &mut right }) = key;
                    Ok(())
                })?;
                if cursor.errors() == before && (left.is_none() || right.is_none()) {
                    cursor.report(Code::MissingField, "on has the fields left and right");
                }
                (left, right)
            }
            _ => (names.key(cursor, Access::Read)?, Some(Key::ID)),
        };
        let Some((left, right)) = left.zip(right) else { return Ok(None) };
        let [l, r] = [left, right].map(|key| names.registry.key(key));
        if l.type_of != r.type_of {
            let message =
                format!("{:?} is {}, but {:?} is {}: nothing would match", l.name, l.type_of, r.name, r.type_of);
            cursor.report(Code::WrongParamType, message);
            return Ok(None);
        }
        if !matches!(l.type_of, Type::Int | Type::Str) {
            let message = format!("rows are matched by keys of type int or string, and {:?} is {}", l.name, l.type_of);
            cursor.report(Code::WrongParamType, message);
            return Ok(None);
        }
        Ok(Some(KeyPair { left, right }))
    }
}
