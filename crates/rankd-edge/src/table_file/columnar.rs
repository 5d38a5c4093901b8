//! What the formats that store columns have in common: the cells of one column over some rows, decoded, on their way into a table.

use super::LeftOutWhy;
use super::builder::{TableBuilder, Target, null_id};
use super::inspect::Proposed;
use super::problem::TableProblem;
use rankd_column::column::{ColumnBuilder, OpenCell, There};
use rankd_column::math;
use rankd_column::{Element, Type};

/// What one value of a column in a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Int,
    Float,
    Bool,
    Text,
}

/// What a column in a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    One(Plain),
    /// Lists; where all have the same length by their type, that.
    Lists(Plain, Option<usize>),
}

impl Holds {
    /// Whether a column of this type can be read from it.
    pub(super) fn fits(self, wanted: Type) -> bool {
        match (self, wanted) {
            (Holds::One(Plain::Int), Type::Int | Type::Float)
            | (Holds::One(Plain::Float), Type::Float)
            | (Holds::One(Plain::Bool), Type::Bool)
            | (Holds::One(Plain::Text), Type::Str)
            | (Holds::Lists(Plain::Int, _), Type::List(Element::Int | Element::Float))
            | (Holds::Lists(Plain::Float, _), Type::List(Element::Float))
            | (Holds::Lists(Plain::Text, _), Type::List(Element::Str)) => true,
            (Holds::Lists(Plain::Int | Plain::Float, length), Type::Vector(dimension)) => {
                length.is_none_or(|length| length == usize::from(dimension))
            }
            (Holds::One(_) | Holds::Lists(..), _) => false,
        }
    }

    /// Whether ids of this type can be read from it.
    pub(super) fn fits_id(self, wanted: Type) -> bool {
        match self {
            Holds::One(Plain::Int) => true,
            Holds::One(Plain::Text) => wanted == Type::Str,
            Holds::One(Plain::Float | Plain::Bool) | Holds::Lists(..) => false,
        }
    }

    /// The type of a key for it.
    pub(super) fn proposed(self) -> Option<Type> {
        Some(match self {
            Holds::One(Plain::Int) => Type::Int,
            Holds::One(Plain::Float) => Type::Float,
            Holds::One(Plain::Bool) => Type::Bool,
            Holds::One(Plain::Text) => Type::Str,
            Holds::Lists(Plain::Float, Some(length)) if (1..=DIMENSION_MAX).contains(&length) => {
                Type::Vector(length as u16)
            }
            Holds::Lists(Plain::Int, _) => Type::List(Element::Int),
            Holds::Lists(Plain::Float, _) => Type::List(Element::Float),
            Holds::Lists(Plain::Text, _) => Type::List(Element::Str),
            Holds::Lists(Plain::Bool, _) => return None,
        })
    }
}

/// A column as the schema of a file has it.
pub(super) struct Described<'f> {
    pub(super) name: &'f str,
    /// What it holds, where a key can have that.
    pub(super) holds: Option<Holds>,
    /// Its type, for people.
    pub(super) type_name: &'f str,
}

impl Described<'_> {
    pub(super) fn propose(&self) -> Proposed {
        let type_of = self.holds.and_then(Holds::proposed).ok_or_else(|| self.type_name.to_owned());
        Proposed { name: self.name.to_owned(), type_of }
    }
}

/// Says which columns the file has. Gives what each that is wanted is filled into; those whose type no key can have are left out.
pub(super) fn match_columns(
    table: &mut TableBuilder<'_>,
    columns: &[Described<'_>],
) -> Result<Vec<(usize, Target)>, TableProblem> {
    let misfit = |column: &Described<'_>, wanted: Type| TableProblem::ColumnType {
        column: column.name.to_owned(),
        in_file: column.type_name.to_owned(),
        wanted,
    };
    let (mut positions, mut names) = (Vec::new(), Vec::new());
    for (at, column) in columns.iter().enumerate() {
        if column.holds.is_some() {
            positions.push(at);
            names.push(column.name.to_owned());
        } else if table.is_id(column.name) {
            return Err(misfit(column, table.id_type()));
        } else {
            table.leave_out(column.name, LeftOutWhy::Unsupported(column.type_name.to_owned()));
        }
    }
    let mut targets = table.match_columns(&names)?;
    for (at, target) in &mut targets {
        *at = positions[*at];
        let column = &columns[*at];
        let (wanted, fits) = match target {
            Target::Id => (table.id_type(), column.holds.is_some_and(|holds| holds.fits_id(table.id_type()))),
            Target::Column(to) => {
                let wanted = table.columns[*to].type_of;
                (wanted, column.holds.is_some_and(|holds| holds.fits(wanted)))
            }
        };
        if !fits {
            return Err(misfit(column, wanted));
        }
    }
    Ok(targets)
}

const DIMENSION_MAX: usize = rankd_column::value::DIMENSION_MAX as usize;

/// Values, one after the other.
pub(super) enum PieceValues<'b> {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    /// Texts; nothing where the bytes are not UTF-8.
    Text(Vec<Option<&'b str>>),
    /// Numbers of entries, and those. All numbers are below the number of entries.
    Coded(Vec<u32>, Entries<'b>),
}

/// The texts that numbers stand for; nothing for those that are null or not UTF-8.
#[derive(Clone, Copy)]
pub(super) enum Entries<'b> {
    List(&'b [Option<&'b str>]),
    Flat(&'b FlatTexts),
}

impl<'b> Entries<'b> {
    pub(super) fn len(self) -> usize {
        match self {
            Entries::List(texts) => texts.len(),
            Entries::Flat(texts) => texts.ends.len(),
        }
    }

    /// The text with a number below `len`.
    pub(super) fn get(self, code: u32) -> Option<&'b str> {
        let code = code as usize;
        match self {
            Entries::List(texts) => texts[code],
            Entries::Flat(FlatTexts { text, ends }) => {
                let start = if code == 0 { 0 } else { ends[code - 1].0 };
                ends[code].1.then(|| &text[start..ends[code].0])
            }
        }
    }
}

/// Texts side by side: where each ends, and whether it is there.
#[derive(Default)]
pub(super) struct FlatTexts {
    text: String,
    ends: Vec<(usize, bool)>,
}

impl FlatTexts {
    pub(super) fn push(&mut self, text: Option<&str>) {
        self.text.push_str(text.unwrap_or_default());
        self.ends.push((self.text.len(), text.is_some()));
    }
}

/// The lists of some rows.
pub(super) struct Lists {
    /// Where each begins in the values, and at last where the last one ends. Never falls, and never past the values.
    pub(super) offsets: Vec<usize>,
    /// Rows whose lists have null for an element, in order.
    pub(super) with_nulls: Vec<usize>,
}

/// The cells of one column over some rows.
pub(super) struct Piece<'b> {
    pub(super) rows: usize,
    /// Which rows are not null; all, where there is nothing.
    pub(super) valid: Option<Vec<bool>>,
    pub(super) values: PieceValues<'b>,
    /// Whether null rows have no value: otherwise they have one that means nothing.
    pub(super) is_dense: bool,
    /// Positions of values that do not fit 64 bits, in order.
    pub(super) misfits: Vec<usize>,
    /// How values are put into rows; one by one, where there is nothing.
    pub(super) lists: Option<Lists>,
}

impl Piece<'_> {
    /// Adds the cells to what they are for, so many rows behind the last that the whole table has.
    pub(super) fn fill(&self, table: &mut TableBuilder<'_>, target: Target, behind: usize) -> Result<(), TableProblem> {
        let first = table.rows() + behind;
        match target {
            Target::Id => self.fill_ids(table, first),
            Target::Column(at) => self.fill_column(table, at, first),
        }
    }

    /// Calls for every row, with the position of its value or list, if it has one.
    fn each(
        &self,
        mut visit: impl FnMut(usize, Option<usize>) -> Result<(), TableProblem>,
    ) -> Result<(), TableProblem> {
        let mut dense = 0;
        for row in 0..self.rows {
            let is_valid = self.valid.as_ref().is_none_or(|valid| valid[row]);
            let at = if self.is_dense { dense } else { row };
            dense += usize::from(is_valid);
            visit(row, is_valid.then_some(at))?;
        }
        Ok(())
    }

    fn fill_ids(&self, table: &mut TableBuilder<'_>, first: usize) -> Result<(), TableProblem> {
        let name = table.id_name();
        let TableBuilder { ids: Some(ids), places, .. } = table else { return Ok(()) };
        self.each(|row, at| {
            let row = first + row;
            let Some(at) = at.filter(|at| !self.is_misfit(*at)) else { return Err(null_id(name, row, places)) };
            let text = match &self.values {
                PieceValues::Int(values) => {
                    let pushed = ids.push_int(row, values[at]);
                    return pushed.map_err(|refused| refused.problem(name, &values[at].to_string(), row, places));
                }
                PieceValues::Text(texts) => texts[at],
                PieceValues::Coded(codes, entries) => entries.get(codes[at]),
                PieceValues::Float(_) | PieceValues::Bool(_) => None,
            };
            let Some(text) = text else { return Err(null_id(name, row, places)) };
            ids.push_text(row, text).map_err(|refused| refused.problem(name, text, row, places))
        })
    }

    fn fill_column(&self, table: &mut TableBuilder<'_>, column: usize, first: usize) -> Result<(), TableProblem> {
        let (column, bad, places) = (&mut table.columns[column], &mut table.bad, &table.places);
        let (cells, type_of) = (&mut column.cells, column.type_of);
        if self.fill_at_once(cells) {
            return Ok(());
        }
        self.each(|row, at| {
            let Some(at) = at else {
                cells.push_null();
                return Ok(());
            };
            let pushed = match &self.lists {
                None => self.push(cells, at),
                Some(lists) => push_list(self, lists, cells, row, at),
            };
            if !pushed {
                cells.push_null();
                let message = match &self.lists {
                    Some(_) => format!("the list is not of type {type_of}: its length or an element does not fit"),
                    None => format!("{} is not of type {type_of}", self.shown(at)),
                };
                bad.add(places.of(first + row), &column.name, message)?;
            }
            Ok(())
        })
    }

    /// Adds the cells of all rows, if there is nothing about any of them that needs a look. Otherwise adds none.
    fn fill_at_once(&self, cells: &mut ColumnBuilder) -> bool {
        if self.lists.is_some() || !self.misfits.is_empty() {
            return false;
        }
        let there = match &self.valid {
            None => There::All,
            Some(valid) if self.is_dense => There::OnlyOf(valid),
            Some(valid) => There::Of(valid),
        };
        match &self.values {
            PieceValues::Int(values) => cells.extend_ints(values, there),
            PieceValues::Float(values) => cells.extend_floats(values, there),
            PieceValues::Bool(values) => cells.extend_bools(values, there),
            PieceValues::Text(texts) => cells.extend_texts(texts.iter(), there, |text, all| Some(all.code((*text)?))),
            PieceValues::Coded(codes, entries) if entries.len() <= codes.len() => {
                // What the code of each entry is in the column, once it was asked for.
                let mut known = vec![None; entries.len()];
                cells.extend_texts(codes.iter(), there, |code, all| {
                    let known = &mut known[*code as usize];
                    if known.is_none() {
                        *known = Some(all.code(entries.get(*code)?));
                    }
                    *known
                })
            }
            PieceValues::Coded(codes, entries) => {
                cells.extend_texts(codes.iter(), there, |code, all| Some(all.code(entries.get(*code)?)))
            }
        }
    }

    #[inline]
    fn push(&self, cells: &mut ColumnBuilder, at: usize) -> bool {
        match &self.values {
            PieceValues::Int(values) => !self.is_misfit(at) && cells.push_int(values[at]),
            PieceValues::Float(values) => cells.push_float(values[at]),
            PieceValues::Bool(values) => cells.push_bool(values[at]),
            PieceValues::Text(texts) => texts[at].is_some_and(|text| cells.push_str(text)),
            PieceValues::Coded(codes, entries) => entries.get(codes[at]).is_some_and(|text| cells.push_str(text)),
        }
    }

    fn is_misfit(&self, at: usize) -> bool {
        !self.misfits.is_empty() && self.misfits.binary_search(&at).is_ok()
    }

    /// A value for a message.
    fn shown(&self, at: usize) -> String {
        match &self.values {
            PieceValues::Int(_) => "a number that does not fit 64 bits".to_owned(),
            PieceValues::Float(values) => values[at].to_string(),
            PieceValues::Bool(values) => values[at].to_string(),
            PieceValues::Text(_) | PieceValues::Coded(..) => "text that is not UTF-8".to_owned(),
        }
    }
}

/// Adds a list; `at` counts lists like other values.
fn push_list(piece: &Piece<'_>, lists: &Lists, cells: &mut ColumnBuilder, row: usize, at: usize) -> bool {
    if lists.with_nulls.binary_search(&row).is_ok() {
        return false;
    }
    let Some(mut cell) = cells.open() else { return false };
    let mut elements = lists.offsets[at]..lists.offsets[at + 1];
    elements.all(|element| push_element(piece, &mut cell, element)) && cell.close()
}

#[inline]
fn push_element(piece: &Piece<'_>, cell: &mut OpenCell<'_>, at: usize) -> bool {
    match &piece.values {
        PieceValues::Int(values) => !piece.is_misfit(at) && cell.push_int(values[at]),
        PieceValues::Float(values) => cell.push_float(values[at]),
        PieceValues::Bool(_) => false,
        PieceValues::Text(texts) => texts[at].is_some_and(|text| cell.push_str(text)),
        PieceValues::Coded(codes, entries) => entries.get(codes[at]).is_some_and(|text| cell.push_str(text)),
    }
}

/// A float of 16 bits: sign, five bits of exponent, ten of fraction.
pub(super) fn half_float(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let value = match exponent {
        0 => fraction * math::exp2(-24.0),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * math::exp2(f64::from(exponent - 25)),
    };
    if bits >> 15 == 1 { -value } else { value }
}
