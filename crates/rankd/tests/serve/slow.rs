//! Clients that are slow, silent or many: they are cut, they cost little, and others do not notice.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::server::{Folder, Server, rows};
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
    let server = Server::start_limited("--nofile=256:256", &folder.0, &["--body-ms", "60000"]);
    let half = "POST /rank/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"user";
    let mut lines: Vec<Line> = Vec::new();
    for round in 0..30 {
        while lines.len() < 1000 * (round + 1) / 30 {
            let mut line = Line::open(&server.address);
            line.send(half).unwrap();
            lines.push(line);
        }
        assert_eq!(get(&server.url("/healthz")).status, 200);
    }
    assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200);
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
