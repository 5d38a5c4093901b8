//! The header of an answer that names the version of the plan that gave it: `rankd-plan-sha256: 0123456789abcdef`.
//!
//! It is made once a version. Traces and captures have the whole digest.

use hyper::header::HeaderValue;

/// The name of the header.
pub const NAME: &str = "rankd-plan-sha256";
/// How many digits of the digest it has.
const DIGITS: usize = 16;

/// The header's value for a digest in hexadecimal.
pub(crate) fn value(sha256: &str) -> HeaderValue {
    let digits = sha256.get(..DIGITS).unwrap_or(sha256);
    // Digits are what a header may have.
    HeaderValue::from_str(digits).unwrap_or(HeaderValue::from_static(""))
}
