//! What the program printed, as a tree to look things up in. It must be strict JSON, or the test ends here.

#![allow(dead_code, reason = "each test binary that mounts this module uses a part of it")]

use rankd_plan::json::{Fault, Kind, Number, Reader};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn read(text: &str) -> Json {
        let mut reader = Reader::new(text, 64);
        let value = read(&mut reader).and_then(|value| reader.end().map(|()| value));
        value.unwrap_or_else(|fault| unreachable!("{} at byte {} of {text}", fault.message, fault.at))
    }

    /// The value at a path of field names with dots between them; null where there is none.
    pub(crate) fn at(&self, path: &str) -> &Json {
        path.split('.').fold(self, |value, name| match value {
            Json::Object(fields) => fields.iter().find(|(field, _)| field == name).map_or(&Json::Null, |(_, v)| v),
            _ => &Json::Null,
        })
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        *self.at(path) != Json::Null
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        match self.at(path) {
            Json::Text(text) => text,
            other => unreachable!("{path} should be text, not {other:?}"),
        }
    }

    pub(crate) fn number(&self, path: &str) -> f64 {
        match self.at(path) {
            Json::Number(number) => *number,
            other => unreachable!("{path} should be a number, not {other:?}"),
        }
    }

    pub(crate) fn list(&self, path: &str) -> &[Json] {
        match self.at(path) {
            Json::List(items) => items,
            other => unreachable!("{path} should be a list, not {other:?}"),
        }
    }

    pub(crate) fn texts(&self, path: &str) -> Vec<&str> {
        let text = |item: &'_ Json| matches!(item, Json::Text(_));
        assert!(self.list(path).iter().all(text), "{path} should be a list of texts");
        self.list(path).iter().map(|item| if let Json::Text(text) = item { text.as_str() } else { "" }).collect()
    }
}

fn read(reader: &mut Reader<'_>) -> Result<Json, Fault> {
    Ok(match reader.peek()? {
        Kind::Null => {
            reader.null()?;
            Json::Null
        }
        Kind::Bool => Json::Bool(reader.bool()?),
        Kind::String => Json::Text(reader.string()?.into_owned()),
        Kind::Number => Json::Number(match reader.number()? {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
            Number::OutOfRange => return Err(Fault { message: "a number that does not fit", at: reader.at() }),
        }),
        Kind::Array => {
            let (mut items, mut list) = (reader.open_array()?, Vec::new());
            while reader.item(&mut items)? {
                list.push(read(reader)?);
            }
            Json::List(list)
        }
        Kind::Object => {
            let (mut fields, mut object) = (reader.open_object()?, Vec::new());
            while let Some((name, repeated)) = reader.field(&mut fields)? {
                if repeated {
                    return Err(Fault { message: "a field that is there twice", at: reader.at() });
                }
                object.push((name.into_owned(), read(reader)?));
            }
            Json::Object(object)
        }
    })
}
