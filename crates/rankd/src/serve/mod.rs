//! `rankd serve`: the engine behind HTTP.
//!
//! Every event loop of the engine has a listener on the same port, and a request is read, run and answered on the loop that
//! accepted it. Signals are received by a thread of their own, and plans are read by another, so that files that hang keep neither
//! requests nor signals waiting. Reading order: [`app`] (what loops share), [`readiness`], [`listen`], [`desk`] (one loop: listener and connections), [`connection`] and
//! [`vitals`] (one client), [`exchange`] (one request), [`routes`], [`host`], [`content`], [`body`], [`rank`], [`heavy`] (what is too large for the loop), [`accept`], [`explain`], [`pages`], [`reply`], [`untaken`] (answers on their way out), [`admission`] and [`gate`] (who
//! may run now), [`shelf`], [`reload`], [`folder`], [`trial`] and [`fresh`] (plans), [`metrics`], [`exposition`] and [`slices`], [`log`] and [`audit`], [`spans`] and [`collector`], [`openapi`].

mod accept;
pub(crate) mod admission;
pub(crate) mod app;
mod audit;
mod body;
pub(crate) mod collector;
mod connection;
mod content;
pub(crate) mod date;
pub(crate) mod desk;
mod exchange;
mod explain;
mod exposition;
#[cfg(test)]
mod faults;
pub(crate) mod folder;
pub(crate) mod fresh;
pub(crate) mod gate;
mod heavy;
pub(crate) mod host;
pub(crate) mod listen;
pub(crate) mod log;
mod metrics;
mod openapi;
mod pages;
mod rank;
pub(crate) mod readiness;
pub(crate) mod reload;
mod reply;
mod routes;
mod shelf;
mod slices;
mod spans;
mod trace_context;
mod trial;
mod untaken;
pub(crate) mod vitals;

use crate::cli::say;
use crate::late_data::LateData;
use crate::library::LoadedRegistry;
use crate::signals::{Signals, Told};
use app::{App, ServeSettings};
use arc_swap::ArcSwap;
use collector::{Collector, CollectorSettings};
use desk::Desk;
use log::Log;
use metrics::Metrics;
use rankd_engine::Engine;
use rankd_engine::clock::{self, Instant};
use readiness::{Phase, Readiness};
use reload::{ReloadSettings, Reloader};
use shelf::Shelf;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// How long after the drain time everything else may take.
const AFTER_DRAIN: Duration = Duration::from_secs(2);
/// How long after that the last log lines and spans may take. Then the process is ended, whatever hangs.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What a server is started with.
pub(crate) struct Start {
    /// One for each loop.
    pub(crate) listeners: Vec<TcpListener>,
    /// The one for operators; `None` where they use the same as everybody.
    pub(crate) admin: Option<TcpListener>,
    /// Data files that are read before the plans.
    pub(crate) late: LateData,
    pub(crate) settings: ServeSettings,
    pub(crate) reload: ReloadSettings,
    /// Where spans go; `None` for nowhere.
    pub(crate) collector: Option<CollectorSettings>,
    /// How often the plans are looked at; `None` for never.
    pub(crate) watch: Option<Duration>,
    pub(crate) drain: Duration,
}

/// Serves until it is told to stop. What goes wrong before is said in words.
pub(crate) fn serve(
    start: Start,
    loaded: LoadedRegistry,
    engine: Engine,
    log: Log,
    signals: &Signals,
) -> Result<(), String> {
    let collector = start.collector.map(Collector::start).transpose()?;
    let loops = engine.settings().loops;
    let address = start.listeners.first().and_then(|first| first.local_addr().ok());
    let address = address.ok_or("there is no listener")?;
    let admin_address = start.admin.as_ref().and_then(|listener| listener.local_addr().ok());
    let endpoints = loaded.registry.endpoints.list().iter().map(|endpoint| endpoint.name.clone()).collect();
    let app = Arc::new(App {
        settings: start.settings,
        shelf: ArcSwap::from_pointee(Shelf::empty(Arc::new(loaded.registry))),
        metrics: Metrics::new(loops),
        log,
        collector,
        gauges: engine.gauges(),
        engine: engine.settings().clone(),
        readiness: Readiness::new(Phase::Loading),
        open: Default::default(),
        listeners: Mutex::new(start.listeners.into_iter().map(Some).collect()),
        admin: Mutex::new(start.admin),
        endpoints,
        started_ms: date::millis(),
    });
    let engine = Arc::new(engine);
    let (stop, stopped) = watch::channel(None);
    signals.finish_first(Some(start.drain + AFTER_DRAIN + LAST_WORDS));
    let services = app.clone();
    engine.on_every_loop(move |loop_handle| Desk::open(services.clone(), loop_handle, stopped.clone()));
    app.log.event("info", &format!("http://{address} is open; the plans are being loaded"));
    let reloader = Reloader::new(&app, &engine, start.reload, loaded.texts)?;
    let greeted = app.clone();
    let greet = move || say::to_people(&greeting(&greeted, address, admin_address));
    let reload = reloader.start(start.late, start.watch, greet)?;
    while signals.next() == Told::Reload {
        app.log.reopen();
        reload.ask();
    }
    app.readiness.reach(Phase::Stopping);
    app.log.event("info", "stopping: requests under way are finished");
    let until: Instant = clock::now() + start.drain;
    // Without a loop there is nobody to tell.
    let _ = stop.send(Some(until));
    engine.stop(start.drain + AFTER_DRAIN);
    if let Some(collector) = &app.collector {
        collector.end();
    }
    app.log.event("info", "stopped");
    app.log.end();
    Ok(())
}

/// What is served and where, and how to ask.
fn greeting(app: &App, address: SocketAddr, admin: Option<SocketAddr>) -> String {
    let shelf = app.shelf.load();
    let plans = shelf.list();
    let good: Vec<&str> = plans.iter().filter(|plan| plan.good.is_some()).map(|plan| &*plan.name).collect();
    let loops = app.metrics.loops().len();
    let mut text = format!(
        "rankd {} serves {} of {} plans on http://{address} with {loops} event {}\n",
        env!("CARGO_PKG_VERSION"),
        good.len(),
        plans.len(),
        if loops == 1 { "loop" } else { "loops" },
    );
    if let Some(admin) = admin {
        text += &format!("plans, tasks, explain and metrics: http://{admin}\n");
    }
    if let Some(plan) = good.first() {
        text += &format!(
            "try: curl -s -H 'content-type: application/json' -d '{{\"user_id\": 1}}' http://{address}/rank/{plan}\n"
        );
    }
    text
}
