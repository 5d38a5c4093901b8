//! Endpoints of kind `table`: a file whose columns are held in the process.
//!
//! What the file really holds is not looked at here: no file is read in this crate.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::registry::table::{Table, bad};
use crate::registry::{Entry, Named, Status};
use rankd_column::kernel::vector_copy::CopyKind;
use rankd_column::{Key, Type};
use std::path::Path;

/// What an endpoint of this kind has besides its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    pub path: String,
    /// The column of the file that becomes `id`.
    pub id: String,
    /// Columns that are called otherwise than their key: the column's name and the key's.
    pub columns: Vec<(String, String)>,
    pub bad_cells: BadCells,
    /// The keys of the columns whose vectors are searched by a copy, with the kind of it.
    pub vectors: Vec<(String, CopyKind)>,
}

impl TableFile {
    /// How the copy is kept by which the vectors of a key are searched; `None` where they are searched themselves.
    pub fn copy_of(&self, entry: &Entry) -> Option<CopyKind> {
        self.vectors.iter().find(|(key, _)| *key == entry.name).map(|(_, kind)| *kind)
    }

    /// What the column of a key is called in the file. `None` where no column can be the key's: it is `id`, it is never written, or its
    /// name is that of a column that is another key.
    pub fn column_of<'a>(&'a self, key: Key, entry: &'a Entry) -> Option<&'a str> {
        if key == Key::ID || !is_loaded(entry) {
            return None;
        }
        match self.columns.iter().find(|(_, key)| *key == entry.name) {
            Some((column, _)) => Some(column),
            None => {
                let taken = entry.name == self.id || self.columns.iter().any(|(column, _)| *column == entry.name);
                (!taken).then_some(&entry.name)
            }
        }
    }
}

/// How the names of files end that can be tables.
pub const TABLE_EXTENSIONS: &[&str] = &["csv", "tsv", "ndjson", "parquet", "arrow"];

/// What becomes of a file with a cell that is not of its key's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadCells {
    /// The file is not used.
    #[default]
    Refuse,
    /// The cell is null.
    Null,
}

const BAD_CELLS: &[(&str, BadCells)] = &[("refuse", BadCells::Refuse), ("null", BadCells::Null)];

pub(super) const FIELDS: &[&str] = &["url", "id", "columns", "bad_cells", "vectors"];

/// `keys` are those that columns can be; where there are none, because their file is broken, names are not compared.
pub(super) fn read(table: &Table<'_, '_>, keys: &Named<Entry>, found: &mut Diagnostics) -> Option<TableFile> {
    let path = path(table, found);
    let id = table.text("id", found).unwrap_or("id").to_owned();
    if id.is_empty() {
        found.push(bad(table.place("id"), "id names a column of the file"));
    }
    let columns = columns(table, &id, keys, found);
    let bad_cells = table.text("bad_cells", found).map_or(BadCells::default(), |name| {
        let known = BAD_CELLS.iter().find(|(known, _)| *known == name);
        if known.is_none() {
            let wrong = bad(table.place("bad_cells"), format!("{name:?} is not what bad_cells can be"));
            found.push(wrong.nearest(name, BAD_CELLS.iter().map(|(known, _)| *known)));
        }
        known.map_or(BadCells::default(), |(_, bad_cells)| *bad_cells)
    });
    let vectors = vectors(table, keys, found);
    Some(TableFile { path: path?, id, columns, bad_cells, vectors })
}

fn path(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<String> {
    table.require(&["url"], FIELDS, found);
    let url = table.text("url", found)?;
    let wrong = |message: String| Diagnostic::new(Code::BadEndpoint, "", message).bytes(table.place("url"));
    let Some(path) = url.strip_prefix("file:").filter(|path| !path.is_empty()) else {
        found.push(wrong("the url of a table is file: and a path".to_owned()));
        return None;
    };
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !TABLE_EXTENSIONS.contains(&extension) {
        let known: Vec<String> = TABLE_EXTENSIONS.iter().map(|known| format!(".{known}")).collect();
        let unknown = wrong(format!("a table is a file whose name ends in {}", known.join(", ")));
        found.push(unknown.nearest(extension, TABLE_EXTENSIONS.iter().copied()));
        return None;
    }
    Some(table.in_project(path))
}

fn columns(table: &Table<'_, '_>, id: &str, keys: &Named<Entry>, found: &mut Diagnostics) -> Vec<(String, String)> {
    let mut columns: Vec<(String, String)> = Vec::new();
    for (column, key, place) in table.text_map("columns", found) {
        let wrong = |message: String| bad(place.clone(), message);
        let entry = keys.named(key).map(|at| keys.get(at));
        if key == "id" || column == id {
            found.push(wrong("the column that becomes id is named by the field id".to_owned()));
        } else if columns.iter().any(|(_, known)| known == key) {
            found.push(wrong(format!("two columns cannot both be the key {key:?}")));
        } else if let (None, 1..) = (entry, keys.list().len()) {
            let unknown = wrong(format!("there is no key {key:?}"));
            found.push(unknown.nearest(key, keys.list().iter().map(|entry| entry.name.as_str())));
        } else if entry.is_some_and(|entry| !is_loaded(entry)) {
            found.push(wrong(format!("the key {key:?} is blocked or has allow_write = false")));
        } else {
            columns.push((column.to_owned(), key.to_owned()));
        }
    }
    columns
}

fn vectors(table: &Table<'_, '_>, keys: &Named<Entry>, found: &mut Diagnostics) -> Vec<(String, CopyKind)> {
    let mut vectors = Vec::new();
    for (key, name, place) in table.text_map("vectors", found) {
        let wrong = |code: Code, message: String| Diagnostic::new(code, "", message).bytes(place.clone());
        let kind = CopyKind::ALL.iter().find(|(known, _)| *known == name);
        if kind.is_none() {
            let known = CopyKind::ALL.iter().map(|(known, _)| *known);
            found.push(wrong(Code::UnknownCopy, format!("there is no copy {}", quoted(name))).nearest(name, known));
        }
        let entry = keys.named(key).map(|at| keys.get(at));
        match entry {
            None if !keys.list().is_empty() => {
                let unknown = bad(place.clone(), format!("there is no key {}", quoted(key)));
                found.push(unknown.nearest(key, keys.list().iter().map(|entry| entry.name.as_str())));
            }
            Some(Entry { type_of, .. }) if !matches!(type_of, Type::Vector(_)) => {
                let message = format!("{key:?} is {type_of}, and a copy is made of vectors");
                found.push(wrong(Code::NotAVector, message));
            }
            Some(entry) if !is_loaded(entry) => {
                found.push(bad(place.clone(), format!("the key {key:?} is blocked or has allow_write = false")));
            }
            Some(_) | None => vectors.extend(kind.map(|(_, kind)| (key.to_owned(), *kind))),
        }
    }
    vectors
}

/// Whether a table may have a column of this key.
fn is_loaded(entry: &Entry) -> bool {
    entry.allow_write && entry.status != Status::Blocked
}
