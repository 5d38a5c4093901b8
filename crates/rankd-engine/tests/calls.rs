//! Calls of a real HTTP service: what is sent, what comes back, and what happens when the service fails.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts a service and says what is wrong"
)]

#[path = "calls/service.rs"]
mod service;

use bytes::Bytes;
use futures_util::future::join_all;
use rankd_engine::store::health::{BreakerState, Snapshot};
use rankd_engine::store::http::{HttpEndpoint, Site};
use rankd_engine::store::tls::Trust;
use rankd_engine::store::{Call, CallMethod, Calls, Open, StoreError};
use rankd_plan::registry::HttpPolicy;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use service::{Reply, Service};
use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::LocalRuntime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A client on a loop of its own.
struct Client {
    runtime: LocalRuntime,
    endpoint: HttpEndpoint,
    calls: Box<dyn Calls>,
}

type Body = Result<Option<String>, StoreError>;

impl Client {
    fn new(url: &str, policy: HttpPolicy) -> Client {
        Client::trusting(url, policy, None)
    }

    fn trusting(url: &str, policy: HttpPolicy, trust: Option<&Trust>) -> Client {
        let headers = [("authorization".to_owned(), "Bearer secret".to_owned())];
        let endpoint = HttpEndpoint::new("service", Site::new(url, &headers, policy, trust).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
        let calls = endpoint.open().calls.unwrap();
        Client { runtime: runtime.unwrap(), endpoint, calls }
    }

    fn get(&self, path: &str) -> Body {
        self.all(vec![get(path)]).remove(0)
    }

    /// Makes these calls at the same time.
    fn all(&self, calls: Vec<Call>) -> Vec<Body> {
        let calls = calls.into_iter().map(|call| self.calls.call(call));
        let text = |body: Bytes| String::from_utf8_lossy(&body).into_owned();
        let bodies = self.runtime.block_on(join_all(calls));
        bodies.into_iter().map(|body| body.map(|body| body.map(text))).collect()
    }

    /// Calls and does not wait for the answer for longer than this.
    fn give_up(&self, path: &str, after: Duration) {
        let waited = self.runtime.block_on(async { tokio::time::timeout(after, self.calls.call(get(path))).await });
        assert!(waited.is_err(), "it was answered: {waited:?}");
    }

    /// Lets what is under way go on.
    fn rest(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    fn health(&self) -> Snapshot {
        self.endpoint.health().unwrap().snapshot()
    }
}

fn get(path: &str) -> Call {
    Call { method: CallMethod::Get, path: path.to_owned(), body: None }
}

fn post(path: &str, body: &str) -> Call {
    Call { method: CallMethod::Post, path: path.to_owned(), body: Some(Bytes::from(body.to_owned())) }
}

/// Patient, because a machine may be busy; without second tries.
fn patient() -> HttpPolicy {
    HttpPolicy { connect_timeout_ms: 5_000, request_timeout_ms: 5_000, retry_percent: 0, ..HttpPolicy::default() }
}

fn code(body: &Body) -> (&'static str, &'static str) {
    match body {
        Ok(body) => panic!("it was answered: {body:?}"),
        Err(error) => (error.code().id, error.code().kind.name()),
    }
}

#[test]
fn both_versions_of_http_bring_what_the_service_answers_on_one_connection() {
    for http2 in [false, true] {
        let service = Service::start(|seen| Reply::ok(&format!("{} {}", seen.method, seen.path)));
        let client = Client::new(&format!("{}/v1/", service.url()), HttpPolicy { http2: Some(http2), ..patient() });
        assert_eq!(client.get("/items?limit=2"), Ok(Some("GET /v1/items?limit=2".into())));
        assert_eq!(client.all(vec![post("/rank", "{\"ids\":[1]}")]), [Ok(Some("POST /v1/rank".into()))]);
        let seen = service.seen();
        assert_eq!(seen.iter().map(|seen| seen.connection).collect::<Vec<_>>(), [1, 1], "http2: {http2}");
        assert_eq!(seen[0].version == hyper::Version::HTTP_2, http2);
        assert_eq!(
            (&seen[0].headers["authorization"], &seen[0].headers["accept"]),
            (&"Bearer secret".parse().unwrap(), &"application/json".parse().unwrap())
        );
        assert!(!seen[0].headers.contains_key("content-type"));
        assert_eq!(
            (&seen[1].headers["content-type"], seen[1].body.as_str()),
            (&"application/json".parse().unwrap(), "{\"ids\":[1]}")
        );
        let health = client.health();
        assert_eq!((health.connects, health.commands, health.answered(), health.errors), (1, 2, 2, 0));
    }
}

/// The side of a service that speaks TLS and offers these protocols, and who vouches for it.
fn encrypted(protocols: &[&[u8]]) -> (TlsAcceptor, Trust) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), Trust::in_pem(&authority.pem()).unwrap())
}

#[test]
fn with_tls_the_service_chooses_the_version_and_has_to_be_trusted() {
    for (offered, http2, spoken) in [
        (&[&b"h2"[..], b"http/1.1"][..], None, hyper::Version::HTTP_2),
        (&[&b"h2"[..], b"http/1.1"][..], Some(false), hyper::Version::HTTP_11),
        (&[&b"http/1.1"[..]][..], None, hyper::Version::HTTP_11),
        (&[][..], None, hyper::Version::HTTP_11),
    ] {
        let (tls, trust) = encrypted(offered);
        let service = Service::start_at("127.0.0.1:0".parse().unwrap(), Some(tls), |_| Reply::ok("[]"));
        let url = format!("https://localhost:{}", service.address.port());
        let policy = HttpPolicy { http2, connections: 2, ..patient() };
        let client = Client::trusting(&url, policy, Some(&trust));
        client.endpoint.probe().unwrap();
        let bodies = client.all((0..6).map(|at| get(&format!("/{at}"))).collect());
        assert!(bodies.iter().all(Result::is_ok), "{bodies:?}");
        assert!(service.seen().iter().all(|seen| seen.version == spoken), "{offered:?} {http2:?}");
        assert_eq!(client.health().connects, if spoken == hyper::Version::HTTP_2 { 1 } else { 2 });

        let (_, stranger) = encrypted(&[]);
        let wary = Client::trusting(&url, policy, Some(&stranger));
        assert_eq!(code(&wary.get("/")), ("E401", "upstream"));
        assert!(wary.endpoint.probe().is_err());
        let other_name = Client::trusting(&url.replace("localhost", "127.0.0.1"), policy, Some(&trust));
        assert_eq!(code(&other_name.get("/")), ("E401", "upstream"));
    }
}

#[test]
fn a_status_says_whose_fault_it_is() {
    let service = Service::start(|seen| {
        let status: u16 = seen.path[1..].parse().unwrap();
        Reply::Answer(status, vec![("location", "/200")], "why".into())
    });
    let client = Client::new(&service.url(), patient());
    for (status, expected) in [
        (200, Ok(Some("why".to_owned()))),
        (204, Ok(None)),
        (404, Ok(None)),
        (301, Err(("E432", "task"))),
        (304, Err(("E432", "task"))),
        (400, Err(("E432", "task"))),
        (401, Err(("E432", "task"))),
        (408, Err(("E431", "upstream"))),
        (425, Err(("E431", "upstream"))),
        (429, Err(("E431", "upstream"))),
        (500, Err(("E431", "upstream"))),
    ] {
        let body = client.get(&format!("/{status}"));
        match &expected {
            Ok(_) => assert_eq!(body.clone().ok(), expected.ok(), "{status}: {body:?}"),
            Err(expected) => assert_eq!(code(&body), *expected, "{status}"),
        }
    }
    let seen = service.seen();
    assert_eq!(seen.len(), 11, "redirects are not followed");
    assert!(seen.iter().all(|seen| seen.connection == 1), "each answer leaves its connection in order");
    let error = client.get("/503").unwrap_err();
    assert_eq!(error.for_callers("service"), "the endpoint \"service\" answered with status 503");
    assert!(error.detail().unwrap().ends_with("answered with status 503: \"why\""), "{error}");
}

#[test]
fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    for http2 in [false, true] {
        let service = Service::start(|seen| match seen.path.as_str() {
            "/declared" => Reply::ok(&"a".repeat(100_001)),
            "/endless" => Reply::Stream(100_000),
            _ => Reply::ok(&"a".repeat(100_000)),
        });
        let policy = HttpPolicy { http2: Some(http2), bytes_max: 100_000, ..patient() };
        let client = Client::new(&service.url(), policy);
        for path in ["/declared", "/endless"] {
            assert_eq!(code(&client.get(path)), ("E433", "upstream"), "{path}");
            assert_eq!(client.get("/good").unwrap().unwrap().len(), 100_000);
        }
        assert_eq!(client.health().breaker(), BreakerState::Closed);
    }
}

#[test]
fn a_compressed_answer_is_refused() {
    let service = Service::start(|_| Reply::Answer(200, vec![("content-encoding", "gzip")], "[]".into()));
    let client = Client::new(&service.url(), patient());
    assert_eq!(code(&client.get("/")), ("E434", "upstream"));
}

#[test]
fn equal_gets_are_sent_once_and_posts_each() {
    let service = Service::start(|_| Reply::After(Duration::from_millis(50), Box::new(Reply::ok("[]"))));
    let client = Client::new(&service.url(), patient());
    let bodies = client.all((0..10).map(|at| get(if at % 2 == 0 { "/a" } else { "/b" })).collect());
    assert!(bodies.iter().all(|body| *body == Ok(Some("[]".into()))), "{bodies:?}");
    assert_eq!((service.seen().len(), client.health().shared), (2, 8));
    client.all((0..3).map(|_| post("/a", "{}")).collect());
    assert_eq!(service.seen().len(), 5);
    client.get("/a").unwrap();
    assert_eq!(service.seen().len(), 6, "only what is in flight is shared");
}

#[test]
fn no_more_is_under_way_than_there_are_connections() {
    let service = Service::start(|_| Reply::After(Duration::from_millis(10), Box::new(Reply::ok("[]"))));
    let client = Client::new(&service.url(), HttpPolicy { connections: 2, ..patient() });
    let bodies = client.all((0..20).map(|at| get(&format!("/{at}"))).collect());
    assert!(bodies.iter().all(Result::is_ok), "{bodies:?}");
    assert_eq!((service.most_at_once(), client.health().connects), (2, 2));

    let client = Client::new(&service.url(), HttpPolicy { connections: 2, http2: Some(true), ..patient() });
    let bodies = client.all((0..60).map(|at| get(&format!("/{at}"))).collect());
    assert!(bodies.iter().all(Result::is_ok), "{bodies:?}");
    assert_eq!(client.health().connects, 2, "HTTP/2 has many on each");
}

#[test]
fn a_service_that_hangs_is_noticed_although_everybody_gives_up_earlier() {
    for hang in [|| Reply::Never, || Reply::Drip] {
        let well = Arc::new(AtomicBool::new(false));
        let is_well = well.clone();
        let service = Service::start(move |_| if is_well.load(Ordering::SeqCst) { Reply::ok("[]") } else { hang() });
        let policy = HttpPolicy { request_timeout_ms: 100, ..patient() };
        let client = Client::new(&service.url(), policy);
        for at in 0..5 {
            client.give_up(&format!("/{at}"), Duration::from_millis(5));
        }
        client.rest(Duration::from_millis(150));
        assert_eq!(client.health().breaker(), BreakerState::Open);
        let asked = service.seen().len();
        for at in 0..20 {
            assert_eq!(code(&client.get(&format!("/later/{at}"))), ("E404", "upstream"));
        }
        let sent = service.seen().len() - asked;
        assert!(sent < 10, "{sent} of 20 were sent, and not only single attempts");
        well.store(true, Ordering::SeqCst);
        until(|| client.get("/7").is_ok());
        assert_eq!((client.health().breaker(), client.health().opened), (BreakerState::Closed, 1));
    }
}

#[test]
fn a_service_that_keeps_failing_is_left_alone_until_it_answers_again() {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = well.clone();
    let service = Service::start(move |_| match is_well.load(Ordering::SeqCst) {
        true => Reply::ok("[]"),
        false => Reply::status(500, "no"),
    });
    let client = Client::new(&service.url(), patient());
    for _ in 0..100 {
        assert_eq!(code(&client.get("/")), ("E431", "upstream"));
    }
    assert!(service.seen().len() < 50, "{} of 100 were sent", service.seen().len());
    well.store(true, Ordering::SeqCst);
    until(|| client.get("/").is_ok());
    assert_eq!(client.health().breaker(), BreakerState::Closed);
}

#[test]
fn a_service_that_is_not_there_is_found_when_it_comes() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::new(&format!("http://{address}"), patient());
    assert_eq!(code(&client.get("/")), ("E401", "upstream"));
    assert_eq!(client.health().breaker(), BreakerState::Open);
    assert!(client.endpoint.probe().unwrap_err().to_string().contains("refused"));
    let service = Service::start_at(address, None, |_| Reply::ok("[]"));
    until(|| client.get("/").is_ok());
    assert_eq!(client.health().breaker(), BreakerState::Closed);
    client.endpoint.probe().unwrap();
    assert!(!service.seen().is_empty());
}

#[test]
fn a_get_whose_connection_was_lost_is_sent_once_more_and_a_post_is_not() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let service = Service::start(move |_| match count.fetch_add(1, Ordering::SeqCst) % 2 {
        0 => Reply::Close,
        _ => Reply::ok("[]"),
    });
    let client = Client::new(&service.url(), HttpPolicy { retry_percent: 100, ..patient() });
    assert_eq!(client.get("/"), Ok(Some("[]".into())));
    assert_eq!((sent.load(Ordering::SeqCst), client.health().retries), (2, 1));
    assert_eq!(code(&client.all(vec![post("/", "{}")])[0]), ("E401", "upstream"));
    assert_eq!(sent.load(Ordering::SeqCst), 3);
}

#[test]
fn without_a_budget_nothing_is_sent_again() {
    let service = Service::start(|_| Reply::Close);
    let client = Client::new(&service.url(), patient());
    assert_eq!(code(&client.get("/")), ("E401", "upstream"));
    assert_eq!((service.seen().len(), client.health().retries), (1, 0));
}

#[test]
fn a_connection_that_the_service_has_closed_meanwhile_costs_nothing() {
    let service = Service::start(|_| Reply::Answer(200, vec![("connection", "close")], "[]".into()));
    let client = Client::new(&service.url(), patient());
    for _ in 0..3 {
        assert_eq!(client.all(vec![post("/", "{}")]), [Ok(Some("[]".into()))]);
    }
    assert_eq!((client.health().errors, client.health().retries), (0, 0));
}

#[test]
fn what_does_not_speak_http_is_an_error_and_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (at, socket) in listener.incoming().enumerate() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 1]);
            // Closing with something unread resets the connection.
            if at % 2 == 1 {
                let _ = std::io::Write::write_all(&mut socket, b"+PONG\r\n");
            }
        }
    });
    for http2 in [false, true] {
        let client = Client::new(&url, HttpPolicy { http2: Some(http2), request_timeout_ms: 1_000, ..patient() });
        for _ in 0..4 {
            assert_eq!(code(&client.get("/")), ("E401", "upstream"));
        }
    }
}

/// Tries until it holds; not for ever.
fn until(mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "it does not come to hold");
    }
}
