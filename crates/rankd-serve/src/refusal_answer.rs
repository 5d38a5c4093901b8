//! The answer to a request that is refused before it is read: bytes that are made once, with nothing of the request in them.

use crate::limiter::Refusal;
use crate::reply::Reply;
use crate::status;
use bytes::Bytes;
use rankd_edge::answer;
use rankd_engine::{RunError, codes};

/// What a refusal says.
pub(crate) fn error_of(refusal: Refusal) -> RunError {
    let (code, message) = match refusal {
        Refusal::Behind | Refusal::Queue => (codes::OVERLOADED, "the server is overloaded; try again"),
        Refusal::PlanLimit => (codes::PLAN_LIMIT, "this plan has reached its concurrency limit; try again"),
    };
    RunError::new(code, message)
}

/// The answer of an overloaded server.
pub(crate) struct RefusalAnswer {
    body: Bytes,
    /// The same as a whole answer of HTTP/1.1.
    pub(crate) http1: Bytes,
}

impl RefusalAnswer {
    pub(crate) fn new() -> RefusalAnswer {
        let error = error_of(Refusal::Behind);
        // Its id is not known, because it is not read.
        let body = Bytes::from(answer::failure("", None, &error, |_| {}));
        let status = status::of(error.code);
        let response = Reply::failed(error.code, body.clone()).into_response(false, false, |_| ());
        let mut http1 = format!("HTTP/1.1 {status}\r\n").into_bytes();
        for (name, value) in response.headers() {
            http1.extend_from_slice(name.as_str().as_bytes());
            http1.extend_from_slice(b": ");
            http1.extend_from_slice(value.as_bytes());
            http1.extend_from_slice(b"\r\n");
        }
        http1.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        http1.extend_from_slice(&body);
        RefusalAnswer { body, http1: http1.into() }
    }

    pub(crate) fn reply(&self) -> Reply {
        Reply::failed(codes::OVERLOADED, self.body.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_a_whole_answer() {
        let answer = RefusalAnswer::new();
        let text = std::str::from_utf8(&answer.http1).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let lines: Vec<&str> = head.split("\r\n").collect();
        let length = format!("content-length: {}", body.len());
        let expected =
            ["HTTP/1.1 503 Service Unavailable", "content-type: application/json", "retry-after: 1", length.as_str()];
        assert_eq!(lines, expected);
        assert_eq!(body.as_bytes(), answer.body);
        assert!(body.starts_with(r#"{"request_id":"","error":{"code":"E6"#), "{body}");
    }
}
