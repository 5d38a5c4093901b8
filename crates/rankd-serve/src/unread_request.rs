//! Recognises a ranking request in the bytes of one read, without parsing it: enough to refuse it, and not enough to answer it.
//!
//! Only what leaves no doubt is recognised: one whole request, from its first byte to its last, in the plainest form of HTTP/1.1. Whatever
//! is unusual about one is for the HTTP implementation to judge, so that both never disagree about where a request ends.

/// The name of the plan in the path, which is empty for `/rank`; `None` where the bytes are anything but one whole ranking request.
pub(crate) fn plan_of(bytes: &[u8]) -> Option<&str> {
    let rest = bytes.strip_prefix(b"POST /rank")?;
    let end = rest.iter().take(NAME_BYTES_MAX).position(|byte| *byte == b' ')?;
    let (name, rest) = rest.split_at(end);
    let name = match name.split_first() {
        None => name,
        Some((b'/', name)) if !name.is_empty() && name.iter().all(|byte| is_plain(*byte)) => name,
        Some(_) => return None,
    };
    let is_whole = ends_with_body(rest.strip_prefix(b" HTTP/1.1\r\n")?)?;
    is_whole.then(|| std::str::from_utf8(name).ok())?
}

/// A longer name is looked at by others.
const NAME_BYTES_MAX: usize = 256;

/// Whether a letter stands for itself in a path and ends no segment of it.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

/// Whether exactly a body follows the fields of a head. `None` where a field may change how the body is read or what becomes of the
/// connection.
fn ends_with_body(mut rest: &[u8]) -> Option<bool> {
    let mut length = None;
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
        let (line, after) = rest.split_at(end);
        rest = after.strip_prefix(b"\r\n")?;
        if line.is_empty() {
            return Some(length? == rest.len());
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || !name.iter().all(|byte| is_plain(*byte)) {
            return None;
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("content-length") {
            if length.is_some() || value.is_empty() || value.len() > 6 || !value.iter().all(u8::is_ascii_digit) {
                return None;
            }
            length = Some(value.iter().fold(0, |all, digit| 10 * all + usize::from(digit - b'0')));
        } else if is("connection") {
            if !value.eq_ignore_ascii_case(b"keep-alive") {
                return None;
            }
        } else if ["transfer-encoding", "expect", "upgrade", "trailer", "te"].into_iter().any(is) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(first: &str, fields: &str, body: &str) -> Vec<u8> {
        format!("{first}\r\nhost: a\r\ncontent-type: application/json\r\n{fields}\r\n{body}").into_bytes()
    }

    #[test]
    fn a_plain_and_whole_request_is_recognised() {
        let feed = "POST /rank/feed HTTP/1.1";
        for (first, fields, plan) in [
            (feed, "content-length: 3\r\n", "feed"),
            ("POST /rank HTTP/1.1", "Content-Length:3\r\n", ""),
            ("POST /rank/a.b-c_1 HTTP/1.1", "connection: Keep-Alive\r\nCONTENT-LENGTH: 3\r\n", "a.b-c_1"),
        ] {
            let request = with(first, fields, "{ }");
            assert_eq!(plan_of(&request), Some(plan), "{first} {fields}");
            // Neither a part of it, nor more than it.
            assert!((0..request.len()).all(|end| plan_of(&request[..end]).is_none()), "{first}");
            assert_eq!(plan_of(&[&request[..], b"P"].concat()), None);
        }
    }

    #[test]
    fn whatever_is_unusual_is_left_to_others() {
        let feed = "POST /rank/feed HTTP/1.1";
        let length = "content-length: 3\r\n";
        for (first, fields) in [
            ("GET /rank/feed HTTP/1.1", length),
            ("POST /rank/feed HTTP/1.0", length),
            ("POST /rank/ HTTP/1.1", length),
            ("POST /ranked HTTP/1.1", length),
            ("POST /rank/a/b HTTP/1.1", length),
            ("POST /rank/a?b HTTP/1.1", length),
            ("POST /rank/%61 HTTP/1.1", length),
            ("POST  /rank/feed HTTP/1.1", length),
            ("POST /rank/feed  HTTP/1.1", length),
            (feed, ""),
            (feed, "content-length: 3\r\ncontent-length: 3\r\n"),
            (feed, "content-length: +3\r\n"),
            (feed, "content-length: 3, 3\r\n"),
            (feed, "content-length : 3\r\n"),
            (feed, "content-length:\r\n 3\r\n"),
            (feed, "content-length: 0000003\r\n"),
            (feed, "content-length: 3\r\ntransfer-encoding: chunked\r\n"),
            (feed, "content-length: 3\r\nexpect: 100-continue\r\n"),
            (feed, "content-length: 3\r\nupgrade: h2c\r\n"),
            (feed, "content-length: 3\r\nconnection: close\r\n"),
            (feed, "content-length: 3\r\nx: y\n\r\n"),
            (feed, "content-length: 3\r\nx: y\rz\r\n"),
            (feed, "content-length: 3\r\n: y\r\n"),
            (feed, "content-length: 3\r\nno colon\r\n"),
        ] {
            assert_eq!(plan_of(&with(first, fields, "{ }")), None, "{first} {fields:?}");
        }
        assert_eq!(plan_of(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), None);
        assert_eq!(plan_of(b""), None);
    }
}
