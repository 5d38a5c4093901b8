//! NDJSON: an object a line, whose fields are the columns. A field that is not there is null.

use super::LeftOutWhy;
use super::builder::{RefusedId, TableBuilder, null_id, short, shown};
use super::guess::Guess;
use super::inspect::Proposed;
use super::problem::{Place, TableProblem};
use super::source::{Blocks, Source};
use rankd_column::Type;
use rankd_column::column::ColumnBuilder;
use rankd_plan::json::{Fault, FieldName, Kind, Number, Reader, read_array};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// Values nest no deeper, also those of fields that nobody wants.
pub(super) const DEPTH_MAX: usize = 64;
/// A list of plain values nests no deeper.
const ARRAY_DEPTH_MAX: usize = 1;
/// The most fields that all lines together have.
pub(super) const FIELDS_MAX: usize = 10_000;

pub(super) fn read(source: &mut Source<'_>, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
    let mut fields = JsonFields { list: Vec::new(), positions: HashMap::new(), line: 0 };
    table.begin()?;
    lines(source, |line, text| fields.read_row(line, text, table))?;
    let rows = table.rows();
    table.columns.iter_mut().for_each(|column| fill(&mut column.cells, rows));
    Ok(())
}

pub(super) fn propose(source: &mut Source<'_>) -> Result<Vec<Proposed>, TableProblem> {
    let mut columns: Vec<(String, Guess)> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    lines(source, |line, text| {
        let wrong = |fault: Fault| not_json(line, &fault);
        let mut reader = Reader::new(text, DEPTH_MAX);
        let mut open = reader.open_object().map_err(wrong)?;
        while let Some(name) = reader.field_name(&mut open).map_err(wrong)? {
            let at = match positions.get(&*name) {
                Some(at) => *at,
                None => {
                    positions.insert(name.to_string(), columns.len());
                    columns.push((name.to_string(), Guess::ANY));
                    columns.len() - 1
                }
            };
            if columns.len() > FIELDS_MAX {
                return Err(too_many_fields(line));
            }
            columns[at].1 = columns[at].1.and(JsonValue::read(&mut reader).map_err(wrong)?.guess());
        }
        Ok(())
    })?;
    let no_type = || "values of several types, or objects".to_owned();
    let propose = |(name, guess): (String, Guess)| Proposed { name, type_of: guess.narrowest().ok_or_else(no_type) };
    Ok(columns.into_iter().map(propose).collect())
}

fn too_many_fields(line: u64) -> TableProblem {
    let message = format!("all lines together have more than {FIELDS_MAX} different fields");
    TableProblem::too_much(Place::Line(line), message)
}

/// Goes through the lines that are not empty, each with its number.
pub(super) fn lines(
    source: &mut Source<'_>,
    mut each: impl FnMut(u64, &str) -> Result<(), TableProblem>,
) -> Result<(), TableProblem> {
    let mut blocks = Blocks::new(source)?;
    let mut line = 1;
    loop {
        let block = blocks.block();
        let used = block.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = &block[..used];
        let (text, damaged) = match std::str::from_utf8(whole) {
            Ok(text) => (text, false),
            // What comes before the damage is read, so that the line is known.
            Err(error) => (std::str::from_utf8(&whole[..error.valid_up_to()]).unwrap_or_default(), true),
        };
        for part in text.split_inclusive('\n') {
            if damaged && !part.ends_with('\n') {
                break;
            }
            if !part.trim_ascii().is_empty() {
                each(line, part)?;
            }
            line += 1;
        }
        if damaged {
            return Err(TableProblem::broken(Place::Line(line), "the line is not UTF-8"));
        }
        if !blocks.advance(used, Place::Line(line))? {
            return Ok(());
        }
    }
}

/// The problem of a line that is not JSON.
pub(super) fn not_json(line: u64, fault: &Fault) -> TableProblem {
    TableProblem::broken(Place::Line(line), format!("not JSON: {} (byte {} of the line)", fault.message, fault.at))
}

/// The names that lines have had, in the order in which they came, which later lines tend to keep.
struct JsonFields {
    list: Vec<JsonField>,
    positions: HashMap<String, usize>,
    line: u64,
}

/// A name, and where its values go.
struct JsonField {
    quoted: FieldName,
    name: String,
    is_id: bool,
    columns: Range<usize>,
    /// The last line that had it.
    seen: u64,
}

impl JsonFields {
    fn read_row(&mut self, line: u64, text: &str, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
        let row = table.rows();
        table.places.set_line(row, line);
        self.line = line;
        let wrong = |fault: Fault| not_json(line, &fault);
        let mut reader = Reader::new(text, DEPTH_MAX);
        if reader.peek().map_err(wrong)? != Kind::Object {
            return Err(TableProblem::broken(Place::Line(line), "a line must be a JSON object"));
        }
        let (mut has_id, mut next) = (false, 0);
        let mut open = reader.open_object().map_err(wrong)?;
        loop {
            let at = match self.list.get(next) {
                Some(likely) if reader.field_is(&mut open, &likely.quoted) => next,
                _ => match reader.field_name(&mut open).map_err(wrong)? {
                    Some(name) => self.position(&name, table)?,
                    None => break,
                },
            };
            next = at + 1;
            let field = &mut self.list[at];
            if std::mem::replace(&mut field.seen, line) == line {
                return Err(TableProblem::broken(
                    Place::Line(line),
                    format!("the field {:?} is there twice", field.name),
                ));
            }
            if !field.is_id && field.columns.is_empty() {
                reader.skip().map_err(wrong)?;
                continue;
            }
            let value = JsonValue::read(&mut reader).map_err(wrong)?;
            if field.is_id && value != JsonValue::Null {
                has_id = true;
                push_id(table, row, &field.name, &value)?;
            }
            for column in field.columns.clone() {
                push(table, row, column, &value)?;
            }
        }
        reader.end().map_err(wrong)?;
        if table.ids.is_some() && !has_id {
            return Err(null_id(table.id_name(), row, &table.places));
        }
        table.add_rows(1)
    }

    /// The position of the field with this name; new if it has not come before.
    fn position(&mut self, name: &str, table: &mut TableBuilder<'_>) -> Result<usize, TableProblem> {
        if let Some(at) = self.positions.get(name) {
            return Ok(*at);
        }
        let at = self.list.len();
        if at == FIELDS_MAX {
            return Err(too_many_fields(self.line));
        }
        let (is_id, columns) = (table.is_id(name), table.add_columns(name));
        if !is_id && columns.is_empty() {
            table.leave_out(name, LeftOutWhy::Unwanted);
        }
        self.list.push(JsonField { quoted: FieldName::new(name), name: name.to_owned(), is_id, columns, seen: 0 });
        self.positions.insert(name.to_owned(), at);
        Ok(at)
    }
}

/// A value of a line.
#[derive(Debug, PartialEq)]
pub(super) enum JsonValue<'a> {
    Null,
    Int(i64),
    Float(f64),
    /// A number that fits neither type.
    OutOfRange,
    Bool(bool),
    Str(Cow<'a, str>),
    /// Its text.
    Array(&'a str),
    Object,
}

impl<'a> JsonValue<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<JsonValue<'a>, Fault> {
        Ok(match reader.peek()? {
            Kind::Null => reader.null().map(|()| JsonValue::Null)?,
            Kind::Bool => JsonValue::Bool(reader.bool()?),
            Kind::Number => match reader.number()? {
                Number::Int(value) => JsonValue::Int(value),
                Number::Float(value) => JsonValue::Float(value),
                Number::OutOfRange => JsonValue::OutOfRange,
            },
            Kind::String => JsonValue::Str(reader.string()?),
            Kind::Array => JsonValue::Array(reader.raw()?),
            Kind::Object => reader.skip().map(|()| JsonValue::Object)?,
        })
    }

    /// The types that it could have.
    fn guess(&self) -> Guess {
        match self {
            JsonValue::Null => Guess::ANY,
            JsonValue::Int(_) => Guess::INT.or(Guess::FLOAT),
            JsonValue::Float(_) => Guess::FLOAT,
            JsonValue::Bool(_) => Guess::BOOL,
            JsonValue::Str(_) => Guess::STR,
            JsonValue::Array(text) => Guess::of_array(text),
            JsonValue::OutOfRange | JsonValue::Object => Guess::NONE,
        }
    }

    /// For a message.
    fn shown(&self) -> String {
        match self {
            JsonValue::Null => "null".to_owned(),
            JsonValue::Int(value) => value.to_string(),
            JsonValue::Float(value) => value.to_string(),
            JsonValue::OutOfRange => "a number that does not fit 64 bits".to_owned(),
            JsonValue::Bool(value) => value.to_string(),
            JsonValue::Str(text) => shown(text),
            JsonValue::Array(text) => short(text),
            JsonValue::Object => "an object".to_owned(),
        }
    }
}

fn push_id(table: &mut TableBuilder<'_>, row: usize, name: &str, value: &JsonValue<'_>) -> Result<(), TableProblem> {
    let Some(ids) = &mut table.ids else { return Ok(()) };
    let pushed = match value {
        JsonValue::Int(id) => ids.push_int(row, *id),
        JsonValue::Str(id) if ids.are_texts() => ids.push_text(row, id),
        JsonValue::Null
        | JsonValue::Float(_)
        | JsonValue::OutOfRange
        | JsonValue::Bool(_)
        | JsonValue::Str(_)
        | JsonValue::Array(_)
        | JsonValue::Object => Err(if ids.are_texts() { RefusedId::NotText } else { RefusedId::NotInt }),
    };
    let text = || if let JsonValue::Str(text) = value { text.to_string() } else { value.shown() };
    pushed.map_err(|fault| fault.problem(name, &text(), row, &table.places))
}

fn push(table: &mut TableBuilder<'_>, row: usize, at: usize, value: &JsonValue<'_>) -> Result<(), TableProblem> {
    let column = &mut table.columns[at];
    fill(&mut column.cells, row);
    let cells = &mut column.cells;
    let pushed = match value {
        JsonValue::Null => {
            cells.push_null();
            true
        }
        JsonValue::Int(value) => cells.push_int(*value),
        JsonValue::Float(value) => cells.push_float(*value),
        JsonValue::Bool(value) => cells.push_bool(*value),
        JsonValue::Str(text) => column.type_of == Type::Str && cells.push_str(text),
        JsonValue::Array(text) => push_array(cells, text),
        JsonValue::Object | JsonValue::OutOfRange => false,
    };
    if !pushed {
        cells.push_null();
        let message = format!("{} is not of type {}", value.shown(), column.type_of);
        table.bad.add(table.places.of(row), &column.name, message)?;
    }
    Ok(())
}

/// Adds a list or vector from a JSON array; false, and nothing added, where the text is something else.
pub(super) fn push_array(cells: &mut ColumnBuilder, text: &str) -> bool {
    let Some(mut cell) = cells.open() else { return false };
    let mut reader = Reader::new(text, ARRAY_DEPTH_MAX);
    let is_read = matches!(read_array(&mut reader, &mut cell), Ok(Ok(()))) && reader.end().is_ok();
    is_read && cell.close()
}

/// Nulls for the rows that did not have the field.
fn fill(cells: &mut ColumnBuilder, rows: usize) {
    while cells.len() < rows {
        cells.push_null();
    }
}
