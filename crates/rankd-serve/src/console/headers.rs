//! What every answer of the console tells the browser: to run and load nothing but the console's own files, to guess no types, and to tell no other
//! site about it.

use super::files::build_id;
use hyper::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderName, HeaderValue};

/// What the page may do. Nothing inline runs, nothing of others is loaded, no text becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const HEADERS: [(HeaderName, &str); 5] = [
    (hyper::header::CONTENT_SECURITY_POLICY, POLICY),
    (hyper::header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (hyper::header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Which build the page is of: one that sees another one loads itself again.
const BUILD: HeaderName = HeaderName::from_static("rankd-build");

pub(crate) fn add(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What has a version is the same for all: it is kept, and asked about each time. The rest may show rows.
    let keeps = if headers.contains_key(ETAG) { "no-cache" } else { "no-store" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keeps));
    if let Ok(build) = HeaderValue::from_str(build_id()) {
        headers.insert(BUILD, build);
    }
}
