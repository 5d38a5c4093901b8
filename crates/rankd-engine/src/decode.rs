//! What stores and files hold, as cells of columns. What cannot be read becomes null, and the caller is told so, to count it.
//!
//! | type | text |
//! |---|---|
//! | int, float | digits as Rust reads them; a float is finite |
//! | bool | `true`, `1`, `false` or `0` |
//! | string | any UTF-8 |
//! | list, vector | a JSON array of the elements, none of them null |

use rankd_column::column::{ColumnBuilder, OpenCell};
use rankd_plan::json::{self, Reader};

/// An array of plain values nests no deeper.
const DEPTH_MAX: usize = 1;

/// Adds a cell from its text. Text that is not of the column's type becomes null, and the answer is false.
pub fn push_text(column: &mut ColumnBuilder, text: &[u8]) -> bool {
    column.push_text_with(text, read_array)
}

/// Adds a vector from its raw numbers: 32-bit floats, little endian. Bytes that are not a vector of the column's dimension, or have a
/// number that is not finite, become null, and the answer is false.
pub fn push_vector_f32(column: &mut ColumnBuilder, bytes: &[u8]) -> bool {
    let (numbers, rest) = bytes.as_chunks();
    let added = rest.is_empty() && column.push_numbers(numbers.iter().map(|number| f32::from_le_bytes(*number)));
    if !added {
        column.push_null();
    }
    added
}

fn read_array(cell: &mut OpenCell<'_>, text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut reader = Reader::new(text, DEPTH_MAX);
    matches!(json::read_array(&mut reader, cell), Ok(Ok(()))) && reader.end().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::{Type, Value};

    fn read(type_of: &str, text: &[u8], push: fn(&mut ColumnBuilder, &[u8]) -> bool) -> Value {
        let mut column = ColumnBuilder::new(type_of.parse::<Type>().unwrap(), 2);
        let added = push(&mut column, text);
        // Whatever came before, the next cell is as it should be.
        column.push_null();
        let column = column.finish();
        assert_eq!((column.len(), column.value(1)), (2, Value::Null));
        assert_eq!(added, column.value(0) != Value::Null);
        column.value(0)
    }

    #[test]
    fn text_is_read_as_its_type_says() {
        for (type_of, text, shown) in [
            ("int", "-5", "-5"),
            ("float", "1e3", "1000"),
            ("bool", "1", "true"),
            ("string", "[1]", "\"[1]\""),
            ("list<int>", "[1, 2]", "[1, 2]"),
            ("list<string>", " [\"a\"]\n", "[\"a\"]"),
            ("list<float>", "[]", "[]"),
            ("vector<2>", "[1,0.1]", "[1.0, 0.1]"),
        ] {
            assert_eq!(read(type_of, text.as_bytes(), push_text).to_string(), shown, "{type_of}");
        }
        for (type_of, text) in [
            ("int", "5.0"),
            ("list<int>", ""),
            ("list<int>", "1"),
            ("list<int>", "1,2"),
            ("list<int>", "[1,2"),
            ("list<int>", "[1] 2"),
            ("list<int>", "[[1]]"),
            ("list<int>", "[null]"),
            ("list<int>", "null"),
            ("list<string>", "[\"\\ud800\"]"),
            ("vector<2>", "[1]"),
            ("vector<2>", "[1,2,3]"),
        ] {
            assert_eq!(read(type_of, text.as_bytes(), push_text), Value::Null, "{type_of} {text}");
        }
        assert_eq!(read("list<string>", b"[\"\xff\"]", push_text), Value::Null);
    }

    #[test]
    fn raw_numbers_are_a_vector_of_the_right_length() {
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(read("vector<2>", &bytes(&[1.5, -0.0]), push_vector_f32).to_string(), "[1.5, -0.0]");
        for wrong in [bytes(&[1.0]), bytes(&[1.0; 3]), bytes(&[1.0, f32::NAN]), vec![0; 7], vec![0; 9], vec![]] {
            assert_eq!(read("vector<2>", &wrong, push_vector_f32), Value::Null, "{wrong:?}");
        }
        assert_eq!(read("list<float>", &bytes(&[1.0, 2.0]), push_vector_f32), Value::Null);
    }
}
