//! Rows as JSON objects, straight from their columns. Most of what a request costs besides its plan is spent here: names are
//! made into bytes once for all rows, so are strings that come again and again, columns are taken apart before the first row,
//! and whether there is room is looked at once a row. Nothing is allocated for a row.

use rankd_column::rowset::Rows;
use rankd_column::{Column, Dictionary, Elements, IdTexts, Key, RowSet, Span, Vectors};
use rankd_plan::Registry;
use rankd_plan::json::{
    NUMBER_ROOM, is_plain, push_float, push_int, push_single, push_string, put, put_float, put_int,
};

/// How long rows will be: a guess that saves growing step by step.
pub(crate) fn bytes_about(outputs: &[RowSet]) -> usize {
    let id = |output: &RowSet| if output.batch().id_texts().is_some() { 48 } else { 16 };
    outputs.iter().map(|output| output.len() * (id(output) + 24 * output.batch().columns().len())).sum()
}

/// How much there is to write: cells, and long strings for as many cells as take that long.
pub(crate) fn weight(outputs: &[RowSet]) -> usize {
    const BYTES_A_CELL: usize = 64;
    let texts = |output: &RowSet| {
        let columns = output.batch().columns().iter().filter_map(|(_, column)| match &**column {
            // Even if all rows had the longest one, they would weigh little.
            Column::Str(_, dictionary) if dictionary.text_bytes().saturating_mul(output.len()) < 64 << 10 => None,
            Column::Str(cells, dictionary) => {
                let bytes = |row| cells.get(row).map_or(0, |code| dictionary.get(code).len());
                Some(output.rows().iter().map(bytes).sum::<usize>())
            }
            Column::List(cells, elements) => {
                let Elements::Str(codes, dictionary) = &**elements else { return None };
                let text = |code: &u32| dictionary.get(*code).len();
                let bytes = |row| cells.get(row).map_or(0, |span| codes[span.range()].iter().map(text).sum());
                Some(output.rows().iter().map(bytes).sum::<usize>())
            }
            Column::Int(_) | Column::Float(_) | Column::Bool(_) | Column::Vector(..) => None,
        });
        let ids = output.batch().id_texts().map_or(0, |texts| output.ids().map(|id| texts.text(id).len()).sum());
        (ids + columns.sum::<usize>()) / BYTES_A_CELL
    };
    // Each element of a list takes as long as a cell.
    let elements = |output: &RowSet| {
        let columns = output.batch().columns().iter().map(|(_, column)| match &**column {
            Column::List(cells, _) => {
                output.rows().iter().map(|row| cells.get(row).map_or(0, |span| span.len as usize)).sum()
            }
            Column::Vector(_, vectors) => output.len() * usize::from(vectors.dimension()),
            Column::Int(_) | Column::Float(_) | Column::Bool(_) | Column::Str(..) => 0,
        });
        columns.sum::<usize>()
    };
    let cells = |output: &RowSet| output.len() * (1 + output.batch().columns().len());
    outputs.iter().map(|output| cells(output) + texts(output) + elements(output)).sum()
}

/// Writes rows as the items of an array. Each row its id first, then its keys in registry order; a null is left out.
pub(crate) fn push_rows(out: &mut Vec<u8>, output: &RowSet, registry: &Registry, wanted: Option<&[Key]>) {
    let batch = output.batch();
    let columns = batch.columns().iter().filter(|(key, _)| wanted.is_none_or(|keys| keys.contains(key)));
    let fields = columns.map(|(key, column)| RowField::new(&registry.key(*key).name, column, output.len()));
    let fields = fields.collect();
    match batch.id_texts() {
        None => Page { ids: IntIds(batch.ids()), fields }.push_all(out, output.rows()),
        Some(texts) => Page { ids: TextIds(batch.ids(), texts), fields }.push_all(out, output.rows()),
    }
}

/// The ids of an output. Which kind they are is decided before the first row.
trait Ids {
    /// The room that an id needs, if it is not long.
    const ROOM: usize;

    /// Puts an id that is not long. None where it is.
    fn put(&self, room: &mut [u8], at: usize, row: usize) -> Option<usize>;

    fn push(&self, out: &mut Vec<u8>, row: usize);
}

struct IntIds<'a>(&'a [i64]);

impl Ids for IntIds<'_> {
    const ROOM: usize = NUMBER_ROOM;

    #[inline(always)]
    fn put(&self, room: &mut [u8], at: usize, row: usize) -> Option<usize> {
        Some(put_int(room, at, self.0[row]))
    }

    fn push(&self, out: &mut Vec<u8>, row: usize) {
        push_int(out, self.0[row]);
    }
}

/// Codes, and what they stand for.
struct TextIds<'a>(&'a [i64], &'a IdTexts);

impl Ids for TextIds<'_> {
    /// A UUID has 36 letters.
    const ROOM: usize = 64;

    fn put(&self, room: &mut [u8], at: usize, row: usize) -> Option<usize> {
        put_string(room, at, self.1.text(self.0[row]), Self::ROOM)
    }

    fn push(&self, out: &mut Vec<u8>, row: usize) {
        push_string(out, self.1.text(self.0[row]));
    }
}

/// The columns of an output, ready to be written row by row.
struct Page<'a, I> {
    ids: I,
    fields: Vec<RowField<'a>>,
}

/// So much room is made at once, or what one row needs.
const BLOCK: usize = 1024;

/// What stands before an id: the end of a row is written with the beginning of the next.
const BEFORE_ID: &[u8; 8] = b"},{\"id\":";

impl<I: Ids> Page<'_, I> {
    fn push_all(&self, out: &mut Vec<u8>, rows: Rows<'_>) {
        match rows {
            Rows::Range { start, len } => self.push(out, start..start + len),
            Rows::Listed(rows) => self.push(out, rows.iter().map(|row| *row as usize)),
        }
    }

    fn push(&self, out: &mut Vec<u8>, rows: impl Iterator<Item = usize>) {
        if self.fields.iter().any(RowField::is_array) {
            return self.push_with_arrays(out, rows);
        }
        let row_room = BEFORE_ID.len() + I::ROOM + self.fields.iter().map(RowField::room).sum::<usize>();
        // The first row ends no other one, and where no rows came before, it follows none.
        let (start, mut too_much) = (out.len(), if out.ends_with(b"[") { 2 } else { 1 });
        let mut at = start;
        for row in rows {
            if out.len() - at < row_room {
                out.resize(at + row_room.max(BLOCK), 0);
            }
            at += match self.put(&mut out[at..], row) {
                Some(used) => used,
                None => {
                    out.truncate(at);
                    self.push_slowly(out, row);
                    out.len() - at
                }
            };
            if too_much > 0 {
                out.copy_within(start + too_much..at, start);
                at -= std::mem::take(&mut too_much);
            }
        }
        out.truncate(at);
        if at > start {
            out.push(b'}');
        }
    }

    /// Rows with lists or vectors: how long a row becomes is not known before it is written.
    fn push_with_arrays(&self, out: &mut Vec<u8>, rows: impl Iterator<Item = usize>) {
        let (start, mut too_much) = (out.len(), if out.ends_with(b"[") { 2 } else { 1 });
        for row in rows {
            self.push_slowly(out, row);
            if too_much > 0 {
                out.drain(start..start + std::mem::take(&mut too_much));
            }
        }
        if out.len() > start {
            out.push(b'}');
        }
    }

    /// Puts a row, up to its last value, into room that is long enough for any but long texts. None where it has one.
    #[inline(always)]
    fn put(&self, room: &mut [u8], row: usize) -> Option<usize> {
        put(room, 0, BEFORE_ID);
        let mut at = self.ids.put(room, BEFORE_ID.len(), row)?;
        for field in &self.fields {
            if field.is_null(row) {
                continue;
            }
            if let Values::Few(codes, strings, _) = &field.values {
                at = strings[codes[row] as usize].put(room, at)?;
                continue;
            }
            at = field.short.put(room, at)?;
            at = match &field.values {
                Values::Int(values) => put_int(room, at, values[row]),
                Values::Float(values) => put_float(room, at, values[row]),
                Values::Bool(values) => {
                    let (text, used) = if values[row] { (b"true ", 4) } else { (b"false", 5) };
                    put(room, at, text);
                    at + used
                }
                Values::Few(codes, _, dictionary) | Values::Str(codes, dictionary) => {
                    put_string(room, at, dictionary.get(codes[row]), SHORT)?
                }
                Values::List(..) | Values::Vector(..) => return None,
            };
        }
        Some(at)
    }

    /// The same for a row with any texts.
    fn push_slowly(&self, out: &mut Vec<u8>, row: usize) {
        out.extend_from_slice(BEFORE_ID);
        self.ids.push(out, row);
        for field in self.fields.iter().filter(|field| !field.is_null(row)) {
            out.extend_from_slice(&field.start);
            match &field.values {
                Values::Int(values) => push_int(out, values[row]),
                Values::Float(values) => push_float(out, values[row]),
                Values::Bool(values) => out.extend_from_slice(if values[row] { b"true" } else { b"false" }),
                Values::Few(codes, _, dictionary) | Values::Str(codes, dictionary) => {
                    push_string(out, dictionary.get(codes[row]));
                }
                Values::List(spans, elements) => match elements {
                    Elements::Int(values) => push_array(out, &values[spans[row].range()], |out, v| push_int(out, *v)),
                    Elements::Float(values) => {
                        push_array(out, &values[spans[row].range()], |out, v| push_float(out, *v));
                    }
                    Elements::Str(codes, dictionary) => {
                        let push = |out: &mut Vec<u8>, code: &u32| push_string(out, dictionary.get(*code));
                        push_array(out, &codes[spans[row].range()], push);
                    }
                },
                Values::Vector(cells, vectors) => {
                    push_array(out, vectors.get(cells[row]), |out, v| push_single(out, *v));
                }
            }
        }
    }
}

/// A column, and what stands before each of its values.
struct RowField<'a> {
    /// `,"name":`, and the same where it is short.
    start: Vec<u8>,
    short: Short,
    valid: Option<&'a [bool]>,
    values: Values<'a>,
}

/// The cells of a column. Those of nulls mean nothing.
enum Values<'a> {
    Int(&'a [i64]),
    Float(&'a [f64]),
    Bool(&'a [bool]),
    /// Few strings for many rows: each is quoted and escaped beforehand, with the name before it.
    Few(&'a [u32], Box<[Short]>, &'a Dictionary),
    Str(&'a [u32], &'a Dictionary),
    List(&'a [Span], &'a Elements),
    Vector(&'a [u32], &'a Vectors),
}

impl<'a> RowField<'a> {
    fn new(name: &str, column: &'a Column, rows: usize) -> RowField<'a> {
        let mut start = vec![b','];
        push_string(&mut start, name);
        start.push(b':');
        let values = match column {
            Column::Int(cells) => Values::Int(cells.values()),
            Column::Float(cells) => Values::Float(cells.values()),
            Column::Bool(cells) => Values::Bool(cells.values()),
            Column::Str(cells, dictionary) if dictionary.len() <= rows / 2 => {
                Values::Few(cells.values(), shorts(&start, dictionary), dictionary)
            }
            Column::Str(cells, dictionary) => Values::Str(cells.values(), dictionary),
            Column::List(cells, elements) => Values::List(cells.values(), elements),
            Column::Vector(cells, vectors) => Values::Vector(cells.values(), vectors),
        };
        RowField { short: Short::of(&start), start, valid: column.valid(), values }
    }

    /// The room that its name and its value need, if neither is long.
    fn room(&self) -> usize {
        SHORT + NUMBER_ROOM.max(SHORT)
    }

    fn is_array(&self) -> bool {
        matches!(self.values, Values::List(..) | Values::Vector(..))
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.valid.is_some_and(|valid| !valid[row])
    }
}

fn push_array<T>(out: &mut Vec<u8>, items: &[T], push: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

/// Puts a string in which nothing is escaped, if it has so much room, and no other.
#[inline]
fn put_string(room: &mut [u8], at: usize, text: &str, length: usize) -> Option<usize> {
    if text.len() + 2 > length || !is_plain(text) {
        return None;
    }
    let end = at + 1 + text.len();
    put(room, at, b"\"");
    room[at + 1..end].copy_from_slice(text.as_bytes());
    put(room, end, b"\"");
    Some(end + 1)
}

/// The strings of a dictionary, quoted and escaped, each with the name before it.
fn shorts(start: &[u8], dictionary: &Dictionary) -> Box<[Short]> {
    let mut whole = Vec::new();
    let short = |text: &str| {
        whole.clear();
        whole.extend_from_slice(start);
        push_string(&mut whole, text);
        Short::of(&whole)
    };
    dictionary.iter().map(short).collect()
}

const SHORT: usize = 32;

/// A short text, filled up to a fixed length: so many bytes at once are a single move. One that is too long is empty.
struct Short {
    text: [u8; SHORT],
    used: usize,
}

impl Short {
    fn of(bytes: &[u8]) -> Short {
        let mut text = [0; SHORT];
        let used = match text.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                bytes.len()
            }
            None => 0,
        };
        Short { text, used }
    }

    /// None if it is too long.
    #[inline]
    fn put(&self, room: &mut [u8], at: usize) -> Option<usize> {
        put(room, at, &self.text);
        (self.used > 0).then_some(at + self.used)
    }
}
