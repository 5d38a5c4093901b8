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

pub(crate) struct Route {
    /// GET also answers HEAD.
    pub(crate) method: Method,
    /// `{name}` stands for one segment, the last one.
    pub(crate) path: &'static str,
    /// What is before that segment, in a path that has one.
    before_name: Option<&'static str>,
    pub(crate) answers: Answers,
    pub(crate) summary: &'static str,
}

const fn get(path: &'static str, answers: Answers, summary: &'static str) -> Route {
    Route { method: Method::GET, path, before_name: before_name(path), answers, summary }
}

const fn post(path: &'static str, answers: Answers, summary: &'static str) -> Route {
    Route { method: Method::POST, path, before_name: before_name(path), answers, summary }
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
    post("/rank", Answers::Rank, "Run the plan that the request names"),
    post("/rank/{plan}", Answers::RankPlan, "Run a plan"),
    post(
        "/explain",
        Answers::Explain,
        "Say what a plan does, node by node; with analyze, also what a run of it was like",
    ),
    get("/plans", Answers::Plans, "List the plans and their state"),
    get("/plans/{name}", Answers::Plan, "One plan: its state, its nodes, and what is wrong with its newest version"),
    get("/tasks", Answers::Tasks, "List the tasks that plans are made of"),
    get("/healthz", Answers::Alive, "Whether the process is alive"),
    get(
        "/readyz",
        Answers::Ready,
        "Whether the process takes requests: not before plans are loaded, not while it stops",
    ),
    get("/metrics", Answers::Metrics, "Metrics for Prometheus"),
    get("/openapi.json", Answers::OpenApi, "This document"),
    get("/version", Answers::Version, "Which build this is"),
];

/// What a method and a path lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'p> {
    /// The route's position, and what stands for `{name}`, as it came.
    Route(usize, &'p str),
    /// The path is known; these methods are allowed.
    OtherMethod(&'static str),
    Nowhere,
}

pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    let mut found = Found::Nowhere;
    for (at, route) in ROUTES.iter().enumerate() {
        let Some(name) = route.matched(path) else { continue };
        let head = *method == Method::HEAD && route.method == Method::GET;
        if route.method == *method || head {
            return Found::Route(at, name);
        }
        found = Found::OtherMethod(if route.method == Method::GET { "GET, HEAD" } else { "POST" });
    }
    found
}

impl Route {
    /// Whether it tells only if the process is well, which has to be told however many connections there are.
    pub(crate) fn is_health(&self) -> bool {
        matches!(self.answers, Answers::Alive | Answers::Ready)
    }

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
        assert_eq!(find(&Method::POST, "/rank"), Found::Route(at(Answers::Rank), ""));
        assert_eq!(find(&Method::POST, "/rank/feed"), Found::Route(at(Answers::RankPlan), "feed"));
        assert_eq!(find(&Method::HEAD, "/healthz"), Found::Route(at(Answers::Alive), ""));
        assert_eq!(find(&Method::GET, "/rank"), Found::OtherMethod("POST"));
        assert_eq!(find(&Method::DELETE, "/plans/feed"), Found::OtherMethod("GET, HEAD"));
        for nowhere in ["/", "/rank/", "/rank/a/b", "/plans/", "", "/Rank", "//rank"] {
            assert_eq!(find(&Method::POST, nowhere), Found::Nowhere, "{nowhere}");
        }
    }
}
