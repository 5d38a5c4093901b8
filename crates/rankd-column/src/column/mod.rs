//! A column: the cells of one key, one value a row, with a byte of validity a row where there are nulls.
//!
//! A byte a row rather than a bit: the compiler vectorises loops over bytes, and reading bits one by one costs several
//! times as much. Invariant: `valid`, when present, is as long as `values`. The value of a null cell means nothing.

pub(crate) mod builder;

pub use builder::{ColumnBuilder, OpenCell, There};

use crate::dictionary::{Dictionary, DictionaryBuilder};
use crate::flat::{Elements, Span, Vectors};
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};
use crate::value::{List, Type, Value};
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

    fn shrink_to_fit(&mut self) {
        self.values.shrink_to_fit();
        self.valid.iter_mut().for_each(Vec::shrink_to_fit);
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
    fn filled(&self, value: T, stop: Stop<'_>) -> Result<Cells<T>, Stopped> {
        let Some(valid) = &self.valid else { return Ok(self.clone()) };
        let mut filled = Vec::with_capacity(self.values.len());
        for (values, valid) in stop.slices(&self.values).zip(valid.chunks(ROWS_A_LOOK)) {
            filled.extend(values?.iter().zip(valid).map(|(cell, there)| if *there { *cell } else { value }));
        }
        Ok(Cells::full(filled))
    }

    /// How many bytes the cells take.
    fn bytes(&self) -> usize {
        size_of_val(&*self.values) + self.valid.as_ref().map_or(0, Vec::len)
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
    /// Codes of strings.
    Str(Cells<u32>, Arc<Dictionary>),
    /// Where the elements of each list are.
    List(Cells<Span>, Arc<Elements>),
    /// The number of each vector.
    Vector(Cells<u32>, Arc<Vectors>),
}

impl Column {
    /// A column without a value.
    pub fn nulls(type_of: Type, rows: usize) -> Column {
        fn none<T: Copy + Default>(rows: usize) -> Cells<T> {
            Cells::new(vec![T::default(); rows], Some(vec![false; rows]))
        }
        match type_of {
            Type::Int => Column::Int(none(rows)),
            Type::Float => Column::Float(none(rows)),
            Type::Bool => Column::Bool(none(rows)),
            Type::Str => Column::Str(none(rows), Arc::default()),
            Type::List(element) => Column::List(none(rows), Arc::new(Elements::none(element))),
            Type::Vector(dimension) => Column::Vector(none(rows), Arc::new(Vectors::new(dimension, Vec::new()))),
        }
    }

    pub fn type_of(&self) -> Type {
        match self {
            Column::Int(_) => Type::Int,
            Column::Float(_) => Type::Float,
            Column::Bool(_) => Type::Bool,
            Column::Str(..) => Type::Str,
            Column::List(_, elements) => Type::List(elements.element()),
            Column::Vector(_, vectors) => Type::Vector(vectors.dimension()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Column::Int(cells) => cells.len(),
            Column::Float(cells) => cells.len(),
            Column::Bool(cells) => cells.len(),
            Column::Str(cells, _) => cells.len(),
            Column::List(cells, _) => cells.len(),
            Column::Vector(cells, _) => cells.len(),
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
            Column::List(cells, _) => cells.valid(),
            Column::Vector(cells, _) => cells.valid(),
        }
    }

    /// How many bytes the column takes. What its cells refer to counts where no other column refers to it as well.
    pub fn bytes(&self) -> usize {
        match self {
            Column::Int(cells) => cells.bytes(),
            Column::Float(cells) => cells.bytes(),
            Column::Bool(cells) => cells.bytes(),
            Column::Str(cells, dictionary) => cells.bytes() + alone(dictionary, Dictionary::bytes),
            Column::List(cells, elements) => cells.bytes() + alone(elements, Elements::bytes),
            Column::Vector(cells, vectors) => cells.bytes() + alone(vectors, Vectors::bytes),
        }
    }

    /// The same column with a value in place of every null; `None` when the value is not of the column's type.
    pub fn filled(&self, value: &Value, stop: Stop<'_>) -> Result<Option<Column>, Stopped> {
        Ok(Some(match (self, value) {
            (Column::Int(cells), Value::Int(value)) => Column::Int(cells.filled(*value, stop)?),
            (Column::Float(cells), Value::Float(value)) => Column::Float(cells.filled(*value, stop)?),
            (Column::Bool(cells), Value::Bool(value)) => Column::Bool(cells.filled(*value, stop)?),
            (Column::Str(cells, dictionary), Value::Str(value)) => {
                let mut strings = DictionaryBuilder::extending(dictionary, stop)?;
                let cells = cells.filled(strings.code(value), stop)?;
                Column::Str(cells, Arc::new(strings.finish()))
            }
            (Column::List(cells, elements), Value::List(list)) => {
                let Some((elements, span)) = with_list(elements, list, stop)? else { return Ok(None) };
                Column::List(cells.filled(span, stop)?, Arc::new(elements))
            }
            (Column::Vector(cells, vectors), Value::Vector(vector))
                if vector.len() == usize::from(vectors.dimension()) =>
            {
                let (at, mut values) = (vectors.len() as u32, vectors.values().to_vec());
                values.extend_from_slice(vector);
                Column::Vector(cells.filled(at, stop)?, Arc::new(Vectors::new(vectors.dimension(), values)))
            }
            _ => return Ok(None),
        }))
    }

    pub fn value(&self, row: usize) -> Value {
        match self {
            Column::Int(cells) => cells.get(row).map_or(Value::Null, Value::Int),
            Column::Float(cells) => cells.get(row).map_or(Value::Null, Value::Float),
            Column::Bool(cells) => cells.get(row).map_or(Value::Null, Value::Bool),
            Column::Str(cells, dictionary) => {
                cells.get(row).map_or(Value::Null, |code| Value::str(dictionary.get(code)))
            }
            Column::List(cells, elements) => {
                cells.get(row).map_or(Value::Null, |span| Value::List(Arc::new(elements.list(span))))
            }
            Column::Vector(cells, vectors) => {
                cells.get(row).map_or(Value::Null, |at| Value::Vector(vectors.get(at).into()))
            }
        }
    }
}

/// Elements with those of one more list after them, and where that list is. `None` when it is of another type.
fn with_list(elements: &Elements, list: &List, stop: Stop<'_>) -> Result<Option<(Elements, Span)>, Stopped> {
    let span = Span::new(elements.len(), list.len());
    let elements = match (elements, list) {
        (Elements::Int(values), List::Int(more)) => Elements::Int([&values[..], more].concat()),
        (Elements::Float(values), List::Float(more)) => Elements::Float([&values[..], more].concat()),
        (Elements::Str(codes, dictionary), List::Str(more)) => {
            let mut strings = DictionaryBuilder::extending(dictionary, stop)?;
            let more = more.iter().map(|text| strings.code(text));
            let codes = codes.iter().copied().chain(more).collect();
            Elements::Str(codes, Arc::new(strings.finish()))
        }
        _ => return Ok(None),
    };
    Ok(Some((elements, span)))
}

/// The bytes of what only one column refers to.
fn alone<T>(shared: &Arc<T>, bytes: impl Fn(&T) -> usize) -> usize {
    if Arc::strong_count(shared) == 1 { bytes(shared) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Element;

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
                text => assert!(builder.push_str(text)),
            });
            builder.finish()
        };
        for (value, expected) in [("b", ["a", "b", "b", "b"]), ("new", ["a", "new", "b", "new"])] {
            let filled = cells(&["a", "", "b", ""]).filled(&Value::str(value), Stop::default()).unwrap().unwrap();
            assert_eq!([0, 1, 2, 3].map(|row| filled.value(row)), expected.map(Value::str));
            assert!(filled.valid().is_none());
        }
        assert!(cells(&["a"]).filled(&Value::Int(1), Stop::default()).unwrap().is_none());
    }

    #[test]
    fn a_list_or_vector_takes_the_place_of_nulls_only() {
        let list = |texts: &[&str]| Value::List(Arc::new(List::Str(texts.iter().map(|text| (*text).into()).collect())));
        let vector = |x: f32| Value::Vector([x, 0.5][..].into());
        for (type_of, cells, default) in [
            (Type::List(Element::Str), [list(&["a", "b"]), Value::Null, list(&[])], list(&["b", "c"])),
            (Type::List(Element::Str), [Value::Null, Value::Null, list(&["a"])], list(&[])),
            (Type::Vector(2), [vector(1.0), Value::Null, vector(2.0)], vector(3.0)),
        ] {
            let mut builder = ColumnBuilder::new(type_of, 3);
            cells.iter().for_each(|cell| assert!(builder.push(cell)));
            let column = builder.finish();
            let filled = column.filled(&default, Stop::default()).unwrap().unwrap();
            let expected = cells.map(|cell| if cell == Value::Null { default.clone() } else { cell });
            assert_eq!([0, 1, 2].map(|row| filled.value(row)), expected);
            assert!(filled.valid().is_none());
            for other in [Value::Int(1), Value::Vector([1.0][..].into()), Value::List(Arc::new(List::Int(vec![])))] {
                assert!(column.filled(&other, Stop::default()).unwrap().is_none());
            }
        }
    }
}
