//! What all loops of the server share: settings, plans, metrics, log, span collector and the number of open connections.

use crate::audience::{Listener, WhyServed};
use crate::catalog::{Catalog, CatalogEntry, ServedPlan};
use crate::collector::Collector;
use crate::connection_state::{ClientTimeouts, ConnectionClass};
use crate::console::Console;
use crate::hosts::Hosts;
use crate::limiter::AdmissionSettings;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::readiness::{Phase, Readiness};
use crate::shadow_engine::ShadowEngine;
use crate::version_wish::{SwitchRequest, VersionSettings};
use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use rankd_edge::capture::Capture;
use rankd_edge::feature_log::FeatureLog;
use rankd_edge::models::ModelFiles;
use rankd_edge::tables::TableFiles;
use rankd_engine::engine::Gauges;
use rankd_engine::{RunError, Tasks, codes};
use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// How long clients may take.
    pub timeouts: ClientTimeouts,
    /// How many runs are admitted, and how long requests queue.
    pub admission: AdmissionSettings,
    /// How many connections may be open.
    pub connections_max: usize,
    /// Bytes that the bodies of a loop's unanswered requests have at most.
    pub body_bytes_max: usize,
    /// Bytes of answers that all loops together keep at most for clients that have not read them.
    pub answer_bytes_max: usize,
    /// One request in this many is traced for the metrics of ops; 0 for none.
    pub trace_every: u64,
    /// By plan: how many runs of it may be in progress.
    pub plan_limits: HashMap<String, usize>,
    /// The hosts that requests may be for.
    pub hosts: Hosts,
    /// The same for the listener for operators, where there is one.
    pub admin_hosts: Option<Hosts>,
    /// Whether a body that does not say what it is may be JSON.
    pub lenient: bool,
    /// Where questions about items are answered.
    pub why: WhyServed,
    /// Whether requests may choose the arms of experiments that they are in.
    pub force_arms: bool,
    /// What may become of the versions of plans.
    pub versions: VersionSettings,
}

pub(crate) struct App {
    pub(crate) settings: ServeSettings,
    pub(crate) catalog: ArcSwap<Catalog>,
    /// Held by whoever changes the catalog.
    pub(crate) changing: Mutex<()>,
    /// To the thread that puts other versions of plans into service.
    pub(crate) switches: Sender<SwitchRequest>,
    /// The tasks that plans may use.
    pub(crate) tasks: Tasks,
    pub(crate) metrics: Metrics,
    pub(crate) log: Log,
    /// Where the rows of requests are logged.
    pub(crate) feature_log: Option<FeatureLog>,
    pub(crate) collector: Option<Collector>,
    /// Where requests are captured.
    pub(crate) capture: Option<Capture>,
    /// Where the shadows of plans run; nothing where no plan has one.
    pub(crate) shadows: Option<ShadowEngine>,
    pub(crate) gauges: Gauges,
    pub(crate) engine: rankd_engine::Settings,
    pub(crate) readiness: Readiness,
    /// The OpenAPI document of each listener.
    pub(crate) documents: [String; Listener::ALL.len()],
    /// Connections that are open on all loops, by their class.
    pub(crate) open: [AtomicUsize; ConnectionClass::ALL.len()],
    /// By loop, until its acceptor takes it.
    pub(crate) listeners: Mutex<Vec<Option<TcpListener>>>,
    /// The listener for operators, until the first loop's acceptor takes it.
    pub(crate) admin: Mutex<Option<TcpListener>>,
    /// What the console knows, where there is one.
    pub(crate) console: Option<Console>,
    /// The names of the registry's endpoints, in its order.
    pub(crate) endpoints: Vec<String>,
    /// The tables among them.
    pub(crate) tables: Option<Arc<TableFiles>>,
    /// The models of the registry.
    pub(crate) models: Option<Arc<ModelFiles>>,
    pub(crate) started_ms: u64,
}

impl App {
    /// The plan of this name. While plans are being loaded, one that is not there yet may still come.
    pub(crate) fn find_plan<'c>(&self, catalog: &'c Catalog, name: &str) -> Result<&'c Arc<ServedPlan>, RunError> {
        self.find_entry(catalog, name).map(|entry| &entry.plan)
    }

    /// The same, with the experiments that change its answers.
    pub(crate) fn find_entry<'c>(&self, catalog: &'c Catalog, name: &str) -> Result<&'c CatalogEntry, RunError> {
        catalog.find(name).map_err(|error| match self.readiness.phase() {
            Phase::Loading => RunError::new(codes::STILL_LOADING, "the server is still loading its plans; try again"),
            Phase::Ready | Phase::Stopping => error,
        })
    }

    /// Keeps others from changing the catalog. Files are read before, so that nobody waits for them.
    pub(crate) fn change_catalog(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many connections of this class are open.
    pub(crate) fn open(&self, class: ConnectionClass) -> usize {
        self.open[class as usize].load(Ordering::Relaxed)
    }

    /// The listener of connections of this class, and the hosts that it answers for.
    pub(crate) fn listener(&self, class: ConnectionClass) -> (Listener, &Hosts) {
        match (class, &self.settings.admin_hosts) {
            (ConnectionClass::Console, _) => {
                (Listener::Console, self.console.as_ref().map_or(&self.settings.hosts, |console| &console.hosts))
            }
            (ConnectionClass::Admin, Some(hosts)) => (Listener::Admin, hosts),
            (ConnectionClass::Clients | ConnectionClass::Health, Some(_)) => (Listener::Public, &self.settings.hosts),
            (ConnectionClass::Clients | ConnectionClass::Health | ConnectionClass::Admin, None) => {
                (Listener::Only, &self.settings.hosts)
            }
        }
    }

    pub(crate) fn take_admin(&self) -> Option<TcpListener> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn take_console(&self) -> Option<TcpListener> {
        let console = self.console.as_ref()?;
        console.listener.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn take_listener(&self, number: usize) -> Option<TcpListener> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.get_mut(number).and_then(Option::take)
    }
}
