//! One way to read what XGBoost writes as JSON and as UBJSON: value by value, in order, without building a tree and without recursion.

use super::problem::{ModelProblem, Read};
use super::ubjson;
use crate::json;
use std::borrow::Cow;

pub(super) use crate::json::{Kind, Number};

/// How deep values may nest. Trees of CatBoost do, split in split.
const DEPTH_MAX: usize = 1_024;

/// A place in a file, from which values are read. A copy reads on from the same place.
#[derive(Clone)]
pub(super) enum Pull<'a> {
    Json { reader: json::Reader<'a>, text: &'a str },
    Binary(ubjson::UbjsonReader<'a>),
}

pub(super) enum PullFields {
    Json(json::Fields),
    Binary(ubjson::Container, Vec<Box<str>>),
}

pub(super) enum PullItems {
    Json(json::Items),
    Binary(ubjson::Container),
}

impl<'a> Pull<'a> {
    pub(super) fn json(text: &'a str) -> Pull<'a> {
        Pull::Json { reader: json::Reader::new(text, DEPTH_MAX), text }
    }

    pub(super) fn binary(bytes: &'a [u8]) -> Pull<'a> {
        Pull::Binary(ubjson::UbjsonReader::new(bytes, DEPTH_MAX))
    }

    /// The byte that is read next.
    pub(super) fn at(&self) -> usize {
        match self {
            Pull::Json { reader, .. } => reader.at(),
            Pull::Binary(reader) => reader.at(),
        }
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Read<T> {
        Err(ModelProblem::new(self.at(), message))
    }

    pub(super) fn peek(&mut self) -> Read<Kind> {
        match self {
            Pull::Json { reader, .. } => Ok(reader.peek()?),
            Pull::Binary(reader) => reader.peek(),
        }
    }

    pub(super) fn open_object(&mut self) -> Read<PullFields> {
        match self {
            Pull::Json { reader, .. } => Ok(PullFields::Json(reader.open_object()?)),
            Pull::Binary(reader) => Ok(PullFields::Binary(reader.open_object()?, Vec::new())),
        }
    }

    /// The next field's name; `None` at the end of the object. One that was there before is refused.
    pub(super) fn field(&mut self, fields: &mut PullFields) -> Read<Option<Cow<'a, str>>> {
        let (name, again) = match (&mut *self, fields) {
            (Pull::Json { reader, .. }, PullFields::Json(fields)) => match reader.field(fields)? {
                Some(found) => found,
                None => return Ok(None),
            },
            (Pull::Binary(reader), PullFields::Binary(container, seen)) => match reader.field(container)? {
                Some(name) => {
                    let again = seen.iter().any(|seen| **seen == *name);
                    seen.push(name.into());
                    (Cow::Borrowed(name), again)
                }
                None => return Ok(None),
            },
            (Pull::Json { .. }, PullFields::Binary(..)) | (Pull::Binary(_), PullFields::Json(_)) => return Ok(None),
        };
        if again {
            return self.fail(format!("a field `{name}` that was there before"));
        }
        Ok(Some(name))
    }

    pub(super) fn open_array(&mut self) -> Read<PullItems> {
        match self {
            Pull::Json { reader, .. } => Ok(PullItems::Json(reader.open_array()?)),
            Pull::Binary(reader) => Ok(PullItems::Binary(reader.open_array()?)),
        }
    }

    pub(super) fn item(&mut self, items: &mut PullItems) -> Read<bool> {
        match (self, items) {
            (Pull::Json { reader, .. }, PullItems::Json(items)) => Ok(reader.item(items)?),
            (Pull::Binary(reader), PullItems::Binary(items)) => reader.item(items),
            (Pull::Json { .. }, PullItems::Binary(_)) | (Pull::Binary(_), PullItems::Json(_)) => Ok(false),
        }
    }

    pub(super) fn string(&mut self) -> Read<Cow<'a, str>> {
        match self {
            Pull::Json { reader, .. } => Ok(reader.string()?),
            Pull::Binary(reader) => reader.string().map(Cow::Borrowed),
        }
    }

    pub(super) fn number(&mut self) -> Read<Number> {
        match self {
            Pull::Json { reader, .. } => Ok(reader.number()?),
            Pull::Binary(reader) => reader.number(),
        }
    }

    pub(super) fn skip(&mut self) -> Read<()> {
        match self {
            Pull::Json { reader, .. } => Ok(reader.skip()?),
            Pull::Binary(reader) => reader.skip(),
        }
    }

    pub(super) fn end(&mut self) -> Read<()> {
        match self {
            Pull::Json { reader, .. } => Ok(reader.end()?),
            Pull::Binary(reader) => reader.end(),
        }
    }

    /// A finite number of 32 bits, rounded once.
    fn float(&mut self) -> Read<f32> {
        let at = self.at();
        let value = match self.number()? {
            Number::Int(int) => int as f32,
            Number::Float(value) => {
                // The double next to it may be just between two singles: then its digits decide.
                let between = value.to_bits() & 0x1fff_ffff;
                match self {
                    Pull::Json { reader, text } if between.abs_diff(0x1000_0000) <= 1 => {
                        text[at..reader.at()].trim().parse().unwrap_or(f32::NAN)
                    }
                    Pull::Json { .. } | Pull::Binary(_) => value as f32,
                }
            }
            Number::OutOfRange => f32::NAN,
        };
        match value.is_finite() {
            true => Ok(value),
            false => Err(ModelProblem::new(at, "a number that is not a finite float of 32 bits")),
        }
    }

    /// All numbers of an array.
    pub(super) fn floats(&mut self, into: &mut Vec<f32>) -> Read<()> {
        into.clear();
        let mut items = self.open_array()?;
        while self.item(&mut items)? {
            into.push(self.float()?);
        }
        Ok(())
    }

    /// All ints of an array; a bool is 0 or 1.
    pub(super) fn ints(&mut self, into: &mut Vec<i32>) -> Read<()> {
        into.clear();
        let mut items = self.open_array()?;
        while self.item(&mut items)? {
            let value = match (self.peek()?, &mut *self) {
                (Kind::Bool, Pull::Json { reader, .. }) => i64::from(reader.bool()?),
                (Kind::Bool, Pull::Binary(reader)) => i64::from(reader.bool()?),
                _ => match self.number()? {
                    Number::Int(value) => value,
                    Number::Float(_) | Number::OutOfRange => return self.fail("expected an int"),
                },
            };
            let Ok(value) = i32::try_from(value) else { return self.fail("an int of more than 32 bits") };
            into.push(value);
        }
        Ok(())
    }
}
