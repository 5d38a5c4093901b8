//! Endpoints of kind `redis`: a server, a cluster, or the embedded store in its place.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::registry::table::Table;
use std::ops::RangeInclusive;

/// What an endpoint of this kind has besides its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    pub backend: Backend,
    /// The authorities to trust with `rediss://`, as a PEM file; the system's where there is none.
    pub ca_file: Option<String>,
    pub policy: Policy,
    pub inject: Vec<Inject>,
}

/// What answers an endpoint's reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The embedded store, answering in the process from a data file.
    Memory { path: String },
    /// `redis://`, `rediss://` or `unix:`.
    Server { url: String },
    /// The seeds of a cluster.
    Cluster { urls: Vec<String> },
}

impl Backend {
    /// Whether any of its servers is reached with TLS.
    pub fn is_encrypted(&self) -> bool {
        match self {
            Backend::Memory { .. } => false,
            Backend::Server { url } => url.starts_with("rediss://"),
            Backend::Cluster { urls } => urls.iter().any(|url| url.starts_with("rediss://")),
        }
    }
}

/// How an endpoint may be used. The defaults are finite: nothing waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub max_inflight: u32,
    pub connect_timeout_ms: u32,
    pub request_timeout_ms: u32,
    /// A server from which nothing has come on any connection for this long, while something is asked of it, counts as hung.
    pub stall_timeout_ms: u32,
    pub connections: u32,
    /// Commands that may be sent a second time, of a hundred that were sent.
    pub retry_percent: u32,
    /// Identical reads that are in flight at the same time are sent once and shared.
    pub single_flight: bool,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            max_inflight: 1024,
            connect_timeout_ms: 250,
            request_timeout_ms: 500,
            // TCP sends a lost packet again after slightly more than 200 ms.
            stall_timeout_ms: 230,
            connections: 1,
            retry_percent: 20,
            single_flight: true,
        }
    }
}

/// Faults that the embedded store injects on purpose, for tests and drills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inject {
    /// The command it is for; `None` for all.
    pub command: Option<String>,
    pub latency_us: u64,
    /// Every n-th command fails, where n is this number; 0 for none.
    pub fail_every: u32,
}

pub(super) const FIELDS: &[&str] = &[
    "url",
    "cluster",
    "ca_file",
    "max_inflight",
    "connect_timeout_ms",
    "request_timeout_ms",
    "stall_timeout_ms",
    "connections",
    "retry_percent",
    "single_flight",
    "inject",
];

pub(super) fn read(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<Redis> {
    let backend = backend(table, found);
    let ca_file = table.text("ca_file", found).map(str::to_owned);
    if ca_file.is_some() && backend.as_ref().is_some_and(|backend| !backend.is_encrypted()) {
        let message = "ca_file applies only to an endpoint with rediss://";
        found.push(Diagnostic::new(Code::BadEndpoint, "", message).bytes(table.place("ca_file")));
    }
    let policy = policy(table, found);
    let inject = inject(table, found);
    if !inject.is_empty() && !matches!(backend, Some(Backend::Memory { .. }) | None) {
        let message = "only a memory: endpoint can inject trouble";
        found.push(Diagnostic::new(Code::BadEndpoint, "", message).bytes(table.place("inject")));
    }
    Some(Redis { backend: backend?, ca_file, policy, inject })
}

fn backend(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<Backend> {
    let (url, cluster) = (table.text("url", found), table.texts("cluster", found));
    let wrong = match (url, cluster) {
        (Some(url), None) => match url.split_once(':') {
            Some(("memory", path)) if !path.is_empty() => return Some(Backend::Memory { path: path.to_owned() }),
            Some(("redis" | "rediss" | "unix", rest)) if !rest.is_empty() => {
                return Some(Backend::Server { url: url.to_owned() });
            }
            _ => "a url starts with redis://, rediss://, unix: or memory:",
        },
        (None, Some(urls)) if !urls.is_empty() => {
            if urls.iter().all(|url| url.starts_with("redis://") || url.starts_with("rediss://")) {
                return Some(Backend::Cluster { urls: urls.into_iter().map(str::to_owned).collect() });
            }
            "the urls of a cluster start with redis:// or rediss://"
        }
        // Already reported as a value of the wrong type.
        (None, None) if table.has("url") || table.has("cluster") => return None,
        _ => "an endpoint has either a url or a cluster with at least one url",
    };
    let place = if table.has("url") { "url" } else { "cluster" };
    found.push(Diagnostic::new(Code::BadEndpoint, "", wrong).bytes(table.place(place)));
    None
}

fn policy(table: &Table<'_, '_>, found: &mut Diagnostics) -> Policy {
    let default = Policy::default();
    let mut bounded = |name: &str, range: RangeInclusive<i64>, default: u32| -> u32 {
        let value = table.int(name, *range.start()..range.end() + 1, found);
        value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
    };
    Policy {
        max_inflight: bounded("max_inflight", 1..=1 << 20, default.max_inflight),
        connect_timeout_ms: bounded("connect_timeout_ms", 1..=60_000, default.connect_timeout_ms),
        request_timeout_ms: bounded("request_timeout_ms", 1..=60_000, default.request_timeout_ms),
        stall_timeout_ms: bounded("stall_timeout_ms", 1..=60_000, default.stall_timeout_ms),
        connections: bounded("connections", 1..=64, default.connections),
        retry_percent: bounded("retry_percent", 0..=100, default.retry_percent),
        single_flight: table.bool("single_flight", found).unwrap_or(default.single_flight),
    }
}

fn inject(table: &Table<'_, '_>, found: &mut Diagnostics) -> Vec<Inject> {
    let mut rules = Vec::new();
    for rule in table.tables("inject", found) {
        rule.refuse_unknown(&["command", "latency_us", "fail_every"], found);
        rules.push(Inject {
            command: rule.text("command", found).map(str::to_ascii_uppercase),
            latency_us: rule.int("latency_us", 0..60_000_001, found).unwrap_or(0) as u64,
            fail_every: rule.int("fail_every", 0..1 << 31, found).unwrap_or(0) as u32,
        });
    }
    rules
}
