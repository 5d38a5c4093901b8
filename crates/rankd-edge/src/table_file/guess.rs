//! Which types all cells of a column could have, where the file does not say: text and JSON.

use super::number;
use rankd_column::value::ELEMENTS_MAX;
use rankd_column::{Element, Type};
use rankd_plan::json::{Kind, Number, Reader};

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guess(u8);

impl Guess {
    pub(super) const INT: Guess = Guess(1);
    pub(super) const FLOAT: Guess = Guess(2);
    pub(super) const BOOL: Guess = Guess(4);
    pub(super) const STR: Guess = Guess(8);
    const INTS: Guess = Guess(16);
    const FLOATS: Guess = Guess(32);
    const STRS: Guess = Guess(64);
    pub(super) const NONE: Guess = Guess(0);
    pub(super) const ANY: Guess = Guess(127);

    pub(super) const fn or(self, other: Guess) -> Guess {
        Guess(self.0 | other.0)
    }

    pub(super) fn and(self, other: Guess) -> Guess {
        Guess(self.0 & other.0)
    }

    fn has(self, other: Guess) -> bool {
        self.0 & other.0 != 0
    }

    /// The narrowest of the types; nothing where no type fits all cells.
    pub(super) fn narrowest(self) -> Option<Type> {
        // Without any cell, nothing is known.
        if self == Guess::ANY {
            return Some(Type::Str);
        }
        let order = [
            (Guess::INT, Type::Int),
            (Guess::BOOL, Type::Bool),
            (Guess::FLOAT, Type::Float),
            (Guess::INTS, Type::List(Element::Int)),
            (Guess::FLOATS, Type::List(Element::Float)),
            (Guess::STRS, Type::List(Element::Str)),
            (Guess::STR, Type::Str),
        ];
        order.into_iter().find(|(guess, _)| self.has(*guess)).map(|(_, type_of)| type_of)
    }

    /// What a cell of a text file could be, as far as the column still could be that.
    pub(super) fn narrow_text(self, text: &[u8]) -> Guess {
        if self == Guess::STR {
            return self;
        }
        let mut fits = Guess::STR;
        if number::int(text).is_some() {
            // A code with leading zeros would lose them.
            if is_plain(text) {
                fits = fits.or(Guess::INT).or(Guess::FLOAT);
            }
        } else if number::float(text).is_some() && !text.iter().all(u8::is_ascii_digit) && is_plain(text) {
            fits = fits.or(Guess::FLOAT);
        }
        if number::bool(text).is_some() {
            fits = fits.or(Guess::BOOL);
        }
        if text.first() == Some(&b'[') {
            fits = fits.or(std::str::from_utf8(text).map_or(Guess::NONE, Guess::of_array));
        }
        self.and(fits)
    }

    /// What a JSON array could be.
    pub(super) fn of_array(text: &str) -> Guess {
        let mut reader = Reader::new(text, 1);
        let Ok(mut items) = reader.open_array() else { return Guess::NONE };
        let (mut fits, mut count) = (Guess::INTS.or(Guess::FLOATS).or(Guess::STRS), 0);
        loop {
            match reader.item(&mut items) {
                Ok(true) => count += 1,
                Ok(false) => break,
                Err(_) => return Guess::NONE,
            }
            let element = match reader.peek() {
                Ok(Kind::Number) => match reader.number() {
                    Ok(Number::Int(_)) => Guess::INTS.or(Guess::FLOATS),
                    Ok(Number::Float(_)) => Guess::FLOATS,
                    Ok(Number::OutOfRange) | Err(_) => Guess::NONE,
                },
                Ok(Kind::String) if reader.string().is_ok() => Guess::STRS,
                Ok(Kind::Null | Kind::Bool | Kind::String | Kind::Array | Kind::Object) | Err(_) => Guess::NONE,
            };
            fits = fits.and(element);
            if fits == Guess::NONE || count > ELEMENTS_MAX {
                return Guess::NONE;
            }
        }
        if reader.end().is_ok() { fits } else { Guess::NONE }
    }
}

/// Whether a number is written without a sign in front that it does not need, and without zeros.
fn is_plain(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'+', ..] => false,
        [b'0', next, ..] => !next.is_ascii_digit(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_the_narrowest_that_all_cells_have() {
        for (cells, expected) in [
            (&[][..], "string"),
            (&["1", "-2"], "int"),
            (&["1", "0"], "int"),
            (&["1", "true"], "bool"),
            (&["True", "False"], "bool"),
            (&["1", "2.5"], "float"),
            (&["1", "2.5", "x"], "string"),
            (&["007", "8"], "string"),
            (&["0", "-0.5"], "float"),
            (&["+1"], "string"),
            (&["12345678901234567890"], "string"),
            (&["1e5"], "float"),
            (&["nan"], "string"),
            (&["[1,2]", "[]"], "list<int>"),
            (&["[1,2]", "[0.5]"], "list<float>"),
            (&["[\"a\"]", "[]"], "list<string>"),
            (&["[1,\"a\"]"], "string"),
            (&["[1"], "string"),
            (&["[[1]]"], "string"),
            (&["[null]"], "string"),
            (&["2024-01-01"], "string"),
        ] {
            let guess = cells.iter().fold(Guess::ANY, |guess, cell| guess.narrow_text(cell.as_bytes()));
            assert_eq!(guess.narrowest().unwrap().to_string(), expected, "{cells:?}");
        }
    }
}
