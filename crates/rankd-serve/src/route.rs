//! What a page of the server is: its path, whom it is for, what it takes and gives, and what answers it. [`crate::routes`] lists them.

use crate::answer_body::AnswerBody;
use crate::audience::Audience;
use crate::body::RequestBody;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use futures_util::FutureExt;
use hyper::Method;
use hyper::Response;
use hyper::http::request::Parts;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

/// One page. To add one, add a file to `pages` and a line to [`crate::routes::ROUTES`].
pub(crate) trait Page {
    const ABOUT: About;

    /// Answers a request for this page.
    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply;
}

/// What is known of a page before it is asked for.
pub(crate) struct About {
    /// GET also answers HEAD.
    pub(crate) method: Method,
    /// `{name}` stands for one segment, the last one.
    pub(crate) path: &'static str,
    pub(crate) audience: Audience,
    /// What the OpenAPI document calls it.
    pub(crate) operation: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) schema: Schema,
}

/// What a page takes and gives.
pub(crate) struct Schema {
    /// What the body is, for a page that takes one.
    pub(crate) takes: Option<Shape>,
    /// By media type.
    pub(crate) gives: &'static [(&'static str, Shape)],
    pub(crate) failures: Failures,
    /// Named schemas that it brings along, each with its JSON.
    pub(crate) components: &'static [(&'static str, &'static str)],
}

/// What a body looks like.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// A named schema.
    Component(&'static str),
    ListOf(&'static str),
    /// A schema's JSON.
    Json(&'static str),
}

/// How a page can fail.
pub(crate) enum Failures {
    /// In every way, because it runs plans.
    OfRuns,
    /// As every page can, and in these ways: status, description, shape.
    OfPages(&'static [(u16, &'static str, Shape)]),
}

/// The rest of a request for a page.
pub(crate) struct Call {
    pub(crate) head: Parts,
    pub(crate) body: RequestBody,
    /// Where the part of the path begins that stands for `{name}`.
    name_at: usize,
}

impl Call {
    pub(crate) fn new(head: Parts, body: RequestBody, name_at: usize) -> Call {
        Call { head, body, name_at }
    }

    /// What the part of the path after `?` sets this to, as it came.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let pairs = self.head.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
    }

    /// What stands for `{name}`, as it came; empty for a page without.
    pub(crate) fn name(&self) -> &str {
        self.head.uri.path().get(self.name_at..).unwrap_or_default()
    }
}

/// An answer on its way. One box for each request: whatever a page waits for is inside.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Infallible>>>>;

/// A page as the table of routes has it.
pub(crate) struct Route {
    pub(crate) about: About,
    /// What is before `{name}`, in a path that has it.
    pub(crate) before_name: Option<&'static str>,
    pub(crate) answer: fn(RequestScope, Call) -> ResponseFuture,
}

impl Route {
    pub(crate) const fn of<P: Page + 'static>() -> Route {
        let about = P::ABOUT;
        Route { before_name: before_name(about.path), about, answer: respond::<P> }
    }
}

const fn before_name(path: &'static str) -> Option<&'static str> {
    let mut at = 0;
    while at < path.len() {
        if path.as_bytes()[at] == b'{' {
            return Some(path.split_at(at).0);
        }
        at += 1;
    }
    None
}

/// Answers a request, whatever happens: a panic of the page is an answer, too.
fn respond<P: Page + 'static>(mut scope: RequestScope, mut call: Call) -> ResponseFuture {
    Box::pin(async move {
        let answered = AssertUnwindSafe(P::answer(&mut scope, &mut call)).catch_unwind().await;
        let reply = answered.unwrap_or_else(|_| scope.panic_reply());
        call.body.discard().await;
        Ok(scope.finish(reply))
    })
}

/// Sends a reply that no page made.
pub(crate) fn refuse(mut scope: RequestScope, mut body: RequestBody, reply: Reply) -> ResponseFuture {
    Box::pin(async move {
        body.discard().await;
        Ok(scope.finish(reply))
    })
}
