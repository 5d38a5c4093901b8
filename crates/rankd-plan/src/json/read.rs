//! Reads a JSON text value by value, in order, without building a tree and without recursion.
//!
//! The caller walks the text with `object`, `array` and the scalar methods; what it does not want it skips. Errors are fatal:
//! after one, nothing more can be read. A number that does not fit is not an error here but a value that says so.

use super::plain::plain;
use super::write::push_string;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

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

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {})", self.message, self.at)
    }
}

impl Fault {
    /// Ends the reading where the reason has been reported already.
    pub const REPORTED: Fault = Fault { message: "", at: 0 };
}

/// More fields than this are refused: their names must be remembered to find those that come twice.
const FIELDS_MAX: usize = 100_000;

/// An int of this many digits may not fit 64 bits.
const INT_DIGITS: usize = 19;

/// Powers of ten. Up to 1e22 they are floats without rounding.
const POWERS: [f64; INT_DIGITS] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

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
            Some(_) => self.fail("expected a value"),
            None => self.fail("the text ends where a value is expected"),
        }
    }

    /// Opens an object. Then `field` gives its fields one by one; each value must be read or skipped.
    pub fn open_object(&mut self) -> Result<Fields> {
        self.open(b'{', "expected an object")?;
        Ok(Fields { first: true, seen: Seen::default() })
    }

    /// The next field's name and whether it was there before; `None` at the end of the object.
    pub fn field(&mut self, fields: &mut Fields) -> Result<Option<(Cow<'a, str>, bool)>> {
        let Some(name) = self.field_name(fields)? else { return Ok(None) };
        if fields.seen.len() == FIELDS_MAX {
            return self.fail("an object with too many fields");
        }
        let repeated = !fields.seen.add(&name);
        Ok(Some((name, repeated)))
    }

    /// The next field's name, for a caller that finds repeated ones by itself; `None` at the end of the object.
    pub fn field_name(&mut self, fields: &mut Fields) -> Result<Option<Cow<'a, str>>> {
        if !self.more(&mut fields.first, b'}', "expected a comma or }")? {
            return Ok(None);
        }
        if self.next_byte() != Some(b'"') {
            return self.fail("expected a field name");
        }
        let name = self.string()?;
        if self.next_byte() != Some(b':') {
            return self.fail("expected a colon");
        }
        self.at += 1;
        Ok(Some(name))
    }

    /// Passes the name of the next field if it is this one, written as we would write it. Otherwise nothing is passed.
    pub fn field_is(&mut self, fields: &mut Fields, name: &FieldName) -> bool {
        let bytes = self.text.as_bytes();
        let mut at = behind_space(bytes, self.at);
        if !fields.first {
            if bytes.get(at) != Some(&b',') {
                return false;
            }
            at = behind_space(bytes, at + 1);
        }
        if !bytes.get(at..).is_some_and(|rest| name.starts(rest)) {
            return false;
        }
        at = behind_space(bytes, at + name.quoted.len());
        if bytes.get(at) != Some(&b':') {
            return false;
        }
        self.at = at + 1;
        fields.first = false;
        true
    }

    /// Opens an array. Then `item` says whether another item follows; each must be read or skipped.
    pub fn open_array(&mut self) -> Result<Items> {
        self.open(b'[', "expected an array")?;
        Ok(Items { first: true })
    }

    pub fn item(&mut self, items: &mut Items) -> Result<bool> {
        self.more(&mut items.first, b']', "expected a comma or ]")
    }

    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.next_byte() != Some(b'"') {
            return self.fail("expected a string");
        }
        let start = self.at + 1;
        let end = start + plain(&self.text.as_bytes()[start..]);
        self.at = end;
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        self.escaped(start).map(Cow::Owned)
    }

    /// The rest of a string in which there is something to resolve: the reader stands at the first such place.
    fn escaped(&mut self, mut copied: usize) -> Result<String> {
        let mut text = String::new();
        loop {
            text.push_str(&self.text[copied..self.at]);
            match self.byte() {
                None => return self.fail("the text ends inside a string"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                    copied = self.at;
                }
                Some(_) => return self.fail("a control character in a string must be escaped"),
            }
            self.at += plain(&self.text.as_bytes()[self.at..]);
        }
    }

    pub fn number(&mut self) -> Result<Number> {
        self.skip_space();
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let negative = self.byte() == Some(b'-');
        let first = start + usize::from(negative);
        // All digits as one int, as long as they fit.
        let (mut at, mut int) = match bytes.get(first) {
            Some(b'0') => (first + 1, 0),
            Some(b'1'..=b'9') => digits(bytes, first, 0),
            _ => return self.fail_at(first, "expected a digit"),
        };
        let (mut count, mut point, mut exponent) = (at - first, None, false);
        if bytes.get(at) == Some(&b'.') {
            let from = at + 1;
            (at, int) = digits(bytes, from, int);
            if at == from {
                return self.fail_at(at, "expected a digit");
            }
            point = Some(at - from);
            count += at - from;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            exponent = true;
            let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
            let from = at + 1 + usize::from(signed);
            (at, _) = digits(bytes, from, 0);
            if at == from {
                return self.fail_at(at, "expected a digit");
            }
        }
        self.at = at;
        let text = || &self.text[start..at];
        match point {
            None if !exponent => match count < INT_DIGITS {
                true => Ok(Number::Int(if negative { -(int as i64) } else { int as i64 })),
                false => Ok(text().parse().map_or(Number::OutOfRange, Number::Int)),
            },
            // Both are floats without rounding, so the quotient is rounded once, as it should be.
            Some(behind) if !exponent && count < INT_DIGITS && int <= 1 << 53 => {
                let value = int as f64 / POWERS[behind];
                Ok(Number::Float(if negative { -value } else { value }))
            }
            _ => match text().parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Number::Float(value)),
                _ => Ok(Number::OutOfRange),
            },
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
                    Some(true) => self.more(&mut false, b'}', "expected a comma or }")? && self.name()?,
                    Some(false) => self.more(&mut false, b']', "expected a comma or ]")?,
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
            return self.fail("expected a field name");
        }
        self.string()?;
        if self.next_byte() != Some(b':') {
            return self.fail("expected a colon");
        }
        self.at += 1;
        Ok(true)
    }

    fn open(&mut self, bracket: u8, otherwise: &'static str) -> Result<()> {
        if self.next_byte() != Some(bracket) {
            return self.fail(otherwise);
        }
        if self.depth == self.depth_max {
            return self.fail("nested too deeply");
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
            return self.fail("expected four hexadecimal digits");
        };
        self.at += 4;
        Ok(code)
    }

    fn word(&mut self, word: &'static str) -> Result<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.fail("expected true, false or null");
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
        self.at = behind_space(self.text.as_bytes(), self.at);
    }

    fn fail<T>(&self, message: &'static str) -> Result<T> {
        Err(Fault { message, at: self.at })
    }

    fn fail_at<T>(&mut self, at: usize, message: &'static str) -> Result<T> {
        self.at = at;
        self.fail(message)
    }
}

/// Reads digits onto the end of an int, eight at a time while there are as many. The int is of no use once there are too many
/// of them. The first result is the position behind them.
fn digits(bytes: &[u8], mut at: usize, mut int: u64) -> (usize, u64) {
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let Some(value) = eight_digits(u64::from_le_bytes(*eight)) else { break };
        int = int.wrapping_mul(100_000_000).wrapping_add(value);
        at += 8;
    }
    while let Some(byte @ b'0'..=b'9') = bytes.get(at) {
        int = int.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        at += 1;
    }
    (at, int)
}

/// The number that eight bytes spell, if all are digits. Neighbours are put together three times, all pairs at once.
fn eight_digits(word: u64) -> Option<u64> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let top = ONES * 0xf0;
    // The upper half of a digit is 3, also after 6 is added; of no other byte both are.
    let digits = (word & top) | (word.wrapping_add(ONES * 6) & top) >> 4;
    if digits != ONES * 0x33 {
        return None;
    }
    let twos = (word & (ONES * 0x0f)).wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = twos.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000 << 32 | 1) >> 32)
}

/// The position of the next byte that is not space.
fn behind_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// A field's name as JSON, ready to be looked for.
pub struct FieldName {
    quoted: Vec<u8>,
    /// The first bytes of it, and which of them count.
    word: u128,
    mask: u128,
}

impl FieldName {
    pub fn new(name: &str) -> FieldName {
        let mut quoted = Vec::new();
        push_string(&mut quoted, name);
        let (mut word, mut mask) = ([0; 16], [0; 16]);
        for ((byte, word), mask) in quoted.iter().zip(&mut word).zip(&mut mask) {
            (*word, *mask) = (*byte, 0xff);
        }
        FieldName { quoted, word: u128::from_le_bytes(word), mask: u128::from_le_bytes(mask) }
    }

    fn starts(&self, bytes: &[u8]) -> bool {
        match bytes.first_chunk() {
            Some(first) if self.quoted.len() <= first.len() => u128::from_le_bytes(*first) & self.mask == self.word,
            _ => bytes.starts_with(&self.quoted),
        }
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
    many: Option<HashSet<Box<str>>>,
}

impl Seen {
    fn len(&self) -> usize {
        self.few.len() + self.many.as_ref().map_or(0, HashSet::len)
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
        self.few.iter().all(|seen| **seen != *name) && self.many.get_or_insert_default().insert(name.into())
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
    fn numbers_are_what_the_standard_library_makes_of_them() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 33) % below
        };
        let mut digits = |len: u64| -> String { (0..len).map(|_| char::from(b'0' + random(10) as u8)).collect() };
        let mut texts: Vec<String> = Vec::new();
        for len in 1..25 {
            for behind in 0..26 {
                let whole = digits(len).trim_start_matches('0').to_owned();
                let whole = if whole.is_empty() { "0".to_owned() } else { whole };
                texts.push(whole.clone());
                if behind > 0 {
                    texts.push(format!("{whole}.{}", digits(behind)));
                    texts.push(format!("0.{}", digits(behind)));
                    texts.push(format!("{whole}.{}e-{}", digits(behind), digits(2)));
                }
            }
        }
        texts.extend((0..2000).map(|at| format!("{}", f64::from(at) / 997.0)));
        texts.extend([u64::MAX.to_string(), i64::MIN.to_string(), "9007199254740993.0".to_owned(), "-0.0".to_owned()]);
        for text in texts.iter().flat_map(|text| [text.clone(), format!("-{}", text.trim_start_matches('-'))]) {
            let expected = match text.contains(['.', 'e']) {
                true => text.parse().map(f64::to_bits).ok(),
                false => text.parse::<i64>().map(|int| int as u64).ok(),
            };
            let mut reader = Reader::new(&text, 1);
            let found = match reader.number().unwrap() {
                Number::Int(value) => Some(value as u64),
                Number::Float(value) => Some(value.to_bits()),
                Number::OutOfRange => None,
            };
            assert_eq!((found, reader.at()), (expected, text.len()), "{text}");
        }
    }

    #[test]
    fn eight_digits_are_eight_digits() {
        for digits in ["00000000", "12345678", "99999999", "10203040"] {
            assert_eq!(
                eight_digits(u64::from_le_bytes(*digits.as_bytes().first_chunk().unwrap())),
                digits.parse().ok()
            );
        }
        for at in 0..8 {
            for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_digit()) {
                let mut bytes = *b"12345678";
                bytes[at] = byte;
                assert_eq!(eight_digits(u64::from_le_bytes(bytes)), None, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_field_is_recognised_only_as_itself() {
        let long = "x".repeat(20);
        for name in ["id", "score", "", "a\"b", "fourteen_bytes", "fifteen_bytes__", &long] {
            let mut quoted = Vec::new();
            push_string(&mut quoted, name);
            let quoted = String::from_utf8(quoted).unwrap();
            for (text, is) in [
                (format!("{{{quoted}:1}}"), true),
                (format!("{{ {quoted} : 1 }}"), true),
                (format!("{{{quoted}:1,\"other_name_of_some_length\":2}}"), true),
                (format!("{{{quoted} 1}}"), false),
                (format!("{{\"z{}:1}}", &quoted[1..]), false),
                (format!("{{{}z\":1}}", &quoted[..quoted.len() - 1]), false),
                ("{}".to_owned(), false),
                ("{".to_owned(), false),
            ] {
                let mut reader = Reader::new(&text, 1);
                let mut open = reader.open_object().unwrap();
                let before = reader.at();
                assert_eq!(reader.field_is(&mut open, &FieldName::new(name)), is, "{text}");
                match is {
                    true => assert!(reader.number().is_ok(), "{text}"),
                    false => assert_eq!(reader.at(), before, "{text}"),
                }
            }
        }
        let mut reader = Reader::new("{\"a\":1 , \"b\":2,\"c\":3}", 1);
        let mut open = reader.open_object().unwrap();
        assert!(reader.field_is(&mut open, &FieldName::new("a")) && reader.number().is_ok());
        assert!(reader.field_is(&mut open, &FieldName::new("b")) && reader.number().is_ok());
        assert!(!reader.field_is(&mut open, &FieldName::new("b")));
        assert_eq!(reader.field_name(&mut open).unwrap().as_deref(), Some("c"));
    }

    #[test]
    fn a_million_levels_are_skipped_without_recursion() {
        let text = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(skips(&text), Ok(()));
        let mut shallow = Reader::new(&text, 64);
        assert_eq!(shallow.skip().unwrap_err().message, "nested too deeply");
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
