//! A JSON array as one cell of a column of lists or vectors.

use super::read::{Fault, Kind, Number, Reader};
use rankd_column::Element;
use rankd_column::column::OpenCell;
use rankd_column::value::ELEMENTS_MAX;
use std::fmt;

/// Why a value is not the list or vector that its place takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is not an array.
    NotAnArray,
    /// The element at this position is not of the type of the elements.
    Element {
        at: usize,
        wanted: Element,
    },
    /// The element at this position is a number that the type of the elements cannot represent.
    Number {
        at: usize,
    },
    TooMany,
    /// A vector with another number of numbers.
    Length {
        wanted: usize,
        found: usize,
    },
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::NotAnArray => f.write_str("it is not an array"),
            Misfit::Element { at, wanted: Element::Int } => write!(f, "element {at} is not an int"),
            Misfit::Element { at, wanted: Element::Float } => write!(f, "element {at} is not a number"),
            Misfit::Element { at, wanted: Element::Str } => write!(f, "element {at} is not a string"),
            Misfit::Number { at } => write!(f, "element {at} is a number that does not fit"),
            Misfit::TooMany => write!(f, "it has more than {ELEMENTS_MAX} elements"),
            Misfit::Length { wanted, found } => write!(f, "it has {found} numbers, not {wanted}"),
        }
    }
}

/// Reads the next value into a cell, which the caller then closes. The value is read to its end in any case, so that reading can go
/// on behind it.
pub fn read_array(reader: &mut Reader<'_>, cell: &mut OpenCell<'_>) -> Result<Result<(), Misfit>, Fault> {
    if reader.peek()? != Kind::Array {
        reader.skip()?;
        return Ok(Err(Misfit::NotAnArray));
    }
    let (wanted, dimension) = (cell.element(), cell.dimension());
    let mut items = reader.open_array()?;
    let (mut at, mut misfit) = (0, None);
    while reader.item(&mut items)? {
        match misfit {
            None => misfit = element(reader, cell, at, wanted)?,
            Some(_) => reader.skip()?,
        }
        at += 1;
    }
    // With the wrong number of numbers, what is wrong with the last of them does not matter.
    let length = dimension.filter(|wanted| *wanted != at).map(|wanted| Misfit::Length { wanted, found: at });
    Ok(match length.or(misfit) {
        Some(misfit) => Err(misfit),
        None => Ok(()),
    })
}

fn element(
    reader: &mut Reader<'_>,
    cell: &mut OpenCell<'_>,
    at: usize,
    wanted: Element,
) -> Result<Option<Misfit>, Fault> {
    if cell.is_full() {
        reader.skip()?;
        return Ok(Some(Misfit::TooMany));
    }
    let (misfit, number) = (Misfit::Element { at, wanted }, Misfit::Number { at });
    Ok(match (reader.peek()?, wanted) {
        (Kind::String, Element::Str) => {
            let text = reader.string()?;
            (!cell.push_str(&text)).then_some(misfit)
        }
        (Kind::Number, Element::Int) => match reader.number()? {
            Number::Int(value) => (!cell.push_int(value)).then_some(misfit),
            Number::Float(_) => Some(misfit),
            Number::OutOfRange => Some(number),
        },
        (Kind::Number, Element::Float) => match reader.number()? {
            // Numbers of vectors are rounded to 32 bits in any case.
            Number::Int(value) if cell.dimension().is_some() || is_exact(value) => {
                (!cell.push_int(value)).then_some(number)
            }
            Number::Float(value) => (!cell.push_float(value)).then_some(number),
            Number::Int(_) | Number::OutOfRange => Some(number),
        },
        (Kind::Null | Kind::Bool | Kind::Number | Kind::String | Kind::Array | Kind::Object, _) => {
            reader.skip()?;
            Some(misfit)
        }
    })
}

/// Whether a float can be this int.
fn is_exact(value: i64) -> bool {
    value.unsigned_abs() <= 1 << 53 || (value as f64) as i128 == i128::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::column::ColumnBuilder;
    use rankd_column::value::DIMENSION_MAX;
    use rankd_column::{Type, Value};

    /// The cell that a text gives, or why it gives none.
    fn read(type_of: &str, text: &str) -> Result<Value, Misfit> {
        let mut column = ColumnBuilder::new(type_of.parse::<Type>().unwrap(), 1);
        let mut reader = Reader::new(text, 8);
        let mut cell = column.open().unwrap();
        read_array(&mut reader, &mut cell).unwrap()?;
        assert!(cell.close());
        reader.end().unwrap();
        Ok(column.finish().value(0))
    }

    #[test]
    fn an_array_is_read_as_its_type() {
        for (type_of, text, shown) in [
            ("list<int>", " [ 1 , -2,9223372036854775807 ] ", "[1, -2, 9223372036854775807]"),
            ("list<int>", "[]", "[]"),
            ("list<float>", "[1, 0.5, -0.0, 1e300]", "[1.0, 0.5, -0.0, 1e300]"),
            ("list<string>", r#"["a", "\u0062\"", ""]"#, r#"["a", "b\"", ""]"#),
            ("vector<3>", "[0.1, 2, 16777217]", "[0.1, 2.0, 16777216.0]"),
        ] {
            assert_eq!(read(type_of, text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_by_its_place() {
        let element = |at, wanted| Misfit::Element { at, wanted };
        let too_long = format!("[{}1]", "1,".repeat(ELEMENTS_MAX));
        for (type_of, text, misfit) in [
            ("list<int>", "7", Misfit::NotAnArray),
            ("list<int>", "null", Misfit::NotAnArray),
            ("list<int>", r#"{"a":[1]}"#, Misfit::NotAnArray),
            ("list<int>", "[1, 2.0]", element(1, Element::Int)),
            ("list<int>", "[null]", element(0, Element::Int)),
            ("list<int>", "[[1], 2]", element(0, Element::Int)),
            ("list<int>", "[9223372036854775808]", Misfit::Number { at: 0 }),
            ("list<int>", &too_long, Misfit::TooMany),
            ("list<float>", r#"[1, "2"]"#, element(1, Element::Float)),
            ("list<float>", "[1e400]", Misfit::Number { at: 0 }),
            ("list<float>", "[9007199254740993]", Misfit::Number { at: 0 }),
            ("list<string>", r#"["a", 1]"#, element(1, Element::Str)),
            ("list<string>", r#"["a", true, 1]"#, element(1, Element::Str)),
            ("vector<2>", "[1]", Misfit::Length { wanted: 2, found: 1 }),
            ("vector<2>", "[1, 2, null]", Misfit::Length { wanted: 2, found: 3 }),
            ("vector<2>", "[1, null]", element(1, Element::Float)),
            ("vector<2>", "[1, 1e39]", Misfit::Number { at: 1 }),
        ] {
            assert_eq!(read(type_of, text), Err(misfit), "{type_of} {text}");
        }
    }

    #[test]
    fn the_longest_vector_fits_the_longest_list() {
        assert!(usize::from(DIMENSION_MAX) <= ELEMENTS_MAX);
        assert!(read("list<int>", &format!("[{}1]", "1,".repeat(ELEMENTS_MAX - 1))).is_ok());
    }
}
