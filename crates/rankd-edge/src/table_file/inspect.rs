//! What is in a file: its columns, the types that keys for them would have, and which of them could be the id.
//!
//! The whole file is looked at, so that a table of the proposed types can be read from it. Its columns are in memory meanwhile.

use super::builder::short;
use super::{BadCells, LeftOut, LeftOutWhy, TableColumns, Wanted, WantedColumn};
use rankd_column::id::check_id;
use rankd_column::{Cells, Column, Element, Key, Type, Value};

/// How many examples of a column's values are shown.
const EXAMPLES: usize = 3;
/// Shorter lists of floats are not taken for vectors.
const DIMENSION_MIN: usize = 2;

/// What is in a file.
#[derive(Debug)]
pub struct Inspection {
    /// How many rows it has.
    pub rows: usize,
    /// The columns that can be read, in the order of the file.
    pub columns: Vec<InspectedColumn>,
    /// The position in `columns` of the one that is most likely the id; none where none could be.
    pub id: Option<usize>,
    /// Columns that cannot be read.
    pub left_out: Vec<LeftOut>,
}

/// A column of a file.
#[derive(Debug)]
pub struct InspectedColumn {
    /// Its name.
    pub name: String,
    /// The type that a key for it would have.
    pub type_of: Type,
    /// Whether a cell is null.
    pub nullable: bool,
    /// How many different values it has, nulls aside; unknown for lists and vectors.
    pub distinct: Option<usize>,
    /// Whether it could be the id: ints or texts that are ids, none null, no two equal.
    pub could_be_id: bool,
    /// The first different values.
    pub examples: Vec<String>,
}

/// A column as a format sees it: its name and its type, or the type's name where no key can have it.
pub(super) struct Proposed {
    pub(super) name: String,
    pub(super) type_of: Result<Type, String>,
}

/// What to read in order to inspect it. Keys are positions among the columns that can be read.
pub(super) fn wanted(proposed: &[Proposed]) -> Wanted {
    let readable = proposed.iter().filter_map(|column| Some((&column.name, column.type_of.as_ref().ok()?)));
    let columns = readable.enumerate().map(|(at, (name, type_of))| WantedColumn {
        name: name.clone(),
        key: Key(at as u32 + 1),
        type_of: *type_of,
    });
    Wanted { id: None, id_type: Type::Int, columns: columns.collect(), bad_cells: BadCells::Null }
}

/// Looks at the columns that were read as proposed.
pub(super) fn inspect(proposed: Vec<Proposed>, table: &TableColumns) -> Inspection {
    let (mut columns, mut left_out) = (Vec::new(), Vec::new());
    for Proposed { name, type_of } in proposed {
        let at = columns.len();
        match type_of {
            Ok(type_of) => columns.push(match table.columns.iter().find(|(key, _)| *key == Key(at as u32 + 1)) {
                Some((_, column)) => look_at(name, column),
                // A table without rows.
                None => InspectedColumn {
                    name,
                    type_of,
                    nullable: true,
                    distinct: Some(0),
                    could_be_id: false,
                    examples: Vec::new(),
                },
            }),
            Err(type_of) => left_out.push(LeftOut { name, why: LeftOutWhy::Unsupported(type_of) }),
        }
    }
    let id = likely_id(&columns);
    Inspection { rows: table.rows, columns, id, left_out }
}

fn look_at(name: String, column: &Column) -> InspectedColumn {
    let nullable = column.valid().is_some_and(|valid| valid.contains(&false));
    let (type_of, distinct) = match column {
        Column::Int(cells) => (Type::Int, Some(distinct(cells, |value| value))),
        Column::Float(cells) => (Type::Float, Some(distinct(cells, f64::to_bits))),
        Column::Bool(cells) => (Type::Bool, Some(distinct(cells, |value| value))),
        Column::Str(_, dictionary) => (Type::Str, Some(dictionary.len())),
        Column::List(cells, elements) => {
            let mut lengths = (0..cells.len()).filter_map(|row| cells.get(row)).map(|span| span.len as usize);
            let (first, second) = (lengths.next(), lengths.next());
            let is_vector = first.is_some_and(|first| {
                elements.element() == Element::Float
                    && (DIMENSION_MIN..=rankd_column::value::DIMENSION_MAX as usize).contains(&first)
                    && second == Some(first)
                    && lengths.all(|length| length == first)
            });
            let type_of = if is_vector { Type::Vector(first.unwrap_or(0) as u16) } else { column.type_of() };
            (type_of, None)
        }
        Column::Vector(..) => (column.type_of(), None),
    };
    let could_be_id = !nullable
        && !column.is_empty()
        && distinct == Some(column.len())
        && match column {
            Column::Int(_) => true,
            Column::Str(_, dictionary) => dictionary.iter().all(|text| check_id(text).is_ok()),
            Column::Float(_) | Column::Bool(_) | Column::List(..) | Column::Vector(..) => false,
        };
    InspectedColumn { name, type_of, nullable, distinct, could_be_id, examples: examples(column) }
}

fn distinct<T: Copy + Default, K: Ord>(cells: &Cells<T>, by: impl Fn(T) -> K) -> usize {
    let mut values: Vec<K> = (0..cells.len()).filter_map(|row| cells.get(row)).map(by).collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

fn examples(column: &Column) -> Vec<String> {
    // Values that are different come early, or hardly at all.
    const ROWS: usize = 1_000;
    let mut examples = Vec::new();
    for row in 0..column.len().min(ROWS) {
        let example = match column.value(row) {
            Value::Null => continue,
            Value::Str(text) => short(&text),
            value => short(&value.to_string()),
        };
        if !examples.contains(&example) {
            examples.push(example);
        }
        if examples.len() == EXAMPLES {
            break;
        }
    }
    examples
}

/// The column that is most likely the id: by its name, then by its place.
fn likely_id(columns: &[InspectedColumn]) -> Option<usize> {
    let likelihood = |name: &str| {
        let name = name.to_lowercase();
        match name.as_str() {
            "id" => 3,
            _ if name.ends_with("_id") => 2,
            _ if name.ends_with("id") || name == "key" || name == "uuid" => 1,
            _ => 0,
        }
    };
    let possible = columns.iter().enumerate().filter(|(_, column)| column.could_be_id);
    // The first of those that are equally likely.
    possible.rev().max_by_key(|(_, column)| likelihood(&column.name)).map(|(at, _)| at)
}
