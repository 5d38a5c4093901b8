//! Writes the ids that entries of a registry file lack, into its text: comments and layout stay as they are.

use super::endpoint;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::{DeTable, DeValue};

/// A file's text with ids added.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    pub text: String,
    /// The entries that got an id, by name, and the id.
    pub assigned: Vec<(String, String)>,
}

/// Numbers the keys that have no `key_id`. `id` is 1; the others get numbers that were never used, in the order of the file.
pub fn fix_keys(text: &str) -> Fixed {
    let (mut used, mut last) = (numbers(text, "key", "key_id"), 1);
    fix(text, "key", "key_id", |name| match name {
        "id" if used.insert(1) => "1".to_owned(),
        _ => next(&mut used, &mut last).to_string(),
    })
}

/// Numbers the parameters that have no `param_id`.
pub fn fix_params(text: &str) -> Fixed {
    let (mut used, mut last) = (numbers(text, "param", "param_id"), 0);
    fix(text, "param", "param_id", |_| next(&mut used, &mut last).to_string())
}

/// The ids of endpoints in all environments, so that each name has the same one in all of them.
#[derive(Debug, Default)]
pub struct EndpointIds {
    by_name: BTreeMap<String, String>,
    used: BTreeSet<i64>,
    last: i64,
}

impl EndpointIds {
    /// Takes note of the ids that an environment's file has.
    pub fn note(&mut self, text: &str) {
        each(text, "endpoint", |entry| {
            let text_of = |field: &str| entry.get(field).and_then(|value| value.get_ref().as_str());
            if let (Some(name), Some(id)) = (text_of("name"), text_of("endpoint_id")) {
                self.by_name.insert(name.to_owned(), id.to_owned());
                self.used.extend(id.strip_prefix("ep_").and_then(|number| number.parse::<i64>().ok()));
            }
        });
    }

    /// Gives ids to the endpoints of a file that have none.
    pub fn fix(&mut self, text: &str) -> Fixed {
        fix(text, "endpoint", "endpoint_id", |name| {
            let EndpointIds { by_name, used, last } = self;
            let id = by_name
                .entry(name.to_owned())
                .or_insert_with(|| endpoint::numbered(u32::try_from(next(used, last)).unwrap_or(u32::MAX)));
            format!("{id:?}")
        })
    }
}

/// A number that is larger than all that were ever used.
fn next(used: &mut BTreeSet<i64>, last: &mut i64) -> i64 {
    *last = 1 + (*last).max(used.last().copied().unwrap_or(0));
    used.insert(*last);
    *last
}

fn numbers(text: &str, table: &str, field: &str) -> BTreeSet<i64> {
    let mut numbers = BTreeSet::new();
    each(text, table, |entry| {
        let number = entry.get(field).and_then(|value| value.get_ref().as_integer());
        numbers.extend(number.and_then(|int| i64::from_str_radix(int.as_str(), int.radix()).ok()));
    });
    numbers
}

/// Calls `read` for each entry of a file. One that is not TOML has none.
fn each<'t>(text: &'t str, table: &str, mut read: impl FnMut(&DeTable<'t>)) {
    let (file, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return;
    }
    if let Some(DeValue::Array(entries)) = file.get_ref().get(table).map(|entries| entries.get_ref()) {
        for entry in entries {
            if let DeValue::Table(entry) = entry.get_ref() {
                read(entry);
            }
        }
    }
}

fn fix(text: &str, table: &str, field: &'static str, mut id_of: impl FnMut(&str) -> String) -> Fixed {
    let mut assigned = Vec::new();
    let mut insertions: Vec<(usize, String)> = Vec::new();
    each(text, table, |entry| {
        let name = entry.get("name").and_then(|name| name.get_ref().as_str());
        let first = entry.keys().map(|key| key.span().start).min();
        let (Some(name), Some(first), None) = (name, first, entry.get(field)) else { return };
        let id = id_of(name);
        let line = text[..first].rfind('\n').map_or(0, |end| end + 1);
        let before = &text[line..first];
        // On a line of its own, or, in an entry that is written on one line, before its first field.
        insertions.push(match before.chars().all(char::is_whitespace) {
            true => (line, format!("{before}{field} = {id}\n")),
            false => (first, format!("{field} = {id}, ")),
        });
        assigned.push((name.to_owned(), id));
    });
    insertions.sort();
    let mut fixed = String::with_capacity(text.len() + 32 * insertions.len());
    let mut from = 0;
    for (at, insertion) in insertions {
        fixed.push_str(&text[from..at]);
        fixed.push_str(&insertion);
        from = at;
    }
    fixed.push_str(&text[from..]);
    Fixed { text: fixed, assigned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ids_are_written_and_everything_else_stays() {
        let text = "# Keys\n\n[[key]]   # the first\nname = \"score\" # why\n\n  [[key]]\n  name = \"id\"\n\n[[key]]\nkey_id = 7\nname = \"old\"\n\n[[key]]\nname = \"new\"\n";
        let fixed = fix_keys(text);
        assert_eq!(
            fixed.text,
            "# Keys\n\n[[key]]   # the first\nkey_id = 8\nname = \"score\" # why\n\n  [[key]]\n  key_id = 1\n  name = \"id\"\n\n[[key]]\nkey_id = 7\nname = \"old\"\n\n[[key]]\nkey_id = 9\nname = \"new\"\n"
        );
        assert_eq!(fixed.assigned.len(), 3);
        assert_eq!(fix_keys(&fixed.text), Fixed { text: fixed.text.clone(), assigned: Vec::new() });
    }

    #[test]
    fn a_new_file_gets_the_ids_that_it_has_by_position() {
        let entry = |name: &str, type_of: &str| {
            format!("[[key]]\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = false\nallow_write = false\n")
        };
        let text = entry("a", "int") + &entry("id", "int") + &entry("b", "int");
        let ids = |text: &str| {
            let named = super::super::entry::parse(text, super::super::entry::EntryKind::Key, &mut Default::default());
            named.list().iter().map(|entry| (entry.name.clone(), entry.id)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&text), ids(&fix_keys(&text).text));
        assert_eq!(
            fix_params("param = [{ name = \"a\" }, { name = \"b\" }]").text,
            "param = [{ param_id = 1, name = \"a\" }, { param_id = 2, name = \"b\" }]"
        );
    }

    #[test]
    fn an_endpoint_has_the_same_id_in_every_environment() {
        let local = "[[endpoint]]\nname = \"a\"\n[[endpoint]]\nname = \"b\"\n";
        let prod = "[[endpoint]]\nendpoint_id = \"ep_0004\"\nname = \"b\"\n[[endpoint]]\nname = \"a\"\n";
        let mut ids = EndpointIds::default();
        [local, prod].iter().for_each(|text| ids.note(text));
        assert_eq!(ids.fix(local).assigned, [("a".into(), "\"ep_0005\"".into()), ("b".into(), "\"ep_0004\"".into())]);
        assert_eq!(ids.fix(prod).assigned, [("a".into(), "\"ep_0005\"".into())]);
    }

    #[test]
    fn what_is_not_toml_stays_as_it_is() {
        let text = "[[key]\nname = ";
        assert_eq!(fix_keys(text), Fixed { text: text.to_owned(), assigned: Vec::new() });
    }
}
