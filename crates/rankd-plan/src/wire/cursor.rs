//! A reader that knows where it is, and reports what it finds there instead of stopping.
//!
//! A method that finds another JSON type than it wants reports that, passes over the value and gives nothing.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::json::{Fault, Kind, Misfit, Number, Reader, read_array, segment};
use rankd_column::Value;
use rankd_column::column::OpenCell;
use std::borrow::Cow;
use std::fmt::Write;
use std::rc::Rc;

enum Segment<'a> {
    Field(Cow<'a, str>),
    Index(usize),
}

/// Where a value stands. Its pointer is written out only where something is reported: a deep expression has many places, and
/// each pointer is as long as its place is deep.
pub(crate) enum Place {
    Root(String),
    Below(Rc<Place>, &'static str),
}

impl Place {
    pub(crate) fn pointer(&self) -> String {
        let (mut fields, mut at) = (Vec::new(), self);
        let root = loop {
            match at {
                Place::Root(pointer) => break pointer,
                Place::Below(above, field) => {
                    fields.push(*field);
                    at = above;
                }
            }
        };
        fields.iter().rev().fold(root.clone(), |pointer, field| pointer + "/" + field)
    }
}

pub(crate) struct Cursor<'a, 'd> {
    reader: Reader<'a>,
    /// Where the value is that the path starts from, for text that was cut out of a larger one.
    base: Rc<Place>,
    path: Vec<Segment<'a>>,
    found: &'d mut Diagnostics,
    /// Where the last report was made.
    reported: Option<String>,
}

impl<'a, 'd> Cursor<'a, 'd> {
    pub(crate) fn new(text: &'a str, base: String, found: &'d mut Diagnostics) -> Cursor<'a, 'd> {
        Cursor::at(text, Rc::new(Place::Root(base)), Vec::new(), found)
    }

    /// For the text of a field of a value whose place is known.
    pub(crate) fn of_field(
        text: &'a str,
        place: &Rc<Place>,
        name: Cow<'a, str>,
        found: &'d mut Diagnostics,
    ) -> Cursor<'a, 'd> {
        Cursor::at(text, place.clone(), vec![Segment::Field(name)], found)
    }

    fn at(text: &'a str, base: Rc<Place>, path: Vec<Segment<'a>>, found: &'d mut Diagnostics) -> Cursor<'a, 'd> {
        // Depth is bounded by what the format has room for; whatever is passed over needs none.
        Cursor { reader: Reader::new(text, usize::MAX), base, path, found, reported: None }
    }

    /// The JSON pointer of the value at hand.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = self.base.pointer();
        for part in &self.path {
            match part {
                Segment::Field(name) => {
                    pointer.push('/');
                    pointer.push_str(&segment(name));
                }
                // Writing into a string cannot fail.
                Segment::Index(at) => drop(write!(pointer, "/{at}")),
            }
        }
        pointer
    }

    pub(crate) fn report(&mut self, code: Code, message: impl Into<String>) {
        let diagnostic = Diagnostic::new(code, self.pointer(), message);
        self.report_at(diagnostic);
    }

    pub(crate) fn report_at(&mut self, diagnostic: Diagnostic) {
        self.reported = Some(diagnostic.pointer.clone());
        self.found.push(diagnostic);
    }

    /// Whether the last report was about the value at hand.
    pub(crate) fn reported_here(&self) -> bool {
        self.reported.as_ref().is_some_and(|pointer| *pointer == self.pointer())
    }

    /// Whether the last report was about this field of the value at hand.
    pub(crate) fn reported_below(&self, field: &str) -> bool {
        self.reported.as_ref().is_some_and(|pointer| *pointer == format!("{}/{field}", self.pointer()))
    }

    /// What was found so far, for those who find more elsewhere.
    pub(crate) fn found(&mut self) -> &mut Diagnostics {
        self.found
    }

    /// How many errors have been reported so far.
    pub(crate) fn errors(&self) -> usize {
        self.found.errors()
    }

    pub(crate) fn missing(&mut self, field: &str) {
        self.report(Code::MissingField, format!("the field {field:?} is missing"));
    }

    pub(crate) fn unknown(&mut self, field: &str, known: &'static [&'static str]) {
        let message = format!("there is no field {} here", quoted(field));
        let unknown = Diagnostic::new(Code::UnknownField, self.pointer(), message);
        self.report_at(unknown.nearest(field, known.iter().copied()));
    }

    /// Reads an object of known fields. `each` reads a field's value, or says false for a field it does not know.
    pub(crate) fn object<R: Known>(
        &mut self,
        known: &'static [&'static str],
        mut each: impl FnMut(&mut Self, &str) -> Result<R, Fault>,
    ) -> Result<(), Fault> {
        self.each_field(|cursor, name| {
            if !known.contains(&&*name) || !each(cursor, &name)?.known() {
                cursor.unknown(&name, known);
                return cursor.skip();
            }
            Ok(())
        })
    }

    /// Reads an object of any fields.
    pub(crate) fn each_field(
        &mut self,
        mut each: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !self.expect(Kind::Object)? {
            return Ok(());
        }
        let mut fields = self.reader.open_object()?;
        while let Some((name, repeated)) = self.reader.field(&mut fields)? {
            self.go_on()?;
            self.path.push(Segment::Field(name.clone()));
            if repeated {
                self.report(Code::DuplicateField, format!("the field {} appears twice", quoted(&name)));
                self.skip()?;
            } else {
                each(self, name)?;
            }
            self.path.pop();
        }
        Ok(())
    }

    pub(crate) fn array(&mut self, mut each: impl FnMut(&mut Self, usize) -> Result<(), Fault>) -> Result<(), Fault> {
        if !self.expect(Kind::Array)? {
            return Ok(());
        }
        let mut items = self.reader.open_array()?;
        let mut at = 0;
        while self.reader.item(&mut items)? {
            self.go_on()?;
            self.path.push(Segment::Index(at));
            each(self, at)?;
            self.path.pop();
            at += 1;
        }
        Ok(())
    }

    /// Ends the reading when there are more problems than will be reported.
    fn go_on(&mut self) -> Result<(), Fault> {
        if self.found.is_full() {
            self.found.cut_short();
            return Err(Fault::REPORTED);
        }
        Ok(())
    }

    /// Whether the array at hand has more items than `max`; the reader does not advance.
    pub(crate) fn has_more_than(&self, max: usize) -> Result<bool, Fault> {
        let mut ahead = self.reader.clone();
        let mut items = ahead.open_array()?;
        for _ in 0..max {
            if !ahead.item(&mut items)? {
                return Ok(false);
            }
            ahead.skip()?;
        }
        ahead.item(&mut items)
    }

    pub(crate) fn text(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        if self.expect(Kind::String)? { self.reader.string().map(Some) } else { Ok(None) }
    }

    pub(crate) fn bool(&mut self) -> Result<Option<bool>, Fault> {
        if self.expect(Kind::Bool)? { self.reader.bool().map(Some) } else { Ok(None) }
    }

    /// An int within a range, both ends included.
    pub(crate) fn int(&mut self, min: i64, max: i64) -> Result<Option<i64>, Fault> {
        if !self.expect(Kind::Number)? {
            return Ok(None);
        }
        match self.reader.number()? {
            Number::Int(int) if (min..=max).contains(&int) => return Ok(Some(int)),
            Number::Float(_) => self.report(Code::WrongJsonType, "expected an int, not a fraction"),
            Number::Int(_) => self.report(Code::ParamOutOfRange, format!("this must be from {min} to {max}")),
            Number::OutOfRange => self.report(Code::NumberOutOfRange, "this number does not fit 64 bits"),
        }
        Ok(None)
    }

    /// A scalar of any type, or null.
    pub(crate) fn scalar(&mut self) -> Result<Option<Value>, Fault> {
        Ok(Some(match self.reader.peek()? {
            Kind::Null => {
                self.reader.null()?;
                Value::Null
            }
            Kind::Bool => Value::Bool(self.reader.bool()?),
            Kind::String => Value::Str(self.reader.string()?.into()),
            Kind::Number => match self.reader.number()? {
                Number::Int(int) => Value::Int(int),
                Number::Float(float) => Value::Float(float),
                Number::OutOfRange => {
                    self.report(Code::NumberOutOfRange, "this number does not fit 64 bits");
                    return Ok(None);
                }
            },
            kind => {
                self.report(Code::WrongJsonType, format!("expected a single value, not {}", kind.name()));
                self.skip()?;
                return Ok(None);
            }
        }))
    }

    /// Reads a list or vector into a cell; what is wrong with it is the caller's to report.
    pub(crate) fn array_cell(&mut self, cell: &mut OpenCell<'_>) -> Result<Result<(), Misfit>, Fault> {
        read_array(&mut self.reader, cell)
    }

    /// A number of any type; call it only where one is next.
    pub(crate) fn number(&mut self) -> Result<Number, Fault> {
        self.reader.number()
    }

    pub(crate) fn peek(&mut self) -> Result<Kind, Fault> {
        self.reader.peek()
    }

    pub(crate) fn raw(&mut self) -> Result<&'a str, Fault> {
        self.reader.raw()
    }

    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        self.reader.skip()
    }

    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.reader.end()
    }

    /// Whether the next value is of this kind; if not, that is reported and the value passed over.
    pub(crate) fn expect(&mut self, kind: Kind) -> Result<bool, Fault> {
        let next = self.reader.peek()?;
        if next != kind {
            self.report(Code::WrongJsonType, format!("expected {}, not {}", kind.name(), next.name()));
            self.skip()?;
        }
        Ok(next == kind)
    }
}

/// What a field's reader answers: that the field is one of its own, or whether it is.
pub(crate) trait Known {
    fn known(self) -> bool;
}

impl Known for () {
    fn known(self) -> bool {
        true
    }
}

impl Known for bool {
    fn known(self) -> bool {
        self
    }
}
