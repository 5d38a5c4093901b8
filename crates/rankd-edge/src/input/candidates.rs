//! The rows that a request brings along, read into columns. What a row costs is paid for every row of every request: no text
//! is made that only an error would show, and a name is looked up only where it is not the one that is likely to come.

use super::{Given, Scalar, ValuePlace, array, find, not_json, scalar};
use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, IdDictionary, IdTexts, Key, RowSet};
use rankd_engine::{RunError, codes};
use rankd_plan::Registry;
use rankd_plan::json::{FieldName, Kind, Reader};
use rankd_plan::registry::{Entry, Named};
use std::sync::Arc;

/// The most cells of all rows and keys together. A key that one row has is a cell of every row, so a short text could ask for
/// a lot of memory.
const CELLS_MAX: usize = 4 << 20;

impl Given<'_, '_> {
    pub(super) fn candidates(&mut self) -> Result<RowSet, RunError> {
        if self.peek()? != Kind::Array {
            return Err(self.wrong("a list of objects"));
        }
        let mut rows = Rows::new(self.registry);
        let mut items = self.reader.open_array().map_err(not_json)?;
        while self.reader.item(&mut items).map_err(not_json)? {
            rows.read(self.reader)?;
        }
        Ok(rows.finish())
    }
}

/// Rows so far, and the keys that they have.
struct Rows<'k> {
    entries: &'k Named<Entry>,
    ids: Vec<i64>,
    /// What the ids are codes of, where they are strings.
    texts: Option<Arc<IdTexts>>,
    /// In the order in which they first came, which later rows tend to keep.
    fields: Vec<CandidateField<'k>>,
    /// By key: its position in `fields`, from 1; 0 for one that has not come.
    known: Vec<u32>,
}

/// A key that a row has had.
struct CandidateField<'k> {
    name: FieldName,
    entry: &'k Entry,
    key: Key,
    /// How many rows there were, with it, when it last came.
    seen: usize,
    column: ColumnBuilder,
}

impl<'k> Rows<'k> {
    fn new(registry: &'k Registry) -> Rows<'k> {
        let texts = registry.has_text_ids().then(|| Arc::new(IdTexts::new(IdDictionary::empty())));
        let entries = &registry.keys;
        Rows { entries, ids: Vec::new(), texts, fields: Vec::new(), known: vec![0; entries.list().len()] }
    }

    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), RunError> {
        let row = self.ids.len();
        if reader.peek().map_err(not_json)? != Kind::Object {
            return Err(RunError::new(codes::WRONG_VALUE, format!("candidates[{row}] must be an object")));
        }
        let (mut id, mut next) = (None, 0);
        let mut open = reader.open_object().map_err(not_json)?;
        loop {
            let at = match self.fields.get(next) {
                Some(likely) if reader.field_is(&mut open, &likely.name) => next,
                _ => match reader.field_name(&mut open).map_err(not_json)? {
                    Some(name) => self.position(&name)?,
                    None => break,
                },
            };
            next = at + 1;
            let field = &mut self.fields[at];
            if std::mem::replace(&mut field.seen, row + 1) == row + 1 {
                return Err(RunError::new(
                    codes::NOT_A_REQUEST,
                    format!("candidates[{row}] has {:?} twice", field.entry.name),
                ));
            }
            let place = ValuePlace::Cell { row, name: &field.entry.name };
            let value = scalar(reader, field.entry, place)?;
            if let Scalar::Array = value {
                field.fill(row);
                array(reader, &mut field.column, field.entry, place)?;
            } else if field.key == Key::ID {
                id = match (&self.texts, value) {
                    (None, Scalar::Int(value)) => Some(value),
                    (Some(texts), value) => code(texts, row, &value)?,
                    (None, _) => None,
                };
            } else if !field.push(row, &value) {
                let Entry { name, type_of, .. } = field.entry;
                return Err(RunError::new(
                    codes::WRONG_VALUE,
                    format!("candidates[{row}].{name} must be of type {type_of}"),
                ));
            }
        }
        self.ids.push(id.ok_or_else(|| RunError::new(codes::MISSING_FIELD, format!("candidates[{row}] has no id")))?);
        if self.ids.len() * self.fields.len() > CELLS_MAX {
            let message =
                format!("candidates have more than {CELLS_MAX} cells: that is rows, times keys that any row has");
            return Err(RunError::new(codes::TOO_MANY_CELLS, message));
        }
        Ok(())
    }

    /// The position of the field with this name; new if it has not come before.
    fn position(&mut self, name: &str) -> Result<usize, RunError> {
        let key = find(self.entries, name, "key", codes::WRONG_KEY)?;
        let position = &mut self.known[key as usize];
        if *position == 0 {
            let entry = self.entries.get(key);
            let column = ColumnBuilder::new(entry.type_of, 0);
            self.fields.push(CandidateField { name: FieldName::new(name), entry, key: Key(key), seen: 0, column });
            *position = self.fields.len() as u32;
        }
        Ok(*position as usize - 1)
    }

    fn finish(self) -> RowSet {
        let rows = self.ids.len();
        let mut batch = Batch::with_ids(self.ids, self.texts);
        for mut field in self.fields.into_iter().filter(|field| field.key != Key::ID) {
            field.fill(rows);
            batch = batch.with(field.key, Arc::new(field.column.finish()));
        }
        RowSet::new(batch)
    }
}

/// The code of an id that is a string, or an int whose digits are the id.
fn code(texts: &IdTexts, row: usize, value: &Scalar<'_>) -> Result<Option<i64>, RunError> {
    let code = match value {
        Scalar::Int(value) => texts.code(&value.to_string()),
        Scalar::Str(text) => texts.code(text),
        Scalar::Null | Scalar::Float(_) | Scalar::Bool(_) | Scalar::Array => return Ok(None),
    };
    let wrong = |fault| RunError::new(codes::WRONG_VALUE, format!("candidates[{row}].id: {fault}"));
    code.map(Some).map_err(wrong)
}

impl CandidateField<'_> {
    /// Nulls for the rows that did not have it.
    fn fill(&mut self, rows: usize) {
        while self.column.len() < rows {
            self.column.push_null();
        }
    }

    /// Adds the cell of a row; false where it is of another type.
    fn push(&mut self, row: usize, value: &Scalar<'_>) -> bool {
        self.fill(row);
        match value {
            Scalar::Null => self.column.push_null(),
            Scalar::Int(value) => return self.column.push_int(*value),
            Scalar::Float(value) => return self.column.push_float(*value),
            Scalar::Bool(value) => return self.column.push_bool(*value),
            Scalar::Str(text) => return self.column.push_str(text),
            // Read by the caller.
            Scalar::Array => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::input;
    use rankd_column::{Key, RowSet, Value};
    use rankd_plan::Registry;
    use rankd_plan::registry::Text;

    /// `id`, and so many keys of each type in turn.
    fn registry(keys: usize) -> Registry {
        let key = |at: usize, name: &str, type_of: &str| {
            format!(
                "[[key]]\nkey_id = {}\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\ndoc = \"\"\n",
                at + 1
            )
        };
        let types = ["int", "float", "bool", "string"];
        let mut text = key(0, "id", "int").replace("nullable = true", "nullable = false\nallow_write = false");
        (1..=keys).for_each(|at| text.push_str(&key(at, &format!("k{at}"), types[(at - 1) % 4])));
        let of = |text| Text { file: "", text };
        let (registry, problems) = Registry::parse(of(&text), of(""), of(""));
        assert!(problems.is_empty());
        registry
    }

    fn read(rows: &str, registry: &Registry) -> Result<RowSet, Box<rankd_engine::RunError>> {
        let text = format!("{{\"user_id\":1,\"candidates\":[{rows}]}}");
        let input = input::read(text.as_bytes(), registry).map_err(|refused| refused.error)?;
        Ok(input.request.candidates.unwrap().rows().unwrap().clone())
    }

    #[test]
    fn rows_mean_the_same_however_they_are_written() {
        let registry = registry(4);
        let rows = [
            r#"{"id":1,"k1":5,"k2":0.5,"k3":true,"k4":"a"}"#,
            r#"{"k4":"b\u0022","k3":false,"k2":2,"k1":-7,"id":2}"#,
            " { \"id\" : 3 ,\n\"k2\": 1e2 , \"k4\" : \"a\" } ",
            r#"{"\u0069d":4,"k\u0031":9,"k3":null}"#,
            r#"{"id":5,"k2":-0.0,"k1":null,"k4":"","k3":true}"#,
        ];
        let read = read(&rows.join(","), &registry).unwrap();
        let (null, int, float, text) = (Value::Null, Value::Int, Value::Float, Value::str);
        let expected = [
            [int(5), float(0.5), Value::Bool(true), text("a")],
            [int(-7), float(2.0), Value::Bool(false), text("b\"")],
            [null.clone(), float(100.0), null.clone(), text("a")],
            [int(9), null.clone(), null.clone(), null.clone()],
            [null, float(-0.0), Value::Bool(true), text("")],
        ];
        assert_eq!(read.ids().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        for (row, cells) in expected.iter().enumerate() {
            for (at, cell) in cells.iter().enumerate() {
                assert_eq!(read.value(Key(at as u32 + 1), row), *cell, "row {row}, key {}", at + 1);
            }
        }
    }

    #[test]
    fn a_key_that_comes_twice_is_found_however_it_is_written() {
        let registry = registry(4);
        for row in [r#"{"id":1,"k1":1,"k1":2}"#, r#"{"k1":1,"id":1,"k\u0031":2}"#, r#"{"id":1,"k1":1,"k2":1,"k1":2}"#] {
            let error = read(&format!(r#"{{"id":0,"k1":1,"k2":2}},{row}"#), &registry).unwrap_err().to_string();
            assert!(error.contains("candidates[1] has \"k1\" twice"), "{error}");
        }
    }

    #[test]
    fn a_short_text_cannot_ask_for_a_lot_of_memory() {
        let registry = registry(99);
        let all: Vec<String> = (1..=99).map(|at| format!("\"k{at}\":null")).collect();
        let wide = format!("{{\"id\":0,{}}}", all.join(","));
        let rows = |count: usize| (1..count).map(|id| format!("{{\"id\":{id}}},")).collect::<String>() + &wide;
        // A hundred keys with the id.
        assert_eq!(read(&rows(super::CELLS_MAX / 100), &registry).unwrap().len(), super::CELLS_MAX / 100);
        let error = read(&rows(super::CELLS_MAX / 100 + 1), &registry).unwrap_err().to_string();
        assert!(error.starts_with("E111"), "{error}");
    }
}
