//! Looks up what a plan names, by name or by number, and checks whether it may be used there.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, quoted};
use crate::json::{Fault, Kind};
use crate::plan::ModelArg;
use crate::registry::{Entry, Named, Registry, Status};
use crate::wire::cursor::Cursor;
use rankd_column::{Key, Type};

/// What is done with a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

pub(crate) struct Names<'r> {
    pub(crate) registry: &'r Registry,
}

impl Names<'_> {
    /// The key that the value at hand names.
    pub(crate) fn key(&self, cursor: &mut Cursor<'_, '_>, access: Access) -> Result<Option<Key>, Fault> {
        let at = entry(cursor, &self.registry.keys, "key", Code::UnknownKey)?;
        Ok(at.and_then(|at| self.usable_key(cursor, at, access)))
    }

    /// The key that the name of the field at hand gives, which may be its number, too.
    pub(crate) fn key_named(&self, cursor: &mut Cursor<'_, '_>, name: &str, access: Access) -> Option<Key> {
        let keys = &self.registry.keys;
        let at = keys.named(name).or_else(|| keys.numbered(name));
        if at.is_none() {
            unknown_name(cursor, keys, "key", Code::UnknownKey, name);
        }
        self.usable_key(cursor, at?, access)
    }

    fn usable_key(&self, cursor: &mut Cursor<'_, '_>, at: u32, access: Access) -> Option<Key> {
        let key = self.registry.keys.get(at);
        let usable = usable(cursor, key, "key");
        if access == Access::Write && !key.allow_write {
            cursor.report(Code::NotWritable, format!("the key {:?} cannot be written", key.name));
            return None;
        }
        if access == Access::Read && !key.allow_read {
            cursor.report(Code::NotReadable, format!("the key {:?} cannot be read", key.name));
            return None;
        }
        usable.then_some(Key(at))
    }

    /// A string parameter.
    pub(crate) fn text_param(&self, cursor: &mut Cursor<'_, '_>) -> Result<Option<u32>, Fault> {
        let param = self.param(cursor)?;
        let wrong = param.map(|at| self.registry.params.get(at)).filter(|entry| entry.type_of != Type::Str);
        if let Some(entry) = wrong {
            let message =
                format!("a pattern is a string, but the parameter {:?} is of type {}", entry.name, entry.type_of);
            cursor.report(Code::TypeMismatch, message);
            return Ok(None);
        }
        Ok(param)
    }

    pub(crate) fn param(&self, cursor: &mut Cursor<'_, '_>) -> Result<Option<u32>, Fault> {
        let at = entry(cursor, &self.registry.params, "parameter", Code::UnknownParam)?;
        Ok(at.and_then(|at| self.usable_param(cursor, at)))
    }

    /// The parameter of this name, which stands somewhere in the value at hand.
    pub(crate) fn param_named(&self, cursor: &mut Cursor<'_, '_>, name: &str) -> Option<u32> {
        let params = &self.registry.params;
        let at = params.named(name);
        if at.is_none() {
            unknown_name(cursor, params, "parameter", Code::UnknownParam, name);
        }
        self.usable_param(cursor, at?)
    }

    fn usable_param(&self, cursor: &mut Cursor<'_, '_>, at: u32) -> Option<u32> {
        let param = self.registry.params.get(at);
        let usable = usable(cursor, param, "parameter");
        if !param.allow_read {
            cursor.report(Code::NotReadable, format!("the parameter {:?} cannot be read", param.name));
            return None;
        }
        usable.then_some(at)
    }

    pub(crate) fn endpoint(&self, cursor: &mut Cursor<'_, '_>, kinds: &[&str]) -> Result<Option<u32>, Fault> {
        let Some(name) = cursor.text()? else { return Ok(None) };
        let endpoints = &self.registry.endpoints;
        let Some(at) = endpoints.named(&name).or_else(|| endpoints.numbered(&name)) else {
            let message = format!("there is no endpoint {}", quoted(&name));
            let unknown = Diagnostic::new(Code::UnknownEndpoint, cursor.pointer(), message);
            cursor.report_at(unknown.nearest(&name, endpoints.list().iter().map(|endpoint| endpoint.name.as_str())));
            return Ok(None);
        };
        let endpoint = endpoints.get(at);
        if !kinds.contains(&endpoint.kind.as_str()) {
            let message = format!(
                "the endpoint {name:?} is of kind {}, but this task needs {}",
                endpoint.kind,
                kinds.join(" or ")
            );
            cursor.report(Code::WrongEndpointKind, message);
            return Ok(None);
        }
        Ok(Some(at))
    }

    pub(crate) fn model(&self, cursor: &mut Cursor<'_, '_>) -> Result<Option<ModelArg>, Fault> {
        let Some(name) = cursor.text()? else { return Ok(None) };
        let models = &self.registry.models;
        let Some(model) = models.named(&name) else {
            let message = format!("there is no model {}", quoted(&name));
            let unknown = Diagnostic::new(Code::UnknownModel, cursor.pointer(), message);
            cursor.report_at(unknown.nearest(&name, models.list().iter().map(|model| model.name.as_str())));
            return Ok(None);
        };
        let reads = self.registry.known_model(model).map(|model| model.reads()).unwrap_or_default();
        // What the rows can have is known once all nodes are.
        Ok(Some(ModelArg { model, reads, present: Vec::new() }))
    }
}

/// The position of the entry that the value at hand names.
fn entry(cursor: &mut Cursor<'_, '_>, entries: &Named<Entry>, what: &str, unknown: Code) -> Result<Option<u32>, Fault> {
    if cursor.peek()? == Kind::Number {
        let Some(id) = cursor.int(1, i64::MAX)? else { return Ok(None) };
        let at = entries.numbered(&id.to_string());
        if at.is_none() {
            cursor.report(unknown, format!("there is no {what} with the id {id}"));
        }
        return Ok(at);
    }
    let Some(name) = cursor.text()? else { return Ok(None) };
    let at = entries.named(&name);
    if at.is_none() {
        unknown_name(cursor, entries, what, unknown, &name);
    }
    Ok(at)
}

fn unknown_name(cursor: &mut Cursor<'_, '_>, entries: &Named<Entry>, what: &str, code: Code, name: &str) {
    let unknown = Diagnostic::new(code, cursor.pointer(), format!("there is no {what} {}", quoted(name)));
    cursor.report_at(unknown.nearest(name, entries.list().iter().map(|entry| entry.name.as_str())));
}

fn usable(cursor: &mut Cursor<'_, '_>, entry: &Entry, what: &str) -> bool {
    let (code, state) = match entry.status {
        Status::Active => return true,
        Status::Deprecated => (Code::Deprecated, "deprecated"),
        Status::Blocked => (Code::Blocked, "blocked"),
    };
    let diagnostic = Diagnostic::new(code, cursor.pointer(), format!("the {what} {:?} is {state}", entry.name));
    cursor.report_at(match &entry.replaced_by {
        Some(name) => diagnostic.help(format!("use {name:?} instead")),
        None => diagnostic,
    });
    entry.status != Status::Blocked
}
