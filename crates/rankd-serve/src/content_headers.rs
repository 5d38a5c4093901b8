//! The headers that say what a request's body is: it is JSON, written down as it is.

use crate::reply::JSON;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use rankd_engine::{RunError, codes};
use rankd_plan::diagnostic::quoted;

/// Whether a body says that it is JSON, and that nothing was done to it. One that does not say what it is, is taken for JSON only by a
/// lenient server: a page in a browser may send such a body to any address without asking, but none that says that it is JSON.
pub(crate) fn check(headers: &HeaderMap, lenient: bool) -> Result<(), RunError> {
    let refused = |code, message: String| Err(RunError::new(code, message));
    for encoding in headers.get_all(CONTENT_ENCODING) {
        let encoding = encoding.to_str().unwrap_or("").trim();
        if !encoding.eq_ignore_ascii_case("identity") {
            let encoding = quoted(encoding);
            return refused(
                codes::ENCODED_BODY,
                format!("the body has the content-encoding {encoding}, which is not supported: send it uncompressed"),
            );
        }
    }
    let Some(given) = headers.get(CONTENT_TYPE) else {
        if lenient {
            return Ok(());
        }
        return refused(codes::NOT_JSON, format!("the header content-type is missing: a request is {JSON}"));
    };
    // Almost everybody writes it just so.
    if given == JSON {
        return Ok(());
    }
    let media = given.to_str().unwrap_or("").split(';').next().unwrap_or("").trim();
    if media.eq_ignore_ascii_case(JSON) {
        return Ok(());
    }
    refused(codes::NOT_JSON, format!("a request is {JSON}, not {}: set the header content-type", quoted(media)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn a_body_is_json_and_plain() {
        let code = |fields: &[(HeaderName, &'static str)], lenient| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            let headers: HeaderMap = fields.collect();
            check(&headers, lenient).map_or_else(|error| error.code.id, |()| "")
        };
        for (fields, strict, lenient) in [
            (&[][..], "E123", ""),
            (&[(CONTENT_TYPE, "application/json")], "", ""),
            (&[(CONTENT_TYPE, "Application/JSON; charset=utf-8")], "", ""),
            (&[(CONTENT_TYPE, "text/plain")], "E123", "E123"),
            (&[(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "identity")], "", ""),
            (&[(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "gzip")], "E129", "E129"),
            (&[(CONTENT_ENCODING, "gzip, identity")], "E129", "E129"),
        ] {
            assert_eq!((code(fields, false), code(fields, true)), (strict, lenient), "{fields:?}");
        }
    }
}
