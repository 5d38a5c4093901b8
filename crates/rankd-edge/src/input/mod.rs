//! A request's JSON, read strictly: what is not known, not of its type or not in range is refused by name, nothing is guessed.
//! The rows that a request brings along are read in [`candidates`], the items that it asks about in `question`.

mod candidates;
mod question;

pub use question::{item, read_question};

use crate::request_id;
use rankd_column::column::ColumnBuilder;
use rankd_column::id::check_id;
use rankd_column::{Id, Key, Type, Value};
use rankd_engine::request::Candidates;
use rankd_engine::seed::Seed;
use rankd_engine::{ErrorCode, Request, RunError, codes};
use rankd_plan::Registry;
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::json::{Fault, Kind, Number, Reader, read_array};
use rankd_plan::registry::{Entry, Named, Status};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The largest document that is read.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 64;
const REQUEST_ID_BYTES_MAX: usize = 128;
const SEED_BYTES_MAX: usize = 128;
/// More than people turn by hand: each is looked for among the plan's dials.
const DIALS_MAX: usize = 256;
/// More than there are layers, of each of which a request can choose one.
const ARMS_MAX: usize = 64;
const FIELDS: &[&str] = &[
    "user_id",
    "request_id",
    "plan",
    "params",
    "param_overrides",
    "candidates",
    "output_keys",
    "now_ms",
    "seed",
    "deadline_ms",
    "node_timeout_ms",
    "strict",
    "dials",
    "arms",
    "trace",
];

/// A request and what the answer should look like.
#[derive(Debug)]
pub struct Input {
    /// The request, without what its caller decides.
    pub request: Request,
    /// The plan that the request names, if any.
    pub plan: Option<String>,
    /// `None` for every key that the output has.
    pub output_keys: Option<Vec<Key>>,
    /// Whether the answer should have a trace of the run.
    pub asks_for_trace: bool,
    /// The parameters that the request sets.
    pub set: Vec<u32>,
    /// The experiments whose arms it chooses, and the arms.
    pub asked_arms: Vec<(String, String)>,
}

/// A request that is refused before it runs.
#[derive(Debug)]
pub struct RefusedRequest {
    /// The id of the request, made up where it has none.
    pub request_id: String,
    /// Why it is refused.
    pub error: Box<RunError>,
}

impl std::error::Error for RefusedRequest {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl fmt::Display for RefusedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {:?}: {}", self.request_id, self.error)
    }
}

/// Reads a request. An error comes with the request's own id where that could be read.
pub fn read(bytes: &[u8], registry: &Registry) -> Result<Input, RefusedRequest> {
    read_with(bytes, registry, |_, _| None)
}

/// Reads a request; `more` reads fields that not every request may have.
fn read_with(
    bytes: &[u8],
    registry: &Registry,
    more: impl FnMut(&str, &mut Given<'_, '_>) -> Option<Result<(), RunError>>,
) -> Result<Input, RefusedRequest> {
    let mut id = None;
    let input = parse(bytes, registry, &mut id, more);
    // The id may stand behind what was refused.
    let id = id.or_else(|| input.is_err().then(|| find_request_id(bytes)).flatten());
    let id = id.unwrap_or_else(request_id::make);
    match input {
        Ok(mut input) => {
            input.request.request_id = id;
            Ok(input)
        }
        Err(error) => Err(RefusedRequest { request_id: id, error: Box::new(error) }),
    }
}

fn find_request_id(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes.get(..REQUEST_BYTES_MAX.min(bytes.len()))?).ok()?;
    let mut reader = Reader::new(text, DEPTH_MAX);
    let mut fields = reader.open_object().ok()?;
    while let Some((name, _)) = reader.field(&mut fields).ok()? {
        if name == "request_id" && reader.peek().ok()? == Kind::String {
            return reader.string().ok().filter(|id| id.len() <= REQUEST_ID_BYTES_MAX).map(Into::into);
        }
        reader.skip().ok()?;
    }
    None
}

const NOT_JSON: &str = "this is not a request: ";

fn not_json(fault: Fault) -> RunError {
    RunError::new(codes::NOT_A_REQUEST, format!("{NOT_JSON}{} (byte {})", fault.message, fault.at))
}

fn parse(
    bytes: &[u8],
    registry: &Registry,
    id: &mut Option<String>,
    mut more: impl FnMut(&str, &mut Given<'_, '_>) -> Option<Result<(), RunError>>,
) -> Result<Input, RunError> {
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(RunError::new(
            codes::REQUEST_TOO_LARGE,
            format!("a request has at most {REQUEST_BYTES_MAX} bytes"),
        ));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| RunError::new(codes::NOT_A_REQUEST, format!("byte {} is not UTF-8", error.valid_up_to())))?;
    let mut reader = Reader::new(text, DEPTH_MAX);
    let request = Request::new(registry);
    let (set, asked_arms) = (Vec::new(), Vec::new());
    let mut input = Input { request, plan: None, output_keys: None, asks_for_trace: false, set, asked_arms };
    let mut has_user = false;
    let mut fields = reader.open_object().map_err(not_json)?;
    while let Some((name, repeated)) = reader.field(&mut fields).map_err(not_json)? {
        if repeated {
            return Err(RunError::new(codes::NOT_A_REQUEST, format!("the field {} appears twice", quoted(&name))));
        }
        has_user |= name == "user_id";
        let value = Given { reader: &mut reader, registry, what: &name };
        read_field(&mut input, id, &name, value, &mut more).map_err(|error| in_field(error, &name))?;
    }
    reader.end().map_err(not_json)?;
    if !has_user {
        return Err(RunError::new(codes::MISSING_FIELD, "the field \"user_id\" is missing"));
    }
    Ok(input)
}

fn read_field(
    input: &mut Input,
    id: &mut Option<String>,
    name: &str,
    mut value: Given<'_, '_>,
    more: &mut impl FnMut(&str, &mut Given<'_, '_>) -> Option<Result<(), RunError>>,
) -> Result<(), RunError> {
    match name {
        "user_id" => input.request.user_id = value.user_id()?,
        "request_id" => *id = Some(value.request_id()?),
        "plan" => input.plan = Some(value.text()?),
        "params" | "param_overrides" => value.params(&mut input.request.params, &mut input.set)?,
        "candidates" => input.request.candidates = Some(Candidates::new(value.candidates()?)),
        "output_keys" => input.output_keys = Some(value.output_keys()?),
        "now_ms" => input.request.now_ms = Some(value.now_ms()?),
        "seed" => input.request.seed = Some(value.seed()?),
        "deadline_ms" => input.request.deadline = Some(value.millis()?),
        "node_timeout_ms" => input.request.node_timeout = Some(value.millis()?),
        "strict" => input.request.strict = value.bool_or_null()?,
        "dials" => input.request.asked_dials = value.dials()?,
        "arms" => input.asked_arms = value.arms()?,
        "trace" => input.asks_for_trace = value.bool_or_null()?,
        _ => match more(name, &mut value) {
            Some(read) => read?,
            None => return Err(unknown(codes::UNKNOWN_FIELD, "field", name, FIELDS.iter().copied())),
        },
    }
    Ok(())
}

/// Names the field in an error that knows only its byte.
fn in_field(error: RunError, name: &str) -> RunError {
    match error.message.starts_with(NOT_JSON) {
        true => RunError { message: format!("{}, in the field {}", error.message, quoted(name)), ..error },
        false => error,
    }
}

fn unknown<'n>(code: &'static ErrorCode, what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> RunError {
    let hint = nearest(name, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    RunError::new(code, format!("there is no {what} {}{hint}", quoted(name)))
}

/// What a value is called in messages.
#[derive(Clone, Copy)]
enum ValuePlace<'a> {
    Param(&'a str),
    Cell { row: usize, name: &'a str },
}

impl ValuePlace<'_> {
    fn is_id(self) -> bool {
        matches!(self, ValuePlace::Cell { name: "id", .. })
    }
}

impl fmt::Display for ValuePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePlace::Param(name) => write!(f, "the parameter {name:?}"),
            ValuePlace::Cell { row, name } => write!(f, "candidates[{row}].{name}"),
        }
    }
}

/// One value of a registered type, or null, as it stands in the text.
enum Scalar<'a> {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Cow<'a, str>),
    /// A list or vector that is still to be read, with [`array()`].
    Array,
}

/// Reads a list or vector into a column of the entry's type.
fn array(
    reader: &mut Reader<'_>,
    column: &mut ColumnBuilder,
    entry: &Entry,
    place: ValuePlace<'_>,
) -> Result<(), RunError> {
    let wrong =
        |why: String| RunError::new(codes::WRONG_VALUE, format!("{place} must be of type {}{why}", entry.type_of));
    let Some(mut cell) = column.open() else { return Err(wrong(String::new())) };
    read_array(reader, &mut cell).map_err(not_json)?.map_err(|misfit| wrong(format!(": {misfit}")))?;
    if cell.close() { Ok(()) } else { Err(wrong(String::new())) }
}

/// Reads a value of the entry's type, or null.
fn value(reader: &mut Reader<'_>, entry: &Entry, place: ValuePlace<'_>) -> Result<Value, RunError> {
    Ok(match scalar(reader, entry, place)? {
        Scalar::Null => Value::Null,
        Scalar::Int(value) => Value::Int(value),
        Scalar::Float(value) => Value::Float(value),
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Str(text) => Value::Str(text.into()),
        Scalar::Array => {
            let mut column = ColumnBuilder::new(entry.type_of, 1);
            array(reader, &mut column, entry, place)?;
            column.finish().value(0)
        }
    })
}

/// Reads a scalar of the entry's type, or null. Of a list or vector, which begins with a bracket, nothing is read.
fn scalar<'a>(reader: &mut Reader<'a>, entry: &Entry, place: ValuePlace<'_>) -> Result<Scalar<'a>, RunError> {
    let wrong = || RunError::new(codes::WRONG_VALUE, format!("{place} must be of type {}", entry.type_of));
    Ok(match (reader.peek().map_err(not_json)?, entry.type_of) {
        (Kind::Null, _) => {
            reader.null().map_err(not_json)?;
            Scalar::Null
        }
        (Kind::Bool, Type::Bool) => Scalar::Bool(reader.bool().map_err(not_json)?),
        (Kind::String, Type::Str) => Scalar::Str(reader.string().map_err(not_json)?),
        (Kind::Number, type_of) => match (reader.number().map_err(not_json)?, type_of) {
            (Number::OutOfRange, _) => {
                return Err(RunError::new(
                    codes::WRONG_VALUE,
                    format!("{place} is a number that does not fit 64 bits"),
                ));
            }
            (Number::Int(value), Type::Int) => Scalar::Int(value),
            (Number::Int(value), Type::Float) if is_a_float(value) => Scalar::Float(value as f64),
            (Number::Int(_), Type::Float) => {
                return Err(RunError::new(
                    codes::WRONG_VALUE,
                    format!("{place} is an int that a float cannot represent exactly"),
                ));
            }
            (Number::Float(value), Type::Float) => Scalar::Float(value),
            // An id that is an int is the text of its digits.
            (Number::Int(value), Type::Str) if place.is_id() => Scalar::Int(value),
            (
                Number::Int(_) | Number::Float(_),
                Type::Int | Type::Bool | Type::Str | Type::List(_) | Type::Vector(_),
            ) => return Err(wrong()),
        },
        (Kind::Array, Type::List(_) | Type::Vector(_)) => Scalar::Array,
        (Kind::Bool | Kind::String | Kind::Array | Kind::Object, _) => return Err(wrong()),
    })
}

fn is_a_float(value: i64) -> bool {
    value.unsigned_abs() <= 1 << 53 || (value as f64) as i128 == i128::from(value)
}

/// The value of a field, and what it is called in messages.
struct Given<'r, 'a> {
    reader: &'r mut Reader<'a>,
    registry: &'r Registry,
    what: &'r str,
}

impl Given<'_, '_> {
    fn wrong(&self, takes: &str) -> RunError {
        RunError::new(codes::WRONG_VALUE, format!("{} must be {takes}", self.what))
    }

    fn peek(&mut self) -> Result<Kind, RunError> {
        self.reader.peek().map_err(not_json)
    }

    fn user_id(&mut self) -> Result<Id, RunError> {
        if self.registry.has_text_ids() {
            return self.text_id();
        }
        let takes = "an int from 1 to 9223372036854775807, or the same as a decimal string";
        let id = match self.peek()? {
            Kind::Number => match self.reader.number().map_err(not_json)? {
                Number::Int(id) => Some(id),
                _ => None,
            },
            Kind::String => {
                let text = self.reader.string().map_err(not_json)?;
                text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
            }
            _ => None,
        };
        id.filter(|id| *id >= 1).map(Id::Int).ok_or_else(|| self.wrong(takes))
    }

    /// An id of a registry whose ids are strings. An int is the id that its digits are.
    fn text_id(&mut self) -> Result<Id, RunError> {
        let text = match self.peek()? {
            Kind::Number => match self.reader.number().map_err(not_json)? {
                Number::Int(id) => Some(id.to_string().into()),
                Number::Float(_) | Number::OutOfRange => None,
            },
            Kind::String => Some(self.reader.string().map_err(not_json)?),
            Kind::Null | Kind::Bool | Kind::Array | Kind::Object => None,
        };
        let text = text.ok_or_else(|| self.wrong("a string or an int of 64 bits"))?;
        check_id(&text).map_err(|fault| RunError::new(codes::WRONG_VALUE, format!("{}: {fault}", self.what)))?;
        Ok(Id::from(&*text))
    }

    fn request_id(&mut self) -> Result<String, RunError> {
        let takes = "a string of at most 128 bytes";
        if self.peek()? != Kind::String {
            return Err(self.wrong(takes));
        }
        let text = self.reader.string().map_err(not_json)?;
        if text.len() > REQUEST_ID_BYTES_MAX { Err(self.wrong(takes)) } else { Ok(text.into_owned()) }
    }

    fn text(&mut self) -> Result<String, RunError> {
        if self.peek()? != Kind::String {
            return Err(self.wrong("a string"));
        }
        Ok(self.reader.string().map_err(not_json)?.into_owned())
    }

    /// A bool; null stands for false, as if the field were not there.
    fn bool_or_null(&mut self) -> Result<bool, RunError> {
        match self.peek()? {
            Kind::Bool => self.reader.bool().map_err(not_json),
            Kind::Null => self.reader.null().map(|()| false).map_err(not_json),
            Kind::Number | Kind::String | Kind::Array | Kind::Object => Err(self.wrong("true or false")),
        }
    }

    /// A time in milliseconds since 1970, up to the year 9999.
    fn now_ms(&mut self) -> Result<i64, RunError> {
        if self.peek()? == Kind::Number
            && let Number::Int(ms @ 0..=253_402_300_799_999) = self.reader.number().map_err(not_json)?
        {
            return Ok(ms);
        }
        Err(self.wrong("an int from 0 to 253402300799999, in milliseconds since 1970"))
    }

    fn seed(&mut self) -> Result<Seed, RunError> {
        let seed = match self.peek()? {
            Kind::Number => match self.reader.number().map_err(not_json)? {
                Number::Int(number) => Some(Seed::Int(number)),
                Number::Float(_) | Number::OutOfRange => None,
            },
            Kind::String => {
                let text = self.reader.string().map_err(not_json)?;
                (text.len() <= SEED_BYTES_MAX).then(|| Seed::Text((&*text).into()))
            }
            Kind::Null | Kind::Bool | Kind::Array | Kind::Object => None,
        };
        seed.ok_or_else(|| self.wrong("an int of 64 bits or a string of at most 128 bytes"))
    }

    fn millis(&mut self) -> Result<Duration, RunError> {
        let takes = "an int from 1 to 86400000";
        if self.peek()? == Kind::Number
            && let Number::Int(ms @ 1..=86_400_000) = self.reader.number().map_err(not_json)?
        {
            return Ok(Duration::from_millis(ms.unsigned_abs()));
        }
        Err(self.wrong(takes))
    }

    /// Reads parameters by name. `set` lists those that the other field has set: where both set one, they must agree.
    fn params(&mut self, params: &mut [Value], set: &mut Vec<u32>) -> Result<(), RunError> {
        if self.peek()? != Kind::Object {
            return Err(self.wrong("an object of parameters by name"));
        }
        let before = set.len();
        let mut fields = self.reader.open_object().map_err(not_json)?;
        while let Some((name, repeated)) = self.reader.field(&mut fields).map_err(not_json)? {
            if repeated {
                return Err(RunError::new(
                    codes::NOT_A_REQUEST,
                    format!("the parameter {} appears twice", quoted(&name)),
                ));
            }
            let entries = &self.registry.params;
            let at = find(entries, &name, "parameter", codes::WRONG_PARAM)?;
            let entry = entries.get(at);
            if !entry.allow_write {
                return Err(RunError::new(
                    codes::WRONG_PARAM,
                    format!("the parameter {name:?} cannot be set by a request"),
                ));
            }
            let value = value(self.reader, entry, ValuePlace::Param(&name))?;
            if value == Value::Null && !entry.nullable {
                return Err(RunError::new(codes::WRONG_VALUE, format!("the parameter {name:?} cannot be null")));
            }
            let slot = &mut params[at as usize];
            if set[..before].contains(&at) && *slot != value {
                let message = format!(
                    "\"params\" and \"param_overrides\" set the parameter {name:?} to different values: use one of them"
                );
                return Err(RunError::new(codes::CONFLICTING_PARAMS, message));
            }
            *slot = value;
            set.push(at);
        }
        Ok(())
    }

    /// Which dials there are is known only to the plan.
    fn dials(&mut self) -> Result<Vec<(String, i64)>, RunError> {
        const WANTED: &str = "an object of ints by the names of dials";
        if self.peek()? != Kind::Object {
            return Err(self.wrong(WANTED));
        }
        let mut dials: Vec<(String, i64)> = Vec::new();
        let mut fields = self.reader.open_object().map_err(not_json)?;
        while let Some((name, repeated)) = self.reader.field(&mut fields).map_err(not_json)? {
            if repeated {
                return Err(RunError::new(codes::NOT_A_REQUEST, format!("the dial {} appears twice", quoted(&name))));
            }
            if dials.len() == DIALS_MAX {
                return Err(RunError::new(codes::WRONG_DIAL, format!("a request sets at most {DIALS_MAX} dials")));
            }
            if self.peek()? != Kind::Number {
                return Err(self.wrong(WANTED));
            }
            match self.reader.number().map_err(not_json)? {
                Number::Int(value) => dials.push((name.into_owned(), value)),
                Number::Float(_) | Number::OutOfRange => return Err(self.wrong(WANTED)),
            }
        }
        Ok(dials)
    }

    /// Which experiments there are is known only to whoever runs the plan.
    fn arms(&mut self) -> Result<Vec<(String, String)>, RunError> {
        const WANTED: &str = "an object with the names of arms by those of experiments";
        if self.peek()? != Kind::Object {
            return Err(self.wrong(WANTED));
        }
        let mut arms: Vec<(String, String)> = Vec::new();
        let mut fields = self.reader.open_object().map_err(not_json)?;
        while let Some((name, repeated)) = self.reader.field(&mut fields).map_err(not_json)? {
            if repeated {
                let message = format!("the experiment {} appears twice", quoted(&name));
                return Err(RunError::new(codes::NOT_A_REQUEST, message));
            }
            if arms.len() == ARMS_MAX {
                let message = format!("a request chooses at most {ARMS_MAX} arms");
                return Err(RunError::new(codes::CONFLICTING_ARMS, message));
            }
            if self.peek()? != Kind::String {
                return Err(self.wrong(WANTED));
            }
            arms.push((name.into_owned(), self.reader.string().map_err(not_json)?.into_owned()));
        }
        Ok(arms)
    }

    fn output_keys(&mut self) -> Result<Vec<Key>, RunError> {
        if self.peek()? != Kind::Array {
            return Err(self.wrong("a list of key names"));
        }
        let mut keys = Vec::new();
        let mut named = vec![false; self.registry.keys.list().len()];
        let mut items = self.reader.open_array().map_err(not_json)?;
        while self.reader.item(&mut items).map_err(not_json)? {
            if self.peek()? != Kind::String {
                return Err(self.wrong("a list of key names"));
            }
            let name = self.reader.string().map_err(not_json)?;
            let at = find(&self.registry.keys, &name, "key", codes::WRONG_KEY)?;
            // A name that comes again adds nothing, and a million of them would take long to look through.
            if !std::mem::replace(&mut named[at as usize], true) {
                keys.push(Key(at));
            }
        }
        Ok(keys)
    }
}

fn find(entries: &Named<Entry>, name: &str, what: &str, code: &'static ErrorCode) -> Result<u32, RunError> {
    let Some(at) = entries.named(name) else {
        return Err(unknown(code, what, name, entries.list().iter().map(|entry| entry.name.as_str())));
    };
    let entry = entries.get(at);
    if entry.status == Status::Blocked || !entry.allow_read {
        return Err(RunError::new(code, format!("the {what} {name:?} cannot be used")));
    }
    Ok(at)
}
