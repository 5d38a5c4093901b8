//! Collects the cells of a column, row by row, from text or values.
//!
//! A list or vector is written element by element into an [`OpenCell`]. One that turns out to be wrong leaves nothing behind.

mod many;

pub use many::There;

use crate::column::{Cells, Column};
use crate::dictionary::DictionaryBuilder;
use crate::flat::{Elements, Span, Vectors};
use crate::value::{ELEMENTS_MAX, Element, List, Type, Value};
use std::sync::Arc;

pub struct ColumnBuilder {
    cells: Growing,
}

/// A column as far as it has come.
enum Growing {
    Int(Cells<i64>),
    Float(Cells<f64>),
    Bool(Cells<bool>),
    Str(Cells<u32>, DictionaryBuilder),
    List(Cells<Span>, GrowingElements),
    Vector(Cells<u32>, u16, Vec<f32>),
}

enum GrowingElements {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Str(Vec<u32>, DictionaryBuilder),
}

impl GrowingElements {
    fn len(&self) -> usize {
        match self {
            GrowingElements::Int(values) => values.len(),
            GrowingElements::Float(values) => values.len(),
            GrowingElements::Str(codes, _) => codes.len(),
        }
    }

    fn truncate(&mut self, len: usize) {
        match self {
            GrowingElements::Int(values) => values.truncate(len),
            GrowingElements::Float(values) => values.truncate(len),
            GrowingElements::Str(codes, _) => codes.truncate(len),
        }
    }
}

impl ColumnBuilder {
    pub fn new(type_of: Type, rows: usize) -> ColumnBuilder {
        let cells = match type_of {
            Type::Int => Growing::Int(Cells::with_capacity(rows)),
            Type::Float => Growing::Float(Cells::with_capacity(rows)),
            Type::Bool => Growing::Bool(Cells::with_capacity(rows)),
            Type::Str => Growing::Str(Cells::with_capacity(rows), DictionaryBuilder::default()),
            Type::List(element) => {
                let elements = match element {
                    Element::Int => GrowingElements::Int(Vec::new()),
                    Element::Float => GrowingElements::Float(Vec::new()),
                    Element::Str => GrowingElements::Str(Vec::new(), DictionaryBuilder::default()),
                };
                Growing::List(Cells::with_capacity(rows), elements)
            }
            Type::Vector(dimension) => Growing::Vector(Cells::with_capacity(rows), dimension, Vec::new()),
        };
        ColumnBuilder { cells }
    }

    pub fn type_of(&self) -> Type {
        match &self.cells {
            Growing::Int(_) => Type::Int,
            Growing::Float(_) => Type::Float,
            Growing::Bool(_) => Type::Bool,
            Growing::Str(..) => Type::Str,
            Growing::List(_, GrowingElements::Int(_)) => Type::List(Element::Int),
            Growing::List(_, GrowingElements::Float(_)) => Type::List(Element::Float),
            Growing::List(_, GrowingElements::Str(..)) => Type::List(Element::Str),
            Growing::Vector(_, dimension, _) => Type::Vector(*dimension),
        }
    }

    pub fn len(&self) -> usize {
        match &self.cells {
            Growing::Int(cells) => cells.len(),
            Growing::Float(cells) => cells.len(),
            Growing::Bool(cells) => cells.len(),
            Growing::Str(cells, _) => cells.len(),
            Growing::List(cells, _) => cells.len(),
            Growing::Vector(cells, ..) => cells.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push_null(&mut self) {
        match &mut self.cells {
            Growing::Int(cells) => cells.push(None),
            Growing::Float(cells) => cells.push(None),
            Growing::Bool(cells) => cells.push(None),
            Growing::Str(cells, _) => cells.push(None),
            Growing::List(cells, _) => cells.push(None),
            Growing::Vector(cells, ..) => cells.push(None),
        }
    }

    /// Adds a value; an int widens into a float column, a list of ints into one of floats. False, and nothing added, when the
    /// type does not fit or a float is not finite.
    #[must_use]
    pub fn push(&mut self, value: &Value) -> bool {
        match value {
            Value::Null => self.push_null(),
            Value::Int(value) => return self.push_int(*value),
            Value::Float(value) => return self.push_float(*value),
            Value::Bool(value) => return self.push_bool(*value),
            Value::Str(text) => return self.push_str(text),
            Value::List(list) => return self.push_list(list),
            Value::Vector(vector) => return self.push_vector(vector),
        }
        true
    }

    /// Adds an int, which widens into a float column. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn push_int(&mut self, value: i64) -> bool {
        match &mut self.cells {
            Growing::Int(cells) => cells.push(Some(value)),
            Growing::Float(cells) => cells.push(Some(value as f64)),
            Growing::Bool(_) | Growing::Str(..) | Growing::List(..) | Growing::Vector(..) => return false,
        }
        true
    }

    /// Adds a float. False, and nothing added, when the column has another type or the float is not finite.
    #[must_use]
    pub fn push_float(&mut self, value: f64) -> bool {
        let Growing::Float(cells) = &mut self.cells else { return false };
        let finite = value.is_finite();
        if finite {
            cells.push(Some(value));
        }
        finite
    }

    /// Adds a bool. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn push_bool(&mut self, value: bool) -> bool {
        let Growing::Bool(cells) = &mut self.cells else { return false };
        cells.push(Some(value));
        true
    }

    /// Adds a string. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn push_str(&mut self, text: &str) -> bool {
        let Growing::Str(cells, strings) = &mut self.cells else { return false };
        cells.push(Some(strings.code(text)));
        true
    }

    /// Adds a list; one of ints widens into a column of float lists. False, and nothing added, when the type does not fit, a float
    /// is not finite, or there are too many elements.
    #[must_use]
    pub fn push_list(&mut self, list: &List) -> bool {
        let Growing::List(..) = &self.cells else { return false };
        let Some(mut cell) = self.open() else { return false };
        let fits = match list {
            List::Int(values) => values.iter().all(|value| cell.push_int(*value)),
            List::Float(values) => values.iter().all(|value| cell.push_float(*value)),
            List::Str(texts) => texts.iter().all(|text| cell.push_str(text)),
        };
        fits && cell.close()
    }

    /// Adds a vector. False, and nothing added, when the column has another type or dimension, or a number is not finite.
    #[must_use]
    pub fn push_vector(&mut self, vector: &[f32]) -> bool {
        self.push_numbers(vector.iter().copied())
    }

    /// Adds a vector of these numbers, under the same rules.
    #[must_use]
    pub fn push_numbers(&mut self, numbers: impl ExactSizeIterator<Item = f32>) -> bool {
        let Growing::Vector(cells, dimension, values) = &mut self.cells else { return false };
        let (start, dimension) = (values.len(), usize::from(*dimension));
        // Vectors beyond what 32 bits can number would be more than 16 GiB.
        let Ok(at) = u32::try_from(start / dimension) else { return false };
        if numbers.len() != dimension {
            return false;
        }
        values.extend(numbers);
        let fits = values[start..].iter().all(|value| value.is_finite());
        match fits {
            true => cells.push(Some(at)),
            false => values.truncate(start),
        }
        fits
    }

    /// Begins a list or vector; `None` when the column holds neither.
    #[must_use]
    pub fn open(&mut self) -> Option<OpenCell<'_>> {
        let start = match &self.cells {
            Growing::List(_, elements) => elements.len(),
            Growing::Vector(_, _, values) => values.len(),
            Growing::Int(_) | Growing::Float(_) | Growing::Bool(_) | Growing::Str(..) => return None,
        };
        Some(OpenCell { cells: &mut self.cells, start })
    }

    /// Adds a cell from its stored text. Text that is not of the column's type becomes null, and the answer is false. How the
    /// text of a list or vector is written is not this crate's business: `array` reads it into the open cell, and says
    /// whether it could.
    pub fn push_text_with(&mut self, text: &[u8], array: impl FnOnce(&mut OpenCell<'_>, &[u8]) -> bool) -> bool {
        match &mut self.cells {
            Growing::Int(cells) => push_parsed(cells, parse_text(text)),
            Growing::Float(cells) => push_parsed(cells, parse_text(text).filter(|v: &f64| v.is_finite())),
            Growing::Bool(cells) => push_parsed(
                cells,
                match text {
                    b"true" | b"1" => Some(true),
                    b"false" | b"0" => Some(false),
                    _ => None,
                },
            ),
            Growing::Str(cells, strings) => {
                push_parsed(cells, std::str::from_utf8(text).ok().map(|text| strings.code(text)))
            }
            Growing::List(..) | Growing::Vector(..) => {
                let added = self.open().is_some_and(|mut cell| array(&mut cell, text) && cell.close());
                if !added {
                    self.push_null();
                }
                added
            }
        }
    }

    /// The column without room for further cells, for one that stays for long.
    pub fn finish_exact(mut self) -> Column {
        match &mut self.cells {
            Growing::Int(cells) => cells.shrink_to_fit(),
            Growing::Float(cells) => cells.shrink_to_fit(),
            Growing::Bool(cells) => cells.shrink_to_fit(),
            Growing::Str(cells, strings) => {
                cells.shrink_to_fit();
                strings.shrink_to_fit();
            }
            Growing::List(cells, elements) => {
                cells.shrink_to_fit();
                match elements {
                    GrowingElements::Int(values) => values.shrink_to_fit(),
                    GrowingElements::Float(values) => values.shrink_to_fit(),
                    GrowingElements::Str(codes, strings) => {
                        codes.shrink_to_fit();
                        strings.shrink_to_fit();
                    }
                }
            }
            Growing::Vector(cells, _, values) => {
                cells.shrink_to_fit();
                values.shrink_to_fit();
            }
        }
        self.finish()
    }

    pub fn finish(self) -> Column {
        match self.cells {
            Growing::Int(cells) => Column::Int(cells),
            Growing::Float(cells) => Column::Float(cells),
            Growing::Bool(cells) => Column::Bool(cells),
            Growing::Str(cells, strings) => Column::Str(cells, Arc::new(strings.finish())),
            Growing::List(cells, elements) => {
                let elements = match elements {
                    GrowingElements::Int(values) => Elements::Int(values),
                    GrowingElements::Float(values) => Elements::Float(values),
                    GrowingElements::Str(codes, strings) => Elements::Str(codes, Arc::new(strings.finish())),
                };
                Column::List(cells, Arc::new(elements))
            }
            Growing::Vector(cells, dimension, values) => {
                Column::Vector(cells, Arc::new(Vectors::new(dimension, values)))
            }
        }
    }
}

/// A list or vector that is being written. Unless it is closed, it leaves nothing behind.
#[must_use]
pub struct OpenCell<'b> {
    cells: &'b mut Growing,
    /// Where its elements begin.
    start: usize,
}

impl OpenCell<'_> {
    /// The type of the elements; those of a vector are floats.
    pub fn element(&self) -> Element {
        match &*self.cells {
            Growing::List(_, GrowingElements::Int(_)) => Element::Int,
            Growing::List(_, GrowingElements::Str(..)) => Element::Str,
            _ => Element::Float,
        }
    }

    /// How many elements it must have, if that is fixed.
    pub fn dimension(&self) -> Option<usize> {
        match &*self.cells {
            Growing::Vector(_, dimension, _) => Some(usize::from(*dimension)),
            _ => None,
        }
    }

    /// How many elements it has so far.
    pub fn len(&self) -> usize {
        let end = match &*self.cells {
            Growing::List(_, elements) => elements.len(),
            Growing::Vector(_, _, values) => values.len(),
            _ => self.start,
        };
        end - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another element would be too many.
    pub fn is_full(&self) -> bool {
        let len = self.len();
        len >= self.dimension().unwrap_or(ELEMENTS_MAX) || self.start + len >= u32::MAX as usize
    }

    /// Adds an int, which widens where elements are floats. False when it does not fit.
    #[must_use]
    pub fn push_int(&mut self, value: i64) -> bool {
        if self.is_full() {
            return false;
        }
        match &mut self.cells {
            Growing::List(_, GrowingElements::Int(values)) => values.push(value),
            Growing::List(_, GrowingElements::Float(values)) => values.push(value as f64),
            Growing::Vector(_, _, values) => values.push(value as f32),
            _ => return false,
        }
        true
    }

    /// Adds a float. False when it does not fit or is not finite; for vectors that means with 32 bits.
    #[must_use]
    pub fn push_float(&mut self, value: f64) -> bool {
        if self.is_full() {
            return false;
        }
        match &mut self.cells {
            Growing::List(_, GrowingElements::Float(values)) if value.is_finite() => values.push(value),
            Growing::Vector(_, _, values) if (value as f32).is_finite() => values.push(value as f32),
            _ => return false,
        }
        true
    }

    /// Adds a string. False when elements have another type.
    #[must_use]
    pub fn push_str(&mut self, text: &str) -> bool {
        if self.is_full() {
            return false;
        }
        let Growing::List(_, GrowingElements::Str(codes, strings)) = &mut self.cells else { return false };
        codes.push(strings.code(text));
        true
    }

    /// Ends the cell and adds it to the column. False, and nothing added, when a vector does not have all its numbers.
    #[must_use]
    pub fn close(mut self) -> bool {
        let (start, len) = (self.start, self.len());
        match &mut self.cells {
            Growing::List(cells, _) => cells.push(Some(Span::new(start, len))),
            Growing::Vector(cells, dimension, _) if len == usize::from(*dimension) => {
                let Ok(at) = u32::try_from(start / len) else { return false };
                cells.push(Some(at));
            }
            _ => return false,
        }
        self.start += len;
        true
    }
}

impl Drop for OpenCell<'_> {
    fn drop(&mut self) {
        match &mut self.cells {
            Growing::List(_, elements) => elements.truncate(self.start),
            Growing::Vector(_, _, values) => values.truncate(self.start),
            Growing::Int(_) | Growing::Float(_) | Growing::Bool(_) | Growing::Str(..) => {}
        }
    }
}

/// A number as stores hold it.
pub(crate) fn parse_text<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn push_parsed<T: Copy + Default>(cells: &mut Cells<T>, cell: Option<T>) -> bool {
    cells.push(cell);
    cell.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_array(_: &mut OpenCell<'_>, _: &[u8]) -> bool {
        false
    }

    #[test]
    fn text_of_another_type_is_null_and_said_so() {
        for (type_of, good, bad) in [(Type::Int, "-5", "5.0"), (Type::Float, "0.5", "inf"), (Type::Bool, "true", "yes")]
        {
            let mut builder = ColumnBuilder::new(type_of, 2);
            assert!(builder.push_text_with(good.as_bytes(), no_array));
            assert!(!builder.push_text_with(bad.as_bytes(), no_array));
            let column = builder.finish();
            assert_ne!(column.value(0), Value::Null, "{type_of}");
            assert_eq!(column.value(1), Value::Null, "{type_of}");
        }
    }

    fn texts(list: &[&str]) -> Value {
        Value::List(Arc::new(List::Str(list.iter().map(|text| (*text).into()).collect())))
    }

    #[test]
    fn lists_and_vectors_come_back_as_they_went_in() {
        let ints = |list: &[i64]| Value::List(Arc::new(List::Int(list.to_vec())));
        let floats = |list: &[f64]| Value::List(Arc::new(List::Float(list.to_vec())));
        let vector = |numbers: &[f32]| Value::Vector(numbers.into());
        for (type_of, values) in [
            (Type::List(Element::Int), vec![ints(&[3, -1]), ints(&[]), Value::Null, ints(&[i64::MAX])]),
            (Type::List(Element::Float), vec![floats(&[0.5]), Value::Null, floats(&[]), floats(&[-0.0, 1e300])]),
            (Type::List(Element::Str), vec![texts(&["b", "a", "b"]), texts(&[]), texts(&["a"]), Value::Null]),
            (Type::Vector(2), vec![vector(&[1.5, -2.0]), Value::Null, vector(&[0.0, 3.0])]),
        ] {
            let mut builder = ColumnBuilder::new(type_of, 0);
            assert_eq!(builder.type_of(), type_of);
            values.iter().for_each(|value| assert!(builder.push(value), "{value}"));
            let column = builder.finish();
            assert_eq!(column.type_of(), type_of);
            assert_eq!((0..values.len()).map(|row| column.value(row)).collect::<Vec<_>>(), values);
        }
    }

    #[test]
    fn a_cell_that_is_wrong_leaves_nothing_behind() {
        let mut builder = ColumnBuilder::new(Type::List(Element::Str), 0);
        let mut cell = builder.open().unwrap();
        assert!(cell.push_str("a") && !cell.push_int(1) && cell.push_str("b"));
        drop(cell);
        assert!(builder.is_empty());
        assert!(builder.push(&texts(&["c"])));
        assert_eq!(builder.finish().value(0), texts(&["c"]));

        let mut builder = ColumnBuilder::new(Type::Vector(3), 0);
        for numbers in [&[1.0, 2.0][..], &[1.0, 2.0, f32::NAN], &[1.0; 4], &[]] {
            assert!(!builder.push_vector(numbers), "{numbers:?}");
        }
        let mut cell = builder.open().unwrap();
        assert!(cell.push_float(1.0) && !cell.push_float(1e300) && cell.push_int(2));
        assert!(!cell.close(), "one number is missing");
        let mut cell = builder.open().unwrap();
        assert!((0..3).all(|at| cell.push_int(at)) && !cell.push_int(3));
        assert!(cell.close());
        assert_eq!(builder.finish().value(0), Value::Vector([0.0, 1.0, 2.0][..].into()));
    }

    #[test]
    fn a_list_has_a_limit() {
        let mut builder = ColumnBuilder::new(Type::List(Element::Float), 0);
        let of = |count: usize| List::Int(vec![7; count]);
        assert!(builder.push_list(&of(ELEMENTS_MAX)));
        assert!(!builder.push_list(&of(ELEMENTS_MAX + 1)));
        assert_eq!(builder.len(), 1);
    }

    #[test]
    fn a_value_of_another_type_is_not_added() {
        let vector = Value::Vector([1.0, 2.0][..].into());
        let list = Value::List(Arc::new(List::Float(vec![1.0, 2.0])));
        for (type_of, value) in [
            (Type::Vector(2), &list),
            (Type::List(Element::Float), &vector),
            (Type::List(Element::Int), &list),
            (Type::List(Element::Str), &list),
            (Type::Vector(3), &vector),
            (Type::Float, &list),
            (Type::List(Element::Float), &Value::Float(1.0)),
        ] {
            let mut builder = ColumnBuilder::new(type_of, 0);
            assert!(!builder.push(value), "{type_of} {value}");
            assert!(builder.is_empty());
        }
    }
}
