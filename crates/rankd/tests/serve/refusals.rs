//! What is refused, with which status, and that it is told as an error object.

use crate::client::{Line, curl, metric, metrics_until, post};
use crate::server::{Folder, Server, node, rows};
use std::io::Write;
use std::net::Shutdown;

fn server() -> (Folder, Server) {
    let folder = Folder::new();
    let (name, nodes) = rows("rows", 3);
    folder.plan(&name, &nodes, "n0");
    let sleep = |params: &str| vec![node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], params)];
    folder.plan("slow", &sleep("\"duration_ms\":60000"), "n1");
    folder.plan("fails", &sleep("\"duration_ms\":0,\"fail_after_sleep\":true"), "n1");
    folder.write("broken.plan.json", "{");
    let server = Server::start(&folder.0, &["--plan-limit", "slow=1", "--bodies-mb", "4"]);
    (folder, server)
}

#[test]
fn each_failure_has_its_status_and_its_kind() {
    let (_folder, server) = server();
    let user = r#"{"user_id":1}"#;
    for (path, body, status, kind) in [
        ("/rank/rows", r#"{"user_id":0}"#, 400, "bad_request"),
        ("/rank/rows", r#"{"user_id":1,"plan":"other"}"#, 400, "bad_request"),
        ("/rank", user, 400, "bad_request"),
        ("/rank/rows", "", 400, "bad_request"),
        ("/rank/row", user, 404, "unknown_plan"),
        ("/rank/broken", user, 422, "invalid_plan"),
        ("/rank/fails", user, 500, "task"),
        ("/rank/slow", r#"{"user_id":1,"deadline_ms":20}"#, 504, "timeout"),
        ("/nowhere", user, 404, "bad_request"),
        ("/plans", user, 405, "bad_request"),
    ] {
        let answer = post(&server.url(path), body);
        assert_eq!((answer.status, answer.kind().as_str()), (status, kind), "{path} {body}: {}", answer.body);
        assert!(!answer.json().text("request_id").is_empty(), "{}", answer.body);
        assert_eq!(answer.headers.contains("allow: get, head"), status == 405, "{}", answer.headers);
    }
    let plain = curl(&["-d", user, &server.url("/rank/rows")]);
    assert_eq!((plain.status, plain.kind().as_str()), (415, "bad_request"));
    assert!(curl(&["-X", "DELETE", &server.url("/rank/rows")]).headers.contains("allow: post"));
    assert_eq!(curl(&["-I", &server.url("/healthz")]).status, 200);
}

#[test]
fn a_body_counts_until_its_request_is_answered() {
    let folder = Folder::new();
    let (name, nodes) = rows("rows", 3);
    folder.plan(&name, &nodes, "n0");
    folder.plan(
        "waits",
        &[node("n0", "candidates", &[], ""), node("n1", "sleep", &["n0"], "\"duration_ms\":60000")],
        "n1",
    );
    let server = Server::start(&folder.0, &["--bodies-mb", "1"]);
    let candidates: Vec<String> = (1..=60_000).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
    let body = format!(r#"{{"user_id":1,"candidates":[{}]}}"#, candidates.join(","));
    assert!((600_000..1 << 20).contains(&body.len()), "two of them are too many");
    folder.write("large.json", &body);
    let file = format!("@{}", folder.0.join("large.json").display());
    let answer = || curl(&["-H", "content-type: application/json", "--data-binary", &file, &server.url("/rank/rows")]);
    let mut waiting = Line::open(&server.address);
    let head = "POST /rank/waits HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length";
    waiting.send(&format!("{head}: {}\r\n\r\n{body}", body.len())).unwrap();
    // It may not have been read yet.
    let refused =
        (0..500).map(|_| answer()).find(|answer| answer.status == 503).expect("one that waits takes the memory");
    assert!(refused.body.contains("E604"), "{}", refused.body);
    drop(waiting);
    assert!((0..500).any(|_| answer().status == 200), "the memory comes back");
}

#[test]
fn a_body_that_is_too_large_is_refused_whether_or_not_it_says_so() {
    let (_folder, server) = server();
    let mut line = Line::open(&server.address);
    line.send("POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10000000\r\n\r\n").unwrap();
    assert_eq!(line.answer().unwrap().status, 413);
    let mut line = Line::open(&server.address);
    line.send("POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    // The answer may come, and the connection be closed, before all of it is sent.
    let _ = (0..20).try_for_each(|_| line.stream.get_mut().write_all(chunk.as_bytes()));
    assert_eq!(line.answer().unwrap().status, 413);
}

#[test]
fn a_plan_s_own_limit_sends_the_next_one_away_at_once() {
    let (_folder, server) = server();
    let mut first = Line::open(&server.address);
    first.post("/rank/slow", r#"{"user_id":1}"#).unwrap();
    let under_way =
        |count: f64| metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == count);
    under_way(1.0);
    let second = post(&server.url("/rank/slow"), r#"{"user_id":1}"#);
    assert_eq!((second.status, second.kind().as_str()), (503, "overloaded"));
    assert!(second.headers.contains("retry-after: 1"), "{}", second.headers);
    assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200, "other plans are not held up");
    // Its caller goes away, and so does the run.
    drop(first);
    let metrics = under_way(0.0);
    assert!(metrics.contains("rankd_requests_total{plan=\"slow\",outcome=\"cancelled\"} 1"), "{metrics}");
}

#[test]
fn a_client_that_has_said_all_it_had_to_say_is_answered() {
    let (_folder, server) = server();
    let get = "GET /plans HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let rank = "POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"user_id\":1}";
    for request in [get, rank].repeat(10) {
        let mut line = Line::open(&server.address);
        line.send(request).unwrap();
        line.stream.get_ref().shutdown(Shutdown::Write).unwrap();
        assert_eq!(line.answer().unwrap().status, 200, "{request}");
        assert!(line.is_closed());
    }
}

#[test]
fn bodies_that_would_take_all_memory_are_sent_away() {
    let (_folder, server) = server();
    let half = format!(
        "POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{}",
        "x".repeat(900_000)
    );
    let mut lines: Vec<Line> = (0..8).map(|_| Line::open(&server.address)).collect();
    for line in &mut lines {
        // One that is sent away may be closed before all of it is written.
        let _ = line.send(&half);
    }
    let refused = "rankd_admission_rejected_total{reason=\"memory\"}";
    metrics_until(&server.address, |now| metric(now, refused) > 0.0);
    assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200, "small ones still fit");
}
