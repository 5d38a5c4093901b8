//! Every path that the server knows: one table, from which requests are routed and the OpenAPI document is written.

use hyper::Method;

/// What answers a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    Rank,
    RankPlan,
    Explain,
    Plans,
    Plan,
    Tasks,
    Alive,
    Ready,
    Metrics,
    OpenApi,
    Version,
}

/// Whom a path is for, which decides who serves it where operators have a listener of their own (`--admin`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Those who want rows.
    Callers,
    /// Those who look after the server: it tells about plans, tasks and traffic.
    Operators,
    Everyone,
    /// Everyone, for any host and however many connections there are: it tells only whether the process is well.
    Probes,
}

/// The listener that a request came in on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The only one, which serves every path.
    Only,
    /// The one for callers, beside one for operators.
    Public,
    Admin,
}

impl Listener {
    pub(crate) fn can_serve(self, audience: Audience) -> bool {
        match (self, audience) {
            (Listener::Only, _) | (_, Audience::Everyone | Audience::Probes) => true,
            (Listener::Public, Audience::Callers) | (Listener::Admin, Audience::Operators) => true,
            (Listener::Public, Audience::Operators) | (Listener::Admin, Audience::Callers) => false,
        }
    }
}

pub(crate) struct Route {
    /// GET also answers HEAD.
    pub(crate) method: Method,
    /// `{name}` stands for one segment, the last one.
    pub(crate) path: &'static str,
    /// What is before that segment, in a path that has one.
    before_name: Option<&'static str>,
    pub(crate) answers: Answers,
    pub(crate) audience: Audience,
    pub(crate) summary: &'static str,
}

const fn get(path: &'static str, answers: Answers, audience: Audience, summary: &'static str) -> Route {
    Route { method: Method::GET, path, before_name: before_name(path), answers, audience, summary }
}

const fn post(path: &'static str, answers: Answers, audience: Audience, summary: &'static str) -> Route {
    Route { method: Method::POST, path, before_name: before_name(path), answers, audience, summary }
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

pub(crate) const ROUTE_COUNT: usize = 11;

pub(crate) static ROUTES: [Route; ROUTE_COUNT] = [
    post("/rank", Answers::Rank, Audience::Callers, "Run the plan that the request names"),
    post("/rank/{plan}", Answers::RankPlan, Audience::Callers, "Run a plan"),
    post(
        "/explain",
        Answers::Explain,
        Audience::Operators,
        "Describe a plan, node by node; with analyze, also run it and report on the run",
    ),
    get("/plans", Answers::Plans, Audience::Operators, "List the plans and their state"),
    get(
        "/plans/{name}",
        Answers::Plan,
        Audience::Operators,
        "One plan: its state, its nodes, and what is wrong with its newest version",
    ),
    get("/tasks", Answers::Tasks, Audience::Operators, "List the tasks that plans are made of"),
    get("/healthz", Answers::Alive, Audience::Probes, "Whether the process is alive"),
    get(
        "/readyz",
        Answers::Ready,
        Audience::Probes,
        "Whether the process is ready for requests: not before plans are loaded, nor while it stops",
    ),
    get("/metrics", Answers::Metrics, Audience::Operators, "Metrics for Prometheus"),
    get("/openapi.json", Answers::OpenApi, Audience::Everyone, "This document"),
    get("/version", Answers::Version, Audience::Everyone, "Which build this is"),
];

/// What a method and a path lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch<'p> {
    /// The route's position, and what stands for `{name}`, as it came.
    Route(usize, &'p str),
    /// The path is known; these methods are allowed.
    OtherMethod(&'static str),
    /// The path is known to the server's other listener.
    OtherListener,
    Nowhere,
}

pub(crate) fn find<'p>(listener: Listener, method: &Method, path: &'p str) -> RouteMatch<'p> {
    let mut found = RouteMatch::Nowhere;
    for (at, route) in ROUTES.iter().enumerate() {
        let Some(name) = route.matched(path) else { continue };
        if !listener.can_serve(route.audience) {
            found = RouteMatch::OtherListener;
            continue;
        }
        let head = *method == Method::HEAD && route.method == Method::GET;
        if route.method == *method || head {
            return RouteMatch::Route(at, name);
        }
        found = RouteMatch::OtherMethod(if route.method == Method::GET { "GET, HEAD" } else { "POST" });
    }
    found
}

impl Route {
    /// What stands for `{name}`, or nothing, if the path is one of this route's.
    fn matched<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self.before_name {
            None => (self.path == path).then_some(""),
            Some(before) => path.strip_prefix(before).filter(|name| !name.is_empty() && !name.contains('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_table_says() {
        let at = |answers: Answers| ROUTES.iter().position(|route| route.answers == answers).unwrap();
        let find = |method: &Method, path| find(Listener::Only, method, path);
        assert_eq!(find(&Method::POST, "/rank"), RouteMatch::Route(at(Answers::Rank), ""));
        assert_eq!(find(&Method::POST, "/rank/feed"), RouteMatch::Route(at(Answers::RankPlan), "feed"));
        assert_eq!(find(&Method::HEAD, "/healthz"), RouteMatch::Route(at(Answers::Alive), ""));
        assert_eq!(find(&Method::GET, "/rank"), RouteMatch::OtherMethod("POST"));
        assert_eq!(find(&Method::DELETE, "/plans/feed"), RouteMatch::OtherMethod("GET, HEAD"));
        for nowhere in ["/", "/rank/", "/rank/a/b", "/plans/", "", "/Rank", "//rank"] {
            assert_eq!(find(&Method::POST, nowhere), RouteMatch::Nowhere, "{nowhere}");
        }
    }

    #[test]
    fn each_listener_serves_what_is_for_its_audience() {
        let served = |listener: Listener| -> Vec<&str> {
            ROUTES.iter().filter(|route| listener.can_serve(route.audience)).map(|route| route.path).collect()
        };
        let both = ["/healthz", "/readyz", "/openapi.json", "/version"];
        assert_eq!(served(Listener::Public), [&["/rank", "/rank/{plan}"][..], &both].concat());
        let admin = ["/explain", "/plans", "/plans/{name}", "/tasks", "/healthz", "/readyz", "/metrics"];
        assert_eq!(served(Listener::Admin), [&admin[..], &both[2..]].concat());
        assert_eq!(served(Listener::Only).len(), ROUTE_COUNT);
        assert_eq!(find(Listener::Public, &Method::GET, "/plans/feed"), RouteMatch::OtherListener);
        assert_eq!(find(Listener::Admin, &Method::POST, "/rank/feed"), RouteMatch::OtherListener);
        assert_eq!(find(Listener::Admin, &Method::POST, "/nowhere"), RouteMatch::Nowhere);
    }
}
