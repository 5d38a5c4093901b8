//! Reads any reply as a flat list of parts, for set-up: the greeting and the layout of a cluster. Never for a request's data.
//!
//! A list is its length and then its items, in order, so that depth costs nothing and there is no tree. What has not all come
//! is read again from its start; a limit on the bytes bounds that.

use crate::store::redis::resp::Malformed;
use std::ops::Range;

/// The largest reply of this kind, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// One value, or the opening of a list with its number of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyPart {
    Text(Range<usize>),
    Int(i64),
    Null,
    List(usize),
    Error(Range<usize>),
}

/// A whole reply at the start of `bytes` and where it ends; `None` when more bytes are needed.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Vec<ReplyPart>, usize)>, Malformed> {
    let mut parts = Vec::new();
    let end = walk(bytes, |part| parts.push(part))?;
    Ok(end.map(|end| (parts, end)))
}

/// Where the reply at the start of `bytes` ends.
pub(super) fn skip(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    walk(bytes, |_| {})
}

fn walk(bytes: &[u8], mut note: impl FnMut(ReplyPart)) -> Result<Option<usize>, Malformed> {
    let (mut at, mut left) = (0, 1usize);
    while left > 0 {
        if at > BYTES_MAX {
            return Err(Malformed("a reply too large"));
        }
        let Some(line) = line(bytes, at)? else { return Ok(None) };
        let Some((&kind, text)) = bytes[line.clone()].split_first() else {
            return Err(Malformed("an empty line"));
        };
        at = line.end + 2;
        left -= 1;
        let part = match kind {
            b'+' | b',' | b'#' | b'(' => ReplyPart::Text(line.start + 1..line.end),
            b'-' => ReplyPart::Error(line.start + 1..line.end),
            b':' => ReplyPart::Int(number(text)?),
            b'_' => ReplyPart::Null,
            b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|' => match number(text)? {
                -1 => ReplyPart::Null,
                count => {
                    let most = count.try_into().ok().filter(|count: &usize| *count <= BYTES_MAX);
                    let count = most.ok_or(Malformed("an impossible length"))?;
                    match kind {
                        b'$' | b'=' | b'!' => {
                            let text = at..at + count;
                            at += count + 2;
                            if bytes.len() < at {
                                return Ok(None);
                            }
                            if bytes[text.end..at] != *b"\r\n" {
                                return Err(Malformed("an unterminated string"));
                            }
                            if kind == b'!' { ReplyPart::Error(text) } else { ReplyPart::Text(text) }
                        }
                        _ => {
                            // An attribute stands before the value that it is about.
                            let items = if kind == b'%' || kind == b'|' { 2 * count } else { count };
                            left += items + usize::from(kind == b'|');
                            ReplyPart::List(items)
                        }
                    }
                }
            },
            _ => return Err(Malformed("no reply")),
        };
        note(part);
    }
    Ok(Some(at))
}

/// The line at this place, without its end.
fn line(bytes: &[u8], at: usize) -> Result<Option<Range<usize>>, Malformed> {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.iter().take(4096).position(|byte| *byte == b'\r') {
        Some(end) if rest.get(end + 1).is_none() => Ok(None),
        Some(end) if rest[end + 1] == b'\n' => Ok(Some(at..at + end)),
        Some(_) => Err(Malformed("an unterminated line")),
        None if rest.len() >= 4096 => Err(Malformed("an unterminated line")),
        None => Ok(None),
    }
}

fn number(text: &[u8]) -> Result<i64, Malformed> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| text.parse().ok()).ok_or(Malformed("a length that is not a number"))
}

/// Walks through the parts of a reply.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    parts: std::slice::Iter<'a, ReplyPart>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], parts: &'a [ReplyPart]) -> Cursor<'a> {
        Cursor { bytes, parts: parts.iter() }
    }

    pub(super) fn list(&mut self) -> Option<usize> {
        match self.parts.next()? {
            ReplyPart::List(count) => Some(*count),
            _ => None,
        }
    }

    pub(super) fn int(&mut self) -> Option<i64> {
        match self.parts.next()? {
            ReplyPart::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Some text, or `Some(None)` for null.
    pub(super) fn text(&mut self) -> Option<Option<&'a str>> {
        match self.parts.next()? {
            ReplyPart::Text(range) => Some(Some(std::str::from_utf8(self.bytes.get(range.clone())?).ok()?)),
            ReplyPart::Null => Some(None),
            _ => None,
        }
    }

    /// Passes over this number of values with all that is in them.
    pub(super) fn pass(&mut self, values: usize) -> Option<()> {
        let mut left = values;
        while left > 0 {
            left -= 1;
            if let ReplyPart::List(items) = self.parts.next()? {
                left += items;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_flat_and_whole_or_not_there() {
        let bytes = b"%2\r\n$5\r\nproto\r\n:3\r\n+modules\r\n*2\r\n_\r\n*-1\r\n";
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Ok(None), "cut at {cut}");
        }
        let (parts, end) = read(bytes).unwrap().unwrap();
        assert_eq!(end, bytes.len());
        assert_eq!(parts.len(), 7);
        let mut cursor = Cursor::new(bytes, &parts);
        assert_eq!((cursor.list(), cursor.text(), cursor.int()), (Some(4), Some(Some("proto")), Some(3)));
        assert_eq!((cursor.text(), cursor.pass(1), cursor.pass(1)), (Some(Some("modules")), Some(()), None));
    }

    #[test]
    fn hostile_lengths_and_depths_are_refused() {
        let deep = b"*1\r\n".repeat(1_000_000);
        let bad: [&[u8]; 7] = [b"*99999999\r\n", b"$-2\r\n", b"$1\r\nabc", b"\r\n", b"?\r\n", b"+a\rb\r\n", &deep];
        for bytes in bad {
            assert!(read(bytes).is_err(), "{:?}", &bytes[..bytes.len().min(20)]);
        }
        assert!(skip(&[b'+'; 10_000]).is_err());
    }
}
