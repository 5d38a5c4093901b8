//! A column: the cells of one key, one value a row, with a byte of validity a row where there are nulls.
//!
//! A byte a row rather than a bit: the compiler vectorises loops over bytes, and reading bits one by one costs several
//! times as much. Invariant: `valid`, when present, is as long as `values`. The value of a null cell means nothing.

use crate::dictionary::{Dictionary, DictionaryBuilder};
use crate::value::{Type, Value};
use std::sync::Arc;

/// Values of one type and which of them are there.
#[derive(Clone, Debug, Default)]
pub struct Cells<T> {
    values: Vec<T>,
    valid: Option<Vec<bool>>,
}

impl<T: Copy + Default> Cells<T> {
    /// Cells without nulls.
    pub fn full(values: Vec<T>) -> Cells<T> {
        Cells { values, valid: None }
    }

    /// Cells with a validity byte each. Panics when the lengths differ: that is a bug in the caller.
    pub fn new(values: Vec<T>, valid: Option<Vec<bool>>) -> Cells<T> {
        assert!(valid.as_ref().is_none_or(|valid| valid.len() == values.len()), "validity of another length");
        Cells { values, valid }
    }

    pub fn with_capacity(rows: usize) -> Cells<T> {
        Cells { values: Vec::with_capacity(rows), valid: None }
    }

    pub fn push(&mut self, cell: Option<T>) {
        match (cell, &mut self.valid) {
            (Some(_), None) => {}
            (cell, Some(valid)) => valid.push(cell.is_some()),
            (None, none) => {
                let mut valid = Vec::with_capacity(self.values.capacity().max(self.values.len() + 1));
                valid.resize(self.values.len(), true);
                valid.push(false);
                *none = Some(valid);
            }
        }
        self.values.push(cell.unwrap_or_default());
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All values; those of null cells mean nothing.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Which cells are there; `None` when all are.
    pub fn valid(&self) -> Option<&[bool]> {
        self.valid.as_deref()
    }

    /// The same cells with a value in place of every null.
    fn filled(&self, value: T) -> Cells<T> {
        let there = |row: usize| self.valid.as_ref().is_none_or(|valid| valid[row]);
        let values = self.values.iter().enumerate().map(|(row, cell)| if there(row) { *cell } else { value });
        Cells::full(values.collect())
    }

    pub fn get(&self, row: usize) -> Option<T> {
        match &self.valid {
            Some(valid) if !valid[row] => None,
            _ => Some(self.values[row]),
        }
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Cells<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(cells: I) -> Cells<T> {
        let cells = cells.into_iter();
        let mut out = Cells::with_capacity(cells.size_hint().0);
        cells.for_each(|cell| out.push(cell));
        out
    }
}

/// The cells of one key for every row of a batch.
#[derive(Clone, Debug)]
pub enum Column {
    Int(Cells<i64>),
    Float(Cells<f64>),
    Bool(Cells<bool>),
    Str(Cells<u32>, Arc<Dictionary>),
}

impl Column {
    pub fn type_of(&self) -> Type {
        match self {
            Column::Int(_) => Type::Int,
            Column::Float(_) => Type::Float,
            Column::Bool(_) => Type::Bool,
            Column::Str(..) => Type::Str,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Column::Int(cells) => cells.len(),
            Column::Float(cells) => cells.len(),
            Column::Bool(cells) => cells.len(),
            Column::Str(cells, _) => cells.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn valid(&self) -> Option<&[bool]> {
        match self {
            Column::Int(cells) => cells.valid(),
            Column::Float(cells) => cells.valid(),
            Column::Bool(cells) => cells.valid(),
            Column::Str(cells, _) => cells.valid(),
        }
    }

    /// The same column with a value in place of every null; `None` when the value is not of the column's type.
    pub fn filled(&self, value: &Value) -> Option<Column> {
        Some(match (self, value) {
            (Column::Int(cells), Value::Int(value)) => Column::Int(cells.filled(*value)),
            (Column::Float(cells), Value::Float(value)) => Column::Float(cells.filled(*value)),
            (Column::Bool(cells), Value::Bool(value)) => Column::Bool(cells.filled(*value)),
            (Column::Str(cells, dictionary), Value::Str(value)) => {
                let mut strings = DictionaryBuilder::extending(dictionary);
                let cells = cells.filled(strings.code(value));
                Column::Str(cells, Arc::new(strings.finish()))
            }
            _ => return None,
        })
    }

    pub fn value(&self, row: usize) -> Value {
        match self {
            Column::Int(cells) => cells.get(row).map_or(Value::Null, Value::Int),
            Column::Float(cells) => cells.get(row).map_or(Value::Null, Value::Float),
            Column::Bool(cells) => cells.get(row).map_or(Value::Null, Value::Bool),
            Column::Str(cells, dictionary) => {
                cells.get(row).map_or(Value::Null, |code| Value::str(dictionary.get(code)))
            }
        }
    }
}

/// Collects cells of one type, row by row, from text or values.
pub struct ColumnBuilder {
    column: Column,
    strings: DictionaryBuilder,
}

impl ColumnBuilder {
    pub fn new(type_of: Type, rows: usize) -> ColumnBuilder {
        let column = match type_of {
            Type::Int => Column::Int(Cells::with_capacity(rows)),
            Type::Float => Column::Float(Cells::with_capacity(rows)),
            Type::Bool => Column::Bool(Cells::with_capacity(rows)),
            Type::Str => Column::Str(Cells::with_capacity(rows), Arc::default()),
        };
        ColumnBuilder { column, strings: DictionaryBuilder::default() }
    }

    pub fn len(&self) -> usize {
        self.column.len()
    }

    pub fn is_empty(&self) -> bool {
        self.column.is_empty()
    }

    pub fn push_null(&mut self) {
        match &mut self.column {
            Column::Int(cells) => cells.push(None),
            Column::Float(cells) => cells.push(None),
            Column::Bool(cells) => cells.push(None),
            Column::Str(cells, _) => cells.push(None),
        }
    }

    /// Adds a value; an int widens into a float column. False, and nothing added, when the type does not fit or a float is
    /// not finite.
    #[must_use]
    pub fn push(&mut self, value: &Value) -> bool {
        match value {
            Value::Null => self.push_null(),
            Value::Int(value) => return self.push_int(*value),
            Value::Float(value) => return self.push_float(*value),
            Value::Bool(value) => return self.push_bool(*value),
            Value::Str(text) => return self.push_str(text),
        }
        true
    }

    /// Adds an int, which widens into a float column. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn push_int(&mut self, value: i64) -> bool {
        match &mut self.column {
            Column::Int(cells) => cells.push(Some(value)),
            Column::Float(cells) => cells.push(Some(value as f64)),
            Column::Bool(_) | Column::Str(..) => return false,
        }
        true
    }

    /// Adds a float. False, and nothing added, when the column has another type or the float is not finite.
    #[must_use]
    pub fn push_float(&mut self, value: f64) -> bool {
        let Column::Float(cells) = &mut self.column else { return false };
        let finite = value.is_finite();
        if finite {
            cells.push(Some(value));
        }
        finite
    }

    /// Adds a bool. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn push_bool(&mut self, value: bool) -> bool {
        let Column::Bool(cells) = &mut self.column else { return false };
        cells.push(Some(value));
        true
    }

    /// Adds a string. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn push_str(&mut self, text: &str) -> bool {
        let Column::Str(cells, _) = &mut self.column else { return false };
        cells.push(Some(self.strings.code(text)));
        true
    }

    /// Adds a cell from its stored text. Text that is not of the column's type becomes null, and the answer is false.
    pub fn push_text(&mut self, text: &[u8]) -> bool {
        match &mut self.column {
            Column::Int(cells) => push_parsed(cells, parse(text)),
            Column::Float(cells) => push_parsed(cells, parse(text).filter(|v: &f64| v.is_finite())),
            Column::Bool(cells) => push_parsed(
                cells,
                match text {
                    b"true" | b"1" => Some(true),
                    b"false" | b"0" => Some(false),
                    _ => None,
                },
            ),
            Column::Str(cells, _) => {
                push_parsed(cells, std::str::from_utf8(text).ok().map(|text| self.strings.code(text)))
            }
        }
    }

    pub fn finish(self) -> Column {
        match self.column {
            Column::Str(cells, _) => Column::Str(cells, Arc::new(self.strings.finish())),
            other => other,
        }
    }
}

fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn push_parsed<T: Copy + Default>(cells: &mut Cells<T>, cell: Option<T>) -> bool {
    cells.push(cell);
    cell.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_null_brings_the_validity() {
        let cells: Cells<i64> = [Some(1), Some(2)].into_iter().collect();
        assert_eq!(cells.valid(), None);
        let cells: Cells<i64> = [Some(1), None, Some(3)].into_iter().collect();
        assert_eq!(cells.valid(), Some(&[true, false, true][..]));
        assert_eq!(cells.values(), [1, 0, 3]);
    }

    #[test]
    fn a_value_takes_the_place_of_nulls_only() {
        let cells = |values: &[&str]| {
            let mut builder = ColumnBuilder::new(Type::Str, 0);
            values.iter().for_each(|text| match *text {
                "" => builder.push_null(),
                text => assert!(builder.push_text(text.as_bytes())),
            });
            builder.finish()
        };
        for (value, expected) in [("b", ["a", "b", "b", "b"]), ("new", ["a", "new", "b", "new"])] {
            let filled = cells(&["a", "", "b", ""]).filled(&Value::str(value)).unwrap();
            assert_eq!([0, 1, 2, 3].map(|row| filled.value(row)), expected.map(Value::str));
            assert!(filled.valid().is_none());
        }
        assert!(cells(&["a"]).filled(&Value::Int(1)).is_none());
    }

    #[test]
    fn text_of_another_type_is_null_and_said_so() {
        for (type_of, good, bad) in [(Type::Int, "-5", "5.0"), (Type::Float, "0.5", "inf"), (Type::Bool, "true", "yes")]
        {
            let mut builder = ColumnBuilder::new(type_of, 2);
            assert!(builder.push_text(good.as_bytes()));
            assert!(!builder.push_text(bad.as_bytes()));
            let column = builder.finish();
            assert_ne!(column.value(0), Value::Null, "{type_of}");
            assert_eq!(column.value(1), Value::Null, "{type_of}");
        }
    }
}
