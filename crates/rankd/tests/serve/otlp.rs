//! Spans, as a collector gets them: a small one here, which keeps what it is sent.

use crate::client::{curl, metric, metrics_until, post};
use crate::json::Json;
use crate::server::{Folder, PATIENCE, Server, node};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Takes exports until the test is over. Gives its address, and the path and the body of each.
fn collector(status: &'static str) -> (String, Receiver<(String, Json)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, exports) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(stream.read_line(&mut head).unwrap() > 0, "half a head: {head}");
            }
            assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
            let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
            let path = head.split(' ').nth(1).unwrap().to_owned();
            if sender.send((path, Json::read(&String::from_utf8(body).unwrap()))).is_err() {
                return;
            }
        }
    });
    (address, exports)
}

/// The next spans, of as many exports as it takes to have so many.
fn spans(exports: &Receiver<(String, Json)>, count: usize) -> Vec<Json> {
    let mut all = Vec::new();
    while all.len() < count {
        let (path, body) = exports.recv_timeout(PATIENCE).unwrap();
        assert_eq!(path, "/v1/traces");
        for resource in body.list("resourceSpans") {
            assert_eq!(attribute(resource.at("resource"), "service.name"), "rankd");
            resource.list("scopeSpans").iter().for_each(|scope| all.extend(scope.list("spans").iter().cloned()));
        }
    }
    assert_eq!(all.len(), count, "{all:?}");
    all
}

/// An attribute as text; empty where there is none.
fn attribute(of: &Json, key: &str) -> String {
    let found = of.list("attributes").iter().find(|one| one.text("key") == key);
    let value = found.map(|one| one.at("value"));
    let kinds = ["stringValue", "intValue"];
    value
        .and_then(|value| kinds.into_iter().find(|kind| value.has(kind)).map(|kind| value.text(kind).to_owned()))
        .unwrap_or_default()
}

fn times(span: &Json) -> (u128, u128) {
    let at = |name: &str| span.text(name).parse().unwrap();
    (at("startTimeUnixNano"), at("endTimeUnixNano"))
}

fn unix_nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

fn folder() -> Folder {
    let folder = Folder::new();
    let rows = || node("n0", "fixed_source", &[], r#""row_count":3"#);
    let slow = |more: &str| node("n1", "sleep", &["n0"], &format!(r#""duration_ms":30{more}"#));
    folder.plan("slow", &[rows(), slow("")], "n1");
    folder.plan("failing", &[rows(), slow(r#","fail_after_sleep":true"#)], "n1");
    folder
}

fn recorded(server: &Server, plan: &str, flags: &str) -> u16 {
    let (parent, url) = (format!("traceparent: 00-{TRACE}-{CALLER}-{flags}"), server.url(&format!("/rank/{plan}")));
    let body = r#"{"user_id":1,"request_id":"asked"}"#;
    curl(&["-H", "content-type: application/json", "-H", &parent, "-d", body, &url]).status
}

#[test]
fn a_recorded_request_is_a_span_under_its_caller_with_its_nodes_below() {
    let folder = folder();
    let (address, exports) = collector("200 OK");
    let server = Server::start(&folder.0, &["--otlp", &format!("http://{address}"), "--otlp_sample", "0"]);
    let before = unix_nanos();
    // Nobody records this one.
    assert_eq!(recorded(&server, "slow", "00"), 200);
    assert_eq!(recorded(&server, "slow", "01"), 200);
    let after = unix_nanos();
    let all = spans(&exports, 3);
    let [request, nodes @ ..] = all.as_slice() else { unreachable!() };
    assert_eq!((request.text("name"), request.at("kind")), ("POST /rank/{plan}", &Json::Number(2.0)));
    assert_eq!((request.text("traceId"), request.text("parentSpanId")), (TRACE, CALLER));
    for (key, value) in [
        ("http.route", "/rank/{plan}"),
        ("http.response.status_code", "200"),
        ("rankd.plan", "slow"),
        ("rankd.request_id", "asked"),
        ("rankd.rows", "3"),
        ("rankd.outcome", "ok"),
    ] {
        assert_eq!(attribute(request, key), value, "{key}");
    }
    let (start, end) = times(request);
    // The two clocks are read one after the other, so a moment is forgiven.
    let moment = Duration::from_millis(5).as_nanos();
    assert!(before <= start + moment && end <= after + moment, "{before} {start} {end} {after}");
    let ids: HashSet<&str> = all.iter().map(|span| span.text("spanId")).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| id.len() == 16 && *id != CALLER), "{ids:?}");
    let told: Vec<_> = nodes.iter().map(|one| (one.text("name").to_owned(), attribute(one, "rankd.node"))).collect();
    assert_eq!(told, [("fixed_source", "n0"), ("sleep", "n1")].map(|(op, id)| (op.to_owned(), id.to_owned())));
    for one in nodes {
        assert_eq!((one.text("traceId"), one.text("parentSpanId")), (TRACE, request.text("spanId")));
        let (first, last) = times(one);
        assert!(start <= first && first <= last && last <= end, "{start} {first} {last} {end}");
    }
    let (first, last) = times(&nodes[1]);
    assert!(last - first >= Duration::from_millis(30).as_nanos() && times(&nodes[0]).1 <= first);
    assert!(!all.iter().any(|span| span.has("status")), "nothing went wrong: {all:?}");
}

#[test]
fn failures_are_told_and_one_in_so_many_starts_a_trace_of_its_own() {
    let folder = folder();
    let (address, exports) = collector("200 OK");
    let mut server =
        Server::start(&folder.0, &["--otlp", &format!("http://{address}"), "--otlp_sample", "2", "--loops", "1"]);
    assert_eq!(recorded(&server, "failing", "01"), 500);
    let failed = spans(&exports, 3);
    let codes: Vec<&Json> = failed.iter().map(|span| span.at("status.code")).collect();
    assert_eq!(codes, [&Json::Number(2.0), &Json::Null, &Json::Number(2.0)]);
    assert_eq!((attribute(&failed[0], "rankd.outcome").as_str(), failed[0].text("traceId")), ("task", TRACE));
    // The second of the server's requests: there is no such plan, so there are no nodes, and it is the caller's error.
    assert_eq!(post(&server.url("/rank/nowhere"), r#"{"user_id":1}"#).status, 404);
    // The third is nobody's. The fourth leaves while the process ends.
    assert_eq!(post(&server.url("/rank/slow"), r#"{"user_id":1}"#).status, 200);
    assert_eq!(post(&server.url("/rank/slow"), r#"{"user_id":1}"#).status, 200);
    server.signal("-TERM");
    assert!(server.ended(PATIENCE).success());
    let rest = spans(&exports, 4);
    assert!(!rest[0].has("parentSpanId") && !rest[0].has("status") && !rest[1].has("parentSpanId"), "{rest:?}");
    assert_eq!(attribute(&rest[0], "http.response.status_code"), "404");
    let traces: HashSet<&str> = rest.iter().map(|span| span.text("traceId")).collect();
    assert!(traces.len() == 2 && traces.iter().all(|id| id.len() == 32 && *id != TRACE), "{traces:?}");
}

#[test]
fn a_collector_that_is_away_or_refuses_costs_no_request() {
    let folder = folder();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (refusing, _exports) = collector("503 Service Unavailable");
    for address in [gone, refusing] {
        let server = Server::start(&folder.0, &["--otlp", &format!("http://{address}"), "--otlp_sample", "1"]);
        for _ in 0..3 {
            assert_eq!(post(&server.url("/rank/slow"), r#"{"user_id":1}"#).status, 200);
        }
        let dropped = "rankd_span_requests_total{result=\"dropped\"}";
        let metrics = metrics_until(&server.address, |metrics| metric(metrics, dropped) >= 3.0);
        assert_eq!(metric(&metrics, dropped), 3.0);
        assert_eq!(metric(&metrics, "rankd_span_requests_total{result=\"sent\"}"), 0.0);
    }
}
