//! Answers that nobody takes: they are bounded for a connection and for the process, and cut in time, whatever else the client asks.

use crate::client::{metric, metrics_until, post};
use crate::http2::Client;
use crate::server::{Folder, Server, node};
use std::thread;
use std::time::{Duration, Instant};

/// A plan whose answer has about so many bytes.
fn folder(bytes: usize) -> Folder {
    let folder = Folder::new();
    let count = bytes / r#"{"id":12345},"#.len();
    folder.plan("large", &[node("n0", "fixed_source", &[], &format!("\"row_count\":{count}"))], "n0");
    folder
}

/// An answer that stays untaken is cut in time, although the client asks for health all the while.
#[test]
fn an_answer_that_nobody_takes_is_cut_whatever_else_is_asked() {
    let folder = folder(1 << 10);
    let server = Server::start(&folder.0, &["--stall-ms", "2000", "--idle-ms", "60000"]);
    let mut client = Client::connect(&server.address, 0);
    let stream = client.post("/rank/large", r#"{"user_id":1}"#).unwrap();
    assert_eq!(client.frame_of(stream).unwrap().status(), 200);
    let began = Instant::now();
    // One question at a time, and fewer than may be under way on a connection.
    for _ in 0..100 {
        let Ok(stream) = client.get("/healthz") else { break };
        let Ok(answer) = client.frame_of(stream) else { break };
        assert_eq!(answer.status(), 200);
        thread::sleep(Duration::from_millis(100));
    }
    let after = began.elapsed();
    println!("cut after {after:?}");
    assert!(client.is_closed(), "still there after {after:?}");
    assert!(after > Duration::from_millis(1900) && after < Duration::from_secs(9), "{after:?}");
    metrics_until(&server.address, |now| metric(now, "rankd_connections_cut_total{reason=\"stalled\"}") == 1.0);
}

/// Four connections that announce no window ask for four hundred megabytes together.
#[test]
fn answers_that_four_connections_do_not_take_cost_little() {
    let folder = folder(1 << 20);
    let flags = ["--stall-ms", "2000", "--queue-ms", "60000"];
    let server = Server::start_limited("--data=536870912", &folder.0, &flags);
    assert_eq!(post(&server.url("/rank/large"), r#"{"user_id":1}"#).status, 200);
    let before = server.kilobytes("VmRSS:");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(&server.address, 0);
                // One that is cut has asked for enough.
                let _ = (0..100).try_for_each(|_| client.post("/rank/large", r#"{"user_id":1}"#).map(drop));
                while client.frame().is_ok() {}
            });
        }
    });
    let more = server.kilobytes("VmHWM:").saturating_sub(before) / 1024;
    println!("at most {more} MB more");
    assert!(more < 64, "{more} MB more");
    let metrics = metrics_until(&server.address, |now| metric(now, "rankd_answers_untaken_bytes") < 1e6);
    assert!(metric(&metrics, "rankd_admission_rejected_total{reason=\"untaken\"}") > 0.0, "{metrics}");
    assert_eq!(post(&server.url("/rank/large"), r#"{"user_id":1}"#).status, 200);
}

#[test]
fn one_who_takes_its_answers_is_not_refused_for_those_who_do_not() {
    let folder = folder(1 << 20);
    // Room for five answers, of which one connection may leave one untaken.
    let server = Server::start(&folder.0, &["--answers-mb", "5", "--stall-ms", "60000"]);
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(&server.address, 0)).collect();
    for client in &mut clients {
        let stream = client.post("/rank/large", r#"{"user_id":1}"#).unwrap();
        assert_eq!(client.frame_of(stream).unwrap().status(), 200);
    }
    let cut = "rankd_connections_cut_total{reason=\"evicted\"}";
    let metrics = metrics_until(&server.address, |now| metric(now, cut) >= 3.0);
    assert!(metric(&metrics, "rankd_answers_untaken_bytes") <= f64::from(5 << 20), "{metrics}");
    for _ in 0..5 {
        assert_eq!(post(&server.url("/rank/large"), r#"{"user_id":1}"#).status, 200);
    }
    // A second one on a connection that has one untaken already is refused; health is not.
    let mut client = Client::connect(&server.address, 0);
    for (path, status) in [("/rank/large", 200), ("/rank/large", 503), ("/healthz", 200)] {
        let asked = if path == "/healthz" { client.get(path) } else { client.post(path, r#"{"user_id":1}"#) };
        assert_eq!(client.frame_of(asked.unwrap()).unwrap().status(), status, "{path}");
    }
}
