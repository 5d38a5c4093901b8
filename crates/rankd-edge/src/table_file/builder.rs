//! A table that is being read: which of its columns are wanted, the cells of those so far, and what was wrong with cells.
//!
//! A format matches the columns that it finds, then fills each one that is wanted, all to the same number of rows.

use super::problem::{BadCell, Place, TableProblem};
use super::{BadCells, LeftOut, LeftOutWhy, TableColumns, TableIds, Wanted, number};
use rankd_column::column::ColumnBuilder;
use rankd_column::id::check_id;
use rankd_column::{DictionaryBuilder, IdFault, Key, Type};
use std::collections::HashSet;
use std::sync::Arc;

/// How many bad cells are kept to be shown; others are counted.
const SHOWN: usize = 10;

pub(super) struct TableBuilder<'w> {
    wanted: &'w Wanted,
    /// The size of the file: what is made ready for rows that may come is no more than that.
    file_bytes: u64,
    pub(super) ids: Option<IdBuilder>,
    /// The wanted columns that the file has.
    pub(super) columns: Vec<FilledColumn>,
    rows: usize,
    left_out: Vec<LeftOut>,
    pub(super) bad: BadCellCount,
    pub(super) places: Places,
}

/// A wanted column that the file has.
pub(super) struct FilledColumn {
    /// Its name in the file.
    pub(super) name: String,
    key: Key,
    pub(super) type_of: Type,
    pub(super) cells: ColumnBuilder,
}

/// What a column of the file is filled into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Id,
    /// A position in `columns`.
    Column(usize),
}

impl<'w> TableBuilder<'w> {
    pub(super) fn new(wanted: &'w Wanted, file_bytes: u64) -> Result<TableBuilder<'w>, TableProblem> {
        let mut keys = HashSet::new();
        if let Some(twice) = wanted.columns.iter().find(|column| !keys.insert(column.key)) {
            return Err(TableProblem::ColumnTwice { name: twice.name.clone() });
        }
        Ok(TableBuilder {
            wanted,
            file_bytes,
            ids: None,
            columns: Vec::new(),
            rows: 0,
            left_out: Vec::new(),
            bad: BadCellCount { policy: wanted.bad_cells, count: 0, first: Vec::new() },
            places: Places::default(),
        })
    }

    /// How many rows are filled.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Says which columns the file has. Gives what each of them is filled into; a column may be id and another key.
    pub(super) fn match_columns(&mut self, names: &[String]) -> Result<Vec<(usize, Target)>, TableProblem> {
        let mut targets = Vec::new();
        let mut seen = HashSet::new();
        for (at, name) in names.iter().enumerate() {
            let found = targets.len();
            if self.wanted.id.as_ref() == Some(name) {
                targets.push((at, Target::Id));
            }
            targets.extend(self.add_columns(name).map(|column| (at, Target::Column(column))));
            if targets.len() == found {
                self.leave_out(name, LeftOutWhy::Unwanted);
            } else if !seen.insert(name) {
                return Err(TableProblem::ColumnTwice { name: name.clone() });
            }
        }
        self.begin()?;
        if let Some(id) = &self.wanted.id
            && !targets.iter().any(|(_, target)| *target == Target::Id)
        {
            return Err(TableProblem::NoId { name: id.clone(), names: names.to_vec() });
        }
        Ok(targets)
    }

    /// Makes ready for ids, where they are wanted.
    pub(super) fn begin(&mut self) -> Result<(), TableProblem> {
        if self.wanted.id.is_some() {
            self.ids = Some(IdBuilder::new(self.wanted.id_type)?);
        }
        Ok(())
    }

    /// The wanted columns with this name in the file, empty as yet.
    pub(super) fn add_columns(&mut self, name: &str) -> std::ops::Range<usize> {
        let start = self.columns.len();
        self.columns.extend(self.wanted.columns.iter().filter(|column| column.name == *name).map(|column| {
            let cells = ColumnBuilder::new(column.type_of, 0);
            FilledColumn { name: name.to_owned(), key: column.key, type_of: column.type_of, cells }
        }));
        start..self.columns.len()
    }

    /// The name of the column that becomes `id`.
    pub(super) fn id_name(&self) -> &'w str {
        self.wanted.id.as_deref().unwrap_or_default()
    }

    /// Whether a column with this name becomes `id`.
    pub(super) fn is_id(&self, name: &str) -> bool {
        self.wanted.id.as_deref() == Some(name)
    }

    pub(super) fn id_type(&self) -> Type {
        self.wanted.id_type
    }

    pub(super) fn leave_out(&mut self, name: &str, why: LeftOutWhy) {
        self.left_out.push(LeftOut { name: name.to_owned(), why });
    }

    /// Makes room for so many rows, if the file's size makes them believable. Only before the first of them.
    pub(super) fn expect_rows(&mut self, rows: usize) {
        let cells = self.columns.len() + 1;
        let rows = rows.min(self.file_bytes as usize / 8 / cells);
        for column in &mut self.columns {
            column.cells = ColumnBuilder::new(column.type_of, rows);
        }
        if let Some(IdBuilder::Ints(ids)) = &mut self.ids {
            ids.reserve_exact(rows);
        }
    }

    /// Says that all columns have so many more rows.
    pub(super) fn add_rows(&mut self, rows: usize) -> Result<(), TableProblem> {
        self.rows += rows;
        if self.rows > u32::MAX as usize {
            return Err(TableProblem::too_much(None, format!("a table has at most {} rows", u32::MAX)));
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<TableColumns, TableProblem> {
        if self.bad.policy == BadCells::Refuse && self.bad.count > 0 {
            return Err(TableProblem::BadCells { first: self.bad.first, more: false });
        }
        let ids = match self.ids {
            None => None,
            Some(IdBuilder::Ints(mut ids)) => {
                if let Some((first, second)) = repeated(&ids) {
                    return Err(self.places.repeated_id(ids[first].to_string(), first, second));
                }
                ids.shrink_to_fit();
                Some(TableIds::Ints(ids))
            }
            Some(IdBuilder::Texts(mut ids)) => {
                ids.shrink_to_fit();
                Some(TableIds::Texts(ids.finish()))
            }
        };
        let mut columns: Vec<_> =
            self.columns.into_iter().map(|column| (column.key, Arc::new(column.cells.finish_exact()))).collect();
        columns.sort_by_key(|(key, _)| *key);
        Ok(TableColumns {
            rows: self.rows,
            ids,
            columns,
            left_out: self.left_out,
            bad_cells: self.bad.count,
            first_bad_cells: self.bad.first,
            sha256: None,
        })
    }
}

/// The ids so far.
pub(super) enum IdBuilder {
    Ints(Vec<i64>),
    Texts(DictionaryBuilder),
}

/// Why a cell cannot be an id.
pub(super) enum RefusedId {
    /// The row with this number has it already.
    Repeated {
        row: usize,
    },
    Text(IdFault),
    NotInt,
    NotText,
}

impl IdBuilder {
    fn new(type_of: Type) -> Result<IdBuilder, TableProblem> {
        match type_of {
            Type::Int => Ok(IdBuilder::Ints(Vec::new())),
            Type::Str => Ok(IdBuilder::Texts(DictionaryBuilder::default())),
            Type::Float | Type::Bool | Type::List(_) | Type::Vector(_) => Err(TableProblem::IdType { type_of }),
        }
    }

    pub(super) fn are_texts(&self) -> bool {
        matches!(self, IdBuilder::Texts(_))
    }

    /// Adds the id of the row with this number. Whether ints are repeated is found out at the end.
    pub(super) fn push_int(&mut self, row: usize, id: i64) -> Result<(), RefusedId> {
        match self {
            IdBuilder::Ints(ids) => ids.push(id),
            IdBuilder::Texts(_) => {
                let mut text = Vec::with_capacity(24);
                rankd_plan::json::push_int(&mut text, id);
                return self.push_text(row, &String::from_utf8_lossy(&text));
            }
        }
        Ok(())
    }

    /// Adds the id of the row with this number, which is text in the file.
    pub(super) fn push_text(&mut self, row: usize, id: &str) -> Result<(), RefusedId> {
        match self {
            IdBuilder::Ints(ids) => ids.push(number::int(id.as_bytes()).ok_or(RefusedId::NotInt)?),
            IdBuilder::Texts(ids) => {
                check_id(id).map_err(RefusedId::Text)?;
                let code = ids.code(id) as usize;
                if code < row {
                    return Err(RefusedId::Repeated { row: code });
                }
            }
        }
        Ok(())
    }
}

impl RefusedId {
    /// The problem, for the id of a row as it is written in the file.
    pub(super) fn problem(self, column: &str, id: &str, row: usize, places: &Places) -> TableProblem {
        match self {
            RefusedId::Repeated { row: first } => places.repeated_id(shown(id), first, row),
            RefusedId::Text(fault) => bad_id(column, format!("{}: {fault}", shown(id)), row, places),
            RefusedId::NotText => bad_id(column, format!("the id {} is not a string", shown(id)), row, places),
            RefusedId::NotInt => bad_id(column, format!("the id {} is not an int", shown(id)), row, places),
        }
    }
}

fn bad_id(column: &str, message: String, row: usize, places: &Places) -> TableProblem {
    TableProblem::BadId(BadCell { place: places.of(row), column: column.to_owned(), message })
}

/// The problem of a row without an id.
pub(super) fn null_id(column: &str, row: usize, places: &Places) -> TableProblem {
    bad_id(column, "an id must not be null".to_owned(), row, places)
}

/// Two rows with the same id, the second as early as possible.
fn repeated(ids: &[i64]) -> Option<(usize, usize)> {
    if ids.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    drop(sorted);
    let mut seen = std::collections::HashMap::new();
    ids.iter().enumerate().find_map(|(row, id)| seen.insert(id, row).map(|first| (first, row)))
}

/// Cells that could not be read.
pub(super) struct BadCellCount {
    policy: BadCells,
    count: u64,
    first: Vec<BadCell>,
}

impl BadCellCount {
    /// Counts a cell. Fails when there are enough of them to refuse the file.
    pub(super) fn add(&mut self, place: Place, column: &str, message: String) -> Result<(), TableProblem> {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(BadCell { place, column: column.to_owned(), message });
        } else if self.policy == BadCells::Refuse {
            return Err(TableProblem::BadCells { first: std::mem::take(&mut self.first), more: true });
        }
        Ok(())
    }
}

/// Where rows are in the file.
#[derive(Default)]
pub(super) struct Places {
    /// Rows, and their lines, from which on each row is one line; none for files without lines.
    lines: Vec<(usize, u64)>,
}

impl Places {
    /// Says in which line a row begins.
    pub(super) fn set_line(&mut self, row: usize, line: u64) {
        if self.lines.is_empty() || self.of(row) != Place::Line(line) {
            self.lines.push((row, line));
        }
    }

    pub(super) fn of(&self, row: usize) -> Place {
        let after = self.lines.partition_point(|(first, _)| *first <= row);
        match after.checked_sub(1).map(|at| self.lines[at]) {
            Some((first, line)) => Place::Line(line + (row - first) as u64),
            None => Place::Row(row as u64 + 1),
        }
    }

    fn repeated_id(&self, id: String, first: usize, second: usize) -> TableProblem {
        TableProblem::RepeatedId { id, first: self.of(first), second: self.of(second) }
    }
}

/// A cell's text for a message: quoted, and not too long.
pub(super) fn shown(text: &str) -> String {
    format!("{:?}", short(text))
}

/// The beginning of a text that may be long.
pub(super) fn short(text: &str) -> String {
    const CHARS: usize = 40;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
