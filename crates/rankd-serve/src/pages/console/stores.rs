//! `GET /api/stores`: endpoints with how they are doing, tables and models. No address is told: it may contain a password.

use super::AN_OBJECT;
use crate::app::App;
use crate::audience::Audience;
use crate::console::quantile::quantile;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;
use rankd_edge::{date, model_list};
use rankd_engine::store::health::LATENCY_BOUNDS_US;
use rankd_plan::Registry;
use rankd_plan::json::Writer;
use rankd_plan::registry::{Backend, Endpoint, EndpointSettings};

pub(crate) struct StoresPage;

impl Page for StoresPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/stores",
        audience: Audience::Console,
        operation: "ConsoleStores",
        summary: "Endpoints with how they are doing, tables and models",
        schema: AN_OBJECT,
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        let app = &scope.loop_state.app;
        let registry = app.catalog.load().registry.clone();
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("endpoints").array(|w| {
                for (at, endpoint) in registry.endpoints.list().iter().enumerate() {
                    w.object(|w| write_endpoint(app, at, endpoint, w));
                }
            });
            w.field("tables").array(|w| write_tables(app, &registry, w));
            w.field("models").raw(&model_list::to_json(&registry));
        });
        Reply::json(writer.finish())
    }
}

fn write_endpoint(app: &App, at: usize, endpoint: &Endpoint, w: &mut Writer) {
    w.field("name").string(&endpoint.name).field("kind").string(&endpoint.kind);
    let (backend, is_encrypted) = match &endpoint.settings {
        EndpointSettings::Redis(redis) => {
            let backend = match redis.backend {
                Backend::Memory { .. } => "memory",
                Backend::Server { .. } => "server",
                Backend::Cluster { .. } => "cluster",
            };
            (backend, redis.backend.is_encrypted())
        }
        EndpointSettings::Http(http) => ("service", http.is_encrypted()),
        EndpointSettings::Table(_) => ("file", false),
    };
    w.field("backend").string(backend).field("encrypted").bool(is_encrypted);
    // The registry may have got new endpoints since; they are used from the next start on.
    let is_same = app.endpoints.get(at).is_some_and(|name| *name == endpoint.name);
    let commands = app.gauges.stats.commands().nth(at).filter(|_| is_same);
    w.field("commands").int(commands.map_or(0, |count| count as i64));
    let health = app.gauges.stats.health(at).filter(|_| is_same).map(|health| health.snapshot());
    if let Some(now) = health {
        w.field("breaker").string(now.breaker().name());
        w.field("connections").int(now.connections.iter().sum::<u64>() as i64);
        let counts = [
            ("steps", now.steps),
            ("shared", now.shared),
            ("errors", now.errors),
            ("retries", now.retries),
            ("connects", now.connects),
            ("opened", now.opened),
        ];
        for (field, count) in counts {
            w.field(field).int(count as i64);
        }
        for (field, share) in [("p50_ms", 0.5), ("p99_ms", 0.99)] {
            match quantile(&now.latency_buckets, LATENCY_BOUNDS_US.map(|bound| bound as f64), share) {
                Some(micros) => w.field(field).float(micros / 1e3),
                None => w.field(field).null(),
            };
        }
    }
}

fn write_tables(app: &App, registry: &Registry, w: &mut Writer) {
    let now = date::millis();
    for (source, table) in
        app.tables.iter().flat_map(|tables| tables.sources().iter().map(|one| (one, tables.current(one))))
    {
        w.object(|w| {
            w.field("name").string(source.name()).field("file").string(&source.path().display().to_string());
            let (good, failed) = source.reloads();
            w.field("reloads").int(good as i64).field("refused").int(failed as i64);
            let Some(table) = table else { return };
            w.field("rows").int(table.batch().len() as i64).field("bytes").int(table.bytes() as i64);
            w.field("age_s").float(now.saturating_sub(source.loaded_ms()) as f64 / 1e3);
            w.field("columns").array(|w| {
                for (key, _) in table.batch().columns() {
                    let entry = registry.key(*key);
                    w.array(|w| {
                        w.string(&entry.name).string(&entry.type_of.to_string());
                    });
                }
            });
        });
    }
}
