//! What the pages that put another version of a plan into service have in common: who may ask, what is asked, and the answer.

use super::plan::describe;
use crate::audience::Listener;
use crate::content_headers;
use crate::off_loop;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{Call, Shape};
use crate::version_wish::{NotSwitched, SwitchRequest, Wish};
use bytes::Bytes;
use rankd_edge::answer;
use rankd_engine::{RunError, codes};
use rankd_plan::diagnostic::quoted;
use rankd_plan::json::{Fault, Kind, Reader};
use tokio::sync::oneshot;

const DEPTH_MAX: usize = 8;

/// A digest or how it begins; `None` for null.
pub(super) type Digest = Option<String>;

pub(super) const FAILURES: &[(u16, &str, Shape)] = &[
    (400, "bad_request: the body or the digest in it", Shape::Component("Failure")),
    (403, "bad_request: the server was started without --allow_rollback", Shape::Component("Failure")),
    (404, "unknown_plan, or bad_request: no such version is kept", Shape::Component("Failure")),
    (408, "bad_request: the body was too slow", Shape::Component("Failure")),
    (409, "bad_request: there is no earlier version, or the plan is pinned", Shape::Component("Failure")),
    (413, "bad_request: the body is too large", Shape::Component("Failure")),
    (415, "bad_request: the body is not declared as JSON", Shape::Component("Failure")),
    (422, "invalid_plan: the version cannot be served today, with its diagnostics", Shape::Component("Failure")),
    (500, "bug", Shape::Component("Failure")),
];

/// Answers such a request.
pub(super) async fn answer(
    scope: &mut RequestScope,
    call: &mut Call,
    wish: fn(Option<Digest>) -> Result<Wish, RunError>,
) -> Reply {
    let plan = call.name().to_owned();
    match ask(scope, call, &plan, wish).await {
        Ok(reply) => reply,
        Err(NotSwitched { error, diagnostics }) => {
            let body = answer::failure(scope.id(), Some(&plan), &error, |w| {
                if let Some(diagnostics) = &diagnostics {
                    w.field("diagnostics").raw(diagnostics);
                }
            });
            Reply::failed(error.code, body)
        }
    }
}

async fn ask(
    scope: &mut RequestScope,
    call: &mut Call,
    plan: &str,
    wish: fn(Option<Digest>) -> Result<Wish, RunError>,
) -> Result<Reply, NotSwitched> {
    let app = scope.loop_state.app.clone();
    let is_admin = app.listener(scope.state.class).0 == Listener::Admin;
    if !app.settings.versions.allow_rollback || !is_admin {
        let message = "plans cannot be rolled back or pinned here: start the server with --allow_rollback and --admin";
        return Err(RunError::new(codes::ROLLBACK_NOT_ALLOWED, message).into());
    }
    // Never lenient: a page in a browser could send such a body without asking.
    content_headers::check(&call.head.headers, false)?;
    let read = call.body.read().await?;
    let given = off_loop::parse(scope, &read.bytes, read_digest).await??;
    let wish = wish(given)?;
    app.find_plan(&app.catalog.load(), plan)?;
    let (done, switched) = oneshot::channel();
    let request = SwitchRequest { plan: plan.to_owned(), wish, done };
    if app.switches.try_send(request).is_err() {
        let message = "too many versions are being switched; try again";
        return Err(RunError::new(codes::OVERLOADED, message).into());
    }
    switched.await.unwrap_or_else(|_| Err(RunError::bug("the versions' thread has gone").into()))?;
    let catalog = app.catalog.load_full();
    Ok(Reply::json(describe(app.find_plan(&catalog, plan)?, &catalog, &app.readiness.warnings())))
}

/// The field `sha256`, where there is one. An empty body is an empty object.
fn read_digest(bytes: &Bytes) -> Result<Option<Digest>, RunError> {
    let not_json = |fault: Fault| {
        RunError::new(codes::NOT_A_REQUEST, format!("this is not a request: {} (byte {})", fault.message, fault.at))
    };
    let text = std::str::from_utf8(bytes).map_err(|_| RunError::new(codes::NOT_A_REQUEST, "the body is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(text, DEPTH_MAX);
    let mut digest = None;
    let mut fields = reader.open_object().map_err(not_json)?;
    while let Some((name, repeated)) = reader.field(&mut fields).map_err(not_json)? {
        if repeated {
            let message = format!("the field {} appears twice", quoted(&name));
            return Err(RunError::new(codes::NOT_A_REQUEST, message));
        }
        digest = match (&*name, reader.peek().map_err(not_json)?) {
            ("sha256", Kind::String) => Some(Some(reader.string().map_err(not_json)?.into_owned())),
            ("sha256", Kind::Null) => {
                reader.null().map_err(not_json)?;
                Some(None)
            }
            ("sha256", _) => return Err(RunError::new(codes::WRONG_VALUE, "sha256 must be a string or null")),
            _ => return Err(RunError::new(codes::UNKNOWN_FIELD, format!("there is no field {}", quoted(&name)))),
        };
    }
    reader.end().map_err(not_json)?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_digest_null_or_nothing() {
        for (body, expected) in [
            ("", Ok(None)),
            (" {} ", Ok(None)),
            (r#"{"sha256":null}"#, Ok(Some(None))),
            (r#"{"sha256":"0123abcd"}"#, Ok(Some(Some("0123abcd".to_owned())))),
            (r#"{"sha256":1}"#, Err("E105")),
            (r#"{"sha":"0123abcd"}"#, Err("E103")),
            (r#"{"sha256":null,"sha256":null}"#, Err("E101")),
            ("[]", Err("E101")),
            ("{", Err("E101")),
        ] {
            let read = read_digest(&Bytes::from(body)).map_err(|error| error.code.id);
            assert_eq!(read, expected, "{body}");
        }
    }
}
