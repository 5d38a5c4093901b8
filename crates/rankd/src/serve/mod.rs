//! `rankd serve`: the engine behind HTTP.
//!
//! Every event loop of the engine has a listener on the same port, and a request is read, run and answered on the loop that
//! accepted it. Reading order: [`app`] (what loops share), [`desk`] (one loop: listener and connections), [`connection`] and
//! [`vitals`] (one client), [`exchange`] (one request), [`routes`], [`body`], [`rank`], [`accept`], [`explain`], [`pages`], [`reply`], [`admission`] (who may run
//! now), [`shelf`], [`reload`] and [`fresh`] (plans), [`metrics`] and [`exposition`], [`log`] and [`audit`], [`spans`] and [`collector`], [`openapi`].

mod accept;
pub(crate) mod admission;
pub(crate) mod app;
mod audit;
mod body;
pub(crate) mod collector;
mod connection;
pub(crate) mod date;
mod desk;
mod exchange;
mod explain;
mod exposition;
#[cfg(test)]
mod faults;
pub(crate) mod fresh;
pub(crate) mod log;
mod metrics;
mod openapi;
mod pages;
mod rank;
pub(crate) mod reload;
mod reply;
mod routes;
mod shelf;
mod spans;
mod trace_context;
pub(crate) mod vitals;

use crate::cli::say;
use crate::library::LoadedRegistry;
use app::{App, ServeSettings};
use arc_swap::ArcSwap;
use collector::{Collector, CollectorSettings};
use desk::Desk;
use log::Log;
use metrics::Metrics;
use rankd_engine::Engine;
use rankd_engine::clock::{self, Instant};
use reload::{ReloadSettings, Reloader, Why};
use shelf::Shelf;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How long after the drain time everything else may take.
const AFTER_DRAIN: Duration = Duration::from_secs(2);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// What a server is started with.
pub(crate) struct Start {
    pub(crate) listen: SocketAddr,
    pub(crate) settings: ServeSettings,
    pub(crate) reload: ReloadSettings,
    /// Where spans go; `None` for nowhere.
    pub(crate) collector: Option<CollectorSettings>,
    /// How often the plans are looked at; `None` for never.
    pub(crate) watch: Option<Duration>,
    pub(crate) drain: Duration,
}

/// Serves until it is told to stop. What goes wrong before is said in words.
pub(crate) fn serve(start: Start, loaded: LoadedRegistry, engine: Engine, log: Log) -> Result<(), String> {
    let collector = start.collector.map(Collector::start).transpose()?;
    let loops = engine.settings().loops;
    let listeners = listen(start.listen, loops).map_err(|error| format!("{}: {error}", start.listen))?;
    let address = listeners.first().and_then(|first| first.local_addr().ok()).unwrap_or(start.listen);
    let endpoints = loaded.registry.endpoints.list().iter().map(|endpoint| endpoint.name.clone()).collect();
    let shelf = Shelf { registry: Arc::new(loaded.registry), plans: HashMap::new() };
    let app = Arc::new(App {
        settings: start.settings,
        shelf: ArcSwap::from_pointee(shelf),
        metrics: Metrics::new(loops),
        log,
        collector,
        gauges: engine.gauges(),
        engine: engine.settings().clone(),
        ready: AtomicBool::new(false),
        open: AtomicUsize::new(0),
        listeners: Mutex::new(listeners.into_iter().map(Some).collect()),
        endpoints,
        started_ms: date::millis(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let (stop, stopped) = watch::channel(None);
    runtime
        .block_on(async {
            let mut reloader = Reloader::new(&app, &engine, start.reload);
            reloader.look(Why::Asked).await;
            let guests = app.clone();
            engine.on_every_loop(move |seat| Desk::open(guests.clone(), seat, stopped.clone()));
            app.ready.store(true, Ordering::Relaxed);
            say::to_people(&greeting(&app, address));
            attend(&app, &mut reloader, start.watch).await
        })
        .map_err(|error| format!("no signals: {error}"))?;
    app.ready.store(false, Ordering::Relaxed);
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

/// Looks after the plans until a signal says to stop.
async fn attend(app: &App, reloader: &mut Reloader<'_>, watch: Option<Duration>) -> io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        let pause = async {
            match watch {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        let why = tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hang_up.recv() => Why::Asked,
            () = pause => Why::Watch,
        };
        if why == Why::Asked {
            app.log.reopen();
        }
        // A signal to stop does not wait for plans to be compiled.
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            changed = reloader.look(why) => {
                if why == Why::Asked {
                    app.log.event("info", &format!("reloaded as asked: {changed} plans changed"));
                }
            }
        }
    }
}

/// A listener for each loop, all on the same port: the system deals connections out among them.
fn listen(address: SocketAddr, loops: usize) -> io::Result<Vec<TcpListener>> {
    let mut address = address;
    let mut listeners = Vec::with_capacity(loops);
    for _ in 0..loops {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if loops > 1 {
            socket.set_reuse_port(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener: TcpListener = socket.into();
        // Of port 0 the system makes one for the first; the others take the same.
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// What is served and where, and how to ask.
fn greeting(app: &App, address: SocketAddr) -> String {
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
    if let Some(plan) = good.first() {
        text += &format!(
            "try: curl -s -H 'content-type: application/json' -d '{{\"user_id\": 1}}' http://{address}/rank/{plan}\n"
        );
    }
    text
}
