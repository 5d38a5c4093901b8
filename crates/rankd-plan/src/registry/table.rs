//! Reads `[[entry]]` tables of a TOML file field by field, and reports every field that is unknown, missing or wrong.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest, quoted};
use crate::registry::surroundings::{Reference, Surroundings};
use rankd_column::Value;
use rankd_column::column::ColumnBuilder;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Calls `read` for each entry of the text, each checked to have no field but those that `fields` gives for it. Entries are the `[[name]]`
/// of these names, in the order of the names.
pub(super) fn each_entry<'t>(
    text: &'t str,
    names: &[&'static str],
    around: &dyn Surroundings,
    fields: impl Fn(&Table<'_, 't>) -> Vec<&'static str>,
    found: &mut Diagnostics,
    mut read: impl FnMut(Table<'_, 't>, &mut Diagnostics),
) {
    let (file, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let message = error.message().lines().next().unwrap_or("this is not TOML");
        found.push(Diagnostic::new(Code::BadToml, "", message).bytes(error.span().unwrap_or(0..0)));
    }
    // What could be recovered of a broken file would only cause further reports.
    if !errors.is_empty() {
        return;
    }
    let written = || names.iter().map(|name| format!("[[{name}]]")).collect::<Vec<_>>().join(", ");
    for (field, value) in file.get_ref() {
        if !names.contains(&&**field.get_ref()) || value.get_ref().as_array().is_none() {
            let message = format!("{:?} does not belong here", field.get_ref());
            let help = format!("entries are written as {}", written());
            found.push(Diagnostic::new(Code::UnknownRegistryField, "", message).bytes(field.span()).help(help));
        }
    }
    for name in names {
        let entries = file.get_ref().get(*name).and_then(|value| value.get_ref().as_array());
        for entry in entries.into_iter().flatten() {
            match entry.get_ref() {
                DeValue::Table(table) => {
                    let table = Table { table, span: entry.span(), name, around };
                    table.refuse_unknown(&fields(&table), found);
                    read(table, found);
                }
                _ => found.push(bad(entry.span(), format!("entries are written as [[{name}]]"))),
            }
        }
    }
}

/// One entry, or a table inside one.
pub(super) struct Table<'a, 't> {
    table: &'a DeTable<'t>,
    span: Range<usize>,
    /// What it is called in the file.
    name: &'static str,
    around: &'a dyn Surroundings,
}

/// What a field refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Referred {
    Text(String),
    /// Whoever reads the registry only judges plans by it and does not look.
    Unknown,
}

impl<'a, 't> Table<'a, 't> {
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What it is called in the file.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The names of its fields, and where they are.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'a str, Range<usize>)> + use<'a, 't> {
        self.table.keys().map(|field| (&**field.get_ref(), field.span()))
    }

    /// The table in a field.
    pub(super) fn table(&self, field: &str, found: &mut Diagnostics) -> Option<Table<'a, 't>> {
        let value = self.field(field)?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            found.push(bad(value.span(), format!("{field} must be a table, such as {{ name = value }}")));
        }
        table.map(|table| Table { table, span: value.span(), name: self.name, around: self.around })
    }

    pub(super) fn refuse_unknown(&self, fields: &[&'static str], found: &mut Diagnostics) {
        for field in self.table.keys().filter(|field| !fields.contains(&&**field.get_ref())) {
            let name = field.get_ref();
            let message = format!("a [[{}]] has no field {name:?}", self.name);
            let near = nearest(name, fields.iter().copied()).map(|near| format!("did you mean {near:?}? "));
            let help = format!("{}known fields: {}", near.unwrap_or_default(), fields.join(", "));
            found.push(Diagnostic::new(Code::UnknownRegistryField, "", message).bytes(field.span()).help(help));
        }
    }

    fn field(&self, name: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.table.get(name)
    }

    /// The bytes of a field's value, or of the whole entry.
    pub(super) fn place(&self, name: &str) -> Range<usize> {
        self.field(name).map_or(self.span(), Spanned::span)
    }

    /// Reports the required fields that are not there; `all` are the fields that the entry may have.
    pub(super) fn require(&self, required: &[&'static str], all: &[&'static str], found: &mut Diagnostics) {
        for missing in required.iter().filter(|field| !self.has(field)) {
            let message = format!("the field {missing:?} is missing");
            let others: Vec<&str> = all.iter().filter(|field| !required.contains(field)).copied().collect();
            let help = format!("a [[{}]] has {}, and may have {}", self.name, required.join(", "), others.join(", "));
            found.push(Diagnostic::new(Code::MissingRegistryField, "", message).bytes(self.span()).help(help));
        }
    }

    /// A field that is a path, relative to the project.
    pub(super) fn path(&self, name: &str, found: &mut Diagnostics) -> Option<String> {
        self.text(name, found).map(|path| self.around.path(path))
    }

    /// Where in the process's file system a path of the project is.
    pub(super) fn in_project(&self, path: &str) -> String {
        self.around.path(path)
    }

    /// What a field refers to, or what is wrong with it. The value of a reference is a secret: no message has it.
    pub(super) fn look_up(&self, field: &str, reference: Reference<'_>, found: &mut Diagnostics) -> Option<Referred> {
        match self.around.value_of(reference) {
            Ok(value) => Some(value.map_or(Referred::Unknown, Referred::Text)),
            Err(why) => {
                let message = format!("{field} is {}, {why}", quoted(&reference.to_string()));
                found.push(Diagnostic::new(Code::MissingReference, "", message).bytes(self.place(field)));
                None
            }
        }
    }

    pub(super) fn text(&self, name: &str, found: &mut Diagnostics) -> Option<&'a str> {
        let value = self.field(name)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            found.push(bad(value.span(), format!("{name} must be a string")));
        }
        text
    }

    pub(super) fn bool(&self, name: &str, found: &mut Diagnostics) -> Option<bool> {
        let value = self.field(name)?;
        let bool = value.get_ref().as_bool();
        if bool.is_none() {
            found.push(bad(value.span(), format!("{name} must be true or false")));
        }
        bool
    }

    /// An int within a range.
    pub(super) fn int(&self, name: &str, range: Range<i64>, found: &mut Diagnostics) -> Option<i64> {
        let value = self.field(name)?;
        let int = int(value.get_ref()).filter(|int| range.contains(int));
        if int.is_none() {
            let message = format!("{name} must be an int from {} to {}", range.start, range.end - 1);
            found.push(bad(value.span(), message));
        }
        int
    }

    pub(super) fn texts(&self, name: &str, found: &mut Diagnostics) -> Option<Vec<&'a str>> {
        let value = self.field(name)?;
        let texts = value
            .get_ref()
            .as_array()
            .and_then(|items| items.iter().map(|item| item.get_ref().as_str()).collect::<Option<Vec<_>>>());
        if texts.is_none() {
            found.push(bad(value.span(), format!("{name} must be a list of strings")));
        }
        texts
    }

    /// The entries of a table inside the entry: names, texts and where these are.
    pub(super) fn text_map(&self, name: &str, found: &mut Diagnostics) -> Vec<(&'a str, &'a str, Range<usize>)> {
        let Some(value) = self.field(name) else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            found.push(bad(value.span(), format!("{name} must be a table of strings, such as {{ name = \"value\" }}")));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (field, value) in table {
            match value.get_ref().as_str() {
                Some(text) => texts.push((&**field.get_ref(), text, value.span())),
                None => found.push(bad(value.span(), format!("{:?} in {name} must be a string", field.get_ref()))),
            }
        }
        texts
    }

    /// A scalar of whatever type it has.
    pub(super) fn scalar(&self, name: &str) -> Option<Value> {
        scalar(self.field(name)?.get_ref())
    }

    /// Adds a list or vector to a column of such; false where it is none, or of another type.
    pub(super) fn array(&self, name: &str, column: &mut ColumnBuilder) -> bool {
        let items = self.field(name).and_then(|value| value.get_ref().as_array());
        let (Some(items), Some(mut cell)) = (items, column.open()) else { return false };
        let fits = items.iter().all(|item| match scalar(item.get_ref()) {
            Some(Value::Int(value)) => cell.push_int(value),
            Some(Value::Float(value)) => cell.push_float(value),
            Some(Value::Str(text)) => cell.push_str(&text),
            Some(Value::Null | Value::Bool(_) | Value::List(_) | Value::Vector(_)) | None => false,
        });
        fits && cell.close()
    }

    pub(super) fn is_list(&self, name: &str) -> bool {
        self.field(name).is_some_and(|value| value.get_ref().as_array().is_some())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// The tables of a list inside the entry; messages call one of them `called`.
    pub(super) fn tables(&self, name: &str, called: &'static str, found: &mut Diagnostics) -> Vec<Table<'a, 't>> {
        let Some(value) = self.field(name) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            found.push(bad(value.span(), format!("{name} must be a list of tables")));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items {
            match item.get_ref().as_table() {
                Some(table) => tables.push(Table { table, span: item.span(), name: called, around: self.around }),
                None => found.push(bad(item.span(), format!("{name} must be a list of tables"))),
            }
        }
        tables
    }
}

pub(super) fn bad(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::BadRegistryValue, "", message).bytes(span)
}

fn scalar(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::str(text)),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::Float(float) => float.as_str().parse().ok().filter(|v: &f64| v.is_finite()).map(Value::Float),
        other => int(other).map(Value::Int),
    }
}

fn int(value: &DeValue<'_>) -> Option<i64> {
    let int = value.as_integer()?;
    i64::from_str_radix(int.as_str(), int.radix()).ok()
}
