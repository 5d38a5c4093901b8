//! Clients that are slow, silent or many: they are cut, they cost little, and others do not notice.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::server::{Folder, Server, node, rows};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn server(flags: &[&str]) -> (Folder, Server) {
    let folder = Folder::new();
    let (name, nodes) = rows("rows", 50);
    folder.plan(&name, &nodes, "n0");
    let server = Server::start(&folder.0, flags);
    (folder, server)
}

/// The time-outs are the defaults; the promise is ten seconds.
#[test]
fn two_thousand_slow_clients_are_cut_in_time_and_cost_little() {
    let (_folder, server) = server(&[]);
    assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200);
    let before = server.kilobytes("VmRSS:");
    let began = Instant::now();
    let mut lines: Vec<Line> = (0..2000).map(|_| Line::open(&server.address)).collect();
    for (at, line) in lines.iter_mut().enumerate() {
        match at % 3 {
            0 => line.send("POST /rank/rows HTTP/1.1\r\nhost: localhost\r\nx-slow: ").unwrap(),
            1 => line.send("POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"user").unwrap(),
            _ => {}
        }
    }
    metrics_until(&server.address, |now| metric(now, "rankd_connections_open") >= 2000.0);
    let each = (server.kilobytes("VmRSS:").saturating_sub(before)) as f64 / 2000.0;
    let mut worst = Duration::ZERO;
    let mut good = Line::open(&server.address);
    while began.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        good.post("/rank/rows", r#"{"user_id":1}"#).unwrap();
        assert_eq!(good.answer().unwrap().status, 200);
        worst = worst.max(asked.elapsed());
    }
    for line in &mut lines {
        // Comes back when the server has closed it; one with half a body is told before.
        line.is_closed();
    }
    let cut_after = began.elapsed();
    println!("{each:.1} KB a connection, all cut after {cut_after:?}, a good client waited {worst:?} at most");
    assert!(each < 32.0, "{each} KB a connection");
    assert!(cut_after < Duration::from_secs(12), "{cut_after:?}");
    assert!(worst < Duration::from_secs(1), "{worst:?}");
}

#[test]
fn when_room_runs_out_the_idlest_makes_room_and_health_is_still_answered() {
    let (_folder, server) = server(&["--connections-max", "50", "--idle-ms", "60000"]);
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let metrics =
        metrics_until(&server.address, |now| metric(now, "rankd_connections_cut_total{reason=\"evicted\"}") >= 150.0);
    assert!(metric(&metrics, "rankd_connections_open") <= 51.0, "{metrics}");
    assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200);
    drop(idle);
}

#[test]
fn a_thousand_clients_and_256_descriptors_leave_room_for_health() {
    let (folder, _) = server(&[]);
    let server = Server::start_limited("--nofile=256:256", &folder.0, &["--idle-ms", "60000"]);
    let idle: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(get(&server.url("/healthz")).status, 200);
        assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200);
    }
    drop(idle);
}

#[test]
fn a_thousand_half_sent_bodies_and_256_descriptors_leave_room_for_health() {
    let (folder, _) = server(&[]);
    let head = "POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let half = format!("{head}content-length: 100\r\n\r\n{{\"user");
    for loops in ["1", "2"] {
        let flags = ["--body-ms", "60000", "--loops", loops];
        let server = Server::start_limited("--nofile=256:256", &folder.0, &flags);
        let mut lines: Vec<Line> = Vec::new();
        for round in 0..30 {
            while lines.len() < 1000 * (round + 1) / 30 {
                let mut line = Line::open(&server.address);
                line.send(&half).unwrap();
                lines.push(line);
            }
            assert_eq!(get(&server.url("/healthz")).status, 200, "{loops} loops, round {round}");
        }
        assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200);
    }
}

/// Runs are not cut for others. Their connections take all places, and those kept for health are left.
#[test]
fn when_all_connections_are_busy_health_is_answered_and_others_are_told() {
    let folder = Folder::new();
    let nodes = [node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], "\"duration_ms\":60000")];
    folder.plan("slow", &nodes, "n1");
    let server = Server::start(&folder.0, &["--connections-max", "20", "--no-trial", "--admin", "127.0.0.1:0"]);
    let admin = server.admin();
    let mut busy: Vec<Line> = (0..20).map(|_| Line::open(&server.address)).collect();
    for line in &mut busy {
        line.post("/rank/slow", r#"{"user_id":1}"#).unwrap();
    }
    metrics_until(&admin, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 20.0);
    // More than the places that are kept, each held for as long as it may be.
    let more: Vec<Line> = (0..40).map(|_| Line::open(&server.address)).collect();
    for _ in 0..5 {
        assert_eq!(get(&server.url("/readyz")).status, 200);
        let refused = post(&server.url("/rank/slow"), r#"{"user_id":1}"#);
        assert_eq!((refused.status, refused.kind().as_str()), (503, "overloaded"));
        assert!(refused.headers.contains("connection: close"), "{}", refused.headers);
    }
    drop(more);
    let metrics = metrics_until(&admin, |_| true);
    assert!(metric(&metrics, "rankd_admission_rejected_total{reason=\"connections\"}") == 5.0, "{metrics}");
    assert!(metric(&metrics, "rankd_runs_under_way{loop=\"0\"}") == 20.0, "{metrics}");
}

#[test]
fn a_client_that_does_not_take_its_answer_is_cut() {
    let (_folder, server) = server(&["--stall-ms", "200"]);
    let mut line = Line::open(&server.address);
    // Far more answers than the system holds for a client that reads none.
    let request = "GET /tasks HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2000);
    let _ = line.send(&request);
    metrics_until(&server.address, |now| metric(now, "rankd_connections_cut_total{reason=\"stalled\"}") == 1.0);
}
