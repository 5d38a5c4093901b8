//! Large requests and large answers are right, and are read and written beside the loop, not on it.

use crate::client::{Line, metrics_until, post};
use crate::server::{Folder, Server, node};
use std::io::{ErrorKind, Read};

/// A server with one thread for computing, and a plan that keeps it busy.
fn server() -> (Folder, Server) {
    let folder = Folder::new();
    folder.plan("rerank", &[node("n0", "candidates", &[], "")], "n0");
    folder.plan("many", &[node("n0", "fixed_source", &[], "\"row_count\":20000")], "n0");
    folder.plan("few", &[node("n0", "fixed_source", &[], "\"row_count\":2")], "n0");
    let busy = [node("n0", "fixed_source", &[], ""), node("n1", "busy_cpu", &["n0"], "\"busy_wait_ms\":600000")];
    folder.plan("busy", &busy, "n1");
    let server = Server::start(&folder.0, &["--cpu_threads", "1"]);
    (folder, server)
}

/// A request of close to a megabyte, and its rows.
fn large() -> (String, String) {
    let row = |id: i64| format!(r#"{{"id":{id},"score":{}.5,"country":"a \"word\" {}"}}"#, id * 3, id % 7);
    let rows: Vec<String> = (0..19_000).map(|at| row(19_000 - at)).collect();
    let rows = rows.join(",");
    (format!(r#"{{"user_id":1,"request_id":"large","candidates":[{rows}]}}"#), rows)
}

#[test]
fn large_requests_and_answers_are_as_right_as_small_ones() {
    let (_folder, server) = server();
    let mut line = Line::open(&server.address);
    let (request, rows) = large();
    assert!(request.len() > 900_000 && request.len() < 1 << 20, "{}", request.len());
    line.post("/rank/rerank", &request).unwrap();
    let answer = line.answer().unwrap();
    let expected = format!(r#"{{"request_id":"large","plan":"rerank","candidates":[{rows}]}}"#);
    assert!(answer.status == 200 && answer.body == expected, "{} {:.300}", answer.status, answer.body);
    // What is wrong at the very end is found, and told with the request's id.
    let broken = request.replace("}]}", "},{\"id\":1,\"scoer\":2}]}");
    line.post("/rank/rerank", &broken).unwrap();
    let answer = line.answer().unwrap();
    assert_eq!((answer.status, answer.json().text("request_id")), (400, "large"), "{:.300}", answer.body);
    assert!(answer.body.contains("there is no key \\\"scoer\\\""), "{:.300}", answer.body);
    let many = post(&server.url("/rank/many"), r#"{"user_id":1}"#);
    assert!(many.body.ends_with(r#",{"id":19999},{"id":20000}]}"#), "{:.300}", many.body);
    let twice = request.replace("{\"id\":19000,", "{\"id\":1,");
    line.post("/rank/rerank", &twice).unwrap();
    let answer = line.answer().unwrap();
    assert_eq!((answer.status, answer.json().text("error.code")), (400, "E505"), "{:.300}", answer.body);
}

/// Elsewhere they wait until it is done.
#[cfg(target_os = "linux")]
#[test]
fn beside_a_long_job_large_ones_and_small_ones_are_answered() {
    let (_folder, server) = server();
    let mut busy = Line::open(&server.address);
    busy.post("/rank/busy", r#"{"user_id":1}"#).unwrap();
    metrics_until(&server.address, |metrics| metrics.contains("rankd_pool_depth 1"));
    let (mut reads, mut writes, mut small) =
        (Line::open(&server.address), Line::open(&server.address), Line::open(&server.address));
    reads.post("/rank/rerank", &large().0).unwrap();
    writes.post("/rank/many", r#"{"user_id":1}"#).unwrap();
    for _ in 0..20 {
        small.post("/rank/few", r#"{"user_id":1}"#).unwrap();
        assert_eq!(small.answer().unwrap().status, 200);
    }
    assert_eq!((reads.answer().unwrap().status, writes.answer().unwrap().status), (200, 200));
    let stream = busy.stream.get_mut();
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "it has not been answered yet");
}
