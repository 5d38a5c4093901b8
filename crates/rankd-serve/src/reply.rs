//! An answer before it is HTTP: a status, a body, and what the log and the metrics want to know about it.

use crate::degraded_header;
use crate::plan_header;
use crate::request_outcome::RequestOutcome;
use crate::status;
use bytes::Bytes;
use hyper::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use rankd_edge::answer;
use rankd_engine::degraded::Degraded;
use rankd_engine::{ErrorCode, ErrorKind, Linked, RunError};

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    content_type: &'static str,
    body: Bytes,
    allow: Option<&'static str>,
    retry_after: bool,
    /// The nodes whose fallbacks it has, if any.
    degraded: Option<HeaderValue>,
    /// The version of the plan that gave it, if one did.
    plan: Option<HeaderValue>,
    /// Which version of the body it is, for clients that ask whether theirs is still the same.
    etag: Option<HeaderValue>,
    pub(crate) outcome: RequestOutcome,
}

impl Reply {
    pub(crate) fn of(content_type: &'static str, body: impl Into<Bytes>) -> Reply {
        let (status, body) = (StatusCode::OK, body.into());
        let outcome = RequestOutcome::Ok;
        Reply {
            status,
            content_type,
            body,
            allow: None,
            retry_after: false,
            degraded: None,
            plan: None,
            etag: None,
            outcome,
        }
    }

    pub(crate) fn json(body: impl Into<Bytes>) -> Reply {
        Reply::of(JSON, body)
    }

    /// An error that has been rendered already.
    pub(crate) fn failed(code: &ErrorCode, body: impl Into<Bytes>) -> Reply {
        let retry_after = code.retry && code.kind == ErrorKind::Overloaded;
        let outcome = RequestOutcome::Failed(code.kind);
        Reply { status: status::of(code), outcome, retry_after, ..Reply::json(body) }
    }

    /// An error object.
    pub(crate) fn error(request_id: &str, plan: Option<&str>, error: &RunError) -> Reply {
        Reply::failed(error.code, answer::failure(request_id, plan, error, |_| {}))
    }

    /// Rows for which these fallbacks were taken; often none.
    pub(crate) fn with_degraded(self, plan: &Linked, degraded: &[Degraded]) -> Reply {
        if degraded.is_empty() {
            return self;
        }
        Reply { degraded: degraded_header::value(plan, degraded), outcome: RequestOutcome::Degraded, ..self }
    }

    /// The same, given by this version of a plan.
    pub(crate) fn of_plan(self, version: &HeaderValue) -> Reply {
        Reply { plan: Some(version.clone()), ..self }
    }

    /// The same with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Reply {
        Reply { status, ..self }
    }

    /// The same, counted as this.
    pub(crate) fn with_outcome(self, outcome: RequestOutcome) -> Reply {
        Reply { outcome, ..self }
    }

    /// The same with its version, in quotation marks.
    pub(crate) fn with_etag(self, etag: &str) -> Reply {
        // One that is no header goes without: the client then has no version to ask about.
        Reply { etag: HeaderValue::from_str(etag).ok(), ..self }
    }

    /// That the client has this version already.
    pub(crate) fn not_modified(etag: &str) -> Reply {
        Reply { status: StatusCode::NOT_MODIFIED, ..Reply::json("") }.with_etag(etag)
    }

    pub(crate) fn allowing(self, methods: &'static str) -> Reply {
        Reply { allow: Some(methods), ..self }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    /// As HTTP; `body` makes the body of the bytes. For HEAD there is only the head, which says how long the body would be.
    pub(crate) fn into_response<B>(self, close: bool, only_head: bool, body: impl FnOnce(Bytes) -> B) -> Response<B> {
        let length = self.body.len();
        let mut response = Response::new(body(if only_head { Bytes::new() } else { self.body }));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if only_head {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        if let Some(nodes) = self.degraded {
            headers.insert(degraded_header::NAME, nodes);
        }
        if let Some(version) = self.plan {
            headers.insert(plan_header::NAME, version);
        }
        if let Some(etag) = self.etag {
            headers.insert(ETAG, etag);
        }
        if self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{plan, tasks};
    use rankd_engine::codes;
    use rankd_engine::degraded::Reason;
    use rankd_engine::degraded::StandIn;
    use rankd_plan::plan::Substitute;
    use std::time::Duration;

    #[test]
    fn a_header_names_the_nodes_whose_fallbacks_were_taken() {
        let (_, _, plan) = plan(&tasks());
        let degraded = |node| Degraded {
            node,
            reason: Reason::Upstream,
            code: Some(codes::UNREACHABLE),
            fallback: StandIn::Substitute(Substitute::NoRows),
            after: Duration::ZERO,
        };
        let header = |degraded: &[Degraded]| {
            let reply = Reply::json("{}").with_degraded(&plan, degraded);
            let outcome = reply.outcome;
            let response = reply.into_response(false, false, |bytes| bytes);
            let value = response.headers().get("rankd-degraded").map(|value| value.to_str().unwrap().to_owned());
            (outcome, response.status().as_u16(), value)
        };
        assert_eq!(header(&[]), (RequestOutcome::Ok, 200, None));
        let both = header(&[degraded(1), degraded(0)]);
        assert_eq!(both, (RequestOutcome::Degraded, 200, Some("w,r".to_owned())));
    }
}
