//! Why a file cannot be read as a table, and where that shows.

use rankd_column::Type;
use std::path::PathBuf;
use std::{fmt, io};

/// A file that cannot be used.
#[derive(Debug)]
pub struct TableFileError {
    /// Which file it is.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: TableProblem,
}

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of a text; the header is one.
    Line(u64),
    /// A row of a table that has no lines.
    Row(u64),
}

/// A cell that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCell {
    /// Where it is.
    pub place: Place,
    /// The name of its column in the file.
    pub column: String,
    /// What is wrong with it.
    pub message: String,
}

/// What is wrong with a file.
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
#[derive(Debug)]
pub enum TableProblem {
    /// It cannot be opened or read.
    File(io::Error),
    /// Its extension is none of these.
    UnknownFormat { extensions: Vec<&'static str> },
    /// It is not what its extension says, or is damaged.
    Broken { place: Option<Place>, message: String },
    /// The column that becomes `id` is not there; these columns are.
    NoId { name: String, names: Vec<String> },
    /// Ids can be ints or strings, not this.
    IdType { type_of: Type },
    /// Two columns have this name, or two are wanted for one key.
    ColumnTwice { name: String },
    /// A column is of a type that cannot be read as what is wanted.
    ColumnType { column: String, in_file: String, wanted: Type },
    /// Two rows have the same id.
    RepeatedId { id: String, first: Place, second: Place },
    /// A row has no id, or one that cannot be used.
    BadId(BadCell),
    /// Cells cannot be read: the first of them, and whether there are more.
    BadCells { first: Vec<BadCell>, more: bool },
    /// Something about it is more than a table may have.
    TooMuch { place: Option<Place>, message: String },
}

impl TableProblem {
    pub(super) fn broken(place: impl Into<Option<Place>>, message: impl Into<String>) -> TableProblem {
        TableProblem::Broken { place: place.into(), message: message.into() }
    }

    pub(super) fn too_much(place: impl Into<Option<Place>>, message: impl Into<String>) -> TableProblem {
        TableProblem::TooMuch { place: place.into(), message: message.into() }
    }
}

impl From<io::Error> for TableProblem {
    fn from(error: io::Error) -> TableProblem {
        TableProblem::File(error)
    }
}

impl std::error::Error for TableFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let TableProblem::File(error) = &self.problem { Some(error) } else { None }
    }
}

impl fmt::Display for TableFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

impl fmt::Display for BadCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, column {:?}: {}", self.place, self.column, self.message)
    }
}

impl fmt::Display for TableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableProblem::File(error) => error.fmt(f),
            TableProblem::UnknownFormat { extensions } => {
                write!(f, "a table file ends with one of .{}", extensions.join(", ."))
            }
            TableProblem::Broken { place, message } | TableProblem::TooMuch { place, message } => match place {
                Some(place) => write!(f, "{place}: {message}"),
                None => f.write_str(message),
            },
            TableProblem::NoId { name, names } => {
                write!(f, "there is no column {name:?} for the id; the columns are {}", list(names))
            }
            TableProblem::IdType { type_of } => write!(f, "an id is an int or a string, not {type_of}"),
            TableProblem::ColumnTwice { name } => write!(f, "the column {name:?} is there twice"),
            TableProblem::ColumnType { column, in_file, wanted } => {
                write!(f, "the column {column:?} is {in_file} in the file, which cannot be read as {wanted}")
            }
            TableProblem::RepeatedId { id, first, second } => {
                write!(f, "{second} has the id {id}, which {first} has, too")
            }
            TableProblem::BadId(cell) => cell.fmt(f),
            TableProblem::BadCells { first, more } => {
                for (at, cell) in first.iter().enumerate() {
                    write!(f, "{}{cell}", if at == 0 { "" } else { "; " })?;
                }
                f.write_str(if *more { "; and more" } else { "" })
            }
        }
    }
}

/// Names for a person, not too many of them.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    if names.is_empty() { "none".to_owned() } else { shown.join(", ") + more }
}
