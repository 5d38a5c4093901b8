//! Rows in a JSON text, read straight into columns: no tree is built, and nothing is read twice but a value that several keys get.
//!
//! A place in the text is the name of a member, or a JSON pointer (RFC 6901), which begins with `/`; the empty text is the value itself.
//! Rows are the items of an array. An object in its place is one row, and null is none. What is not of its key's type is null, and
//! counted; an item without an id is left out, and counted. What a text can cost is bounded by its bytes and by [`ROWS_MAX`] and [`CELLS_MAX`].

use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, IdFault, IdTexts, Key, RowSet, Stop, Stopped, Type};
use rankd_plan::json::{Fault, Fields, Items, Kind, Number, Reader, read_array};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Rows of all texts that are read together.
const ROWS_MAX: usize = 100_000;
/// Cells of these rows.
const CELLS_MAX: usize = 4 << 20;
/// Reading a row takes about as long as so many rows take where they are columns.
const AS_ROWS: usize = 64;
/// How deep a text may nest.
const DEPTH_MAX: usize = 64;

/// Where the rows of a text are, and what of a row becomes which column. Made once, when a plan is linked.
pub(crate) struct JsonRows {
    rows: Vec<Segment>,
    /// The places in a row that matter, as a tree; the row itself is the first.
    places: Vec<Place>,
    columns: Vec<(Key, Type)>,
}

/// A step on the way to a value.
struct Segment {
    name: Box<str>,
    /// The name as the position in an array.
    index: Option<usize>,
}

/// A place in a row.
#[derive(Default)]
struct Place {
    /// What its value becomes.
    cells: Vec<Cell>,
    /// Places inside of it, by name in order.
    inner: Vec<(Segment, usize)>,
}

#[derive(Clone, Copy)]
enum Cell {
    Id,
    Column(usize),
}

/// Why a text has no rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRows {
    NotUtf8,
    NotJson(Fault),
    /// There is neither an array nor an object where the rows are.
    NotThere,
    TooMany,
    /// The run has met more ids than it may keep.
    TooManyIds,
    /// Nobody waits for them any more.
    Stopped,
}

impl From<Stopped> for NoRows {
    fn from(_: Stopped) -> NoRows {
        NoRows::Stopped
    }
}

impl From<Fault> for NoRows {
    fn from(fault: Fault) -> NoRows {
        NoRows::NotJson(fault)
    }
}

impl fmt::Display for NoRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRows::NotUtf8 => f.write_str("it is not UTF-8"),
            NoRows::NotJson(fault) => fault.fmt(f),
            NoRows::NotThere => f.write_str("there is no array"),
            NoRows::TooMany => write!(f, "there are more than {ROWS_MAX} rows or {CELLS_MAX} cells"),
            NoRows::TooManyIds => f.write_str("the run has met more ids than it may keep"),
            NoRows::Stopped => Stopped.fmt(f),
        }
    }
}

/// Rows as far as they were read.
pub(crate) struct ReadRows {
    ids: Vec<i64>,
    texts: Option<Arc<IdTexts>>,
    columns: Vec<ColumnBuilder>,
    /// Rows without an id.
    nameless: Vec<u32>,
    /// By column: values that are not of its type.
    misfits: Vec<u64>,
}

impl JsonRows {
    pub(crate) fn new<'a>(rows: &str, id: &str, fields: impl Iterator<Item = (&'a str, Key, Type)>) -> JsonRows {
        let mut made = JsonRows { rows: segments(rows).collect(), places: vec![Place::default()], columns: Vec::new() };
        made.put(id, Cell::Id);
        for (place, key, type_of) in fields {
            made.put(place, Cell::Column(made.columns.len()));
            made.columns.push((key, type_of));
        }
        for place in &mut made.places {
            place.inner.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        }
        made
    }

    fn put(&mut self, place: &str, cell: Cell) {
        let mut at = 0;
        for segment in segments(place) {
            at = match self.places[at].inner.iter().find(|(known, _)| known.name == segment.name) {
                Some((_, inner)) => *inner,
                None => {
                    let inner = self.places.len();
                    self.places.push(Place::default());
                    self.places[at].inner.push((segment, inner));
                    inner
                }
            };
        }
        self.places[at].cells.push(cell);
    }

    /// No rows yet. `texts` are those of the run, where ids are texts.
    pub(crate) fn begin(&self, texts: Option<&Arc<IdTexts>>) -> ReadRows {
        ReadRows {
            ids: Vec::new(),
            texts: texts.cloned(),
            columns: self.columns.iter().map(|(_, type_of)| ColumnBuilder::new(*type_of, 0)).collect(),
            nameless: Vec::new(),
            misfits: vec![0; self.columns.len()],
        }
    }

    /// Adds the rows of a text.
    pub(crate) fn read(&self, text: &[u8], read: &mut ReadRows, stop: Stop<'_>) -> Result<(), NoRows> {
        let text = std::str::from_utf8(text).map_err(|_| NoRows::NotUtf8)?;
        let mut reader = Reader::new(text, DEPTH_MAX);
        let mut outer = Vec::with_capacity(self.rows.len());
        for segment in &self.rows {
            let mut open = Open::new(&mut reader)?.ok_or(NoRows::NotThere)?;
            loop {
                match open.next(&mut reader)? {
                    None => return Err(NoRows::NotThere),
                    Some(step) if step.is(segment) => break,
                    Some(_) => reader.skip()?,
                }
            }
            outer.push(open);
        }
        let (mut stack, mut looks) = (Vec::new(), stop.looks());
        match reader.peek()? {
            Kind::Null => reader.null()?,
            Kind::Object => self.read_row(&mut reader, &mut stack, read)?,
            Kind::Array => {
                let mut items = reader.open_array()?;
                while reader.item(&mut items)? {
                    looks.before(AS_ROWS)?;
                    self.read_row(&mut reader, &mut stack, read)?;
                }
            }
            Kind::Bool | Kind::Number | Kind::String => return Err(NoRows::NotThere),
        }
        // A text that is cut off or damaged behind the rows is not JSON either.
        while let Some(mut open) = outer.pop() {
            while open.next(&mut reader)?.is_some() {
                reader.skip()?;
            }
        }
        Ok(reader.end()?)
    }

    fn read_row<'t>(
        &self,
        reader: &mut Reader<'t>,
        stack: &mut Vec<(Open, usize)>,
        read: &mut ReadRows,
    ) -> Result<(), NoRows> {
        let row = read.ids.len();
        if row >= ROWS_MAX || (row + 1) * (1 + read.columns.len()) > CELLS_MAX {
            return Err(NoRows::TooMany);
        }
        let mut id = None;
        self.read_value(0, reader, stack, read, &mut id)?;
        while let Some((open, place)) = stack.last_mut() {
            let place = *place;
            match open.next(reader)? {
                None => drop(stack.pop()),
                Some(step) => match step.find(&self.places[place].inner) {
                    Some(inner) => self.read_value(inner, reader, stack, read, &mut id)?,
                    None => reader.skip()?,
                },
            }
        }
        if id.is_none() {
            read.nameless.push(row as u32);
        }
        read.ids.push(id.unwrap_or_default());
        let short = read.columns.iter_mut().filter(|column| column.len() == row);
        short.for_each(ColumnBuilder::push_null);
        Ok(())
    }

    /// Reads a value that is at a place, or opens it where only what is inside of it matters.
    fn read_value<'t>(
        &self,
        at: usize,
        reader: &mut Reader<'t>,
        stack: &mut Vec<(Open, usize)>,
        read: &mut ReadRows,
        id: &mut Option<i64>,
    ) -> Result<(), NoRows> {
        let Place { cells, inner } = &self.places[at];
        let mut after = None;
        for cell in cells {
            let mut copy = reader.clone();
            match *cell {
                // Of a member that comes twice, the first counts.
                Cell::Id if id.is_some() => copy.skip()?,
                Cell::Id => *id = read.id(&mut copy)?,
                Cell::Column(column) => read.cell(column, &mut copy)?,
            }
            after = Some(copy);
        }
        if !inner.is_empty()
            && let Some(open) = Open::new(reader)?
        {
            stack.push((open, at));
            return Ok(());
        }
        match after {
            Some(after) => *reader = after,
            None => reader.skip()?,
        }
        Ok(())
    }

    /// The rows as a set, each text's in its order.
    pub(crate) fn finish(&self, read: ReadRows) -> RowSet {
        let ReadRows { ids, texts, columns, nameless, .. } = read;
        let rows = ids.len() as u32;
        let mut batch = Batch::with_ids(ids, texts);
        for ((key, _), column) in self.columns.iter().zip(columns) {
            batch = batch.with(*key, Arc::new(column.finish()));
        }
        let all = RowSet::new(batch);
        if nameless.is_empty() {
            return all;
        }
        let mut left_out = nameless.into_iter().peekable();
        all.looking_at((0..rows).filter(|row| left_out.next_if_eq(row).is_none()).collect())
    }
}

impl ReadRows {
    /// Rows that had no id.
    pub(crate) fn nameless(&self) -> u64 {
        self.nameless.len() as u64
    }

    /// Values that were not of their column's type, by the place of the column.
    pub(crate) fn misfits(&self) -> &[u64] {
        &self.misfits
    }

    /// The id that is next, if it is one.
    fn id(&self, reader: &mut Reader<'_>) -> Result<Option<i64>, NoRows> {
        let found = match reader.peek()? {
            Kind::Number => match reader.number()? {
                Number::Int(value) => return self.named(&value.to_string(), Some(value)),
                Number::Float(_) | Number::OutOfRange => None,
            },
            Kind::String => Some(reader.string()?),
            Kind::Null | Kind::Bool | Kind::Array | Kind::Object => {
                reader.skip()?;
                None
            }
        };
        match found {
            Some(text) => self.named(&text, is_decimal(&text).then(|| text.parse().ok()).flatten()),
            None => Ok(None),
        }
    }

    /// An id as rows hold it, from its text and from the int that it is, if it is one.
    fn named(&self, text: &str, int: Option<i64>) -> Result<Option<i64>, NoRows> {
        let Some(texts) = &self.texts else { return Ok(int) };
        match texts.code(text) {
            Ok(code) => Ok(Some(code)),
            Err(IdFault::TooMany) => Err(NoRows::TooManyIds),
            Err(_) => Ok(None),
        }
    }

    /// Reads the next value into a column, unless the row has one there.
    fn cell(&mut self, column: usize, reader: &mut Reader<'_>) -> Result<(), Fault> {
        let (row, misfits) = (self.ids.len(), &mut self.misfits[column]);
        let column = &mut self.columns[column];
        if column.len() > row {
            return reader.skip();
        }
        let fits = match reader.peek()? {
            Kind::Null => {
                reader.null()?;
                column.push_null();
                true
            }
            Kind::Bool => column.push_bool(reader.bool()?),
            Kind::Number => match reader.number()? {
                Number::Int(value) => column.push_int(value),
                Number::Float(value) => column.push_float(value),
                Number::OutOfRange => false,
            },
            Kind::String => column.push_str(&reader.string()?),
            Kind::Array => match column.open() {
                Some(mut cell) => read_array(reader, &mut cell)?.is_ok() && cell.close(),
                None => {
                    reader.skip()?;
                    false
                }
            },
            Kind::Object => {
                reader.skip()?;
                false
            }
        };
        if !fits {
            column.push_null();
            *misfits += 1;
        }
        Ok(())
    }
}

/// Whether a text is a decimal int and nothing else.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The way to a place.
fn segments(place: &str) -> impl Iterator<Item = Segment> {
    let pointer = place.strip_prefix('/');
    let names: Vec<Cow<'_, str>> = match pointer {
        Some(pointer) => pointer.split('/').map(unescaped).collect(),
        None if place.is_empty() => Vec::new(),
        None => vec![Cow::Borrowed(place)],
    };
    let segment = |name: Cow<'_, str>| Segment { index: index(&name), name: name.into() };
    names.into_iter().map(segment).collect::<Vec<_>>().into_iter()
}

fn unescaped(name: &str) -> Cow<'_, str> {
    match name.contains('~') {
        true => Cow::Owned(name.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(name),
    }
}

/// A position in an array has no zeros before it.
fn index(name: &str) -> Option<usize> {
    let is_index = name == "0" || (name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0'));
    is_index.then(|| name.parse().ok()).flatten()
}

/// An object or array that is being read.
enum Open {
    Object(Fields),
    Array(Items, usize),
}

/// What comes next in it: a value with a name or a position.
enum Step<'t> {
    Name(Cow<'t, str>),
    Index(usize),
}

impl Open {
    /// Opens the next value, if it is one that can be opened.
    fn new(reader: &mut Reader<'_>) -> Result<Option<Open>, Fault> {
        Ok(match reader.peek()? {
            Kind::Object => Some(Open::Object(reader.open_object()?)),
            Kind::Array => Some(Open::Array(reader.open_array()?, 0)),
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => None,
        })
    }

    fn next<'t>(&mut self, reader: &mut Reader<'t>) -> Result<Option<Step<'t>>, Fault> {
        Ok(match self {
            Open::Object(fields) => reader.field_name(fields)?.map(Step::Name),
            Open::Array(items, at) => {
                let step = reader.item(items)?.then_some(Step::Index(*at));
                *at += 1;
                step
            }
        })
    }
}

impl Step<'_> {
    fn is(&self, segment: &Segment) -> bool {
        match self {
            Step::Name(name) => **name == *segment.name,
            Step::Index(at) => segment.index == Some(*at),
        }
    }

    /// The place that it leads to, if it matters.
    fn find(&self, inner: &[(Segment, usize)]) -> Option<usize> {
        match self {
            Step::Name(name) => {
                let at = inner.binary_search_by(|(segment, _)| (*segment.name).cmp(name)).ok()?;
                Some(inner[at].1)
            }
            Step::Index(_) => inner.iter().find(|(segment, _)| self.is(segment)).map(|(_, place)| *place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::Value;
    use rankd_column::id_texts::IdDictionary;

    const YEAR: Key = Key(1);
    const TITLE: Key = Key(2);
    const SCORE: Key = Key(3);
    const SEEN: Key = Key(4);

    fn json_rows(rows: &str, id: &str, fields: &[&'static str]) -> JsonRows {
        let all = [(YEAR, Type::Int), (TITLE, Type::Str), (SCORE, Type::Float), (SEEN, Type::Bool)];
        JsonRows::new(rows, id, fields.iter().zip(all).map(|(place, (key, type_of))| (*place, key, type_of)))
    }

    /// The rows as text, and how much was skipped.
    fn read_all(shape: &JsonRows, texts: &[&str]) -> Result<(String, u64), NoRows> {
        let mut read = shape.begin(None);
        for text in texts {
            shape.read(text.as_bytes(), &mut read, Stop::default())?;
        }
        let skipped = read.nameless() + read.misfits().iter().sum::<u64>();
        let rows = shape.finish(read);
        let show = |at: usize| {
            let cells = shape.columns.iter().map(|(key, _)| rows.value(*key, at).to_string());
            let id = rows.value(Key::ID, at).to_string();
            [id].into_iter().chain(cells).collect::<Vec<_>>().join(" ")
        };
        Ok(((0..rows.len()).map(show).collect::<Vec<_>>().join("; "), skipped))
    }

    fn rows(shape: &JsonRows, text: &str) -> String {
        read_all(shape, &[text]).unwrap().0
    }

    #[test]
    fn members_and_pointers_become_columns() {
        let shape = json_rows("/data/items", "id", &["/meta/year", "title", "/scores/1", "seen"]);
        let text = r#"{"page": [1, {"x": []}], "data": {"items": [
            {"id": 7, "meta": {"year": 1999, "x": 1}, "title": "A", "scores": [1, 2.5, 3], "seen": true, "other": {"a": [1]}},
            {"title": "B\n", "id": "8", "scores": []}
        ], "more": 1}, "end": null}"#;
        assert_eq!(rows(&shape, text), "7 1999 \"A\" 2.5 true; 8 null \"B\\n\" null null");
    }

    #[test]
    fn rows_may_be_the_whole_text_one_object_ids_alone_or_none() {
        let shape = json_rows("", "id", &["year"]);
        assert_eq!(rows(&shape, "[{\"id\":1,\"year\":2}]"), "1 2");
        assert_eq!(rows(&shape, "{\"id\":1,\"year\":2}"), "1 2");
        assert_eq!(rows(&shape, " [] "), "");
        assert_eq!(rows(&shape, "null"), "");
        assert_eq!(rows(&json_rows("ids", "", &[]), "{\"ids\":[3,\"4\",-5]}"), "3; 4; -5");
        assert_eq!(rows(&json_rows("/0/1", "", &[]), "[[0,[6]],[7]]"), "6");
        assert_eq!(rows(&json_rows("/a~1b/c~0d", "/", &[]), "{\"a/b\":{\"c~d\":[{\"\":9}]}}"), "9");
    }

    #[test]
    fn what_is_not_of_its_type_is_null_and_counted_and_a_row_without_an_id_is_left_out() {
        let shape = json_rows("", "id", &["year", "title", "score", "seen"]);
        let text = r#"[{"id":1,"year":"1999","title":3,"score":7,"seen":1},
            {"id":2,"year":1.5,"title":["a"],"score":1e999,"seen":null},
            {"year":1},{"id":1.5},{"id":"x"},{"id":null},{"id":[1]},7,"8",null,
            {"id":3,"id":4,"year":1,"year":2}]"#;
        let (shown, skipped) = read_all(&shape, &[text]).unwrap();
        assert_eq!(shown, "1 null null 7 null; 2 null null null null; 3 1 null null null");
        assert_eq!(skipped, 3 + 3 + 8);
    }

    #[test]
    fn arrays_are_lists_and_vectors() {
        let types = ["list<string>", "vector<2>"].map(|name| name.parse::<Type>().unwrap());
        let shape = JsonRows::new(
            "",
            "id",
            ["tags", "/embedding"]
                .into_iter()
                .zip([YEAR, TITLE])
                .zip(types)
                .map(|((place, key), type_of)| (place, key, type_of)),
        );
        let text =
            r#"[{"id":1,"tags":["a","b"],"embedding":[1,0.5]},{"id":2,"tags":[],"embedding":[1]},{"id":3,"tags":"a"}]"#;
        let (shown, skipped) = read_all(&shape, &[text]).unwrap();
        assert_eq!(shown, "1 [\"a\", \"b\"] [1.0, 0.5]; 2 [] null; 3 null null");
        assert_eq!(skipped, 2);
    }

    #[test]
    fn one_value_may_become_several_columns_and_be_looked_into() {
        let shape = json_rows("", "/a/0", &["/a/0", "/a", "/a/0"]);
        assert_eq!(read_all(&shape, &["[{\"a\":[5,6]}]"]), Ok(("5 5 null 5".into(), 1)));
    }

    #[test]
    fn several_texts_are_read_one_after_the_other() {
        let shape = json_rows("", "id", &["year"]);
        let texts = ["[{\"id\":1,\"year\":1},{\"id\":2}]", "[]", "[{\"id\":3,\"year\":3}]"];
        assert_eq!(read_all(&shape, &texts).unwrap().0, "1 1; 2 null; 3 3");
    }

    #[test]
    fn ids_that_are_texts_may_be_anything_short_and_an_int_is_its_digits() {
        let texts = Arc::new(IdTexts::new(IdDictionary::empty()));
        let shape = json_rows("", "id", &[]);
        let mut read = shape.begin(Some(&texts));
        shape
            .read(
                b"[{\"id\":\"tt1\"},{\"id\":7},{\"id\":\"\"},{\"id\":\"a\\u0000\"},{\"id\":\"7\"}]",
                &mut read,
                Stop::default(),
            )
            .unwrap();
        assert_eq!(read.nameless(), 2);
        let rows = shape.finish(read);
        let ids: Vec<Value> = (0..rows.len()).map(|at| rows.value(Key::ID, at)).collect();
        assert_eq!(ids, [Value::str("tt1"), Value::str("7"), Value::str("7")]);
        assert_eq!(rows.ids().nth(1), rows.ids().nth(2));
    }

    #[test]
    fn what_is_not_json_or_has_no_rows_is_an_error() {
        let shape = json_rows("/items", "id", &["year"]);
        let wrong = |text: &str| read_all(&shape, &[text]).unwrap_err();
        for text in ["{}", "[]", "{\"items\":7}", "{\"items\":\"x\"}", "{\"items\":true}", "7", "{\"item\":[]}"] {
            assert_eq!(wrong(text), NoRows::NotThere, "{text}");
        }
        let deep = format!("{{\"items\":[{}", "[".repeat(1_000_000));
        for text in
            ["", "<html>", "{\"items\":[", "{\"items\":[]", "{\"items\":[]} x", "{\"items\":[{\"id\":1,}]}", &deep]
        {
            assert!(matches!(wrong(text), NoRows::NotJson(_)), "{:?}: {:?}", text.get(..20), wrong(text));
        }
        assert_eq!(shape.read(b"\xff", &mut shape.begin(None), Stop::default()), Err(NoRows::NotUtf8));
    }

    #[test]
    fn rows_and_cells_are_bounded() {
        let shape = json_rows("", "", &[]);
        let ids = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert!(read_all(&shape, &[&ids(ROWS_MAX)]).is_ok());
        assert_eq!(read_all(&shape, &[&ids(ROWS_MAX), "[1]"]).unwrap_err(), NoRows::TooMany);
        let names: Vec<String> = (0..99).map(|at| at.to_string()).collect();
        let wide = JsonRows::new("", "", names.iter().map(|name| (name.as_str(), YEAR, Type::Int)));
        let many = ids(CELLS_MAX / 100 + 1);
        assert_eq!(wide.read(many.as_bytes(), &mut wide.begin(None), Stop::default()), Err(NoRows::TooMany));
    }
}
