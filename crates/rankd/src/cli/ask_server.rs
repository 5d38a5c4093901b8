//! One request to a server over HTTP/1.1, and its whole answer: what commands need that talk to a server now and then. `bench` has a client
//! of its own, because it needs many at a time.

use crate::cli::command_error::BadArgument;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// More of an answer is not read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// What a server answered.
pub(crate) struct ServerAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The address in a URL, and the path after it, without its slash.
pub(crate) fn split_url(url: &str) -> Result<(String, &str), BadArgument> {
    let rest = url.strip_prefix("http://").ok_or(BadArgument::from("the URL must begin with http://"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = if address.contains(':') { address.to_owned() } else { format!("{address}:80") };
    Ok((address, path))
}

/// Asks; each step may take so long.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str, patience: Duration) -> io::Result<ServerAnswer> {
    let resolved = address.to_socket_addrs()?.next();
    let resolved = resolved.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address"))?;
    let mut stream = TcpStream::connect_timeout(&resolved, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let json = if body.is_empty() {
        String::new()
    } else {
        format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
    };
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{json}\r\n{body}")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    parse(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}

fn parse(answer: &str) -> Option<ServerAnswer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(ServerAnswer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_address_and_a_path() {
        let split = |url| split_url(url).map_err(|error| error.to_string());
        assert_eq!(split("http://127.0.0.1:9090"), Ok(("127.0.0.1:9090".to_owned(), "")));
        assert_eq!(split("http://host/rank/feed"), Ok(("host:80".to_owned(), "rank/feed")));
        assert!(split("https://host").is_err());
    }

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let answer = parse("HTTP/1.1 404 Not Found\r\na: b\r\n\r\n{}").map(|answer| (answer.status, answer.body));
        assert_eq!(answer, Some((404, "{}".to_owned())));
        assert!(parse("SSH-2.0").is_none() && parse("HTTP/1.1\r\n\r\n").is_none());
    }
}
