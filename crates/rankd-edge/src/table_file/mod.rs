//! Files with a table, read into typed columns: what a table endpoint loads and `rankd import` looks at.
//!
//! A format is a file here and a row of [`FORMATS`]; a file's extension says which it is. Formats read block by block, so that a file
//! is never in memory as a whole, and believe no length that the bytes of the file do not bear out. Nothing here knows the registry:
//! which columns are wanted, under which key and as which type, is an argument.
//!
//! Reading order: this file, [`problem`] (what can be wrong), [`source`] (bytes of a file, in blocks), [`builder`] (rows so far),
//! [`number`] (numbers in text), then the formats: [`delimited`] (CSV and TSV), [`ndjson`], [`columnar`] (what the
//! next two share), [`arrow`] and [`parquet`]; [`mod@inspect`] and [`guess`] (what to
//! make of a file that nobody has described).

mod arrow;
mod builder;
mod columnar;
mod delimited;
mod guess;
mod inspect;
mod ndjson;
mod number;
mod parquet;
mod problem;
mod source;
#[cfg(test)]
mod tests;

pub use inspect::{InspectedColumn, Inspection};
pub use problem::{BadCell, Place, TableFileError, TableProblem};

pub(crate) use arrow::Cursor as BatchCursor;
use builder::TableBuilder;
use inspect::Proposed;
use rankd_column::{Column, Dictionary, Key, Type};
use source::Source;
use std::path::Path;
use std::sync::Arc;

/// A column of a file that somebody wants.
#[derive(Clone, Debug)]
pub struct WantedColumn {
    /// Its name in the file.
    pub name: String,
    /// The key that it becomes.
    pub key: Key,
    /// The type that it must have, or can be read as.
    pub type_of: Type,
}

/// What becomes of a cell that cannot be read as its column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCells {
    /// The file is refused.
    Refuse,
    /// The cell is null, and counted.
    Null,
}

/// What to read from a file. Columns that the file has not are no mistake: the result has not got them, either.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The column that becomes `id`: unique and never null. Without one, rows have no ids.
    pub id: Option<String>,
    /// Whether ids are ints or strings.
    pub id_type: Type,
    /// All other columns that are wanted where they are there, one for each key at most.
    pub columns: Vec<WantedColumn>,
    /// What becomes of cells that cannot be read. An id that cannot be read is refused either way.
    pub bad_cells: BadCells,
}

/// The ids of all rows, in order.
#[derive(Clone, Debug)]
pub enum TableIds {
    /// Ids that are ints.
    Ints(Vec<i64>),
    /// Ids that are text: as no two are equal, the code of each is the number of its row.
    Texts(Dictionary),
}

/// A column that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name in the file.
    pub name: String,
    /// Why.
    pub why: LeftOutWhy,
}

/// Why a column was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOutWhy {
    /// Nobody wants a column of this name.
    Unwanted,
    /// No key can have its type, which is this one.
    Unsupported(String),
}

impl std::fmt::Display for LeftOutWhy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOutWhy::Unwanted => f.write_str("no key has this name"),
            LeftOutWhy::Unsupported(type_of) => write!(f, "no key can have its type, {type_of}"),
        }
    }
}

/// The table of a file.
#[derive(Debug)]
pub struct TableColumns {
    /// How many rows it has.
    pub rows: usize,
    /// The ids, as many as there are rows; none where none were wanted.
    pub ids: Option<TableIds>,
    /// The columns that are wanted and there, in the order of their keys.
    pub columns: Vec<(Key, Arc<Column>)>,
    /// Columns of the file that were not read, in its order.
    pub left_out: Vec<LeftOut>,
    /// How many cells could not be read and are null.
    pub bad_cells: u64,
    /// The first of them.
    pub first_bad_cells: Vec<BadCell>,
    /// The SHA-256 of the file, where it was asked for.
    pub sha256: Option<String>,
}

/// How far the reading of a large file has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that the file has.
    pub of: u64,
}

/// A kind of file.
struct Format {
    extension: &'static str,
    /// Fills a table.
    read: fn(&mut Source<'_>, &mut TableBuilder<'_>) -> Result<(), TableProblem>,
    /// Finds the columns and types that a file has.
    propose: fn(&mut Source<'_>) -> Result<Vec<Proposed>, TableProblem>,
}

/// Every kind of file that can be read.
const FORMATS: &[Format] = &[
    Format { extension: "csv", read: delimited::read_csv, propose: delimited::propose_csv },
    Format { extension: "tsv", read: delimited::read_tsv, propose: delimited::propose_tsv },
    Format { extension: "ndjson", read: ndjson::read, propose: ndjson::propose },
    Format { extension: "parquet", read: parquet::read, propose: parquet::propose },
    Format { extension: "arrow", read: arrow::read, propose: arrow::propose },
];

/// The extensions of the files that can be read.
pub fn extensions() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.extension)
}

/// Reads a file. `progress` is called now and then while a file of more than 50 MB is read.
pub fn read(path: &Path, wanted: &Wanted, progress: &mut dyn FnMut(Progress)) -> Result<TableColumns, TableFileError> {
    let mut read = || read_from(format(path)?, Source::open(path, progress)?.hashed(), wanted);
    read().map_err(|problem| TableFileError { path: path.to_owned(), problem })
}

fn read_from(format: &Format, mut source: Source<'_>, wanted: &Wanted) -> Result<TableColumns, TableProblem> {
    let mut builder = TableBuilder::new(wanted, source.bytes())?;
    (format.read)(&mut source, &mut builder)?;
    let sha256 = source.finish_hash()?;
    Ok(TableColumns { sha256, ..builder.finish()? })
}

/// Looks at a file that nobody has described: which columns it has, and which types keys for them would have.
pub fn inspect(path: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Inspection, TableFileError> {
    let mut inspect = || {
        let format = format(path)?;
        let proposed = (format.propose)(&mut Source::open(path, progress)?)?;
        let table = read_from(format, Source::open(path, progress)?, &inspect::wanted(&proposed))?;
        Ok(inspect::inspect(proposed, &table))
    };
    inspect().map_err(|problem| TableFileError { path: path.to_owned(), problem })
}

fn format(path: &Path) -> Result<&'static Format, TableProblem> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let known = FORMATS.iter().find(|format| format.extension == extension);
    known.ok_or_else(|| TableProblem::UnknownFormat { extensions: extensions().collect() })
}

/// Reads an Arrow stream whose columns are exactly these, batch by batch; see [`arrow::read_exactly`].
pub(crate) fn read_stream(
    path: &Path,
    columns: &[(&str, &[&str])],
    with: impl FnMut(usize, BatchCursor<'_>) -> Option<()>,
) -> Result<bool, TableFileError> {
    let mut silent = |_| {};
    let read = Source::open(path, &mut silent).and_then(|mut source| arrow::read_exactly(&mut source, columns, with));
    read.map_err(|problem| TableFileError { path: path.to_owned(), problem })
}
