//! Captures of a server whose store fails under load: a Redis server that freezes, dies and comes back, keys that are missing and keys of the wrong type. Every run that
//! was answered comes out again, byte by byte, on every scheduler.

use crate::captures::{all_is_the_same, stop};
use crate::redis_server;
use crate::server::{Folder, Server, node, repository};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const REQUESTS: usize = 2000;
const CLIENTS: usize = 8;
/// Users 1 to 100 are in the data; the others have nothing.
const USERS: usize = 120;

/// What came of the requests so far.
#[derive(Default)]
struct Tally {
    sent: AtomicUsize,
    ok: AtomicUsize,
    degraded: AtomicUsize,
    failed: AtomicUsize,
    refused: AtomicUsize,
}

impl Tally {
    fn answered(&self) -> usize {
        [&self.ok, &self.degraded, &self.failed, &self.refused].iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn wait_for(&self, answers: usize) {
        while self.answered() < answers {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Asks until so many requests were sent.
fn ask(address: &str, tally: &Tally) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut stream = BufReader::new(stream);
    loop {
        let number = tally.sent.fetch_add(1, Ordering::Relaxed);
        if number >= REQUESTS {
            return;
        }
        let plan = ["for_you", "complex_dag", "spared", "simple_viewer"][number % 4];
        let body = format!(
            r#"{{"user_id":{},"request_id":"r{number}","trace":{}}}"#,
            1 + number % USERS,
            number.is_multiple_of(50)
        );
        let accept = if !number.is_multiple_of(50) && number.is_multiple_of(3) {
            "application/vnd.apache.arrow.stream"
        } else {
            "*/*"
        };
        let length = body.len();
        let request = format!(
            "POST /rank/{plan} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: {accept}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).unwrap() > 0, "it closed the connection: {head}");
        }
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).unwrap();
        let count = match head.split(' ').nth(1).unwrap() {
            "200" if head.contains("rankd-degraded: ") => &tally.degraded,
            "200" => &tally.ok,
            // It was turned away before it ran.
            "503" => &tally.refused,
            _ => &tally.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Plans with fallbacks for all that they read and for a part of it, one that fails with its store, and one that reads little.
fn plans() -> Folder {
    let plans = Folder::new();
    for name in ["for_you", "complex_dag", "simple_viewer"] {
        let file = format!("{name}.plan.json");
        std::fs::copy(repository().join("plans").join(&file), plans.0.join(&file)).unwrap();
    }
    let hydrate = node(
        "n1",
        "hydrate",
        &["n0"],
        r#""endpoint":"redis_default","prefix":"user","keys":["country","age","verified"]"#,
    );
    let hydrate = hydrate.replacen("{", r#"{"fallback":"input","timeout_ms":60,"#, 1);
    plans.plan("spared", &[node("n0", "fixed_source", &[], "\"row_count\":40"), hydrate], "n1");
    plans
}

fn signal(store: &redis_server::Server, signal: &str) {
    let status = Command::new("kill").args([signal, &store.child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
}

#[test]
fn two_thousand_requests_in_all_weathers_come_out_again() {
    let mut store = redis_server::Server::start(&[]);
    let registry = Folder::new();
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), registry.0.join(name)).unwrap();
    }
    let endpoint = format!(
        "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\nurl = {:?}\nrequest_timeout_ms = 150\n",
        store.url()
    );
    registry.write("endpoints.local.toml", &endpoint);
    let at = registry.0.to_str().unwrap();
    let mut seed = Command::new(env!("CARGO_BIN_EXE_rankd"));
    let seeded = seed.current_dir(repository()).args(["seed", "--env", "local", "--registry", at]).output().unwrap();
    assert!(seeded.status.success(), "{}", String::from_utf8_lossy(&seeded.stderr));
    for user in ["3", "4", "5"] {
        store.must(&["DEL", &format!("user:{user}"), &format!("follow:{user}")]);
    }
    // Of the wrong type: a hash that is a list, lists that are texts or have what are no ids.
    store.must(&["LPUSH", "user:3", "1"]);
    store.must(&["SET", "follow:4", "text"]);
    store.must(&["RPUSH", "follow:5", "6", "x", "7"]);
    store.must(&["DEL", "recommendation:8", "user:9"]);
    store.must(&["SAVE"]);
    let captures = registry.0.join("captures");
    let flags = ["--registry", at, "--capture", captures.to_str().unwrap(), "--deadline_ms", "400", "--loops", "2"];
    let server = Server::start(&plans().0, &flags);
    let tally = Tally::default();
    thread::scope(|scope| {
        (0..CLIENTS).for_each(|_| drop(scope.spawn(|| ask(&server.address, &tally))));
        tally.wait_for(500);
        signal(&store, "-STOP");
        tally.wait_for(800);
        signal(&store, "-CONT");
        tally.wait_for(1100);
        store.child.kill().and_then(|()| store.child.wait()).unwrap();
        tally.wait_for(1400);
        store.child = redis_server::spawn(store.port, &store.folder, &[]);
        assert!(store.wait_until_it_answers(), "the server comes back");
    });
    let Tally { ok, degraded, failed, refused, .. } = tally;
    let [ok, degraded, failed, refused] = [ok, degraded, failed, refused].map(AtomicUsize::into_inner);
    assert_eq!(ok + degraded + failed + refused, REQUESTS);
    assert!(ok > 100 && degraded > 50 && failed > 50, "{ok} whole, {degraded} degraded, {failed} failed");
    assert!(refused < REQUESTS / 4, "{refused} were turned away");
    stop(server);
    all_is_the_same(&captures, REQUESTS - refused);
}
