//! `GET /static/{file}` on the console's listener: what the page is made of, with its version, so that a browser fetches it once.

use crate::audience::Audience;
use crate::console::files::{ConsoleFile, FILES};
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;
use hyper::header::IF_NONE_MATCH;
use rankd_engine::{RunError, codes};
use rankd_plan::diagnostic::quoted;

pub(crate) struct FilePage;

impl Page for FilePage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/static/{file}",
        audience: Audience::ConsoleFiles,
        operation: "ConsoleFile",
        summary: "A file of the console's page",
        schema: HTML_PAGE,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let file = FILES.iter().find(|file| file.name == call.name());
        reply(scope, call, file)
    }
}

/// Files are no JSON, and which there are is the page's own business.
pub(super) const HTML_PAGE: Schema = Schema {
    takes: None,
    gives: &[("text/html", Shape::Json("{}"))],
    failures: Failures::OfPages(&[(404, "bad_request: there is no such file", Shape::Component("Failure"))]),
    components: &[],
};

pub(super) fn reply(scope: &mut RequestScope, call: &Call, file: Option<&'static ConsoleFile>) -> Reply {
    let Some(file) = file else {
        let message = format!("there is no path {} here", quoted(call.head.uri.path()));
        return Reply::error(scope.id(), None, &RunError::new(codes::UNKNOWN_PATH, message));
    };
    if has_version(call, &file.etag()) {
        return Reply::not_modified(&file.etag());
    }
    Reply::of(file.media_type, file.bytes).with_etag(&file.etag())
}

/// Whether the client has this version already.
pub(super) fn has_version(call: &Call, etag: &str) -> bool {
    let known = call.head.headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == etag)
}
