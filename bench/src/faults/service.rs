//! `http_fetch` from a service that hangs, drips, fails, breaks off or answers without end: is every request answered by its deadline?
//!
//! Where every call fails, the breaker opens and most requests fail at once; so each fault is also tried on every other call, which
//! keeps it closed.

use crate::faults::load::{Load, Step, post};
use crate::faults::overload::{DEADLINE, FLAGS};
use crate::faults::stage::{Folder, met, node, plan};
use crate::faults::tally::Tally;
use crate::http::server::{Server, repository};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PLAN: &str = "fetched";
const STEP: Step = Step { rate: 100.0, time: Duration::from_secs(5) };
/// Requests that may wait for an answer at the same time.
const CONNECTIONS: usize = 64;
/// So many users, so that few requests share one call.
const USERS: usize = 100;

/// What the service does with a call instead of answering it.
#[derive(Clone, Copy)]
enum Fault {
    /// It says nothing.
    Hang,
    /// A byte of the answer every 10 ms.
    Drip,
    /// Status 500.
    Fail,
    /// The connection is reset.
    Reset,
    /// An answer that never ends, as fast as it is read.
    Huge,
}

const FAULTS: [(&str, Fault); 5] = [
    ("says nothing", Fault::Hang),
    ("a byte every 10 ms", Fault::Drip),
    ("status 500", Fault::Fail),
    ("connection reset", Fault::Reset),
    ("endless answer", Fault::Huge),
];

pub fn run(wanted: impl Fn(&str) -> bool) {
    println!(
        "{} requests for each line, {:.0} a second, of a plan with one `http_fetch`, to `rankd serve` with its default settings and a deadline \
         of 100 ms. Late is later than 120 ms. An endpoint whose calls keep failing is left alone for a while, so that most requests fail at \
         once; every other call failing keeps it in use.\n",
        (STEP.rate * STEP.time.as_secs_f64()) as usize,
        STEP.rate
    );
    println!(
        "| the service's answer | on calls | calls made | rows | 502 | 503 | 504 | p50 ms | p99 ms | slowest ms | late | goal | met |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for (name, fault) in FAULTS.into_iter().filter(|(name, _)| wanted(name)) {
        for (calls, every) in [("all", 1), ("every other", 2)] {
            let service = Service::start(fault, every);
            let (plans, registry) = (Folder::new(), service.registry());
            let fetch = r#""endpoint":"service","path":"/items/{user_id}","rows":"/items","fields":{"title":"title"}"#;
            plans.plan(PLAN, &plan(PLAN, &[node("n0", "http_fetch", &[], fetch)], "n0"));
            let flags = ["--registry", &registry.path().to_string_lossy()];
            let server = Server::rankd(plans.path(), &[&FLAGS[..], &flags].concat());
            let requests: Vec<Vec<u8>> =
                (1..=USERS).map(|user| post(PLAN, &format!(r#"{{"user_id":{user}}}"#))).collect();
            let right = |_: usize, answer: &str| answer.contains(r#""title":"One""#);
            let (address, connections, steps) = (&server.address, CONNECTIONS, [STEP]);
            let load = Load { address, connections, requests: &requests, steps: &steps, retries: 0, right: &right };
            let answers = load.drive();
            let tally = Tally::of(&answers);
            assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, or wrongly answered");
            assert_eq!(tally.others(&[502, 503, 504]), [], "statuses that nobody expects");
            let counts = [200, 502, 503, 504].map(|status| tally.with(status).to_string()).join(" | ");
            let times = [50.0, 99.0, 100.0].map(|percent| format!("{:.1}", tally.ms(percent))).join(" | ");
            let (made, late) = (service.calls.load(Ordering::Relaxed), tally.late(DEADLINE));
            println!("| {name} | {calls} | {made} | {counts} | {times} | {late} | 0 | {} |", met(late == 0));
        }
    }
}

/// A service with a fault on every call, or on every so many.
struct Service {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
}

impl Service {
    /// One thread a connection; they end with the connections, and the one that listens with the process.
    fn start(fault: Fault, every: usize) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let calls = counted.clone();
                std::thread::spawn(move || serve(stream, fault, every, &calls));
            }
        });
        Service { address, calls }
    }

    /// A registry with this service as an endpoint.
    fn registry(&self) -> Folder {
        let folder = Folder::new();
        for name in ["keys.toml", "params.toml"] {
            std::fs::copy(repository().join("registry").join(name), folder.path().join(name)).expect("a registry");
        }
        let endpoint =
            format!("[[endpoint]]\nname = \"service\"\nkind = \"http\"\nurl = \"http://{}\"\n", self.address);
        std::fs::write(folder.path().join("endpoints.local.toml"), endpoint).expect("a file can be written");
        folder
    }
}

const GOOD: &str = r#"{"items":[{"id":1,"title":"One"}]}"#;

/// Answers the calls of a connection until either side has enough of it.
fn serve(mut stream: TcpStream, fault: Fault, every: usize, calls: &AtomicUsize) {
    loop {
        // What is not read when a connection is closed makes it a reset.
        let mut first = [0; 1];
        if !matches!(stream.peek(&mut first), Ok(1)) {
            return;
        }
        let faulty = calls.fetch_add(1, Ordering::Relaxed) % every == 0;
        if faulty && matches!(fault, Fault::Reset) {
            return;
        }
        let done = if read_call(&mut stream).is_none() {
            return;
        } else if faulty {
            fail(&mut stream, fault)
        } else {
            answer(&mut stream, "200 OK", GOOD)
        };
        if done.is_err() {
            return;
        }
    }
}

/// Reads a call without a body to its end.
fn read_call(stream: &mut TcpStream) -> Option<()> {
    let (mut call, mut bytes) = (Vec::new(), [0; 4096]);
    while !call.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        call.extend_from_slice(&bytes[..count]);
    }
    Some(())
}

fn answer(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes())
}

fn fail(stream: &mut TcpStream, fault: Fault) -> std::io::Result<()> {
    match fault {
        Fault::Hang => {
            // Until the caller closes it.
            stream.read(&mut [0; 1])?;
            Err(std::io::ErrorKind::UnexpectedEof.into())
        }
        Fault::Drip => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")?;
            stream.set_nodelay(true)?;
            loop {
                stream.write_all(b" ")?;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Fault::Fail => answer(stream, "500 Internal Server Error", "no"),
        Fault::Reset => unreachable!("the call is not read"),
        Fault::Huge => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b' '; 64 << 10])?;
            }
        }
    }
}
