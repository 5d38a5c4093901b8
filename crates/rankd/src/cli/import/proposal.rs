//! What importing a file would write: pure decisions, nothing is read or written here.

use crate::cli::command_error::CommandError;
use rankd_column::Type;
use rankd_edge::table_file::{InspectedColumn, Inspection};
use rankd_plan::Registry;
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::registry::{Status, is_identifier};
use std::collections::BTreeSet;

/// What would be written.
pub(super) struct Proposal {
    pub(super) name: String,
    pub(super) columns: Vec<ProposedColumn>,
    /// Entries for `keys.toml`.
    pub(super) keys: String,
    /// An entry for `endpoints.ENV.toml`.
    pub(super) endpoint: String,
    /// A plan in TypeScript.
    pub(super) plan: String,
    /// What is worth knowing.
    pub(super) notes: Vec<String>,
}

/// A column of the file.
pub(super) struct ProposedColumn {
    pub(super) name: String,
    pub(super) type_of: String,
    pub(super) place: ColumnPlace,
    pub(super) examples: Vec<String>,
}

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnPlace {
    Id,
    NewKey(String),
    /// A key that the registry has.
    Key(String),
    LeftOut(String),
}

impl Proposal {
    pub(super) fn new(
        name: &str,
        id: Option<&str>,
        url: &str,
        inspection: &Inspection,
        registry: &Registry,
    ) -> Result<Proposal, CommandError> {
        let wrong = |message: String| Err(CommandError::Wrong(message));
        if !is_identifier(name) || name.starts_with("ep_") {
            return wrong(format!("{} is no name for a table: letters, digits and _, a letter first", quoted(name)));
        }
        if registry.endpoints.named(name).is_some() {
            return wrong(format!("there is an endpoint {name:?} already; choose another --name, or remove its entry"));
        }
        let id = id_column(id, inspection)?;
        check_id_type(id, registry)?;
        let (mut columns, mut notes, mut taken) = (Vec::new(), Vec::new(), BTreeSet::new());
        for column in &inspection.columns {
            let place = match column.name == id.name {
                true => ColumnPlace::Id,
                false => key_for(column, name, registry, &mut taken, &mut notes),
            };
            let (name, type_of) = (column.name.clone(), column.type_of.to_string());
            columns.push(ProposedColumn { name, type_of, place, examples: column.examples.clone() });
        }
        for left_out in &inspection.left_out {
            let place = ColumnPlace::LeftOut(left_out.why.to_string());
            columns.push(ProposedColumn {
                name: left_out.name.clone(),
                type_of: "-".into(),
                place,
                examples: Vec::new(),
            });
        }
        let sort_by = sort_by(inspection, &columns);
        Ok(Proposal {
            name: name.to_owned(),
            keys: keys(&columns, name),
            endpoint: endpoint(name, url, id, &columns),
            plan: plan(name, sort_by),
            columns,
            notes,
        })
    }

    pub(super) fn new_keys(&self) -> usize {
        self.columns.iter().filter(|column| matches!(column.place, ColumnPlace::NewKey(_))).count()
    }
}

fn id_column<'i>(asked: Option<&str>, inspection: &'i Inspection) -> Result<&'i InspectedColumn, CommandError> {
    let columns = &inspection.columns;
    let candidates: Vec<&str> = columns.iter().filter(|column| column.could_be_id).map(|c| c.name.as_str()).collect();
    let could = match candidates.as_slice() {
        [] => "no column has a different int or text in every row".to_owned(),
        names => format!("these could be: {}", names.join(", ")),
    };
    match asked {
        Some(name) => match columns.iter().find(|column| column.name == name) {
            Some(column) if column.could_be_id => Ok(column),
            Some(_) => Err(CommandError::Wrong(format!(
                "the column {} cannot be the id: a value is missing or there twice, or is no id; {could}",
                quoted(name)
            ))),
            None => {
                let near = nearest(name, columns.iter().map(|column| column.name.as_str()));
                let hint = near.map_or(could, |near| format!("did you mean {near:?}?"));
                Err(CommandError::Wrong(format!("the file has no column {}; {hint}", quoted(name))))
            }
        },
        None => inspection
            .id
            .and_then(|at| columns.get(at))
            .ok_or_else(|| CommandError::Wrong(format!("which column is the id? {could}; --id COLUMN names one"))),
    }
}

fn check_id_type(id: &InspectedColumn, registry: &Registry) -> Result<(), CommandError> {
    let type_of = registry.keys.named("id").map_or(Type::Int, |at| registry.keys.get(at).type_of);
    if type_of == Type::Int && id.type_of == Type::Str {
        return Err(CommandError::Wrong(format!(
            "the ids in {:?} are texts, but the key id is an int; write type = \"string\" at the key id in keys.toml (ids that are ints \
             are then taken as text), or name another column with --id",
            id.name
        )));
    }
    Ok(())
}

/// The key that a column becomes: one that is there and takes its values, or a new one.
fn key_for(
    column: &InspectedColumn,
    table: &str,
    registry: &Registry,
    taken: &mut BTreeSet<String>,
    notes: &mut Vec<String>,
) -> ColumnPlace {
    let wanted = key_name(&column.name);
    let known = registry.keys.named(&wanted).map(|at| registry.keys.get(at));
    let takes = |type_of: Type| type_of == column.type_of || (type_of, column.type_of) == (Type::Float, Type::Int);
    let name = match known {
        None if wanted != "id" && taken.insert(wanted.clone()) => return ColumnPlace::NewKey(wanted),
        Some(key) if wanted != "id" && takes(key.type_of) && key.allow_write && key.status != Status::Blocked => {
            if taken.insert(wanted.clone()) {
                return ColumnPlace::Key(wanted);
            }
            format!("{table}_{wanted}")
        }
        _ => format!("{table}_{wanted}"),
    };
    // A name that nothing has yet.
    let is_free = |name: &String| registry.keys.named(name).is_none() && !taken.contains(name);
    let names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}_{number}")));
    let name = names.into_iter().find(is_free).unwrap_or(name);
    taken.insert(name.clone());
    if let Some(key) = known.filter(|_| wanted != "id") {
        let (column_name, type_of, key_type) = (&column.name, column.type_of, key.type_of);
        notes.push(format!(
            "the key {wanted:?} is {key_type} or not to be written, and the column {column_name:?} is {type_of}: it becomes the key \
             {name:?}. To use {wanted:?} instead, change its type in keys.toml and remove the column from the endpoint's columns"
        ));
    }
    ColumnPlace::NewKey(name)
}

/// A column's name as keys can be called.
fn key_name(column: &str) -> String {
    const CHARS_MAX: usize = 48;
    let mut name = String::new();
    for char in column.chars().take(CHARS_MAX) {
        match char {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if !name.is_empty() && !name.ends_with('_') => name.push('_'),
            _ => {}
        }
    }
    let name = name.trim_end_matches('_');
    match name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => name.to_owned(),
        false => format!("column_{name}").trim_end_matches('_').to_owned(),
    }
}

fn keys(columns: &[ProposedColumn], table: &str) -> String {
    let mut text = String::new();
    for column in columns {
        if let ColumnPlace::NewKey(key) = &column.place {
            let type_of = &column.type_of;
            text.push_str(&format!(
                "\n[[key]]\nname = \"{key}\"\ntype = \"{type_of}\"\nnullable = true\ndoc = {}\n",
                toml_text(&format!("Column {} of the table {table}", column.name))
            ));
        }
    }
    text
}

fn endpoint(name: &str, url: &str, id: &InspectedColumn, columns: &[ProposedColumn]) -> String {
    let renamed = columns.iter().filter_map(|column| match &column.place {
        ColumnPlace::NewKey(key) | ColumnPlace::Key(key) if *key != column.name => {
            Some(format!("{} = \"{key}\"", toml_text(&column.name)))
        }
        _ => None,
    });
    let renamed: Vec<String> = renamed.collect();
    let mut text = format!(
        "\n[[endpoint]]\nname = \"{name}\"\nkind = \"table\"\nurl = {}\nid = {}\n",
        toml_text(url),
        toml_text(&id.name)
    );
    if !renamed.is_empty() {
        text.push_str(&format!("columns = {{ {} }}\n", renamed.join(", ")));
    }
    text
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The key to rank by at first: one whose name says so, or else the first number.
fn sort_by<'c>(inspection: &Inspection, columns: &'c [ProposedColumn]) -> Option<&'c str> {
    const TELLING: [&str; 8] = ["score", "rating", "popularity", "quality", "votes", "likes", "views", "rank"];
    let number = |column: &'c ProposedColumn| {
        let is_number = inspection
            .columns
            .iter()
            .any(|inspected| inspected.name == column.name && matches!(inspected.type_of, Type::Int | Type::Float));
        match &column.place {
            ColumnPlace::NewKey(key) | ColumnPlace::Key(key) if is_number => Some(key.as_str()),
            _ => None,
        }
    };
    let numbers: Vec<&str> = columns.iter().filter_map(number).collect();
    let telling = TELLING.iter().find_map(|word| numbers.iter().find(|key| key.to_lowercase().contains(word)));
    telling.or(numbers.first()).copied()
}

fn plan(name: &str, sort_by: Option<&str>) -> String {
    let sort = sort_by.map(|key| format!("\n      .sort({{ key: Key.{key}, order: \"desc\" }})")).unwrap_or_default();
    format!(
        "// The first rows of the table {name}{}. Written by `rankd import`; change it as you like.\n\
         import {{ definePlan }} from \"@ranking-dsl/runtime\";\n\n\
         export default definePlan({{\n  name: \"{name}\",\n  build: (ctx) =>\n    ctx.scan({{ endpoint: EP.table.{name} }}){sort}\n      .take({{ count: 20 }}),\n}});\n",
        sort_by.map(|key| format!(", by {key}")).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_keys_that_can_be_written() {
        for (column, key) in [
            ("title", "title"),
            ("Original Title", "Original_Title"),
            ("release-date (UTC)", "release_date_UTC"),
            ("2024", "column_2024"),
            ("__x", "x"),
            ("наименование", "column"),
        ] {
            assert_eq!(key_name(column), key);
            assert!(is_identifier(&key_name(column)));
        }
    }

    #[test]
    fn texts_are_quoted_as_toml_reads_them() {
        for text in ["a", "a \"b\" \\ c", "tab\tand\u{1b}"] {
            let toml = format!("x = {}", toml_text(text));
            let (file, errors) = toml::de::DeTable::parse_recoverable(&toml);
            assert!(errors.is_empty(), "{toml}");
            assert_eq!(file.get_ref().get("x").and_then(|value| value.get_ref().as_str()), Some(text));
        }
    }
}
