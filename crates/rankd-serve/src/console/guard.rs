//! Who may ask the console: whoever knows its token, where it has one, and no page but its own.
//!
//! A browser sends requests for any page that it shows. It says so in `sec-fetch-site` and `origin`, which pages cannot forge; what would change or
//! cost something is answered only where these say that the console's own page asks.

use crate::audience::Audience;
use crate::content_headers;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use rankd_engine::{RunError, codes};
use std::fmt;

/// A token has at least so many characters: what is shorter can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
const TOKEN_CHARS_MAX: usize = 1024;
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// A text that only those who may use the console know.
#[derive(Clone, PartialEq, Eq)]
pub struct ConsoleToken(String);

impl fmt::Debug for ConsoleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsoleToken(…)")
    }
}

/// Why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusableToken;

impl std::error::Error for UnusableToken {}

impl fmt::Display for UnusableToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a token has {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} characters from A to Z, a to z, 0 to 9 and -._~; \
             make one with: openssl rand -hex 32"
        )
    }
}

impl ConsoleToken {
    /// The token in the text of a file, without white space around it.
    pub fn parse(text: &str) -> Result<ConsoleToken, UnusableToken> {
        let token = text.trim();
        // What stands in an address as it is.
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let fits = (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&token.len());
        if fits && token.bytes().all(known) { Ok(ConsoleToken(token.to_owned())) } else { Err(UnusableToken) }
    }

    /// Whether this is it. How long it takes says nothing about where they differ.
    fn is(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        own.len() == given.len() && own.iter().zip(given).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// What decides whether a request to the console is answered.
pub(crate) struct Guard {
    token: Option<ConsoleToken>,
}

impl Guard {
    pub(crate) fn new(token: Option<ConsoleToken>) -> Guard {
        Guard { token }
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a request for what this audience may have is answered; the error where it is not.
    pub(crate) fn check(&self, head: &Parts, audience: Audience) -> Result<(), RunError> {
        // The page's files are the same for all, and have to come before the page can say who asks.
        if audience == Audience::ConsoleFiles {
            return Ok(());
        }
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        if !is_own_page(&head.headers, reads) {
            let message = "this request does not come from the console's own page";
            return Err(RunError::new(codes::FOREIGN_PAGE, message));
        }
        let given = head.headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if let Some(token) = &self.token
            && !given.is_some_and(|given| token.is(given))
        {
            let message = "the console wants its token in the header authorization";
            return Err(RunError::new(codes::NO_CONSOLE_TOKEN, message));
        }
        // Never lenient: a page could send another body without asking.
        if reads { Ok(()) } else { content_headers::check(&head.headers, false) }
    }
}

/// Whether the console's own page asks, as far as the browser says. Programs that are no browsers may read; for anything else they say where they are.
fn is_own_page(headers: &HeaderMap, reads: bool) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (text(SEC_FETCH_SITE), text(ORIGIN.as_str())) {
        // Typed into the address bar.
        (Some("none"), _) => reads,
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => is_same_host(origin, text(HOST.as_str()).unwrap_or_default()),
        (None, None) => reads,
    }
}

/// Whether an origin is that of this host. A proxy may have taken TLS off.
fn is_same_host(origin: &str, host: &str) -> bool {
    let authority = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
    authority.is_some_and(|authority| !authority.is_empty() && authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn status(guard: &Guard, method: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri("/api/plans").header("host", "localhost:8081");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        guard.check(&head, Audience::Console).map_or_else(|error| crate::status::of(error.code).as_u16(), |()| 200)
    }

    #[test]
    fn only_the_own_page_may_ask() {
        let guard = Guard::new(None);
        let (json, own) = (("content-type", "application/json"), ("origin", "http://localhost:8081"));
        for (method, headers, expected) in [
            ("GET", &[][..], 200),
            ("GET", &[("sec-fetch-site", "none")], 200),
            ("GET", &[("sec-fetch-site", "same-origin")], 200),
            ("GET", &[("sec-fetch-site", "same-site")], 403),
            ("GET", &[("sec-fetch-site", "cross-site")], 403),
            ("GET", &[("origin", "https://evil.example")], 403),
            ("POST", &[json], 403),
            ("POST", &[json, ("sec-fetch-site", "none")], 403),
            ("POST", &[json, ("sec-fetch-site", "same-origin")], 200),
            ("POST", &[json, ("sec-fetch-site", "cross-site"), own], 403),
            ("POST", &[json, own], 200),
            ("POST", &[json, ("origin", "https://LOCALHOST:8081")], 200),
            ("POST", &[json, ("origin", "http://localhost:9")], 403),
            ("POST", &[json, ("origin", "null")], 403),
            ("POST", &[json, ("origin", "http://")], 403),
            ("POST", &[own], 415),
            ("POST", &[own, ("content-type", "text/plain")], 415),
            ("DELETE", &[], 403),
        ] {
            assert_eq!(status(&guard, method, headers), expected, "{method} {headers:?}");
        }
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let token = "0123456789abcdef";
        let guard = Guard::new(Some(ConsoleToken::parse(&format!(" {token}\n")).unwrap()));
        let given = |value: &str| status(&guard, "GET", &[("authorization", value)]);
        assert_eq!(status(&guard, "GET", &[]), 401);
        assert_eq!(given(&format!("Bearer {token}")), 200);
        for bad in
            ["", token, "Bearer ", "Bearer 0123456789abcdeg", "Bearer 0123456789abcdef0", "Basic 0123456789abcdef"]
        {
            assert_eq!(given(bad), 401, "{bad}");
        }
    }

    #[test]
    fn a_token_is_long_and_fits_into_an_address() {
        for bad in [
            "",
            "short",
            "0123456789abcde",
            "0123456789abcdef 0",
            "0123456789abcdef#",
            "0123456789abcdéf",
            &"a".repeat(1025),
        ] {
            assert_eq!(ConsoleToken::parse(bad), Err(UnusableToken), "{bad}");
        }
        assert_eq!(format!("{:?}", ConsoleToken::parse("0123456789abcdef")), "Ok(ConsoleToken(…))");
    }
}
