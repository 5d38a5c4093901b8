//! `rankd healthcheck`: asks a server whether it takes requests, for containers that have no other program to ask with.

use crate::cli::{DONE, FAILED, say};
use clap::Args;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct HealthcheckArgs {
    /// Address of the server
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Only check whether the process is alive
    #[arg(long)]
    alive: bool,
    /// How long the answer may take, in ms
    #[arg(long, value_name = "N", default_value = "2000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout_ms: u64,
}

pub(crate) fn run(args: &HealthcheckArgs) -> u8 {
    let path = if args.alive { "/healthz" } else { "/readyz" };
    match ask(args.listen, path, Duration::from_millis(args.timeout_ms)) {
        Ok(line) if line.contains(" 200 ") => DONE,
        Ok(line) => {
            say::to_people(&format!("{path}: {line}"));
            FAILED
        }
        Err(error) => {
            say::to_people(&format!("{}: {error}", args.listen));
            FAILED
        }
    }
}

/// The first line of the answer.
fn ask(address: SocketAddr, path: &str, patience: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(64 << 10).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}
