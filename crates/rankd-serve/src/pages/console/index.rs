//! `GET /` on the console's listener: the page itself.

use super::file::{HTML_PAGE, reply};
use crate::audience::Audience;
use crate::console::files::FILES;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;

pub(crate) struct IndexPage;

impl Page for IndexPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/",
        audience: Audience::ConsoleFiles,
        operation: "Console",
        summary: "The console's page",
        schema: HTML_PAGE,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        reply(scope, call, FILES.first())
    }
}
