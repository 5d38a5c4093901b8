//! Clients: curl for whole requests, and a connection by hand for what no good client does.

use crate::json::Json;
use crate::server::PATIENCE;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case, a line each.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        Json::read(&self.body)
    }

    pub(crate) fn kind(&self) -> String {
        self.json().text("error.kind").to_owned()
    }
}

pub(crate) fn curl(args: &[&str]) -> Answer {
    let output = Command::new("curl").args(["-s", "-S", "-i", "--max-time", "60"]).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "curl {args:?}: {}{text}", String::from_utf8_lossy(&output.stderr));
    // An answer that only says to go on comes before the real one.
    let text = text.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(&text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers: head.to_lowercase(), body: body.to_owned() }
}

pub(crate) fn get(url: &str) -> Answer {
    curl(&[url])
}

pub(crate) fn post(url: &str, body: &str) -> Answer {
    curl(&["-H", "content-type: application/json", "-d", body, url])
}

/// Asks for the metrics until they say what is waited for. Gives them.
pub(crate) fn metrics_until(address: &str, what: impl Fn(&str) -> bool) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let metrics = get(&format!("http://{address}/metrics")).body;
        if what(&metrics) {
            return metrics;
        }
        assert!(Instant::now() < until, "this has been waited for long enough:\n{metrics}");
    }
}

/// The value of a metric, written as its name and labels are.
pub(crate) fn metric(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// A connection by hand.
pub(crate) struct Line {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Line {
    pub(crate) fn open(address: &str) -> Line {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Line { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, text: &str) -> std::io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> std::io::Result<()> {
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
    }

    /// The next answer on this connection; an error where it was closed instead.
    pub(crate) fn answer(&mut self) -> std::io::Result<Answer> {
        let closed = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let mut headers = String::new();
        loop {
            let before = headers.len();
            if self.stream.read_line(&mut headers)? == 0 {
                return Err(closed());
            }
            if &headers[before..] == "\r\n" {
                break;
            }
        }
        let headers = headers.to_lowercase();
        let length = headers.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        let status = headers.split(' ').nth(1).ok_or_else(closed)?.parse().unwrap();
        Ok(Answer { status, headers, body: String::from_utf8(body).unwrap() })
    }

    /// Whether the other side closes the connection without another word.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        // A reset is a way to close, too.
        !matches!(self.stream.read_to_end(&mut rest), Ok(count) if count > 0)
    }
}
