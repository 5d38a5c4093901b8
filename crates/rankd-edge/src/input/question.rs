//! Requests that ask about items.

use super::{Given, Input, RefusedRequest, not_json, read_with};
use rankd_column::Id;
use rankd_column::id::check_id;
use rankd_engine::why::ITEMS_MAX;
use rankd_engine::{RunError, codes};
use rankd_plan::Registry;
use rankd_plan::diagnostic::quoted;
use rankd_plan::json::{Kind, Number};

/// Reads a request that asks about items, which are in its field `items`.
pub fn read_question(bytes: &[u8], registry: &Registry) -> Result<(Input, Vec<Id>), RefusedRequest> {
    let mut items = None;
    let input = read_with(bytes, registry, |name, value| match name {
        "items" => Some(value.items().map(|read| items = Some(read))),
        _ => None,
    })?;
    match items {
        Some(items) => Ok((input, items)),
        None => {
            let error = RunError::new(codes::MISSING_FIELD, "the field \"items\" is missing");
            Err(RefusedRequest { request_id: input.request.request_id, error: Box::new(error) })
        }
    }
}

/// The id of an item as people write it: digits, or any text where ids are strings.
pub fn item(text: &str, registry: &Registry) -> Result<Id, RunError> {
    let wrong = |why: String| RunError::new(codes::WRONG_VALUE, format!("the item {}: {why}", quoted(text)));
    if registry.has_text_ids() {
        return check_id(text).map(|()| Id::from(text)).map_err(|fault| wrong(fault.to_string()));
    }
    text.parse().map(Id::Int).map_err(|_| wrong("an id is an int of 64 bits".to_owned()))
}

impl Given<'_, '_> {
    /// Ids of items: at least one, and no more than a question may be about.
    fn items(&mut self) -> Result<Vec<Id>, RunError> {
        let wrong = || {
            let message = format!("items must be a list of 1 to {ITEMS_MAX} ids");
            RunError::new(codes::WRONG_VALUE, message)
        };
        if self.peek()? != Kind::Array {
            return Err(wrong());
        }
        let mut items = Vec::new();
        let mut list = self.reader.open_array().map_err(not_json)?;
        while self.reader.item(&mut list).map_err(not_json)? {
            let id = match self.registry.has_text_ids() {
                true => self.text_id()?,
                false => match self.peek()? {
                    Kind::Number => match self.reader.number().map_err(not_json)? {
                        Number::Int(id) => Id::Int(id),
                        Number::Float(_) | Number::OutOfRange => return Err(wrong()),
                    },
                    Kind::String => item(&self.reader.string().map_err(not_json)?, self.registry)?,
                    Kind::Null | Kind::Bool | Kind::Array | Kind::Object => return Err(wrong()),
                },
            };
            items.push(id);
            if items.len() > ITEMS_MAX {
                return Err(wrong());
            }
        }
        if items.is_empty() { Err(wrong()) } else { Ok(items) }
    }
}
