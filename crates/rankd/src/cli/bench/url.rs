//! `rankd bench --url`: a server under load over HTTP/1.1, closed or open loop, with the report of the other benches.
//!
//! The client is no more than a bench needs: it writes requests that were made beforehand and reads answers with a length. With
//! `--rate`, requests are due at fixed times and their latency counts from then on; those that find all connections busy wait, and
//! are counted as late. A request that got no answer is counted by why.

use crate::cli::ask_server::split_url;
use crate::cli::bench::drive::Tally;
use crate::cli::bench::load::{Ends, Load};
use crate::cli::bench::picture;
use crate::cli::bench::report::{Wanted, latencies, troubles_in_words, write_load, write_troubles};
use crate::cli::command_error::{BadArgument, CommandError};
use crate::cli::{WRONG, say};
use hdrhistogram::Histogram;
use rankd_edge::listing::Listing;
use rankd_edge::process;
use rankd_engine::clock::{self, Instant};
use rankd_plan::json::Writer;
use rankd_serve::degraded_header;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timers wake this late at most; the rest of the time is spent waiting for the moment itself.
const TIMER: Duration = Duration::from_millis(2);
/// A request that is sent so long after it was due is late.
const LATE: Duration = Duration::from_millis(1);

struct ServerTarget {
    address: String,
    path: String,
}

impl ServerTarget {
    fn parse(url: &str) -> Result<ServerTarget, BadArgument> {
        let (address, path) = split_url(url)?;
        let path = if url.matches('/').count() == 2 { "rank" } else { path };
        Ok(ServerTarget { address, path: format!("/{path}") })
    }

    fn request(&self, body: &str) -> Vec<u8> {
        let ServerTarget { address, path } = self;
        let length = body.len();
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }
}

pub(crate) fn run(url: &str, load: &Load, wanted: &Wanted) -> u8 {
    try_run(url, load, wanted).unwrap_or_else(|error| {
        error.report();
        WRONG
    })
}

fn try_run(url: &str, load: &Load, wanted: &Wanted) -> Result<u8, CommandError> {
    let target = ServerTarget::parse(url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CommandError::with("cannot start a runtime"))?;
    // One that cannot be reached is said before it is counted a thousand times.
    let look = runtime.block_on(TcpStream::connect(&target.address));
    look.map_err(CommandError::with(&target.address))?;
    if let Some(warmup) = load.warmup {
        let drive = Drive::start(&target, load, warmup, "warmup");
        runtime.block_on(drive.run());
    }
    let cpu_before = process::cpu_seconds();
    let drive = Drive::start(&target, load, load.ends, "bench");
    runtime.block_on(drive.run());
    let wall = clock::now().saturating_duration_since(drive.began);
    let report = ServerReport { url, load, seen: &drive.seen.borrow(), wall, cpu: process::cpu_seconds() - cpu_before };
    Ok(wanted.tell(&report.table(), &report.json()))
}

/// What came back.
#[derive(Default)]
struct Seen {
    tally: Tally,
    /// Of requests that got rows.
    good: Option<Histogram<u64>>,
    statuses: BTreeMap<u16, u64>,
    /// Requests that were sent late, because all connections were busy or this process was.
    late: u64,
}

struct Drive<'a> {
    target: &'a ServerTarget,
    load: &'a Load,
    ends: Ends,
    began: Instant,
    next: Cell<u64>,
    seen: RefCell<Seen>,
    bar: RefCell<say::Progress>,
}

impl<'a> Drive<'a> {
    fn start(target: &'a ServerTarget, load: &'a Load, ends: Ends, what: &str) -> Drive<'a> {
        let ends = ends.at_rate(load.rate);
        let bar = RefCell::new(say::Progress::new(what, ends.whole()));
        Drive { target, load, ends, began: clock::now(), next: Cell::new(0), seen: RefCell::default(), bar }
    }

    /// All connections until their end.
    async fn run(&self) {
        futures_util::future::join_all((0..self.load.concurrency).map(|_| self.line())).await;
        self.bar.borrow_mut().at(self.ends.whole());
    }

    /// One connection, which takes the next request whenever it has an answer to the last.
    async fn line(&self) {
        let mut stream = None;
        let mut buffer = Vec::with_capacity(16 << 10);
        while let Some((at, from)) = self.take().await {
            let request = self.target.request(&self.load.requests.text(at));
            // The time of a request that is not due at a moment begins when it is ready to be sent.
            let from = from.unwrap_or_else(clock::now);
            let answer = timeout(PATIENCE, self.ask(&mut stream, &request, &mut buffer)).await;
            let took = clock::now().saturating_duration_since(from);
            let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            if answer.is_err() {
                stream = None;
            }
            self.count(took, &answer, &buffer);
        }
    }

    /// The next request, once it is due, and the moment that it was due at, if there is one.
    async fn take(&self) -> Option<(u64, Option<Instant>)> {
        let at = self.next.get();
        if !self.ends.go_on(at, self.began, clock::now) {
            return None;
        }
        self.next.set(at + 1);
        let Some(rate) = self.load.rate else { return Some((at, None)) };
        let due = self.began + Duration::from_secs_f64(at as f64 / rate as f64);
        if clock::now() > due + LATE {
            self.seen.borrow_mut().late += 1;
        }
        loop {
            let left = due.saturating_duration_since(clock::now());
            match left {
                Duration::ZERO => return Some((at, Some(due))),
                _ if left > TIMER => sleep(left - TIMER).await,
                _ => tokio::task::yield_now().await,
            }
        }
    }

    /// Sends a request and reads its answer into the buffer; gives the status.
    async fn ask(&self, stream: &mut Option<TcpStream>, request: &[u8], buffer: &mut Vec<u8>) -> io::Result<u16> {
        if let Some(kept) = stream {
            match exchange(kept, request, buffer).await {
                // Servers close connections that were idle for too long; such a one was never asked.
                Err(error) if buffer.is_empty() && is_closed(&error) => {}
                done => return done,
            }
        }
        let new = TcpStream::connect(&self.target.address).await?;
        new.set_nodelay(true)?;
        exchange(stream.insert(new), request, buffer).await
    }

    fn count(&self, took: Duration, status: &io::Result<u16>, answer: &[u8]) {
        let mut seen = self.seen.borrow_mut();
        let nanos = took.as_nanos() as u64;
        seen.tally.nanos.saturating_record(nanos);
        if let Ok(status) = status {
            *seen.statuses.entry(*status).or_default() += 1;
        }
        if matches!(status, Ok(200)) {
            seen.tally.add_degraded(header(answer, degraded_header::NAME).into_iter().flat_map(degraded_header::named));
            seen.good.get_or_insert_with(|| Tally::default().nanos).saturating_record(nanos);
        } else {
            *seen.tally.errors.entry(kind(status, answer)).or_default() += 1;
        }
        let took = clock::now().saturating_duration_since(self.began);
        self.bar.borrow_mut().at(self.ends.progress(seen.tally.ended(), took));
    }
}

/// One request and its answer on a connection.
async fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) -> io::Result<u16> {
    buffer.clear();
    stream.write_all(request).await?;
    loop {
        if let Some((status, whole)) = head(buffer)
            && buffer.len() >= whole
        {
            return Ok(status);
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Whether the other side closed the connection.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// The status of an answer whose head is whole, and how long it is with its body.
fn head(answer: &[u8]) -> Option<(u16, usize)> {
    let head = head_text(answer)?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = header(answer, "content-length").and_then(|length| length.parse::<usize>().ok());
    Some((status, head.len() + length.unwrap_or(0)))
}

/// The head of an answer, once it is whole.
fn head_text(answer: &[u8]) -> Option<&str> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    std::str::from_utf8(&answer[..end]).ok()
}

/// The value of a header.
fn header<'a>(answer: &'a [u8], name: &str) -> Option<&'a str> {
    let mut fields = head_text(answer)?.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The kind of error that an answer tells, or why there is none.
fn kind(status: &io::Result<u16>, answer: &[u8]) -> &'static str {
    match status {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return "connection_refused",
        Err(error) if is_closed(error) => return "connection_closed",
        Err(_) => return "no_answer",
        Ok(_) => {}
    }
    let text = String::from_utf8_lossy(answer);
    let told = text.split("\"kind\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let known = rankd_engine::ErrorKind::ALL.iter().map(|kind| kind.name());
    told.and_then(|told| known.into_iter().find(|name| *name == told)).unwrap_or("other")
}

struct ServerReport<'a> {
    url: &'a str,
    load: &'a Load,
    seen: &'a Seen,
    wall: Duration,
    cpu: f64,
}

impl ServerReport<'_> {
    fn good(&self) -> u64 {
        self.seen.good.as_ref().map_or(0, Histogram::len)
    }

    fn a_second(&self, count: u64) -> f64 {
        count as f64 / self.wall.as_secs_f64()
    }

    fn table(&self) -> String {
        let Load { concurrency, rate, .. } = self.load;
        let tally = &self.seen.tally;
        let load = match rate {
            Some(rate) => format!("{rate} a second on {concurrency} connections"),
            None => format!("{concurrency} in flight"),
        };
        let (all, good) = (self.a_second(tally.ended()), self.a_second(self.good()));
        let seconds = self.wall.as_secs_f64();
        let mut out = format!("{}: {} requests, {load}\n", self.url, tally.ended());
        out +=
            &format!("{all:.0} a second, {good:.0} of them with rows, {seconds:.2} s, {}\n", troubles_in_words(tally));
        if self.seen.late > 0 {
            let late = self.seen.late;
            out += &format!(
                "{late} sent late, with the wait counted in: more connections (-c) keep the rate if this machine can\n"
            );
        }
        let mut latency = Listing::new(&["latency", "all µs", "with rows µs"]);
        let good = self.seen.good.as_ref().map(latencies);
        for (at, (name, micros)) in latencies(&tally.nanos).into_iter().enumerate() {
            let good = good.map_or(String::new(), |good| format!("{:.1}", good[at].1));
            latency.row(vec![name.to_owned(), format!("{micros:.1}"), good]);
        }
        out + "\n" + &latency.render() + "\n" + &picture::picture(&tally.nanos)
    }

    fn json(&self) -> String {
        let tally = &self.seen.tally;
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("url").string(self.url);
            write_load(w, self.load, tally);
            if self.load.rate.is_some() {
                w.field("sent_late").int(self.seen.late as i64);
            }
            write_troubles(w, tally);
            w.field("statuses").object(|w| {
                for (status, count) in &self.seen.statuses {
                    w.field(&status.to_string()).int(*count as i64);
                }
            });
            w.field("wall_s").float(self.wall.as_secs_f64());
            w.field("throughput_per_s").float(self.a_second(tally.ended()));
            w.field("goodput_per_s").float(self.a_second(self.good()));
            let good = self.seen.good.as_ref();
            for (name, times) in [("latency_us", Some(&tally.nanos)), ("good_latency_us", good)] {
                let Some(times) = times else { continue };
                w.field(name).object(|w| {
                    for (name, micros) in latencies(times) {
                        w.field(name).float(micros);
                    }
                });
            }
            picture::write(&tally.nanos, w.field("histogram"));
            w.field("client_cpu_s").float(self.cpu);
        });
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_there() {
        assert_eq!(head(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"), None);
        assert_eq!(head(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{"), Some((200, 40)));
        assert_eq!(head(b"HTTP/1.1 200 OK\r\nContent-Length:2\r\n\r\n{"), Some((200, 39)));
        let degraded = b"HTTP/1.1 200 OK\r\nRankd-Degraded: n4,n%207,+3\r\n\r\n";
        let nodes: Vec<String> =
            header(degraded, degraded_header::NAME).into_iter().flat_map(degraded_header::named).collect();
        assert_eq!(nodes, ["n4", "n 7"]);
        assert_eq!(kind(&Ok(503), b"{\"error\":{\"code\":\"E601\",\"kind\":\"overloaded\"}}"), "overloaded");
        assert_eq!(kind(&Ok(502), b"<html>"), "other");
        for (error, expected) in [
            (io::ErrorKind::ConnectionRefused, "connection_refused"),
            (io::ErrorKind::ConnectionReset, "connection_closed"),
            (io::ErrorKind::TimedOut, "no_answer"),
        ] {
            assert_eq!(kind(&Err(error.into()), b""), expected);
        }
    }
}
