//! The engine behind HTTP. Listeners, what compiles plans and what ends the server are arguments: no signals, no terminal, no arguments.
//!
//! Every event loop of the engine has a listener on the same port, and a request is read, run and answered on the loop that
//! accepted it. Plans are read by a thread of their own, so that files that hang do not keep requests waiting. In reading order:
//!
//! | | |
//! |---|---|
//! | [`app`], [`readiness`], [`loop_state`] | what all loops share, and what the requests of one loop share |
//! | [`mod@listen`], [`acceptor`], [`connection`], [`connection_state`], [`client_stream`] | listeners, connections and their timeouts |
//! | [`responder`], [`request_scope`], [`hosts`], [`trace_context`] | one request: where it goes and what is recorded of it |
//! | [`routes`], [`route`], [`audience`], [`pages`], [`openapi`] | the pages, one file each |
//! | [`content_headers`], [`accept_header`], [`body`], [`off_loop`] | reading a body; what is too large for the loop |
//! | [`admission`], [`limiter`], [`run`], [`run_recording`], [`traced_run`] | whether a plan may run now, its run, and whether that is recorded |
//! | [`unread_request`], [`refusal_answer`] | refusing a request before it is read |
//! | [`reply`], [`status`], [`request_outcome`], [`degraded_header`], [`plan_header`], [`answer_body`], [`unread_answers`] | answers, and those that clients have not read yet |
//! | [`catalog`], [`reload`], [`start_progress`], [`watched_folder`], [`load_plan`], [`trial`] | the plans that are served |
//! | [`version_history`], [`version_counts`], [`build_version`], [`version_wish`], [`switch_version`] | the versions that they had, and another of them in service |
//! | [`verdict`], [`probation`] | whether a new version is worse than the one before |
//! | [`reload_tables`], [`watched_tables`], [`reload_models`], [`give_back`] | the tables and models that they read |
//! | [`reload_experiments`] | the experiments that change their answers |
//! | [`mod@console`], `pages/console` | the console: a page in the browser, on a listener of its own |
//! | [`shadow`], [`shadow_pair`], [`shadow_engine`] | plans that run beside others, after the answer has left |
//! | [`metrics`], [`degraded_counts`], [`arm_counts`], [`exposition`], [`metrics_text`], [`capture_metrics`], [`shadow_metrics`], [`time_slice`], [`log`], [`spans`], [`collector`] | what operators see |

#![warn(missing_docs)]

mod accept_header;
mod acceptor;
mod admission;
mod answer_body;
mod app;
mod arm_counts;
mod audience;
mod body;
mod build_version;
mod capture_metrics;
mod catalog;
mod client_stream;
mod collector;
mod connection;
mod connection_state;
mod console;
mod content_headers;
mod degraded_counts;
pub mod degraded_header;
mod exposition;
#[cfg(test)]
mod faults;
mod give_back;
mod hosts;
mod limiter;
mod listen;
mod load_plan;
mod log;
mod loop_state;
mod metrics;
mod metrics_text;
mod off_loop;
mod openapi;
mod pages;
pub mod plan_header;
mod probation;
mod readiness;
mod refusal_answer;
mod reload;
mod reload_experiments;
mod reload_models;
mod reload_tables;
mod reply;
mod request_outcome;
mod request_scope;
mod responder;
mod route;
mod routes;
mod run;
mod run_recording;
mod shadow;
mod shadow_engine;
#[cfg(test)]
mod shadow_faults;
mod shadow_metrics;
mod shadow_pair;
mod spans;
mod start_error;
mod start_progress;
pub mod status;
mod switch_version;
mod time_slice;
mod trace_context;
mod traced_run;
mod trial;
mod unread_answers;
mod unread_request;
mod verdict;
mod version_counts;
mod version_history;
mod version_wish;
mod watched_folder;
mod watched_tables;

use app::App;
pub use app::ServeSettings;
pub use audience::WhyServed;
pub use collector::{BadDestination, CollectorSettings, Destination};
pub use connection_state::ClientTimeouts;
pub use console::{ConsoleSettings, ConsoleToken, UnusableToken};
pub use hosts::{Hosts, NotAHost, listed as listed_host};
pub use limiter::AdmissionSettings;
pub use listen::listen;
pub use load_plan::{Compiled, PlanCompiler};
pub use log::{Log, LogTarget};
pub use loop_state::{ADMIN_CONNECTIONS, CONSOLE_CONNECTIONS, HEALTH_CONNECTIONS};
use rankd_edge::capture::Capture;
use rankd_edge::endpoints::EndpointError;
use rankd_edge::feature_log::FeatureLog;
use rankd_edge::late_data::LateData;
use rankd_edge::library::Library;
use rankd_edge::registry_files::LoadedRegistry;
pub use reload::ReloadSettings;
pub use shadow_engine::engine_settings as shadow_engine_settings;
pub use shadow_pair::ShadowSettings;
pub use start_error::StartError;
pub use version_wish::VersionSettings;

use acceptor::Acceptor;
use arc_swap::ArcSwap;
use audience::Listener;
use catalog::{Catalog, CatalogBase};
use collector::Collector;
use console::Console;
use metrics::Metrics;
use rankd_edge::date;
use rankd_engine::Engine;
use rankd_engine::clock::{self, Instant};
use readiness::{Phase, Readiness};
use reload::{Reload, Reloader};
use reload_experiments::ServedExperiments;
use routes::ROUTES;
use shadow_engine::ShadowEngine;
use shadow_pair::ShadowPair;
use start_progress::StartProgress;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use switch_version::Switcher;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// How long after the drain time everything else may take.
const AFTER_DRAIN: Duration = Duration::from_secs(2);
/// How long after that the last captures, log lines, spans and rows of the feature log may take.
const LAST_WORDS: Duration = Duration::from_secs(7);
/// How much of it the rows may take.
const LAST_ROWS: Duration = Duration::from_secs(3);
/// How long the last captures may take where the drain time has passed.
const LAST_CAPTURES: Duration = Duration::from_secs(1);

/// What a server is started with.
pub struct Start {
    /// One for each loop.
    pub listeners: Vec<TcpListener>,
    /// The one for operators; `None` where they use the same as everybody.
    pub admin: Option<TcpListener>,
    /// The console's listener and settings; `None` where there is no console.
    pub console: Option<(TcpListener, ConsoleSettings)>,
    /// The registry that plans and requests are read with.
    pub loaded: LoadedRegistry,
    /// Data files that are read before the plans.
    pub late: LateData,
    /// The engine that runs plans, with the stores of the registry's endpoints.
    pub engine: Engine,
    /// Where events, requests and nodes are logged.
    pub log: Log,
    /// What reads plans and registries, with the tasks that there are.
    pub library: Library,
    /// What compiles plans in TypeScript.
    pub compiler: Box<dyn PlanCompiler>,
    /// How clients are treated.
    pub settings: ServeSettings,
    /// Where plans and registries are, and how they are reloaded.
    pub reload: ReloadSettings,
    /// Where rows are logged; `None` for nowhere.
    pub feature_log: Option<FeatureLog>,
    /// Plans that run beside others, and an engine for them, started with [`shadow_engine_settings`]; `None` where there are none.
    pub shadows: Option<(Vec<ShadowSettings>, Engine)>,
    /// Where spans go; `None` for nowhere.
    pub collector: Option<CollectorSettings>,
    /// Where requests are captured; `None` for nowhere.
    pub capture: Option<Capture>,
    /// How often the plan folder is checked; `None` for never.
    pub watch: Option<Duration>,
    /// How long requests in flight may take once the server is stopped.
    pub drain: Duration,
}

impl Start {
    /// The longest time from the request to stop to the end. A server that takes longer hangs.
    pub fn stop_time_max(&self) -> Duration {
        self.drain + AFTER_DRAIN + LAST_WORDS
    }
}

/// What a server reports while it starts, from a thread of its own.
#[derive(Debug)]
pub enum StartupReport {
    /// Worth knowing; nothing is wrong yet.
    Note(String),
    /// Plans are loaded and ranked from now on: what is served, where, and how to ask.
    Ready(String),
    /// The data that stores need cannot be used. No plan will be served.
    Failed(EndpointError),
    /// A shadow is asked for that cannot run, and why. No plan will be served.
    NoShadow(String),
}

/// A server that answers requests.
pub struct Server {
    app: Arc<App>,
    engine: Arc<Engine>,
    reload: Reload,
    stop: watch::Sender<Option<Instant>>,
    drain: Duration,
    /// Waits for the shutdown and does nothing else: the loops have threads of their own.
    runtime: Runtime,
}

impl Server {
    /// Opens the listeners, then loads the data and the plans. What goes wrong before is the error; what comes after goes to `report`.
    pub fn start(start: Start, report: impl Fn(StartupReport) + Send + 'static) -> Result<Server, StartError> {
        let Start {
            listeners,
            admin,
            console,
            loaded,
            late,
            engine,
            log,
            library,
            compiler,
            settings,
            reload,
            feature_log,
            shadows,
            collector,
            capture,
            watch,
            drain,
        } = start;
        let collector = collector.map(Collector::start).transpose()?;
        let loops = engine.settings().loops;
        let address = listeners.first().and_then(|first| first.local_addr().ok());
        let address = address.ok_or(StartError::NoListener)?;
        let admin_address = admin.as_ref().and_then(|listener| listener.local_addr().ok());
        let console_address = console.as_ref().and_then(|(listener, _)| listener.local_addr().ok());
        let console = console.map(|(listener, settings)| Console::new(listener, settings));
        let endpoints = loaded.registry.endpoints.list().iter().map(|endpoint| endpoint.name.clone()).collect();
        let has_text_ids = loaded.registry.has_text_ids();
        let why = settings.why;
        let experiments = ServedExperiments::new(loaded.experiments.experiments.clone(), None);
        let texts = Arc::new(loaded.texts);
        let (switches, asked) = version_wish::channel();
        let keeps_versions = settings.versions.keeps_versions();
        let (pairs, shadows) = shadows.unzip();
        let pairs = pairs.into_iter().flatten().map(|settings| Arc::new(ShadowPair::new(settings))).collect();
        let shadows = shadows.map(|engine| ShadowEngine::start(engine, library.tasks().clone()));
        let (registry, texts_in_use) = (Arc::new(loaded.registry), texts.clone());
        let base = CatalogBase { registry, texts: texts_in_use, experiments, shadows: pairs };
        let app = Arc::new(App {
            settings,
            changing: Mutex::default(),
            switches,
            catalog: ArcSwap::from_pointee(Catalog::empty(base)),
            tasks: library.tasks().clone(),
            metrics: Metrics::new(loops, library.tasks().signatures(), routes::paths()),
            log,
            feature_log,
            collector,
            capture,
            shadows,
            gauges: engine.gauges(),
            engine: engine.settings().clone(),
            readiness: Readiness::new(Phase::Loading),
            documents: Listener::ALL.map(|listener| openapi::document(ROUTES, listener, why, has_text_ids)),
            open: Default::default(),
            listeners: Mutex::new(listeners.into_iter().map(Some).collect()),
            admin: Mutex::new(admin),
            console,
            endpoints,
            tables: late.tables().cloned(),
            models: late.models().cloned(),
            started_ms: date::millis(),
        });
        let engine = Arc::new(engine);
        let (stop, stopped) = watch::channel(None);
        let services = app.clone();
        engine.on_every_loop(move |loop_handle| Acceptor::open(services.clone(), loop_handle, stopped.clone()));
        app.log.event("info", &format!("http://{address} is open; the plans are being loaded"));
        if keeps_versions {
            Switcher::start(&app, &engine, asked)?;
        }
        let reloader = Reloader::new(&app, &engine, reload, (texts, &loaded.experiments), library, compiler);
        let greeted = app.clone();
        let reload = reloader.start(late, watch, move |started| {
            report(match started {
                StartProgress::Note(note) => StartupReport::Note(note),
                StartProgress::Ready => {
                    StartupReport::Ready(greeting(&greeted, address, admin_address, console_address))
                }
                StartProgress::Failed(why) => StartupReport::Failed(why),
                StartProgress::NoShadow(why) => StartupReport::NoShadow(why),
            });
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(StartError::Runtime)?;
        Ok(Server { app, engine, reload, stop, drain, runtime })
    }

    /// Opens the log files and reads the registry and the plans again.
    pub fn reload(&self) {
        self.app.log.reopen();
        self.reload.ask();
    }

    /// Serves until the future is done, then finishes the requests in flight.
    pub fn run_until(&self, shutdown: impl Future<Output = ()>) {
        self.runtime.block_on(shutdown);
        self.stop();
    }

    fn stop(&self) {
        self.app.readiness.reach(Phase::Stopping);
        self.app.log.event("info", "stopping: requests under way are finished");
        if let Some(shadows) = &self.app.shadows {
            shadows.stop();
        }
        let stopped_by = clock::now() + self.drain;
        // Without a loop nothing listens.
        let _ = self.stop.send(Some(stopped_by));
        self.engine.stop(self.drain + AFTER_DRAIN);
        if let Some(log) = &self.app.feature_log {
            log.end(LAST_ROWS);
        }
        // Nobody is answered any more, so what waits is all there is.
        if let Some(capture) = &self.app.capture
            && !capture.end(stopped_by.saturating_duration_since(clock::now()).max(LAST_CAPTURES))
        {
            self.app.log.event("error", "captures that waited to be written are lost: the disk is too slow");
        }
        if let Some(collector) = &self.app.collector {
            collector.end();
        }
        self.app.log.event("info", "stopped");
        self.app.log.end();
    }
}

/// What is served and where, and how to ask.
fn greeting(app: &App, address: SocketAddr, admin: Option<SocketAddr>, console: Option<SocketAddr>) -> String {
    let catalog = app.catalog.load();
    let plans = catalog.list();
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
    if let Some(console) = console {
        let token = app.console.as_ref().is_some_and(|console| console.guard.needs_token());
        text += &format!(
            "console: http://{console}/{}\n",
            if token { "#token=…, with that of --console_token" } else { "" }
        );
    }
    if let Some(plan) = good.first() {
        text += &format!(
            "try: curl -s -H 'content-type: application/json' -d '{{\"user_id\": 1}}' http://{address}/rank/{plan}\n"
        );
    }
    text
}
