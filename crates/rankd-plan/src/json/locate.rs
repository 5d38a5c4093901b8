//! Finds where in a JSON text the values behind some pointers stand. Only used when there is something to report.

use crate::json::read::{Fault, Fields, Items, Kind, Reader};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The bytes of the value behind each pointer, or else of the nearest value around it. One pass, whatever their number.
pub fn locate<'p>(text: &str, pointers: impl Iterator<Item = &'p str> + Clone) -> HashMap<&'p str, Range<usize>> {
    let wanted: HashSet<&str> = pointers.clone().flat_map(ancestors).collect();
    let mut found = HashMap::new();
    // A text that is not JSON was reported with its own place; what was found until then is valid.
    let _ = walk(text, &wanted, &mut found);
    for pointer in pointers {
        if let Some(place) = ancestors(pointer).find_map(|around| found.get(around).cloned()) {
            found.insert(pointer, place);
        }
    }
    found
}

/// A pointer, the one around it, and so on to the whole document.
fn ancestors(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), |inner| inner.rfind('/').map(|at| &inner[..at]))
}

enum Open {
    Object(Fields, usize),
    Array(Items, usize, usize),
}

fn walk<'p>(
    text: &str,
    wanted: &HashSet<&'p str>,
    found: &mut HashMap<&'p str, Range<usize>>,
) -> std::result::Result<(), Fault> {
    // Values deeper than any wanted pointer are skipped whole, so hostile depth is never walked.
    let deepest = wanted.iter().map(|pointer| pointer.matches('/').count()).max().unwrap_or(0);
    let mut reader = Reader::new(text, usize::MAX);
    let mut open: Vec<Open> = Vec::new();
    let mut pointer = String::new();
    loop {
        // The reader is before a value.
        let kind = reader.peek()?;
        let start = reader.at();
        let inside = open.len() < deepest && matches!(kind, Kind::Object | Kind::Array);
        if inside {
            open.push(match kind {
                Kind::Object => Open::Object(reader.open_object()?, pointer.len()),
                _ => Open::Array(reader.open_array()?, 0, pointer.len()),
            });
            if let Some(&pointer) = wanted.get(pointer.as_str()) {
                // A container is underlined by its first byte; its end may be pages away.
                found.insert(pointer, start..start + 1);
            }
        } else {
            reader.skip()?;
            if let Some(&pointer) = wanted.get(pointer.as_str()) {
                found.insert(pointer, start..reader.at());
            }
        }
        // Go on to the next value, closing what ends.
        loop {
            let Some(container) = open.last_mut() else { return Ok(()) };
            let next = match container {
                Open::Object(fields, len) => {
                    pointer.truncate(*len);
                    reader.field(fields)?.map(|(name, _)| segment(&name))
                }
                Open::Array(items, index, len) => {
                    pointer.truncate(*len);
                    *index += 1;
                    reader.item(items)?.then(|| (*index - 1).to_string())
                }
            };
            match next {
                Some(segment) => {
                    pointer.push('/');
                    pointer.push_str(&segment);
                    break;
                }
                None => drop(open.pop()),
            }
        }
    }
}

/// A field name as a segment of a JSON pointer.
pub fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Line and column of a byte, both from 1, the column in characters.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_their_values() {
        let text = r#"{"nodes":[{"op":"vm"},{"op":"fil~/ter","x/y":{"z":7}}]}"#;
        let found = locate(text, ["/nodes/1/op", "/nodes/1/x~1y/z", "/nodes/0", "/nope"].into_iter());
        assert_eq!(&text[found["/nodes/1/op"].clone()], "\"fil~/ter\"");
        assert_eq!(&text[found["/nodes/1/x~1y/z"].clone()], "7");
        assert_eq!(&text[found["/nodes/0"].clone()], "{");
        assert_eq!(&text[found["/nope"].clone()], "{");
    }
}
