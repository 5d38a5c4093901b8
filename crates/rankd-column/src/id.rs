//! An id by itself, and which texts are ids. Rows hold ids as 64-bit numbers: see [`crate::id_texts`].

use crate::value::Value;
use std::fmt;
use std::sync::Arc;

/// The longest text that is an id, in bytes.
pub const ID_BYTES_MAX: usize = 512;

/// The id of a row or a user. A registry has ids of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    Int(i64),
    Text(Arc<str>),
}

impl Default for Id {
    fn default() -> Id {
        Id::Int(0)
    }
}

impl From<i64> for Id {
    fn from(id: i64) -> Id {
        Id::Int(id)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::Text(text.into())
    }
}

impl From<&Id> for Value {
    fn from(id: &Id) -> Value {
        match id {
            Id::Int(id) => Value::Int(*id),
            Id::Text(text) => Value::Str(text.clone()),
        }
    }
}

/// As messages name it: a text in quotes.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Int(id) => write!(f, "{id}"),
            Id::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// Why a text gets no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdFault {
    Empty,
    TooLong,
    ControlCharacter,
    NotUtf8,
    /// It is an id, but there are as many as may be.
    TooMany,
}

impl std::error::Error for IdFault {}

impl fmt::Display for IdFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdFault::Empty => f.write_str("an id has at least one character"),
            IdFault::TooLong => write!(f, "an id has at most {ID_BYTES_MAX} bytes"),
            IdFault::ControlCharacter => f.write_str("an id has no control characters"),
            IdFault::NotUtf8 => f.write_str("an id is UTF-8"),
            IdFault::TooMany => f.write_str("there are too many ids"),
        }
    }
}

/// Refuses a text that is not an id.
pub fn check_id(text: &str) -> Result<(), IdFault> {
    match text.len() {
        0 => return Err(IdFault::Empty),
        1..=ID_BYTES_MAX => {}
        _ => return Err(IdFault::TooLong),
    }
    let bytes = text.as_bytes();
    // Control characters of more than one byte all begin with this byte, which is rare.
    let suspect = bytes.iter().fold(false, |any, byte| any | (*byte < 0x20) | (*byte == 0x7F) | (*byte == 0xC2));
    match suspect && text.chars().any(char::is_control) {
        true => Err(IdFault::ControlCharacter),
        false => Ok(()),
    }
}

/// The text of an id as it is stored.
pub fn read_id(bytes: &[u8]) -> Result<&str, IdFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| IdFault::NotUtf8)?;
    check_id(text).map(|()| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_text_without_control_characters() {
        let long = "x".repeat(ID_BYTES_MAX);
        for good in ["7", "-7", "tt0000001", " ", "a b", "ä", "\u{a0}", "{\"}", "日本", &long] {
            assert_eq!(read_id(good.as_bytes()), Ok(good));
        }
        let longer = format!("{long}x");
        for (bad, why) in [
            ("", IdFault::Empty),
            (&*longer, IdFault::TooLong),
            ("a\nb", IdFault::ControlCharacter),
            ("\0", IdFault::ControlCharacter),
            ("a\u{7f}", IdFault::ControlCharacter),
            ("\u{80}", IdFault::ControlCharacter),
            ("ä\u{9f}", IdFault::ControlCharacter),
        ] {
            assert_eq!(read_id(bad.as_bytes()), Err(why), "{bad:?}");
        }
        assert_eq!(read_id(b"a\xff"), Err(IdFault::NotUtf8));
        for all in '\0'..='\u{2fff}' {
            assert_eq!(check_id(&all.to_string()).is_err(), all.is_control(), "{all:?}");
        }
    }
}
