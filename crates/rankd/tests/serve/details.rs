//! The fine print of HTTP: hosts, kinds of bodies, bodies that are broken or too large, HEAD; over both versions.

use crate::client::{Answer, Line, curl, get};
use crate::http2::{Client, DATA, HEADERS, RST_STREAM};
use crate::server::{Folder, Server, rows};

const USER: &str = r#"{"user_id":1}"#;
const BOTH: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

fn server(flags: &[&str]) -> (Folder, Server) {
    let folder = Folder::new();
    let (name, nodes) = rows("rows", 3);
    folder.plan(&name, &nodes, "n0");
    let server = Server::start(&folder.0, flags);
    (folder, server)
}

/// The answer to some bytes on a connection of their own.
fn by_hand(server: &Server, request: &str) -> Answer {
    let mut line = Line::open(&server.address);
    // The answer may come before all of it is sent.
    let _ = line.send(request);
    line.answer().unwrap()
}

#[test]
fn the_answer_to_head_is_a_head() {
    let (_folder, server) = server(&[]);
    let length = get(&server.url("/tasks")).body.len();
    for version in BOTH {
        let answer = curl(&[version, "-I", &server.url("/tasks")]);
        assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{version}");
        assert!(answer.headers.contains(&format!("content-length: {length}")), "{version}: {}", answer.headers);
    }
    let mut client = Client::connect(&server.address, 1 << 20);
    let stream = client.head("HEAD", "/tasks", &[], true).unwrap();
    let head = client.frame_of(stream).unwrap();
    assert!(head.kind == HEADERS && head.ends_stream(), "{head:?}");
    // And so is that of an error; the connection goes on.
    let stream = client.head("HEAD", "/nowhere", &[], true).unwrap();
    let head = client.frame_of(stream).unwrap();
    assert!(head.status() == 404 && head.ends_stream(), "{head:?}");
    let stream = client.get("/healthz").unwrap();
    assert_eq!(client.frame_of(stream).unwrap().status(), 200);
    let body = client.frame_of(stream).unwrap();
    assert_eq!((body.kind, body.payload.as_slice()), (DATA, &br#"{"status":"ok"}"#[..]));
}

/// What is answered before the body is read reaches a client that is still sending it.
#[test]
fn a_client_that_is_still_sending_gets_its_answer_over_both_versions() {
    let (folder, server) = server(&[]);
    let large = folder.0.join("large");
    std::fs::write(&large, vec![b' '; 10 << 20]).unwrap();
    let data = format!("@{}", large.display());
    for version in BOTH {
        let send = |kind: &str, path: &str, how: &[&str]| {
            let (kind, url) = (format!("content-type: {kind}"), server.url(path));
            curl(&[&[version, "-H", &kind, "-H", "expect:", "--data-binary", &data], how, &[&url]].concat())
        };
        let too_large = send("application/json", "/rank/rows", &[]);
        assert_eq!((too_large.status, too_large.json().text("error.code")), (413, "E102"), "{version}");
        assert_eq!(send("text/plain", "/rank/rows", &[]).status, 415, "{version}");
        assert_eq!(send("application/json", "/nowhere", &[]).status, 404, "{version}");
        let encoded = send("application/json", "/rank/rows", &["-H", "content-encoding: gzip"]);
        assert_eq!((encoded.status, encoded.json().text("error.code")), (415, "E129"), "{version}");
    }
}

#[test]
fn heads_are_bounded_and_so_are_requests_at_once() {
    let (_folder, server) = server(&[]);
    let (long, url) = (format!("x-long: {}", "x".repeat(20_000)), server.url("/healthz"));
    for version in BOTH {
        assert_eq!(curl(&[version, "-H", &long, &url]).status, 431, "{version}");
    }
    let fields: Vec<String> = (0..120).map(|at| format!("x-{at}: 1")).collect();
    let fields: Vec<&str> = fields.iter().flat_map(|field| ["-H", field]).collect();
    assert_eq!(curl(&[&["--http1.1", &url], &fields[..]].concat()).status, 431);
    let mut client = Client::connect(&server.address, 1 << 20);
    let json = [("content-type", "application/json")];
    let streams: Vec<u32> = (0..129).map(|_| client.head("POST", "/rank/rows", &json, false).unwrap()).collect();
    // Of these, 128 wait for their bodies; the next one is told that it was not begun.
    let refused = client.frame_of(streams[128]).unwrap();
    assert_eq!((refused.kind, refused.payload.as_slice()), (RST_STREAM, &[0, 0, 0, 7][..]));
    client.send(DATA, 1, streams[0], USER.as_bytes()).unwrap();
    assert_eq!(client.frame_of(streams[0]).unwrap().status(), 200);
}

#[test]
fn a_body_says_what_it_is_unless_the_server_is_lenient() {
    let (_folder, strict) = server(&[]);
    let (_folder, lenient) = server(&["--lenient"]);
    for version in BOTH {
        let ask =
            |server: &Server, kind: &str| curl(&[version, "-H", kind, "-d", USER, &server.url("/rank/rows")]).status;
        for (kind, of_strict, of_lenient) in [
            ("content-type: application/json", 200, 200),
            ("content-type:", 415, 200),
            ("content-type: text/plain", 415, 415),
        ] {
            assert_eq!((ask(&strict, kind), ask(&lenient, kind)), (of_strict, of_lenient), "{version} {kind}");
        }
    }
}

#[test]
fn a_body_of_broken_chunks_is_the_caller_s_mistake() {
    let (_folder, server) = server(&[]);
    let head = "POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    for chunks in [
        "xyz\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}oops\r\n0\r\n\r\n",
        "-1\r\n",
        "fffffffffffffffff\r\n{}",
        "2\r\n{}\r\n0\r\nno field\r\n\r\n",
    ] {
        let answer = by_hand(&server, &format!("{head}{chunks}"));
        assert_eq!((answer.status, answer.kind().as_str()), (400, "bad_request"), "{chunks:?}: {answer:?}");
    }
    let whole = by_hand(&server, &format!("{head}5\r\n{{\"use\r\n8\r\nr_id\":1}}\r\n0\r\n\r\n"));
    assert_eq!(whole.status, 200, "{whole:?}");
}

#[test]
fn a_listener_on_loopback_answers_for_loopback() {
    let (_folder, server) = server(&[]);
    let port = server.address.rsplit(':').next().unwrap();
    for (host, status) in [
        ("host: localhost\r\n", 200),
        (&*format!("host: {}\r\n", server.address), 200),
        (&*format!("Host: [::1]:{port}\r\n"), 200),
        ("host: evil.example\r\n", 421),
        (&*format!("host: evil.example:{port}\r\n"), 421),
        ("", 400),
        ("host: localhost\r\nhost: localhost\r\n", 400),
        ("host: local host\r\n", 400),
    ] {
        let answer = by_hand(&server, &format!("GET /plans HTTP/1.1\r\n{host}\r\n"));
        assert_eq!(answer.status, status, "{host:?}: {answer:?}");
        if status != 200 {
            assert_eq!(answer.kind(), "bad_request");
        }
        // Whoever looks after the process does not know its name; but one host it is.
        let health = by_hand(&server, &format!("GET /healthz HTTP/1.1\r\n{host}\r\n"));
        assert_eq!(health.status, if status == 400 { 400 } else { 200 }, "{host:?}: {health:?}");
    }
    let old = by_hand(&server, "GET /plans HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200, "{old:?}");
    let mut client = Client::connect(&server.address, 1 << 20);
    for (authority, fields, status) in [
        ("localhost", &[][..], 200),
        ("evil.example", &[], 421),
        ("localhost", &[("host", "localhost")], 200),
        ("localhost", &[("host", "evil.example")], 400),
    ] {
        client.authority = authority.to_owned();
        let stream = client.head("GET", "/plans", fields, true).unwrap();
        assert_eq!(client.frame_of(stream).unwrap().status(), status, "{authority} {fields:?}");
    }
}

#[test]
fn hosts_that_are_listed_are_answered_for_and_no_others() {
    let (_folder, server) = server(&["--hosts", "rank.example.com,10.1.2.3"]);
    for (host, status) in [("Rank.Example.com:80", 200), ("10.1.2.3", 200), ("localhost", 421)] {
        let answer = by_hand(&server, &format!("GET /plans HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        assert_eq!(answer.status, status, "{host}: {answer:?}");
    }
    assert_eq!(get(&server.url("/readyz")).status, 200);
}
