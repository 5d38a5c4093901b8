//! Endpoints of kind `http`: a service that answers with JSON.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::registry::surroundings::Reference;
use crate::registry::table::{Referred, Table, bad};
use std::fmt;
use std::ops::RangeInclusive;

/// What an endpoint of this kind has besides its name.
#[derive(Clone, PartialEq, Eq)]
pub struct Http {
    /// `http://` or `https://`, a host, and the path that stands before those of the plans, if there is one.
    pub url: String,
    /// The authorities to trust with `https://`, as a PEM file; the system's where there is none.
    pub ca_file: Option<String>,
    /// Sent with every request, by their names in lowercase.
    pub headers: Vec<(String, Secret)>,
    pub policy: HttpPolicy,
}

/// Without the address, which may come from elsewhere as secrets do.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Http { url: _, ca_file, headers, policy } = self;
        let mut shown = f.debug_struct("Http");
        shown.field("ca_file", ca_file).field("headers", headers).field("policy", policy).finish_non_exhaustive()
    }
}

impl Http {
    /// Whether the server is reached with TLS.
    pub fn is_encrypted(&self) -> bool {
        self.url.starts_with("https://")
    }
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How an endpoint may be used. The defaults are finite: nothing waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpPolicy {
    /// For each event loop. On HTTP/1.1 as many requests are under way at a time, on HTTP/2 several a connection.
    pub connections: u32,
    pub connect_timeout_ms: u32,
    pub request_timeout_ms: u32,
    /// Bytes of one answer.
    pub bytes_max: u32,
    /// Requests that may be sent a second time, of a hundred that were sent.
    pub retry_percent: u32,
    /// Identical GETs that are in flight at the same time are sent once and shared.
    pub single_flight: bool,
    /// Whether HTTP/2 is spoken; where it is not said, as the server chooses in TLS, and not without TLS.
    pub http2: Option<bool>,
}

impl Default for HttpPolicy {
    fn default() -> HttpPolicy {
        HttpPolicy {
            connections: 8,
            connect_timeout_ms: 250,
            request_timeout_ms: 500,
            bytes_max: 8 << 20,
            retry_percent: 20,
            single_flight: true,
            http2: None,
        }
    }
}

pub(super) const FIELDS: &[&str] = &[
    "url",
    "ca_file",
    "headers",
    "connections",
    "connect_timeout_ms",
    "request_timeout_ms",
    "bytes_max",
    "retry_percent",
    "single_flight",
    "http2",
];

/// Headers that follow from the request itself.
const OWN_HEADERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const HEADERS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 128;
const VALUE_BYTES_MAX: usize = 8 << 10;

pub(super) fn read(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<Http> {
    table.require(&["url"], FIELDS, found);
    let wrong = |place: &str, message: &str| Diagnostic::new(Code::BadEndpoint, "", message).bytes(table.place(place));
    let url = table.text("url", found).and_then(|written| value(table, "url", written, found)).filter(|url| {
        // One that was not looked up is judged where it is.
        let good = url.as_ref().is_none_or(|url| url.starts_with("http://") || url.starts_with("https://"));
        if !good {
            found.push(wrong("url", "the url of an http endpoint starts with http:// or https://, or is env:NAME"));
        }
        good
    });
    let ca_file = table.path("ca_file", found);
    if ca_file.is_some() && url.as_ref().is_some_and(|url| url.as_ref().is_some_and(|url| url.starts_with("http://"))) {
        found.push(wrong("ca_file", "ca_file applies only to an endpoint with https://"));
    }
    let headers = headers(table, found);
    let policy = policy(table, found);
    Some(Http { url: url?.unwrap_or_default(), ca_file, headers, policy })
}

/// A text as it is written, or what it refers to. `Some(None)`: whoever reads the registry does not look there.
fn value(table: &Table<'_, '_>, field: &str, written: &str, found: &mut Diagnostics) -> Option<Option<String>> {
    match Reference::parse(written) {
        Some(reference) => match table.look_up(field, reference, found)? {
            Referred::Text(text) => Some(Some(text)),
            Referred::Unknown => Some(None),
        },
        None => Some(Some(written.to_owned())),
    }
}

fn policy(table: &Table<'_, '_>, found: &mut Diagnostics) -> HttpPolicy {
    let default = HttpPolicy::default();
    let mut bounded = |name: &str, range: RangeInclusive<i64>, default: u32| -> u32 {
        let value = table.int(name, *range.start()..range.end() + 1, found);
        value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
    };
    HttpPolicy {
        connections: bounded("connections", 1..=256, default.connections),
        connect_timeout_ms: bounded("connect_timeout_ms", 1..=60_000, default.connect_timeout_ms),
        request_timeout_ms: bounded("request_timeout_ms", 1..=60_000, default.request_timeout_ms),
        bytes_max: bounded("bytes_max", 1..=256 << 20, default.bytes_max),
        retry_percent: bounded("retry_percent", 0..=100, default.retry_percent),
        single_flight: table.bool("single_flight", found).unwrap_or(default.single_flight),
        http2: table.bool("http2", found),
    }
}

fn headers(table: &Table<'_, '_>, found: &mut Diagnostics) -> Vec<(String, Secret)> {
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for (name, written, place) in table.text_map("headers", found) {
        let lower = name.to_ascii_lowercase();
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let wrong = if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_token) {
            format!("{name:?} is not the name of a header")
        } else if OWN_HEADERS.contains(&lower.as_str()) {
            format!("the header {lower} follows from the request and cannot be set")
        } else if headers.iter().any(|(known, _)| *known == lower) {
            format!("the header {lower} is set twice")
        } else {
            match value(table, "headers", written, found) {
                Some(value) if value.as_deref().is_none_or(is_sendable) => {
                    headers.push((lower, Secret(value.unwrap_or_default())));
                    continue;
                }
                // What is wrong with a value is said without the value: it may be a secret.
                Some(_) => {
                    format!(
                        "the value of the header {lower} is not made of at most {VALUE_BYTES_MAX} visible characters of ASCII"
                    )
                }
                None => continue,
            }
        };
        found.push(bad(place, wrong));
    }
    if headers.len() > HEADERS_MAX {
        found.push(bad(table.place("headers"), format!("an endpoint has at most {HEADERS_MAX} headers")));
    }
    headers
}

fn is_sendable(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX && value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_header_is_not_shown() {
        assert_eq!(format!("{:?}", Secret("secret".into())), "Secret(…)");
    }
}
