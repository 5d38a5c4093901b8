//! Templates in a node's parameters: what their names mean, and whether it can be filled in there.

use crate::check::names::{Access, Names};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, quoted};
use crate::json::Fault;
use crate::limits::TEMPLATE_BYTES_MAX;
use crate::template::{Template, TemplatePart, WrittenPart, parse};
use crate::wire::cursor::Cursor;
use rankd_column::{Key, Type};

/// Reads the template at hand. `has_input`: the node has rows that keys can be of.
pub(super) fn read(names: &Names<'_>, cursor: &mut Cursor<'_, '_>, has_input: bool) -> Result<Option<Template>, Fault> {
    let Some(text) = cursor.text()? else { return Ok(None) };
    if text.is_empty() || text.len() > TEMPLATE_BYTES_MAX {
        cursor.report(Code::BadTemplate, format!("a template has 1 to {TEMPLATE_BYTES_MAX} bytes"));
        return Ok(None);
    }
    let written = match parse(&text) {
        Ok(written) => written,
        Err(bad) => {
            cursor.report(Code::BadTemplate, bad.to_string());
            return Ok(None);
        }
    };
    let parts: Option<Vec<TemplatePart>> =
        // All of them are looked at, so that everything is reported.
        written.iter().map(|part| match part {
            WrittenPart::Text(text) => Some(TemplatePart::Text(text.as_str().into())),
            WrittenPart::Name(name) => place(names, cursor, name, has_input),
        }).collect::<Vec<_>>().into_iter().collect();
    Ok(parts.map(Template::new))
}

/// The same for what follows the url of a service.
pub(super) fn read_path(
    names: &Names<'_>,
    cursor: &mut Cursor<'_, '_>,
    has_input: bool,
) -> Result<Option<Template>, Fault> {
    let Some(template) = read(names, cursor, has_input)? else { return Ok(None) };
    let texts = template.parts().iter().map(|part| match part {
        TemplatePart::Text(text) => &**text,
        TemplatePart::Id | TemplatePart::UserId | TemplatePart::Param(_) | TemplatePart::Key(_) => "",
    });
    if !texts.clone().next().is_some_and(|first| first.starts_with('/')) {
        cursor.report(Code::BadTemplate, "a path starts with /");
        return Ok(None);
    }
    // What RFC 3986 allows in a path or query, and no fragment.
    let is_good = |char: &char| char.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%/?".contains(*char);
    if let Some(bad) = texts.flat_map(str::chars).find(|char| !is_good(char)) {
        let message = format!("a path cannot have the character {bad:?}; it is written percent-encoded");
        cursor.report(Code::BadTemplate, message);
        return Ok(None);
    }
    Ok(Some(template))
}

fn place(names: &Names<'_>, cursor: &mut Cursor<'_, '_>, name: &str, has_input: bool) -> Option<TemplatePart> {
    if !has_input && (name == "id" || name.starts_with("key.")) {
        let message = format!("{{{name}}} is of a row, and this node has no input");
        let wrong = Diagnostic::new(Code::BadTemplate, cursor.pointer(), message);
        cursor.report_at(wrong.help("{user_id} and {param.NAME} are there without an input"));
        return None;
    }
    if name == "id" {
        return Some(TemplatePart::Id);
    }
    if name == "user_id" {
        return Some(TemplatePart::UserId);
    }
    let (part, entry) = if let Some(name) = name.strip_prefix("key.") {
        let key = names.key_named(cursor, name, Access::Read)?;
        (if key == Key::ID { TemplatePart::Id } else { TemplatePart::Key(key) }, names.registry.key(key))
    } else if let Some(name) = name.strip_prefix("param.") {
        let at = names.param_named(cursor, name)?;
        (TemplatePart::Param(at), names.registry.params.get(at))
    } else {
        let message = format!("{{{}}} is not id, user_id, param.NAME or key.NAME", quoted_plainly(name));
        let wrong = Diagnostic::new(Code::BadTemplate, cursor.pointer(), message);
        let registry = names.registry;
        cursor.report_at(if registry.keys.named(name).is_some() {
            wrong.help(format!("did you mean {{key.{name}}}?"))
        } else if registry.params.named(name).is_some() {
            wrong.help(format!("did you mean {{param.{name}}}?"))
        } else {
            wrong.nearest(name, ["id", "user_id", "param.NAME", "key.NAME"].into_iter())
        });
        return None;
    };
    if !matches!(entry.type_of, Type::Int | Type::Str) {
        let message = format!("{{{name}}} is of type {}: only ints and strings are filled in", entry.type_of);
        cursor.report(Code::BadTemplate, message);
        return None;
    }
    Some(part)
}

/// A name as messages show it, without its quotes.
fn quoted_plainly(name: &str) -> String {
    quoted(name).to_string().trim_matches('"').to_owned()
}
