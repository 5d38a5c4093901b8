//! Keys and parameters: a name, a type and a life cycle.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::registry::Named;
use crate::registry::ids::Ids;
use crate::registry::surroundings::AsWritten;
use crate::registry::table::{Table, bad, each_entry};
use rankd_column::column::ColumnBuilder;
use rankd_column::value::NotAType;
use rankd_column::{Type, Value};
use std::ops::Range;

/// Whether plans may use an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Active,
    /// Still usable; a use is warned of.
    Deprecated,
    /// A use is refused.
    Blocked,
}

/// A key or a parameter.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The number that stays when the name changes.
    pub id: i64,
    pub name: String,
    pub type_of: Type,
    pub nullable: bool,
    pub doc: String,
    pub default: Option<Value>,
    pub status: Status,
    pub replaced_by: Option<String>,
    pub allow_read: bool,
    pub allow_write: bool,
    /// Whether its values are about a person: the feature log, and what is shown to operators, go without them.
    pub pii: bool,
}

/// What a cell of a key is where the task that writes the key has no value for the row; the same for a parameter of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Absent<'e> {
    Null,
    Default(&'e Value),
    /// An error: the entry is not nullable and has no default.
    Refused,
}

impl Entry {
    pub fn absent(&self) -> Absent<'_> {
        match (&self.default, self.nullable) {
            (Some(value), _) => Absent::Default(value),
            (None, true) => Absent::Null,
            (None, false) => Absent::Refused,
        }
    }
}

/// Which of the two files is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Key,
    Param,
}

impl EntryKind {
    fn names(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            EntryKind::Key => ("key", "key_id", &FIELDS_KEY),
            EntryKind::Param => ("param", "param_id", &FIELDS_PARAM),
        }
    }
}

const FIELDS_KEY: [&str; 11] = fields("key_id");
const FIELDS_PARAM: [&str; 11] = fields("param_id");

const fn fields(id: &'static str) -> [&'static str; 11] {
    [id, "name", "type", "nullable", "doc", "default", "status", "replaced_by", "allow_read", "allow_write", "pii"]
}

pub(super) fn parse(text: &str, sort: EntryKind, found: &mut Diagnostics) -> Named<Entry> {
    let (table, id_field, fields) = sort.names();
    let mut read: Vec<(Entry, Range<usize>)> = Vec::new();
    let mut ids = Ids::new(id_field);
    each_entry(
        text,
        &[table],
        &AsWritten,
        |_| fields.to_vec(),
        found,
        |table, found| {
            let span = table.span();
            ids.note(&table);
            read.extend(entry(&table, id_field, fields, found).map(|entry| (entry, span)));
        },
    );
    let are_new = ids.are_new(found);
    // Rows are built on `id`, so it has position 0 wherever the file lists it.
    if let (EntryKind::Key, Some(at)) = (sort, read.iter().position(|(entry, _)| entry.name == "id")) {
        let id = read.remove(at);
        read.insert(0, id);
    }
    if are_new {
        read.iter_mut().zip(1..).for_each(|((entry, _), id)| entry.id = id);
    }
    check_replacements(&read, found);
    let mut named = Named::default();
    for (entry, span) in read {
        if let Err(taken) = named.add(entry.name.clone(), entry.id.to_string(), entry, span.clone()) {
            found.push(Diagnostic::new(Code::DuplicateEntry, "", taken.to_string()).bytes(span));
        }
    }
    named
}

fn entry(
    table: &Table<'_, '_>,
    id_field: &'static str,
    fields: &[&'static str],
    found: &mut Diagnostics,
) -> Option<Entry> {
    table.require(&["name", "type", "nullable"], fields, found);
    // Where no entry of the file has a number, each gets one by its position.
    let id = if table.has(id_field) { table.int(id_field, 1..1 << 31, found) } else { Some(0) };
    let name = table.text("name", found).filter(|name| {
        let good = is_identifier(name);
        if !good {
            found.push(bad(table.place("name"), "a name is made of letters, digits and _, and starts with a letter"));
        }
        good
    });
    let type_of = table.text("type", found).and_then(|name| {
        let type_of = name.parse::<Type>();
        if let Err(why) = type_of {
            let wrong = |message: String| bad(table.place("type"), message);
            found.push(match why {
                NotAType::Unknown => wrong(format!("{name:?} is not a type")).nearest(name, Type::NAMES.into_iter()),
                NotAType::BadDimension | NotAType::BadElement => wrong(format!("{name:?} is not a type: {why}")),
            });
        }
        type_of.ok()
    });
    let status = match table.text("status", found) {
        None | Some("active") => Status::Active,
        Some("deprecated") => Status::Deprecated,
        Some("blocked") => Status::Blocked,
        Some(other) => {
            let wrong = bad(table.place("status"), format!("{other:?} is not a status"));
            found.push(wrong.nearest(other, ["active", "deprecated", "blocked"].into_iter()));
            Status::Active
        }
    };
    let nullable = table.bool("nullable", found);
    let (id, name, type_of) = (id?, name?, type_of?);
    Some(Entry {
        id,
        name: name.to_owned(),
        type_of,
        nullable: nullable?,
        doc: table.text("doc", found).unwrap_or_default().to_owned(),
        default: default(table, type_of, found),
        status,
        replaced_by: table.text("replaced_by", found).map(str::to_owned),
        allow_read: table.bool("allow_read", found).unwrap_or(true),
        allow_write: table.bool("allow_write", found).unwrap_or(true),
        pii: table.bool("pii", found).unwrap_or(false),
    })
}

fn default(table: &Table<'_, '_>, type_of: Type, found: &mut Diagnostics) -> Option<Value> {
    if !table.has("default") {
        return None;
    }
    let value = typed_value(table, "default", type_of);
    if value.is_none() {
        let message = format!("the default is not of type {type_of}");
        found.push(Diagnostic::new(Code::BadDefault, "", message).bytes(table.place("default")));
    }
    value
}

/// The value of a field, if it is of this type. It takes what a column of the type takes: ints where floats are wanted, and no infinity.
pub(super) fn typed_value(table: &Table<'_, '_>, field: &str, type_of: Type) -> Option<Value> {
    let mut column = ColumnBuilder::new(type_of, 1);
    let fits = match type_of.is_scalar() {
        true => table.scalar(field).is_some_and(|value| column.push(&value)),
        false => table.array(field, &mut column),
    };
    fits.then(|| column.finish().value(0))
}

fn check_replacements(entries: &[(Entry, Range<usize>)], found: &mut Diagnostics) {
    for (entry, span) in entries {
        let Some(name) = &entry.replaced_by else { continue };
        let message = match entries.iter().find(|(other, _)| other.name == *name) {
            None => format!("{} is replaced by {name:?}, which does not exist", entry.name),
            Some((other, _)) if other.status != Status::Active => {
                format!("{} is replaced by {name:?}, which is itself retired", entry.name)
            }
            Some((other, _)) if other.type_of != entry.type_of => {
                format!("{} is replaced by {name:?}, which has another type", entry.name)
            }
            Some(_) => continue,
        };
        let names = entries.iter().map(|(entry, _)| entry.name.as_str());
        let wrong = Diagnostic::new(Code::BadReplacement, "", message).bytes(span.clone());
        found.push(wrong.nearest(name, names));
    }
}

/// Whether entries can be called this: letters, digits and `_`, and a letter first.
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= 64
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}
