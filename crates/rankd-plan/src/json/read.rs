//! Reads a JSON text value by value, in order, without building a tree and without recursion.
//!
//! The caller walks the text with `object`, `array` and the scalar methods; what it does not want it skips. Errors are fatal:
//! after one, nothing more can be read. A number that does not fit is not an error here but a value that says so.

use std::borrow::Cow;
use std::collections::HashSet;

/// What the next value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a bool",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// A number as it was written: without point or exponent it is an int.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
    /// It fits neither 64-bit type.
    OutOfRange,
}

/// Why reading cannot go on, and the byte at which that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub message: &'static str,
    pub at: usize,
}

impl Fault {
    /// Ends the reading where the reason has been reported already.
    pub const TOLD: Fault = Fault { message: "", at: 0 };
}

/// More fields than this are refused: their names must be remembered to tell which come twice.
const FIELDS_MAX: usize = 100_000;

type Result<T> = std::result::Result<T, Fault>;

#[derive(Clone)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many containers are open.
    depth: usize,
    depth_max: usize,
}

impl<'a> Reader<'a> {
    /// A reader that refuses nesting beyond `depth_max`.
    pub fn new(text: &'a str, depth_max: usize) -> Reader<'a> {
        Reader { text, at: 0, depth: 0, depth_max }
    }

    /// The byte that is read next.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The kind of the next value.
    pub fn peek(&mut self) -> Result<Kind> {
        match self.next_byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => self.fail("a value should stand here"),
            None => self.fail("the text ends where a value should stand"),
        }
    }

    /// Opens an object. Then `field` gives its fields one by one; each value must be read or skipped.
    pub fn open_object(&mut self) -> Result<Fields> {
        self.open(b'{', "an object should stand here")?;
        Ok(Fields { first: true, seen: Seen::default() })
    }

    /// The next field's name and whether it was there before; `None` at the end of the object.
    pub fn field(&mut self, fields: &mut Fields) -> Result<Option<(Cow<'a, str>, bool)>> {
        if !self.more(&mut fields.first, b'}', "a comma or } should stand here")? {
            return Ok(None);
        }
        if self.next_byte() != Some(b'"') {
            return self.fail("a field name should stand here");
        }
        let name = self.string()?;
        if self.next_byte() != Some(b':') {
            return self.fail("a colon should stand here");
        }
        self.at += 1;
        if fields.seen.len() == FIELDS_MAX {
            return self.fail("an object with more fields than anything here has");
        }
        let repeated = !fields.seen.add(&name);
        Ok(Some((name, repeated)))
    }

    /// Opens an array. Then `item` says whether another item follows; each must be read or skipped.
    pub fn open_array(&mut self) -> Result<Items> {
        self.open(b'[', "an array should stand here")?;
        Ok(Items { first: true })
    }

    pub fn item(&mut self, items: &mut Items) -> Result<bool> {
        self.more(&mut items.first, b']', "a comma or ] should stand here")
    }

    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.next_byte() != Some(b'"') {
            return self.fail("a string should stand here");
        }
        self.at += 1;
        let start = self.at;
        let mut text: Option<String> = None;
        let mut copied = start;
        loop {
            let plain = self.text.as_bytes()[self.at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            self.at = plain.map_or(self.text.len(), |plain| self.at + plain);
            match self.byte() {
                None => return self.fail("the text ends inside a string"),
                Some(b'"') => {
                    let rest = &self.text[copied..self.at];
                    self.at += 1;
                    return Ok(match text {
                        None => Cow::Borrowed(rest),
                        Some(mut text) => {
                            text.push_str(rest);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let text = text.get_or_insert_default();
                    text.push_str(&self.text[copied..self.at]);
                    self.at += 1;
                    text.push(self.escape()?);
                    copied = self.at;
                }
                Some(_) => return self.fail("a control character in a string must be escaped"),
            }
        }
    }

    pub fn number(&mut self) -> Result<Number> {
        self.skip_space();
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fail("a digit should stand here"),
        }
        let mut whole = true;
        if self.byte() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        let text = &self.text[start..self.at];
        if whole {
            return Ok(text.parse().map_or(Number::OutOfRange, Number::Int));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Number::Float(value)),
            _ => Ok(Number::OutOfRange),
        }
    }

    pub fn bool(&mut self) -> Result<bool> {
        match self.next_byte() {
            Some(b't') => self.word("true").map(|()| true),
            _ => self.word("false").map(|()| false),
        }
    }

    pub fn null(&mut self) -> Result<()> {
        self.skip_space();
        self.word("null")
    }

    /// Passes over the next value, whatever it is, checking that it is JSON.
    pub fn skip(&mut self) -> Result<()> {
        // One bit a level: whether the container is an object.
        let mut open = BitStack::default();
        loop {
            match self.peek()? {
                Kind::Object => {
                    self.open(b'{', "")?;
                    if self.enter_object()? {
                        open.push(true);
                        continue;
                    }
                }
                Kind::Array => {
                    self.open(b'[', "")?;
                    if self.more(&mut true, b']', "")? {
                        open.push(false);
                        continue;
                    }
                }
                Kind::String => drop(self.string()?),
                Kind::Number => drop(self.number()?),
                Kind::Bool => drop(self.bool()?),
                Kind::Null => self.null()?,
            }
            // A value is done: go on to its neighbour, closing what ends here.
            loop {
                let goes_on = match open.last() {
                    None => return Ok(()),
                    Some(true) => self.more(&mut false, b'}', "a comma or } should stand here")? && self.name()?,
                    Some(false) => self.more(&mut false, b']', "a comma or ] should stand here")?,
                };
                if goes_on {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Passes over the next value and gives its text.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// Fails unless nothing but space is left.
    pub fn end(&mut self) -> Result<()> {
        match self.next_byte() {
            None => Ok(()),
            Some(_) => self.fail("the document has ended, but text follows"),
        }
    }

    fn enter_object(&mut self) -> Result<bool> {
        Ok(self.more(&mut true, b'}', "")? && self.name()?)
    }

    /// A field name and its colon, both passed over.
    fn name(&mut self) -> Result<bool> {
        if self.next_byte() != Some(b'"') {
            return self.fail("a field name should stand here");
        }
        self.string()?;
        if self.next_byte() != Some(b':') {
            return self.fail("a colon should stand here");
        }
        self.at += 1;
        Ok(true)
    }

    fn open(&mut self, bracket: u8, otherwise: &'static str) -> Result<()> {
        if self.next_byte() != Some(bracket) {
            return self.fail(otherwise);
        }
        if self.depth == self.depth_max {
            return self.fail("nested too deep");
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Whether another element follows in the open container; passes the comma or the closing bracket.
    fn more(&mut self, first: &mut bool, close: u8, otherwise: &'static str) -> Result<bool> {
        let next = self.next_byte();
        if next == Some(close) {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if !std::mem::replace(first, false) {
            if next != Some(b',') {
                return self.fail(otherwise);
            }
            self.at += 1;
            if self.next_byte() == Some(close) {
                return self.fail("a comma before the end");
            }
        }
        Ok(true)
    }

    fn escape(&mut self) -> Result<char> {
        let byte = self.byte();
        self.at += usize::from(byte.is_some_and(|byte| byte.is_ascii()));
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.fail("an escape that JSON does not have"),
        })
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let high = self.hex4()?;
        let code = match high {
            0xD800..=0xDBFF => {
                if !self.text[self.at..].starts_with("\\u") {
                    return self.fail("half of a surrogate pair");
                }
                self.at += 2;
                let low = self.hex4()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return self.fail("half of a surrogate pair");
                }
                0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(char) => Ok(char),
            None => self.fail("half of a surrogate pair"),
        }
    }

    fn hex4(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(code) = digits.and_then(|d| u32::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok()) else {
            return self.fail("four hexadecimal digits should stand here");
        };
        self.at += 4;
        Ok(code)
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<()> {
        let start = self.at;
        self.digits();
        if self.at == start { self.fail("a digit should stand here") } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str) -> Result<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.fail("true, false or null should stand here");
        }
        self.at += word.len();
        Ok(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next_byte(&mut self) -> Option<u8> {
        self.skip_space();
        self.byte()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    fn fail<T>(&self, message: &'static str) -> Result<T> {
        Err(Fault { message, at: self.at })
    }
}

/// An open object.
pub struct Fields {
    first: bool,
    seen: Seen,
}

/// An open array.
pub struct Items {
    first: bool,
}

/// The names of an object so far. Few are compared one by one; many are hashed.
#[derive(Default)]
struct Seen {
    few: Vec<Box<str>>,
    many: HashSet<Box<str>>,
}

impl Seen {
    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    /// False when the name was there before.
    fn add(&mut self, name: &str) -> bool {
        const FEW: usize = 16;
        if self.few.len() < FEW {
            let new = self.few.iter().all(|seen| **seen != *name);
            if new {
                self.few.push(name.into());
            }
            return new;
        }
        self.few.iter().all(|seen| **seen != *name) && self.many.insert(name.into())
    }
}

#[derive(Default)]
struct BitStack {
    bits: Vec<u64>,
    len: usize,
}

impl BitStack {
    fn push(&mut self, bit: bool) {
        let (word, at) = (self.len / 64, self.len % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        self.bits[word] = self.bits[word] & !(1 << at) | u64::from(bit) << at;
        self.len += 1;
    }

    fn last(&self) -> Option<bool> {
        let at = self.len.checked_sub(1)?;
        Some(self.bits[at / 64] >> (at % 64) & 1 == 1)
    }

    fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(text: &str) -> std::result::Result<(), &'static str> {
        let mut reader = Reader::new(text, usize::MAX);
        reader.skip().and_then(|()| reader.end()).map_err(|fault| fault.message)
    }

    #[test]
    fn what_is_json_is_passed_over() {
        for text in [r#"{"a":[1,-0.5e+9,{}],"b":{"c":null}}"#, "[]", " true ", r#""é😀""#, "[[],[[]],{}]"] {
            assert_eq!(skips(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in
            ["", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", "+1", "nul", "[1 2]", "\"\u{1}\"", "{} {}", "NaN"]
        {
            assert!(skips(text).is_err(), "{text}");
        }
        for text in [r#""\ud800""#, r#""\ud800A""#, r#""\udc00""#, r#""\x""#, r#""\u12""#] {
            assert!(skips(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_ints_floats_or_out_of_range() {
        let number = |text: &str| Reader::new(text, 1).number().unwrap();
        assert_eq!(number("9223372036854775807"), Number::Int(i64::MAX));
        assert_eq!(number("9223372036854775808"), Number::OutOfRange);
        assert_eq!(number("1.0"), Number::Float(1.0));
        assert_eq!(number("1e999"), Number::OutOfRange);
        assert_eq!(number("-0"), Number::Int(0));
    }

    #[test]
    fn a_million_levels_are_skipped_without_recursion() {
        let text = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(skips(&text), Ok(()));
        let mut shallow = Reader::new(&text, 64);
        assert_eq!(shallow.skip().unwrap_err().message, "nested too deep");
    }

    #[test]
    fn a_repeated_field_is_noticed_among_few_and_among_many() {
        for fields in [3, 40] {
            let names: String = (0..fields).map(|n| format!("\"f{n}\":0,")).collect();
            let text = format!("{{{names}\"f1\":0}}");
            let mut reader = Reader::new(&text, 8);
            let mut open = reader.open_object().unwrap();
            let mut repeated = Vec::new();
            while let Some((name, again)) = reader.field(&mut open).unwrap() {
                reader.skip().unwrap();
                if again {
                    repeated.push(name.into_owned());
                }
            }
            assert_eq!(repeated, ["f1"]);
        }
    }
}
