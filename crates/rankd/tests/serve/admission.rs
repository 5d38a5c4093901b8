//! Who is refused: not those whose runs take longer than others did, nor those who have time.

use crate::client::{Line, metric, metrics_until};
use crate::server::{Folder, Server, node, rows};
use std::collections::BTreeMap;
use std::thread;

const CLIENTS: usize = 40;

/// So many clients ask so often each, one request after the other. Gives how often each status was answered.
fn storm(server: &Server, path: &str, body: &str, clients: usize, times: usize) -> BTreeMap<u16, usize> {
    let ask = || {
        let mut line = Line::open(&server.address);
        let one = |_| {
            line.post(path, body).unwrap();
            line.answer().unwrap().status
        };
        (0..times).map(one).collect::<Vec<u16>>()
    };
    let mut statuses = BTreeMap::new();
    thread::scope(|scope| {
        let askers: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        for status in askers.into_iter().flat_map(|asker| asker.join().unwrap()) {
            *statuses.entry(status).or_default() += 1;
        }
    });
    statuses
}

fn doze(folder: &Folder, name: &str, ms: u32) {
    let sleep = node("n1", "sleep", &["n0"], &format!("\"duration_ms\":{ms}"));
    folder.plan(name, &[node("n0", "fixed_source", &[], ""), sleep], "n1");
}

#[test]
fn runs_that_take_longer_than_others_did_are_not_refused() {
    let folder = Folder::new();
    doze(&folder, "hasty", 100);
    doze(&folder, "grows", 2);
    let server = Server::start(&folder.0, &["--watch-ms", "2", "--queue-ms", "50"]);
    let with_time = r#"{"user_id":1,"deadline_ms":60000}"#;
    let all_have_rows = BTreeMap::from([(200, 4 * CLIENTS)]);
    // Those who give a run no time at all do not make it look short.
    assert_eq!(storm(&server, "/rank/hasty", r#"{"user_id":1,"deadline_ms":1}"#, 1, 40), BTreeMap::from([(504, 40)]));
    assert_eq!(storm(&server, "/rank/hasty", with_time, CLIENTS, 4), all_have_rows);
    // And neither does a plan's last version.
    assert_eq!(storm(&server, "/rank/grows", with_time, 1, 40), BTreeMap::from([(200, 40)]));
    doze(&folder, "grows", 100);
    metrics_until(&server.address, |now| metric(now, "rankd_plan_version{plan=\"grows\"}") == 2.0);
    assert_eq!(storm(&server, "/rank/grows", with_time, CLIENTS, 4), all_have_rows);
}

#[test]
fn a_closed_loop_of_sixteen_without_a_deadline_is_not_refused() {
    let folder = Folder::new();
    let (name, nodes) = rows("many", 5000);
    folder.plan(&name, &nodes, "n0");
    let busy = node("n1", "busy_cpu", &["n0"], r#""busy_wait_ms":20"#);
    folder.plan("long", &[node("n0", "fixed_source", &[], ""), busy], "n1");
    let three = node("n1", "busy_cpu", &["n0"], r#""busy_wait_ms":3"#);
    folder.plan("three", &[node("n0", "fixed_source", &[], ""), three], "n1");
    let server = Server::start(&folder.0, &["--cpu-threads", "1"]);
    for (plan, times) in [("/rank/many", 10), ("/rank/long", 5), ("/rank/three", 20)] {
        let statuses = storm(&server, plan, r#"{"user_id":1}"#, 16, times);
        assert_eq!(statuses, BTreeMap::from([(200, 16 * times)]), "{plan}");
    }
}

/// A server that has a place for one run, which is taken, and no queue to speak of.
fn full_server(folder: &Folder) -> (Server, Line) {
    doze(folder, "doze", 500);
    doze(folder, "hold", 600_000);
    let server = Server::start(&folder.0, &["--runs-max", "1", "--queue-ms", "1", "--deadline-ms", "3600000"]);
    // Before the first run it is not known that they take long.
    assert_eq!(storm(&server, "/rank/doze", r#"{"user_id":1}"#, 1, 2), BTreeMap::from([(200, 2)]));
    let mut holds = Line::open(&server.address);
    holds.post("/rank/hold", r#"{"user_id":1}"#).unwrap();
    metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 1.0);
    (server, holds)
}

const ASK: &str =
    "POST /rank/doze HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n";
const BODY: &str = "{\"user_id\":1}";

#[test]
fn who_is_refused_before_being_read_keeps_the_connection() {
    let folder = Folder::new();
    let (server, holds) = full_server(&folder);
    let mut line = Line::open(&server.address);
    // What is not even JSON is refused in the same way, because nobody reads it.
    for body in [BODY, BODY, "nonsense"] {
        line.post("/rank/doze", body).unwrap();
        let answer = line.answer().unwrap();
        assert_eq!((answer.status, answer.kind().as_str()), (503, "overloaded"), "{}", answer.body);
        assert!(answer.headers.contains("retry-after: 1\r\n"), "{}", answer.headers);
        assert_eq!(answer.json().text("request_id"), "", "{}", answer.body);
    }
    line.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_eq!(line.answer().unwrap().status, 200, "health is answered on the same connection");
    // In pieces, and two at once: HTTP reads these, and refuses them as well.
    line.send(ASK).unwrap();
    line.send(BODY).unwrap();
    line.send(&[ASK, BODY, ASK, BODY].concat()).unwrap();
    for _ in 0..3 {
        let answer = line.answer().unwrap();
        assert_eq!((answer.status, answer.json().text("request_id")), (503, ""), "{}", answer.body);
    }
    let metrics = metrics_until(&server.address, |_| true);
    assert_eq!(metric(&metrics, "rankd_admission_rejected_total{reason=\"line_too_long\"}"), 6.0);
    assert_eq!(metric(&metrics, "rankd_requests_total{plan=\"doze\",outcome=\"overloaded\"}"), 6.0);
    assert_eq!(metric(&metrics, "rankd_pressure{loop=\"0\"}"), 1.0);
    drop(holds);
    metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 0.0);
    line.send(&[ASK, BODY].concat()).unwrap();
    assert_eq!(line.answer().unwrap().status, 200);
}
