//! Requests of one connection to the pages that answer them.

use crate::answer_body::AnswerBody;
use crate::audience::{Audience, Listener};
use crate::body::RequestBody;
use crate::connection_state::{ConnectionClass, ConnectionState};
use crate::loop_state::LoopState;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{Call, ResponseFuture, refuse};
use crate::routes::{ROUTES, RouteMatch, find};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::service::Service;
use hyper::{Request, Response, Version};
use rankd_engine::{RunError, codes};
use rankd_plan::diagnostic::quoted;
use std::convert::Infallible;
use std::rc::Rc;

/// What answers the requests of one connection.
pub(crate) struct Responder {
    pub(crate) loop_state: Rc<LoopState>,
    pub(crate) state: Rc<ConnectionState>,
}

impl Service<Request<Incoming>> for Responder {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, request: Request<Incoming>) -> ResponseFuture {
        if request.version() == Version::HTTP_2 {
            self.state.multiplexed.set(true);
        }
        let mut scope = RequestScope::new(&self.loop_state, &self.state, &request);
        let (head, body) = request.into_parts();
        let body = RequestBody::new(&self.loop_state, &self.state, &head.headers, body);
        let (listener, hosts) = self.loop_state.app.listener(self.state.class);
        let found = find(listener, self.loop_state.app.settings.why, &head.method, head.uri.path());
        let is_probe = matches!(found, RouteMatch::Route(at, _) if ROUTES[at].about.audience == Audience::Probes);
        if let Err(error) = hosts.check(&head, is_probe) {
            let reply = Reply::error(scope.id(), None, &error);
            return refuse(scope, body, reply);
        }
        if let (Some(console), Listener::Console) = (&self.loop_state.app.console, listener) {
            let audience =
                if let RouteMatch::Route(at, _) = found { ROUTES[at].about.audience } else { Audience::Console };
            if let Err(error) = console.guard.check(&head, audience) {
                let reply = Reply::error(scope.id(), None, &error);
                return refuse(scope, body, reply);
            }
        }
        match found {
            _ if self.state.class == ConnectionClass::Health && !is_probe => {
                let reply = scope.no_connection();
                refuse(scope, body, reply)
            }
            RouteMatch::Route(at, name_at) => {
                let route = &ROUTES[at];
                scope.route = Some((at, route.about.path));
                (route.answer)(scope, Call::new(head, body, name_at))
            }
            RouteMatch::OtherMethod(methods) => {
                let reply = wrong_method(&mut scope, &head, methods);
                refuse(scope, body, reply)
            }
            RouteMatch::OtherListener | RouteMatch::NotServed | RouteMatch::Nowhere => {
                let hint = match (found, listener) {
                    (RouteMatch::OtherListener, Listener::Admin) => "; it is served on the address of --listen",
                    (RouteMatch::OtherListener, Listener::Console) => {
                        "; it is served on the address of --listen or --admin"
                    }
                    (RouteMatch::OtherListener, _) => "; it is served on the address of --admin",
                    (RouteMatch::NotServed, _) => "; --admin and --why say where it is served",
                    _ => "",
                };
                let message = format!("there is no path {} here{hint}", quoted(head.uri.path()));
                let reply = Reply::error(scope.id(), None, &RunError::new(codes::UNKNOWN_PATH, message));
                refuse(scope, body, reply)
            }
        }
    }
}

fn wrong_method(scope: &mut RequestScope, head: &Parts, methods: &'static str) -> Reply {
    let (path, method) = (quoted(head.uri.path()), quoted(head.method.as_str()));
    let message = format!("{path} takes {methods}, not {method}");
    Reply::error(scope.id(), None, &RunError::new(codes::WRONG_METHOD, message)).allowing(methods)
}
