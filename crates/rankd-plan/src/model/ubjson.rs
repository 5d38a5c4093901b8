//! Reads UBJSON value by value, as far as XGBoost writes it.
//!
//! Nothing is reserved by what a file claims: an array of a billion numbers ends where the file does. Elements of a container with a type are
//! at least a byte each, so no claim makes a long loop.

use super::problem::{ModelProblem, Read};
use crate::json::{Kind, Number};

#[derive(Clone)]
pub(super) struct UbjsonReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The marker of the next value, where its array has said it for all.
    implied: Option<u8>,
    depth: usize,
    depth_max: usize,
}

/// An open object or array.
pub(super) struct Container {
    marker: Option<u8>,
    /// How many elements are left, where their number was said; otherwise a bracket ends it.
    left: Option<u64>,
}

impl<'a> UbjsonReader<'a> {
    pub(super) fn new(bytes: &'a [u8], depth_max: usize) -> UbjsonReader<'a> {
        UbjsonReader { bytes, at: 0, implied: None, depth: 0, depth_max }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn fail<T>(&self, message: &str) -> Read<T> {
        Err(ModelProblem::new(self.at, message))
    }

    pub(super) fn peek(&mut self) -> Read<Kind> {
        match self.marker()? {
            b'Z' => Ok(Kind::Null),
            b'T' | b'F' => Ok(Kind::Bool),
            b'i' | b'U' | b'I' | b'l' | b'L' | b'd' | b'D' => Ok(Kind::Number),
            b'S' => Ok(Kind::String),
            b'[' => Ok(Kind::Array),
            b'{' => Ok(Kind::Object),
            _ => self.fail("expected a value"),
        }
    }

    /// What the next value is, which is not passed.
    fn marker(&mut self) -> Read<u8> {
        if let Some(marker) = self.implied {
            return Ok(marker);
        }
        // A no-op stands for nothing.
        while self.bytes.get(self.at) == Some(&b'N') {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(marker) => Ok(*marker),
            None => self.fail("the file ends where a value is expected"),
        }
    }

    /// Passes the marker of the next value.
    fn pass_marker(&mut self) -> Read<u8> {
        let marker = self.marker()?;
        if self.implied.take().is_none() {
            self.at += 1;
        }
        Ok(marker)
    }

    fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            Some(taken) => {
                self.at += N;
                Ok(*taken)
            }
            None => self.fail("the file ends inside a number"),
        }
    }

    fn number_of(&mut self, marker: u8) -> Read<Number> {
        Ok(match marker {
            b'i' => Number::Int(i64::from(i8::from_be_bytes(self.take()?))),
            b'U' => Number::Int(i64::from(u8::from_be_bytes(self.take()?))),
            b'I' => Number::Int(i64::from(i16::from_be_bytes(self.take()?))),
            b'l' => Number::Int(i64::from(i32::from_be_bytes(self.take()?))),
            b'L' => Number::Int(i64::from_be_bytes(self.take()?)),
            b'd' => Number::Float(f64::from(f32::from_be_bytes(self.take()?))),
            b'D' => Number::Float(f64::from_be_bytes(self.take()?)),
            _ => return self.fail("expected a number"),
        })
    }

    pub(super) fn number(&mut self) -> Read<Number> {
        let marker = self.pass_marker()?;
        self.number_of(marker)
    }

    pub(super) fn bool(&mut self) -> Read<bool> {
        match self.pass_marker()? {
            b'T' => Ok(true),
            b'F' => Ok(false),
            _ => self.fail("expected a bool"),
        }
    }

    pub(super) fn string(&mut self) -> Read<&'a str> {
        match self.pass_marker()? {
            b'S' => self.text(),
            _ => self.fail("expected a string"),
        }
    }

    /// A length and so many bytes.
    fn text(&mut self) -> Read<&'a str> {
        let len = self.length()?;
        let start = self.at;
        let bytes = usize::try_from(len).ok().and_then(|len| self.bytes.get(start..)?.get(..len));
        match bytes.map(std::str::from_utf8) {
            Some(Ok(text)) => {
                self.at += text.len();
                Ok(text)
            }
            Some(Err(_)) => self.fail("a text that is not UTF-8"),
            None => self.fail("the file ends inside a text"),
        }
    }

    fn length(&mut self) -> Read<u64> {
        match self.number()? {
            Number::Int(length) if length >= 0 => Ok(length as u64),
            Number::Int(_) | Number::Float(_) | Number::OutOfRange => self.fail("expected a length"),
        }
    }

    pub(super) fn open_object(&mut self) -> Read<Container> {
        self.open(b'{', "expected an object")
    }

    pub(super) fn open_array(&mut self) -> Read<Container> {
        self.open(b'[', "expected an array")
    }

    fn open(&mut self, bracket: u8, otherwise: &str) -> Read<Container> {
        if self.pass_marker()? != bracket {
            return self.fail(otherwise);
        }
        if self.depth == self.depth_max {
            return self.fail("nested too deeply");
        }
        self.depth += 1;
        let mut container = Container { marker: None, left: None };
        if self.bytes.get(self.at) == Some(&b'$') {
            self.at += 1;
            let [marker] = self.take()?;
            if !matches!(marker, b'i' | b'U' | b'I' | b'l' | b'L' | b'd' | b'D') {
                return self.fail("a container of a type that is not read");
            }
            if self.bytes.get(self.at) != Some(&b'#') {
                return self.fail("a container with a type but no number of elements");
            }
            container.marker = Some(marker);
        }
        if self.bytes.get(self.at) == Some(&b'#') {
            self.at += 1;
            container.left = Some(self.length()?);
        }
        Ok(container)
    }

    /// Whether another element follows; the next value is then of the container's type.
    fn more(&mut self, container: &mut Container, bracket: u8) -> Read<bool> {
        let ended = match &mut container.left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None if self.marker()? == bracket => {
                self.at += 1;
                true
            }
            None => false,
        };
        if ended {
            self.depth = self.depth.saturating_sub(1);
        }
        Ok(!ended)
    }

    pub(super) fn item(&mut self, items: &mut Container) -> Read<bool> {
        let more = self.more(items, b']')?;
        if more {
            self.implied = items.marker;
        }
        Ok(more)
    }

    pub(super) fn field(&mut self, fields: &mut Container) -> Read<Option<&'a str>> {
        if !self.more(fields, b'}')? {
            return Ok(None);
        }
        let name = self.text()?;
        self.implied = fields.marker;
        Ok(Some(name))
    }

    /// Passes over the next value, whatever it is.
    pub(super) fn skip(&mut self) -> Read<()> {
        let mut open: Vec<(bool, Container)> = Vec::new();
        loop {
            match self.peek()? {
                Kind::Null => drop(self.pass_marker()?),
                Kind::Bool => drop(self.bool()?),
                Kind::Number => drop(self.number()?),
                Kind::String => drop(self.string()?),
                Kind::Object => open.push((true, self.open_object()?)),
                Kind::Array => {
                    let mut items = self.open_array()?;
                    self.pass_numbers(&mut items)?;
                    open.push((false, items));
                }
            }
            loop {
                let goes_on = match open.last_mut() {
                    None => return Ok(()),
                    Some((true, fields)) => self.field(fields)?.is_some(),
                    Some((false, items)) => self.item(items)?,
                };
                if goes_on {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Passes over all numbers of an array that has said their type, in one step.
    fn pass_numbers(&mut self, items: &mut Container) -> Read<()> {
        let size = match items.marker {
            None => return Ok(()),
            Some(b'i' | b'U') => 1,
            Some(b'I') => 2,
            Some(b'l' | b'd') => 4,
            Some(_) => 8,
        };
        let left = items.left.replace(0).unwrap_or(0);
        let end =
            left.checked_mul(size).and_then(|len| usize::try_from(len).ok()).and_then(|len| self.at.checked_add(len));
        match end.filter(|end| *end <= self.bytes.len()) {
            Some(end) => {
                self.at = end;
                Ok(())
            }
            None => self.fail("the file ends inside an array"),
        }
    }

    pub(super) fn end(&mut self) -> Read<()> {
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => self.fail("the document has ended, but bytes follow"),
        }
    }
}
