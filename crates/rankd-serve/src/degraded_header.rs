//! The header of an answer that names the nodes whose fallbacks were taken: `rankd-degraded: n4,n%207,+3`.
//!
//! What the answer says of them is in its body; this is for proxies and clients that do not read it.

use hyper::header::HeaderValue;
use rankd_engine::Linked;
use rankd_engine::degraded::Degraded;
use std::fmt::Write;

/// The name of the header.
pub const NAME: &str = "rankd-degraded";
/// So many nodes are named; others are counted.
const NAMED_MAX: usize = 16;

/// The header's value; nothing where no fallback was taken.
pub(crate) fn value(plan: &Linked, degraded: &[Degraded]) -> Option<HeaderValue> {
    let ids = degraded.iter().map(|one| &*plan.node(one.node).id);
    HeaderValue::try_from(write(ids)?).ok()
}

fn write<'i>(mut ids: impl ExactSizeIterator<Item = &'i str>) -> Option<String> {
    let mut value = encoded(ids.next()?);
    for id in ids.by_ref().take(NAMED_MAX - 1) {
        value.push(',');
        value.push_str(&encoded(id));
    }
    if ids.len() > 0 {
        // Writing to a string cannot fail.
        let _ = write!(value, ",+{}", ids.len());
    }
    Some(value)
}

/// The ids that a header names. Those that it only counts are not among them.
pub fn named(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty() && !item.starts_with('+')).map(decoded)
}

/// Everything but letters, digits and `-._~` as `%` and two hexadecimal digits a byte.
fn encoded(id: &str) -> String {
    id.bytes().fold(String::with_capacity(id.len()), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    })
}

/// What is not encoded as above stays as it is.
fn decoded(item: &str) -> String {
    let mut bytes = Vec::with_capacity(item.len());
    let mut rest = item.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_encoded_and_read_back_and_those_beyond_sixteen_are_counted() {
        let ids = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>();
        let header = |ids: &[String]| write(ids.iter().map(String::as_str));
        assert_eq!(header(&[]), None);
        let odd = ["a-b.c_d~9", "two words", "é,+7%", "\u{7f}\r\n"].map(str::to_owned);
        let value = header(&odd).unwrap();
        assert_eq!(value, "a-b.c_d~9,two%20words,%C3%A9%2C%2B7%25,%7F%0D%0A");
        assert!(named(&value).eq(odd));
        assert_eq!(header(&ids(16)).unwrap(), ids(16).join(","));
        let value = header(&ids(19)).unwrap();
        assert_eq!(value, ids(16).join(",") + ",+3");
        assert!(named(&value).eq(ids(16)));
    }

    #[test]
    fn what_others_sent_is_read_without_trouble() {
        for (value, expected) in
            [("", vec![]), (" a , ,+2", vec!["a"]), ("%,%4,%zz,%41%", vec!["%", "%4", "%zz", "A%"])]
        {
            assert!(named(value).eq(expected), "{value}");
        }
        assert_eq!(named("%ff").collect::<Vec<_>>(), ["\u{fffd}"]);
    }
}
