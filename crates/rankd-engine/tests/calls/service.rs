//! A real HTTP service on loopback, for tests: hyper's server on a thread of its own, HTTP/1.1 and HTTP/2.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// A request as the service saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// Which of the service's connections it came on, from 1.
    pub(crate) connection: usize,
}

/// What the service does with a request.
pub(crate) enum Reply {
    /// A status, headers and a body.
    Answer(u16, Vec<(&'static str, &'static str)>, String),
    /// The same after a while.
    After(Duration, Box<Reply>),
    /// So many pieces of 64 KiB of `a`, without saying beforehand how many.
    Stream(usize),
    /// A space every 10 ms, without end.
    Drip,
    /// No answer, ever.
    Never,
    /// The connection is closed.
    Close,
}

impl Reply {
    pub(crate) fn ok(body: &str) -> Reply {
        Reply::status(200, body)
    }

    pub(crate) fn status(status: u16, body: &str) -> Reply {
        Reply::Answer(status, Vec::new(), body.to_owned())
    }
}

type Handle = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    most_at_once: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(crate) fn start(handle: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Service {
        Service::start_at("127.0.0.1:0".parse().unwrap(), None, handle)
    }

    /// One at a given address, with TLS or without.
    pub(crate) fn start_at(
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        handle: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Service {
        let handle: Handle = Arc::new(handle);
        let (seen, most_at_once) = (Arc::default(), Arc::default());
        let (stop, stopped) = oneshot::channel();
        let (ready, address_of) = mpsc::channel();
        let (seen_there, most_there) = (Arc::clone(&seen), Arc::clone(&most_at_once));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
            runtime.unwrap().block_on(async {
                let listener = TcpListener::bind(address).await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = accept(listener, tls, handle, seen_there, most_there) => {}
                    _ = stopped => {}
                }
            });
        });
        let address = address_of.recv().unwrap();
        Service { address, seen, most_at_once, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The most requests that were under way at a time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handle: Handle,
    seen: Arc<Mutex<Vec<Seen>>>,
    most: Arc<AtomicUsize>,
) {
    let now = Arc::new(AtomicUsize::new(0));
    for connection in 1.. {
        let (socket, _) = listener.accept().await.unwrap();
        let (tls, handle, seen, most, now) = (tls.clone(), handle.clone(), seen.clone(), most.clone(), now.clone());
        tokio::task::spawn_local(async move {
            let serve = service_fn(move |request| {
                let (handle, seen, most, now) = (handle.clone(), seen.clone(), most.clone(), now.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let _count = Count(now);
                    let request = read(request, connection).await;
                    seen.lock().unwrap().push(request.clone());
                    respond(handle(&request)).await
                }
            });
            // What a client does to its connection is not the service's concern.
            let _ = match tls {
                None => auto::Builder::new(Local).serve_connection(TokioIo::new(socket), serve).await,
                Some(tls) => match tls.accept(socket).await {
                    Ok(socket) => auto::Builder::new(Local).serve_connection(TokioIo::new(socket), serve).await,
                    Err(_) => Ok(()),
                },
            };
        });
    }
}

/// One request that is under way.
struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone)]
struct Local;

impl<F: Future + 'static> Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async { drop(future.await) });
    }
}

async fn read(request: Request<Incoming>, connection: usize) -> Seen {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Seen {
        method: parts.method,
        path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        version: parts.version,
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        connection,
    }
}

type Answer = Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error>;

async fn respond(mut reply: Reply) -> Answer {
    while let Reply::After(time, then) = reply {
        tokio::time::sleep(time).await;
        reply = *then;
    }
    match reply {
        Reply::Answer(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
            Ok(response.body(UnsyncBoxBody::new(body)).unwrap())
        }
        Reply::Stream(pieces) => {
            let piece = Bytes::from(vec![b'a'; 64 << 10]);
            let pieces = (0..pieces).map(move |_| Ok(Frame::data(piece.clone())));
            Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(futures_util::stream::iter(pieces)))))
        }
        Reply::Drip => {
            let pieces = futures_util::stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
            });
            Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(pieces))))
        }
        Reply::Never => std::future::pending().await,
        Reply::Close => Err(io::Error::other("the test wants the connection closed")),
        Reply::After(..) => unreachable!("it was waited for"),
    }
}
