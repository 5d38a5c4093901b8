//! What a node says of the rows that its readers get in place of its own: `fallback`, `otherwise` and `fail_open`, as they are written.

use super::cursor::Cursor;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, quoted};
use crate::json::{Fault, Kind};
use crate::limits::REASON_BYTES_MAX;
use std::borrow::Cow;

/// The value of `fallback` or `otherwise`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireSubstitute<'a> {
    /// `"none"`
    NoRows,
    /// `"input"`
    FirstInput,
    /// `{"node": id}`
    Node(Cow<'a, str>),
}

const WORDS: &[&str] = &["none", "input"];

/// Reads the substitute at hand; `None` where something about it was reported.
pub(super) fn read<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Option<WireSubstitute<'a>>, Fault> {
    let kind = cursor.peek()?;
    match kind {
        Kind::String => {
            let Some(word) = cursor.text()? else { return Ok(None) };
            match &*word {
                "none" => return Ok(Some(WireSubstitute::NoRows)),
                "input" => return Ok(Some(WireSubstitute::FirstInput)),
                _ => {}
            }
            let message = format!("{} is not \"none\", \"input\" or {{\"node\": id}}", quoted(&word));
            let wrong = Diagnostic::new(Code::BadSubstitute, cursor.pointer(), message);
            cursor.report_at(wrong.nearest(&word, WORDS.iter().copied()));
            Ok(None)
        }
        Kind::Object => {
            let (before, mut node) = (cursor.errors(), None);
            cursor.object(&["node"], |cursor, _| {
                node = cursor.text()?;
                Ok(())
            })?;
            if node.is_none() && cursor.errors() == before {
                cursor.missing("node");
            }
            Ok(node.map(WireSubstitute::Node))
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::Array => {
            let message = format!("expected \"none\", \"input\" or {{\"node\": id}}, not {}", kind.name());
            cursor.report(Code::WrongJsonType, message);
            cursor.skip()?;
            Ok(None)
        }
    }
}

/// Reads the reason at hand why rows may pass a filter.
pub(super) fn read_reason<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Option<Cow<'a, str>>, Fault> {
    let Some(reason) = cursor.text()? else { return Ok(None) };
    if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX {
        let message = format!("fail_open says why, in 1 to {REASON_BYTES_MAX} bytes");
        cursor.report(Code::BadReason, message);
        return Ok(None);
    }
    Ok(Some(reason))
}

/// Reports a field of the node at hand that means something only together with another.
pub(super) fn nothing_to_replace(cursor: &mut Cursor<'_, '_>, field: &str, message: &str) {
    let pointer = format!("{}/{field}", cursor.pointer());
    cursor.report_at(Diagnostic::new(Code::NothingToReplace, pointer, message));
}
