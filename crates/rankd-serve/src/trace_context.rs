//! The W3C `traceparent` header: which distributed trace a request belongs to.

use hyper::HeaderMap;
use hyper::header::HeaderName;

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace: u128,
    /// The span that sent the request.
    pub(crate) parent: u64,
    /// Whether the caller records this trace.
    pub(crate) sampled: bool,
}

impl TraceContext {
    /// The context of a request, if it has a valid one; anything else is as good as none, as the standard says.
    pub(crate) fn of(headers: &HeaderMap) -> Option<TraceContext> {
        parse(headers.get(&TRACEPARENT)?.to_str().ok()?)
    }

    /// Thirty-two hexadecimal digits.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }
}

fn parse(text: &str) -> Option<TraceContext> {
    let mut parts = text.split('-');
    let mut part = |digits: usize| {
        let part = parts.next()?;
        let lower = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (part.len() == digits && lower).then_some(part)
    };
    let version = u8::from_str_radix(part(2)?, 16).ok()?;
    let trace = u128::from_str_radix(part(32)?, 16).ok()?;
    let parent = u64::from_str_radix(part(16)?, 16).ok()?;
    let flags = u8::from_str_radix(part(2)?, 16).ok()?;
    // A later version may say more after this; ours may not.
    let valid = version != 0xff && trace != 0 && parent != 0 && (version > 0 || parts.next().is_none());
    valid.then_some(TraceContext { trace, parent, sampled: flags & 1 == 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_headers_count() {
        let good = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!((good.trace_id().as_str(), good.sampled), ("4bf92f3577b34da6a3ce929d0e0e4736", true));
        assert!(parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more").is_some());
        for bad in [
            "",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
