//! The parts of a call to a service: its path, filled in for a row or for none, and its body.

use rankd_column::{Id, List, RowSet, Value};
use rankd_engine::task::{FetchContext, Field};
use rankd_plan::json::{Writer, push_single};
use rankd_plan::template::{Template, TemplatePart};
use std::fmt;
use std::sync::Arc;

/// A path whose values are percent-encoded.
pub(crate) struct Path(pub(crate) Arc<Template>);

/// A path with a segment that is `.` or `..`, which would lead elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DotSegment;

impl fmt::Display for DotSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path of a call has a segment that is . or ..")
    }
}

impl Path {
    /// Whether it may be something else for each row.
    pub(crate) fn differs_by_row(&self) -> bool {
        self.0.differs_by_row()
    }

    /// The path for the row at a position, or for no row; `None` where a value in it is null.
    pub(crate) fn fill(
        &self,
        row: Option<(&RowSet, usize)>,
        cx: &FetchContext<'_>,
    ) -> Result<Option<String>, DotSegment> {
        let mut path = String::new();
        for part in self.0.parts() {
            let value = match (part, row) {
                (TemplatePart::Text(text), _) => {
                    path.push_str(text);
                    continue;
                }
                (TemplatePart::UserId, _) => Value::from(&cx.request.user_id),
                (TemplatePart::Param(at), _) => cx.request.params.get(*at as usize).cloned().unwrap_or(Value::Null),
                (TemplatePart::Id, Some((rows, position))) => Value::from(&id(rows, position)),
                (TemplatePart::Key(key), Some((rows, position))) => rows.value(*key, position),
                // The checks let no template name what only rows have, where there are none.
                (TemplatePart::Id | TemplatePart::Key(_), None) => Value::Null,
            };
            match value {
                Value::Int(value) => path.push_str(&value.to_string()),
                Value::Str(text) => push_encoded(&mut path, &text),
                // Templates name ints and strings only.
                _ => return Ok(None),
            }
        }
        let (segments, _) = path.split_once('?').unwrap_or((&path, ""));
        match segments.split('/').any(|segment| matches!(segment, "." | "..")) {
            true => Err(DotSegment),
            false => Ok(Some(path)),
        }
    }
}

fn push_encoded(path: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(char::from(byte)),
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
}

fn id(rows: &RowSet, position: usize) -> Id {
    rows.batch().id(rows.rows().at(position))
}

/// `{"ids":[…]}` with the ids at these positions.
pub(crate) fn write_ids(rows: &RowSet, positions: &[usize]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(16 + 8 * positions.len());
    writer.object(|w| {
        w.field("ids").array(|w| {
            positions.iter().for_each(|position| write_value(w, &Value::from(&id(rows, *position))));
        });
    });
    writer.into_bytes()
}

/// `{"rows":[{"id":…},…]}` with the rows at these positions.
pub(crate) fn write_rows(rows: &RowSet, positions: &[usize], keys: &[Field]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(16 + 16 * positions.len() * (1 + keys.len()));
    writer.object(|w| {
        w.field("rows").array(|w| {
            for position in positions {
                w.object(|w| {
                    write_value(w.field("id"), &Value::from(&id(rows, *position)));
                    for key in keys {
                        write_value(w.field(&key.name), &rows.value(key.key, *position));
                    }
                });
            }
        });
    });
    writer.into_bytes()
}

fn write_value(w: &mut Writer, value: &Value) {
    match value {
        Value::Null => w.null(),
        Value::Int(value) => w.int(*value),
        Value::Float(value) => w.float(*value),
        Value::Bool(value) => w.bool(*value),
        Value::Str(text) => w.string(text),
        Value::List(list) => w.array(|w| match &**list {
            List::Int(values) => values.iter().for_each(|value| write_value(w, &Value::Int(*value))),
            List::Float(values) => values.iter().for_each(|value| write_value(w, &Value::Float(*value))),
            List::Str(texts) => texts.iter().for_each(|text| write_value(w, &Value::Str(text.clone()))),
        }),
        Value::Vector(vector) => w.array(|w| {
            for value in vector.iter() {
                w.pushed(|out| push_single(out, *value));
            }
        }),
    };
}
