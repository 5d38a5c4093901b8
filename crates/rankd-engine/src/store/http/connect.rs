//! Makes one connection to a service: TCP, TLS where it is asked, and the version of HTTP that both sides speak.

use crate::store::http::site::Site;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper::rt::{Executor, Read, Write};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::Future;
use std::io;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// The largest head of an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// What a server may send on HTTP/2 before it waits for us: for one answer, and for all on a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

pub(super) type SendOne = http1::SendRequest<Full<Bytes>>;
pub(super) type SendMany = http2::SendRequest<Full<Bytes>>;

/// A connection, by what can be sent on it.
pub(super) enum Connected {
    /// HTTP/1.1: one request after the other.
    One(SendOne),
    /// HTTP/2: several at a time.
    Many(SendMany),
}

/// Why there is no connection, in words for the log.
#[derive(Debug)]
pub(super) struct NotConnected(pub(super) String);

impl From<io::Error> for NotConnected {
    fn from(error: io::Error) -> NotConnected {
        NotConnected(error.to_string())
    }
}

impl From<hyper::Error> for NotConnected {
    fn from(error: hyper::Error) -> NotConnected {
        NotConnected(error.to_string())
    }
}

/// Connects once, within the time that the endpoint allows.
pub(super) async fn connect(site: &Site) -> Result<Connected, NotConnected> {
    let late = |_| NotConnected(format!("no connection within {} ms", site.policy.connect_timeout_ms));
    timeout(site.connect_timeout(), open(site)).await.map_err(late)?
}

async fn open(site: &Site) -> Result<Connected, NotConnected> {
    let socket = TcpStream::connect((site.host.as_str(), site.port)).await?;
    socket.set_nodelay(true)?;
    let Some((connector, name)) = &site.tls else {
        return greet(socket, site.policy.http2 == Some(true)).await;
    };
    let socket = connector.connect(name.clone(), socket).await?;
    let chosen = socket.get_ref().1.alpn_protocol();
    let is_second = match site.policy.http2 {
        // A server that does not choose speaks what was there before there was a choice.
        None => chosen == Some(b"h2"),
        Some(wanted) => wanted,
    };
    greet(socket, is_second).await
}

async fn greet<S>(socket: S, is_second: bool) -> Result<Connected, NotConnected>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
{
    if is_second { greet_second(TokioIo::new(socket)).await } else { greet_first(TokioIo::new(socket)).await }
}

async fn greet_first(socket: impl Read + Write + Unpin + 'static) -> Result<Connected, NotConnected> {
    let (sender, connection) = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(socket).await?;
    // Why it ends is told to whoever has a request on it.
    tokio::task::spawn_local(async { drop(connection.await) });
    Ok(Connected::One(sender))
}

async fn greet_second(socket: impl Read + Write + Unpin + 'static) -> Result<Connected, NotConnected> {
    let mut builder = http2::Builder::new(OnThisLoop);
    builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    builder.max_header_list_size(HEAD_BYTES_MAX as u32);
    let (sender, connection) = builder.handshake(socket).await?;
    tokio::task::spawn_local(async { drop(connection.await) });
    Ok(Connected::Many(sender))
}

/// Runs what hyper needs beside a connection on the same loop.
#[derive(Clone)]
struct OnThisLoop;

impl<F: Future<Output = ()> + 'static> Executor<F> for OnThisLoop {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Why a service cannot be reached.
#[derive(Debug)]
pub struct ProbeError {
    pub address: String,
    pub why: String,
}

impl std::error::Error for ProbeError {}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.why)
    }
}

/// Whether a connection can be made. For set-up: it blocks.
pub(super) fn probe(site: &Site) -> Result<(), ProbeError> {
    let failed = |why: String| ProbeError { address: site.shown(), why };
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    let runtime = runtime.map_err(|error| failed(format!("cannot start a runtime: {error}")))?;
    let connected = runtime.block_on(connect(site));
    // Does not wait for a thread that resolves a name.
    runtime.shutdown_background();
    connected.map(drop).map_err(|NotConnected(why)| failed(why))
}
