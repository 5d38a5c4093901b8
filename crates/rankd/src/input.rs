//! A request's JSON, read strictly: what is not known, not of its type or not in range is refused by name, nothing is guessed.

use crate::request_id;
use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, Key, RowSet, Type, Value};
use rankd_engine::{ErrorKind, Request, RunError};
use rankd_plan::Registry;
use rankd_plan::diagnostic::nearest;
use rankd_plan::json::{Fault, Kind, Number, Reader};
use rankd_plan::registry::{Entry, Named, Status};
use std::sync::Arc;
use std::time::Duration;

/// The largest document that is read.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 64;
const REQUEST_ID_BYTES_MAX: usize = 128;
const FIELDS: &[&str] = &[
    "user_id",
    "request_id",
    "plan",
    "params",
    "param_overrides",
    "candidates",
    "output_keys",
    "deadline_ms",
    "node_timeout_ms",
    "trace",
];

/// A request and what the answer should look like.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) request: Request,
    pub(crate) plan: Option<String>,
    /// `None` for every key that the output has.
    pub(crate) output_keys: Option<Vec<Key>>,
}

/// A request that cannot be read.
pub(crate) struct Refused {
    pub(crate) request_id: String,
    pub(crate) error: Box<RunError>,
}

/// Reads a request. An error comes with the request's own id where that could be read.
pub(crate) fn read(bytes: &[u8], registry: &Registry) -> Result<Input, Refused> {
    let mut id = None;
    let input = parse(bytes, registry, &mut id);
    // The id may stand behind what was refused.
    let id = id.or_else(|| input.is_err().then(|| find_request_id(bytes)).flatten());
    let id = id.unwrap_or_else(request_id::make);
    match input {
        Ok(mut input) => {
            input.request.request_id = id;
            Ok(input)
        }
        Err(error) => Err(Refused { request_id: id, error: Box::new(error) }),
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

fn bad(code: &'static str, message: impl Into<String>) -> RunError {
    RunError::new(ErrorKind::BadRequest, code, message)
}

const NOT_JSON: &str = "this is not a request: ";

fn not_json(fault: Fault) -> RunError {
    bad("E101", format!("{NOT_JSON}{} (byte {})", fault.message, fault.at))
}

fn parse(bytes: &[u8], registry: &Registry, id: &mut Option<String>) -> Result<Input, RunError> {
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(bad("E102", format!("a request has at most {REQUEST_BYTES_MAX} bytes")));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| bad("E101", format!("byte {} is not UTF-8", error.valid_up_to())))?;
    let mut reader = Reader::new(text, DEPTH_MAX);
    let params = registry.params.list().iter().map(|param| param.default.clone().unwrap_or(Value::Null)).collect();
    let mut input = Input { request: Request { params, ..Request::default() }, plan: None, output_keys: None };
    let mut has_user = false;
    let mut fields = reader.open_object().map_err(not_json)?;
    while let Some((name, repeated)) = reader.field(&mut fields).map_err(not_json)? {
        if repeated {
            return Err(bad("E101", format!("the field {name:?} is here twice")));
        }
        has_user |= name == "user_id";
        let value = Given { reader: &mut reader, registry, what: &name };
        read_field(&mut input, id, &name, value).map_err(|error| in_field(error, &name))?;
    }
    reader.end().map_err(not_json)?;
    if !has_user {
        return Err(bad("E104", "the field \"user_id\" is missing"));
    }
    Ok(input)
}

fn read_field(
    input: &mut Input,
    id: &mut Option<String>,
    name: &str,
    mut value: Given<'_, '_>,
) -> Result<(), RunError> {
    match name {
        "user_id" => input.request.user_id = value.user_id()?,
        "request_id" => *id = Some(value.request_id()?),
        "plan" => input.plan = Some(value.text()?),
        "params" | "param_overrides" => value.params(&mut input.request.params)?,
        "candidates" => input.request.candidates = Some(value.candidates()?),
        "output_keys" => input.output_keys = Some(value.output_keys()?),
        "deadline_ms" => input.request.deadline = Some(value.millis()?),
        "node_timeout_ms" => input.request.node_timeout = Some(value.millis()?),
        "trace" => input.request.trace = value.bool()?,
        _ => return Err(unknown("E103", "field", name, FIELDS.iter().copied())),
    }
    Ok(())
}

/// Names the field in an error that knows only its byte.
fn in_field(error: RunError, name: &str) -> RunError {
    match error.message.starts_with(NOT_JSON) {
        true => RunError { message: format!("{}, in the field {name:?}", error.message), ..error },
        false => error,
    }
}

fn unknown<'n>(code: &'static str, what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> RunError {
    let hint = nearest(name, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let shown: String = name.chars().take(80).collect();
    bad(code, format!("there is no {what} {shown:?}{hint}"))
}

/// The value of a field, and what it is called in messages.
struct Given<'r, 'a> {
    reader: &'r mut Reader<'a>,
    registry: &'r Registry,
    what: &'r str,
}

impl Given<'_, '_> {
    fn wrong(&self, takes: &str) -> RunError {
        bad("E105", format!("{} must be {takes}", self.what))
    }

    fn peek(&mut self) -> Result<Kind, RunError> {
        self.reader.peek().map_err(not_json)
    }

    fn user_id(&mut self) -> Result<i64, RunError> {
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
        id.filter(|id| *id >= 1).ok_or_else(|| self.wrong(takes))
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

    fn bool(&mut self) -> Result<bool, RunError> {
        if self.peek()? != Kind::Bool {
            return Err(self.wrong("true or false"));
        }
        self.reader.bool().map_err(not_json)
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

    fn params(&mut self, params: &mut [Value]) -> Result<(), RunError> {
        if self.peek()? != Kind::Object {
            return Err(self.wrong("an object of parameters by name"));
        }
        let mut fields = self.reader.open_object().map_err(not_json)?;
        while let Some((name, repeated)) = self.reader.field(&mut fields).map_err(not_json)? {
            if repeated {
                return Err(bad("E101", format!("the parameter {name:?} is here twice")));
            }
            let entries = &self.registry.params;
            let at = find(entries, &name, "parameter", "E106")?;
            let entry = entries.get(at);
            if !entry.allow_write {
                return Err(bad("E106", format!("the parameter {name:?} cannot be set by a request")));
            }
            let value = self.scalar(entry, &format!("the parameter {name:?}"))?;
            if value == Value::Null && !entry.nullable {
                return Err(bad("E105", format!("the parameter {name:?} cannot be null")));
            }
            params[at as usize] = value;
        }
        Ok(())
    }

    /// A scalar of the entry's type, or null.
    fn scalar(&mut self, entry: &Entry, what: &str) -> Result<Value, RunError> {
        let wrong = || bad("E105", format!("{what} must be of type {}", entry.type_of));
        let value = match self.peek()? {
            Kind::Null => {
                self.reader.null().map_err(not_json)?;
                return Ok(Value::Null);
            }
            Kind::Bool => Value::Bool(self.reader.bool().map_err(not_json)?),
            Kind::String => Value::Str(self.reader.string().map_err(not_json)?.into()),
            Kind::Number => match self.reader.number().map_err(not_json)? {
                Number::Int(value) if entry.type_of == Type::Float => {
                    if (value as f64) as i128 != i128::from(value) {
                        return Err(bad("E105", format!("{what} is an int that no float equals")));
                    }
                    Value::Float(value as f64)
                }
                Number::Int(value) => Value::Int(value),
                Number::Float(value) => Value::Float(value),
                Number::OutOfRange => return Err(bad("E105", format!("{what} is a number that does not fit 64 bits"))),
            },
            Kind::Array | Kind::Object => return Err(wrong()),
        };
        if value.type_of() == Some(entry.type_of) { Ok(value) } else { Err(wrong()) }
    }

    fn candidates(&mut self) -> Result<RowSet, RunError> {
        if self.peek()? != Kind::Array {
            return Err(self.wrong("a list of objects"));
        }
        let keys = &self.registry.keys;
        let mut ids = Vec::new();
        let mut columns: Vec<Option<ColumnBuilder>> = keys.list().iter().map(|_| None).collect();
        let mut items = self.reader.open_array().map_err(not_json)?;
        while self.reader.item(&mut items).map_err(not_json)? {
            let row = ids.len();
            if self.peek()? != Kind::Object {
                return Err(bad("E105", format!("candidates[{row}] must be an object")));
            }
            let mut id = None;
            let mut fields = self.reader.open_object().map_err(not_json)?;
            while let Some((name, repeated)) = self.reader.field(&mut fields).map_err(not_json)? {
                if repeated {
                    return Err(bad("E101", format!("candidates[{row}] has {name:?} twice")));
                }
                let at = find(keys, &name, "key", "E107")?;
                let entry = keys.get(at);
                let value = self.scalar(entry, &format!("candidates[{row}].{name}"))?;
                if Key(at) == Key::ID {
                    id = if let Value::Int(value) = value { Some(value) } else { None };
                    continue;
                }
                let column = columns[at as usize].get_or_insert_with(|| ColumnBuilder::new(entry.type_of, 0));
                while column.len() < row {
                    column.push_null();
                }
                if !column.push(&value) {
                    return Err(bad("E105", format!("candidates[{row}].{name} must be of type {}", entry.type_of)));
                }
            }
            ids.push(id.ok_or_else(|| bad("E104", format!("candidates[{row}] has no id")))?);
        }
        let rows = ids.len();
        let mut batch = Batch::new(ids);
        for (at, column) in columns.into_iter().enumerate() {
            let Some(mut column) = column else { continue };
            while column.len() < rows {
                column.push_null();
            }
            batch = batch.with(Key(at as u32), Arc::new(column.finish()));
        }
        Ok(RowSet::new(batch))
    }

    fn output_keys(&mut self) -> Result<Vec<Key>, RunError> {
        if self.peek()? != Kind::Array {
            return Err(self.wrong("a list of key names"));
        }
        let mut keys = Vec::new();
        let mut items = self.reader.open_array().map_err(not_json)?;
        while self.reader.item(&mut items).map_err(not_json)? {
            if self.peek()? != Kind::String {
                return Err(self.wrong("a list of key names"));
            }
            let name = self.reader.string().map_err(not_json)?;
            keys.push(Key(find(&self.registry.keys, &name, "key", "E107")?));
        }
        Ok(keys)
    }
}

fn find(entries: &Named<Entry>, name: &str, what: &str, code: &'static str) -> Result<u32, RunError> {
    let Some(at) = entries.named(name) else {
        return Err(unknown(code, what, name, entries.list().iter().map(|entry| entry.name.as_str())));
    };
    let entry = entries.get(at);
    if entry.status == Status::Blocked || !entry.allow_read {
        return Err(bad(code, format!("the {what} {name:?} cannot be used")));
    }
    Ok(at)
}
