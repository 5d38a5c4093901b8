//! Endpoints of kind `redis`: a server, a cluster, or the embedded store in its place.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::registry::surroundings::Reference;
use crate::registry::table::{Referred, Table};
use std::fmt;
use std::ops::RangeInclusive;

/// What an endpoint of this kind has besides its name.
#[derive(Clone, PartialEq, Eq)]
pub struct Redis {
    pub backend: Backend,
    /// What to log in with, where the url does not have it.
    pub password: Option<String>,
    /// The authorities to trust with `rediss://`, as a PEM file; the system's where there is none.
    pub ca_file: Option<String>,
    pub policy: Policy,
    pub inject: Vec<Inject>,
}

/// Without addresses and passwords: they are secrets.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Redis { backend: _, password: _, ca_file, policy, inject } = self;
        let mut shown = f.debug_struct("Redis");
        shown.field("ca_file", ca_file).field("policy", policy).field("inject", inject).finish_non_exhaustive()
    }
}

/// What answers an endpoint's reads.
#[derive(Clone, PartialEq, Eq)]
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
    "password",
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
    let refuse = |found: &mut Diagnostics, field: &str, message: &str| {
        found.push(Diagnostic::new(Code::BadEndpoint, "", message).bytes(table.place(field)));
    };
    let is_memory = matches!(backend, Some(Backend::Memory { .. }));
    let password = password(table, found);
    if table.has("password") && is_memory {
        refuse(found, "password", "a memory: endpoint has no password");
    }
    let ca_file = table.path("ca_file", found);
    if ca_file.is_some() && backend.as_ref().is_some_and(|backend| !backend.is_encrypted()) {
        refuse(found, "ca_file", "ca_file applies only to an endpoint with rediss://");
    }
    let policy = policy(table, found);
    let inject = inject(table, found);
    if !inject.is_empty() && !is_memory && backend.is_some() {
        refuse(found, "inject", "only a memory: endpoint can inject trouble");
    }
    Some(Redis { backend: backend?, password, ca_file, policy, inject })
}

/// A password stands somewhere else, so that the registry can be shown to everybody.
fn password(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<String> {
    let text = table.text("password", found)?;
    let Some(reference) = Reference::parse(text) else {
        let message = "a password is not written here, but as env:NAME or file:PATH";
        found.push(Diagnostic::new(Code::BadEndpoint, "", message).bytes(table.place("password")));
        return None;
    };
    match table.look_up("password", reference, found)? {
        Referred::Text(password) => Some(password),
        Referred::Unknown => None,
    }
}

fn backend(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<Backend> {
    let (url, cluster) = (table.text("url", found), table.texts("cluster", found));
    let wrong = match (url, cluster) {
        (Some(written), None) => {
            let url = address(table, "url", written, found)?;
            match url.split_once(':') {
                Some(("memory", path)) if !path.is_empty() => {
                    return Some(Backend::Memory { path: table.in_project(path) });
                }
                // A path that is not whole is one of the project.
                Some(("unix", path)) if !path.is_empty() && !path.starts_with('/') => {
                    return Some(Backend::Server { url: format!("unix:{}", table.in_project(path)) });
                }
                Some(("redis" | "rediss" | "unix", rest)) if !rest.is_empty() => {
                    return Some(Backend::Server { url });
                }
                // Not looked up.
                Some(("env", _)) if url == written => return Some(Backend::Server { url }),
                _ => "a url starts with redis://, rediss://, unix: or memory:, or is env:NAME",
            }
        }
        (None, Some(written)) if !written.is_empty() => {
            let urls: Option<Vec<String>> = written.iter().map(|url| address(table, "cluster", url, found)).collect();
            let is_good = |(url, written): (&String, &&str)| {
                url.starts_with("redis://") || url.starts_with("rediss://") || (url == written && is_variable(url))
            };
            let urls = urls?;
            if urls.iter().zip(&written).all(is_good) {
                return Some(Backend::Cluster { urls });
            }
            "the urls of a cluster start with redis:// or rediss://, or are env:NAME"
        }
        // Already reported as a value of the wrong type.
        (None, None) if table.has("url") || table.has("cluster") => return None,
        _ => "an endpoint has either a url or a cluster with at least one url",
    };
    let place = if table.has("url") { "url" } else { "cluster" };
    found.push(Diagnostic::new(Code::BadEndpoint, "", wrong).bytes(table.place(place)));
    None
}

fn is_variable(url: &str) -> bool {
    matches!(Reference::parse(url), Some(Reference::Variable(_)))
}

/// An address as it is written, or what the variable that it names holds.
fn address(table: &Table<'_, '_>, field: &str, written: &str, found: &mut Diagnostics) -> Option<String> {
    match Reference::parse(written) {
        Some(variable @ Reference::Variable(_)) => match table.look_up(field, variable, found)? {
            Referred::Text(address) => Some(address),
            Referred::Unknown => Some(written.to_owned()),
        },
        Some(Reference::File(_)) | None => Some(written.to_owned()),
    }
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
    for rule in table.tables("inject", "endpoint", found) {
        rule.refuse_unknown(&["command", "latency_us", "fail_every"], found);
        rules.push(Inject {
            command: rule.text("command", found).map(str::to_ascii_uppercase),
            latency_us: rule.int("latency_us", 0..60_000_001, found).unwrap_or(0) as u64,
            fail_every: rule.int("fail_every", 0..1 << 31, found).unwrap_or(0) as u32,
        });
    }
    rules
}
