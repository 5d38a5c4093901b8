//! Every page that the server has: one list, from which requests are routed and the OpenAPI document and the metrics are written.

use crate::audience::{Audience, Listener, WhyServed};
use crate::pages::console::about::AboutPage;
use crate::pages::console::ask::AskPage;
use crate::pages::console::file::FilePage;
use crate::pages::console::index::IndexPage;
use crate::pages::console::node_figures::NodeFiguresPage;
use crate::pages::console::picture::PicturePage;
use crate::pages::console::plan::PlanStatePage;
use crate::pages::console::plans::PlanFiguresPage;
use crate::pages::console::source::SourcePage;
use crate::pages::console::stores::StoresPage;
use crate::pages::console::why::AskWhyPage;
use crate::pages::explain::Explain;
use crate::pages::healthz::Healthz;
use crate::pages::metrics::MetricsPage;
use crate::pages::models::ModelsPage;
use crate::pages::openapi::OpenApi;
use crate::pages::pin::PinPage;
use crate::pages::plan::PlanPage;
use crate::pages::plans::PlansPage;
use crate::pages::rank::RankPage;
use crate::pages::readyz::Readyz;
use crate::pages::rollback::RollbackPage;
use crate::pages::tasks::TasksPage;
use crate::pages::version::VersionPage;
use crate::pages::why::WhyPage;
use crate::route::Route;
use hyper::Method;

pub(crate) static ROUTES: &[Route] = &[
    Route::of::<RankPage<false>>(),
    Route::of::<RankPage<true>>(),
    Route::of::<Explain>(),
    Route::of::<WhyPage>(),
    Route::of::<PlansPage>(),
    Route::of::<PlanPage>(),
    Route::of::<RollbackPage>(),
    Route::of::<PinPage>(),
    Route::of::<TasksPage>(),
    Route::of::<ModelsPage>(),
    Route::of::<Healthz>(),
    Route::of::<Readyz>(),
    Route::of::<MetricsPage>(),
    Route::of::<OpenApi>(),
    Route::of::<VersionPage>(),
    Route::of::<IndexPage>(),
    Route::of::<FilePage>(),
    Route::of::<AboutPage>(),
    Route::of::<PlanFiguresPage>(),
    Route::of::<PlanStatePage>(),
    Route::of::<PicturePage>(),
    Route::of::<NodeFiguresPage>(),
    Route::of::<SourcePage>(),
    Route::of::<AskPage>(),
    Route::of::<AskWhyPage>(),
    Route::of::<StoresPage>(),
];

/// What a method and a path lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    /// The route's position, and where in the path begins what stands for `{name}`.
    Route(usize, usize),
    /// The path is known; these methods are allowed.
    OtherMethod(&'static str),
    /// The path is known to the server's other listener.
    OtherListener,
    /// The path is known, and no listener serves it unless a flag says so.
    NotServed,
    Nowhere,
}

pub(crate) fn find(listener: Listener, why: WhyServed, method: &Method, path: &str) -> RouteMatch {
    let mut found = RouteMatch::Nowhere;
    for (at, route) in ROUTES.iter().enumerate() {
        let is_name = |name: &str| !name.is_empty() && !name.contains('/');
        let name_at = match route.before_name {
            Some(before) if path.strip_prefix(before).is_some_and(is_name) => before.len(),
            None if route.about.path == path => path.len(),
            _ => continue,
        };
        let audience = route.about.audience;
        if !listener.can_serve(audience, why) {
            found = match (audience, why, listener) {
                // No other listener has anything of the console, not even a hint of it.
                (Audience::Console | Audience::ConsoleFiles, ..) => continue,
                (_, _, Listener::Console) => RouteMatch::OtherListener,
                (Audience::Askers, WhyServed::Nowhere, _) | (Audience::Askers, _, Listener::Only) => {
                    RouteMatch::NotServed
                }
                _ => RouteMatch::OtherListener,
            };
            continue;
        }
        let head = *method == Method::HEAD && route.about.method == Method::GET;
        if route.about.method == *method || head {
            return RouteMatch::Route(at, name_at);
        }
        found = RouteMatch::OtherMethod(if route.about.method == Method::GET { "GET, HEAD" } else { "POST" });
    }
    found
}

/// The paths of all pages, in order.
pub(crate) fn paths() -> Vec<&'static str> {
    ROUTES.iter().map(|route| route.about.path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_table_says() {
        let at = |path: &str| ROUTES.iter().position(|route| route.about.path == path).unwrap();
        let find = |method: &Method, path| find(Listener::Only, WhyServed::Everywhere, method, path);
        assert_eq!(find(&Method::POST, "/rank"), RouteMatch::Route(at("/rank"), "/rank".len()));
        assert_eq!(find(&Method::POST, "/rank/feed"), RouteMatch::Route(at("/rank/{plan}"), "/rank/".len()));
        assert_eq!(find(&Method::HEAD, "/healthz"), RouteMatch::Route(at("/healthz"), "/healthz".len()));
        assert_eq!(find(&Method::GET, "/rank"), RouteMatch::OtherMethod("POST"));
        assert_eq!(find(&Method::DELETE, "/plans/feed"), RouteMatch::OtherMethod("GET, HEAD"));
        for nowhere in ["/", "/api/plans", "/static/app.js", "/rank/", "/rank/a/b", "/plans/", "", "/Rank", "//rank"] {
            assert_eq!(find(&Method::POST, nowhere), RouteMatch::Nowhere, "{nowhere}");
        }
    }

    #[test]
    fn each_listener_serves_what_is_for_its_audience() {
        let served = |listener: Listener, why: WhyServed| -> Vec<&str> {
            let routes = ROUTES.iter().filter(|route| listener.can_serve(route.about.audience, why));
            routes.map(|route| route.about.path).collect()
        };
        let (on_admin, everywhere, nowhere) = (WhyServed::OnAdmin, WhyServed::Everywhere, WhyServed::Nowhere);
        let both = ["/healthz", "/readyz", "/openapi.json", "/version"];
        let ranking = ["/rank", "/rank/{plan}"];
        assert_eq!(served(Listener::Public, on_admin), [&ranking[..], &both].concat());
        assert_eq!(served(Listener::Public, everywhere), [&ranking[..], &["/why/{plan}"], &both].concat());
        let plans = ["/explain", "/plans", "/plans/{name}", "/rollback/{plan}", "/pin/{plan}"];
        let admin = [&plans[..], &["/tasks", "/models", "/healthz", "/readyz", "/metrics"]].concat();
        assert_eq!(served(Listener::Admin, nowhere), [&admin[..], &both[2..]].concat());
        for why in [on_admin, everywhere] {
            assert_eq!(served(Listener::Admin, why), [&admin[..1], &["/why/{plan}"], &admin[1..], &both[2..]].concat());
        }
        let is_of_console = |path: &&str| *path == "/" || path.starts_with("/static/") || path.starts_with("/api/");
        let console: Vec<&str> = paths().into_iter().filter(is_of_console).collect();
        assert_eq!(console.len(), 11);
        assert_eq!(served(Listener::Console, nowhere), [&both[2..], &console].concat());
        let others: Vec<&str> = paths().into_iter().filter(|path| !is_of_console(path)).collect();
        let without_why: Vec<&str> = others.iter().copied().filter(|path| *path != "/why/{plan}").collect();
        assert_eq!(served(Listener::Only, everywhere), others);
        assert_eq!(
            (served(Listener::Only, on_admin), served(Listener::Only, nowhere)),
            (without_why.clone(), without_why)
        );
        let find = |listener, why, path| find(listener, why, &Method::POST, path);
        assert_eq!(find(Listener::Public, on_admin, "/plans/feed"), RouteMatch::OtherListener);
        assert_eq!(find(Listener::Admin, on_admin, "/rank/feed"), RouteMatch::OtherListener);
        assert_eq!(find(Listener::Admin, on_admin, "/nowhere"), RouteMatch::Nowhere);
        assert_eq!(find(Listener::Public, on_admin, "/why/feed"), RouteMatch::OtherListener);
        assert_eq!(find(Listener::Console, on_admin, "/rank/feed"), RouteMatch::OtherListener);
        assert_eq!(find(Listener::Admin, on_admin, "/api/ask/feed"), RouteMatch::Nowhere);
        for (listener, why) in [(Listener::Only, on_admin), (Listener::Only, nowhere), (Listener::Admin, nowhere)] {
            assert_eq!(find(listener, why, "/why/feed"), RouteMatch::NotServed);
        }
    }
}
