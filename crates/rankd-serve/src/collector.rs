//! Spans to a collector of OpenTelemetry, as OTLP over HTTP with JSON, by a thread of their own: a request never waits for it.
//!
//! What does not fit its queue, and what the collector does not take, is dropped and counted. Nothing is sent a second time.

use crate::spans::{FinishedRequest, export};
use crate::start_error::StartError;
use crossbeam_channel::{Receiver, Sender, after, bounded, select};
use rankd_engine::clock;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// So many requests may wait to be sent.
const WAITING_MAX: usize = 4096;
/// So many requests go together, at most.
const TOGETHER_MAX: usize = 256;
/// How long the first one waits for others.
const GATHERING: Duration = Duration::from_millis(200);
/// How long connecting, sending and the answer may take, each.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last spans may take when the process ends.
const LAST_SPANS: Duration = Duration::from_secs(1);
/// And how long, where the name of the collector's host is still being resolved: a resolver may hang for minutes.
const LAST_LOOKUP: Duration = Duration::from_millis(100);
/// The first line of an answer is not longer.
const ANSWER_BYTES: u64 = 4096;
const PORT: u16 = 4318;

/// Where spans go, and whose.
#[derive(Clone, Debug)]
pub struct CollectorSettings {
    /// Where the collector is.
    pub to: Destination,
    /// One request in this many, besides those that the caller records; 0 for only those.
    pub sample: u64,
}

/// An `http://` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// With a port.
    address: String,
    path: String,
}

/// Why a URL is not the address of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadDestination {
    /// It does not begin with `http://`.
    Scheme,
    /// What follows is not a host and port.
    Malformed,
}

impl std::error::Error for BadDestination {}

impl std::fmt::Display for BadDestination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BadDestination::Scheme => "it must begin with http://",
            BadDestination::Malformed => "write it as http://HOST:PORT",
        })
    }
}

impl FromStr for Destination {
    type Err = BadDestination;

    fn from_str(url: &str) -> Result<Destination, BadDestination> {
        let rest = url.strip_prefix("http://").ok_or(BadDestination::Scheme)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let bad = |text: &str| text.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
        if host.is_empty() || bad(rest) {
            return Err(BadDestination::Malformed);
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
        let path = if path.is_empty() { "/v1/traces".to_owned() } else { format!("/{path}") };
        Ok(Destination { address, path })
    }
}

enum Post {
    Request(Box<FinishedRequest>),
    End,
}

pub(crate) struct Collector {
    posts: Sender<Post>,
    ended: Receiver<()>,
    pub(crate) sample: u64,
    counts: Arc<Counts>,
}

/// Requests by what became of their spans.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
    /// The name of the collector's host is being looked up.
    resolving: AtomicBool,
}

impl Collector {
    pub(crate) fn start(settings: CollectorSettings) -> Result<Collector, StartError> {
        let (posts, inbox) = bounded(WAITING_MAX);
        let (end, ended) = bounded(1);
        let counts = Arc::new(Counts::default());
        let (counted, to) = (counts.clone(), settings.to);
        std::thread::Builder::new()
            .name("rankd-spans".to_owned())
            .spawn(move || {
                send_all(&inbox, &to, &counted);
                // Whoever waits for the end may have stopped waiting.
                let _ = end.send(());
            })
            .map_err(|error| StartError::Thread { purpose: "spans", error })?;
        Ok(Collector { posts, ended, sample: settings.sample, counts })
    }

    pub(crate) fn send(&self, request: FinishedRequest) {
        if self.posts.try_send(Post::Request(Box::new(request))).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Sends what still waits, for as long as the last spans may take.
    pub(crate) fn end(&self) {
        let until = clock::now() + LAST_SPANS;
        let mut given = false;
        while clock::now() < until {
            if !given {
                given = self.posts.send_timeout(Post::End, LAST_LOOKUP).is_ok();
            } else if self.ended.recv_timeout(LAST_LOOKUP).is_ok() {
                return;
            }
            // A collector that is stuck has lost them.
            if self.counts.resolving.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

fn send_all(inbox: &Receiver<Post>, to: &Destination, counts: &Counts) {
    let mut goes_on = true;
    while goes_on && let Ok(Post::Request(first)) = inbox.recv() {
        let mut all = vec![*first];
        let gathered = after(GATHERING);
        while all.len() < TOGETHER_MAX {
            select! {
                recv(inbox) -> post => match post {
                    Ok(Post::Request(request)) => all.push(*request),
                    Ok(Post::End) | Err(_) => {
                        goes_on = false;
                        break;
                    }
                },
                recv(gathered) -> _ => break,
            }
        }
        let count = if to.post(&export(&all), counts).is_ok() { &counts.sent } else { &counts.dropped };
        count.fetch_add(all.len() as u64, Ordering::Relaxed);
    }
}

impl Destination {
    /// Sends a body on a connection of its own.
    fn post(&self, body: &str, counts: &Counts) -> io::Result<()> {
        let Destination { address, path } = self;
        let mut stream = self.connect(counts)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        BufReader::new(stream.take(ANSWER_BYTES)).read_until(b'\n', &mut answer)?;
        let taken = answer.starts_with(b"HTTP/1.1 2") || answer.starts_with(b"HTTP/1.0 2");
        if taken { Ok(()) } else { Err(io::Error::other("the collector did not accept it")) }
    }

    /// The first of the host's addresses that answers.
    fn connect(&self, counts: &Counts) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        counts.resolving.store(true, Ordering::Relaxed);
        let addresses = self.address.to_socket_addrs();
        counts.resolving.store(false, Ordering::Relaxed);
        for address in addresses? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_outcome::RequestOutcome;

    #[test]
    fn an_address_may_leave_out_port_and_path() {
        let of = |url: &str| url.parse::<Destination>().map(|to| format!("{} {}", to.address, to.path));
        assert_eq!(of("http://collector").unwrap(), "collector:4318 /v1/traces");
        assert_eq!(of("http://127.0.0.1:99/").unwrap(), "127.0.0.1:99 /v1/traces");
        assert_eq!(of("http://[::1]/otlp/v1/traces").unwrap(), "[::1]:4318 /otlp/v1/traces");
        for bad in
            ["https://collector", "collector:4318", "http://", "http:///v1/traces", "http://a b", "http://a/\r\nx: y"]
        {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_collector_that_never_answers_fills_the_queue_and_nobody_waits() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let collector = Collector::start(CollectorSettings { to, sample: 1 }).unwrap();
        let all = WAITING_MAX + TOGETHER_MAX + 100;
        for _ in 0..all {
            collector.send(FinishedRequest {
                context: None,
                start_ns: 1,
                took_ns: 1,
                route: "/rank",
                status: 200,
                outcome: RequestOutcome::Ok,
                request_id: String::new(),
                rows: 0,
                arms: None,
                run: None,
            });
        }
        // What is not on its way and does not fit is dropped at once: nothing has been answered yet.
        assert!(collector.dropped() >= 100 && collector.sent() == 0, "{}", collector.dropped());
    }
}
