//! `rankd bench --url` against a real server: the rate, the latencies, and what became of each request.

use crate::json::Json;
use crate::server::{Folder, Server, node, rows};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::{self, JoinHandle};

/// Its exit code, what it tells programs and what it tells people.
fn bench(url: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_rankd")).args(["bench", "--url", url]).args(flags).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn report(url: &str, flags: &[&str]) -> Json {
    let (code, report, told) = bench(url, flags);
    assert_eq!(code, Some(0), "{told}");
    Json::read(&report)
}

fn folder() -> Folder {
    let folder = Folder::new();
    let (name, nodes) = rows("rows", 3);
    folder.plan(&name, &nodes, "n0");
    let slow = |ms: u32, more: &str| node("n1", "sleep", &["n0"], &format!(r#""duration_ms":{ms}{more}"#));
    folder.plan("slow", &[nodes[0].clone(), slow(50, "")], "n1");
    folder.plan("failing", &[nodes[0].clone(), slow(0, r#","fail_after_sleep":true"#)], "n1");
    folder
}

#[test]
fn the_rate_is_kept_and_answers_are_counted_with_their_latencies() {
    let folder = folder();
    let server = Server::start(&folder.0, &[]);
    let (code, report, told) = bench(&server.url("/rank/rows"), &["-n", "100", "-c", "8", "--rate", "100"]);
    assert_eq!(code, Some(0), "{told}");
    let report = Json::read(&report);
    assert_eq!((report.number("statuses.200"), report.number("rate")), (100.0, 100.0));
    assert!(matches!(report.at("errors"), Json::Object(none) if none.is_empty()), "{report:?}");
    // The last of a hundred is due after 990 ms.
    let (wall, rate) = (report.number("wall_s"), report.number("throughput_per_s"));
    assert!(wall >= 0.99 && (rate - 100.0 / wall).abs() < 0.01, "{wall} {rate}");
    for of in ["latency_us", "good_latency_us"] {
        let times = ["min", "p50", "p90", "p99", "max"].map(|name| report.at(of).number(name));
        assert!(times[0] > 0.0 && times.is_sorted(), "{times:?}");
    }
    for line in ["100 requests, 100 a second on 8 connections", "latency", "p99.9"] {
        assert!(told.contains(line), "{line:?} is not in:\n{told}");
    }
}

#[test]
fn what_waits_for_a_connection_is_late_and_its_wait_counts() {
    let folder = folder();
    let server = Server::start(&folder.0, &[]);
    // One connection answers twenty a second at most; two hundred are asked for.
    let report = report(&server.url("/rank/slow"), &["-n", "10", "-c", "1", "--rate", "200"]);
    assert!(report.number("statuses.200") == 10.0 && report.number("sent_late") >= 9.0, "{report:?}");
    // The last one waited for the nine before it, but for the 45 ms after which it was due, and a little for clocks.
    assert!(report.number("latency_us.max") >= 450_000.0, "{report:?}");
}

#[test]
fn each_failure_is_counted_as_what_it_is() {
    let folder = folder();
    let server = Server::start(&folder.0, &["--plan-limit", "slow=1"]);
    let failing = report(&server.url("/rank/failing"), &["-n", "20"]);
    assert_eq!((failing.number("errors.task"), failing.number("statuses.500")), (20.0, 20.0));
    assert!(failing.number("goodput_per_s") == 0.0 && !failing.has("good_latency_us"), "{failing:?}");
    let unknown = report(&server.url("/rank/nowhere"), &["-n", "3"]);
    assert_eq!((unknown.number("errors.unknown_plan"), unknown.number("statuses.404")), (3.0, 3.0));
    // One runs at a time, and the other three that are in flight are sent away.
    let limited = report(&server.url("/rank/slow"), &["-n", "40", "-c", "4"]);
    let [refused, good] = ["statuses.503", "statuses.200"].map(|status| limited.number(status));
    assert!(refused == limited.number("errors.overloaded") && refused > 0.0 && good > 0.0, "{limited:?}");
    assert_eq!(refused + good, 40.0);
}

/// A server by hand: what it does with a connection, for so many of them, and then it is gone. Gives its address.
fn by_hand(connections: usize, serve: impl Fn(TcpStream) + Send + 'static) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/rank", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        // The bench looks whether somebody is there before it begins.
        drop(listener.accept().unwrap());
        for _ in 1..connections {
            serve(listener.accept().unwrap().0);
        }
        let (last, _) = listener.accept().unwrap();
        drop(listener);
        serve(last);
    });
    (url, server)
}

/// Reads a request, which comes in one piece, and writes an answer.
fn answer(stream: &mut TcpStream, text: &str) {
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    stream.write_all(text.as_bytes()).unwrap();
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{";

#[test]
fn a_server_that_goes_away_is_told_by_how() {
    let (url, server) = by_hand(1, |mut stream| {
        answer(&mut stream, WHOLE);
        answer(&mut stream, HALF);
    });
    let told = report(&url, &["-n", "1000"]);
    server.join().unwrap();
    assert_eq!(told.number("statuses.200"), 1.0, "{told:?}");
    // The second had half an answer. While another test starts a process, that has a copy of the listener for a moment, so that
    // some of those after it may find a connection that is closed, too.
    let [closed, refused] = ["connection_closed", "connection_refused"].map(|kind| told.at("errors").number(kind));
    assert!(closed >= 1.0 && refused >= 1.0 && closed + refused == 999.0, "{told:?}");
    // One that was never there is an error of the command line.
    let (code, report, told) = bench(&url, &["-n", "5"]);
    assert!(code == Some(2) && report.is_empty() && told.contains("refused"), "{code:?} {report} {told}");
}

#[test]
fn a_kept_connection_that_the_server_has_closed_is_no_failure() {
    let (url, server) = by_hand(3, |mut stream| answer(&mut stream, WHOLE));
    let report = report(&url, &["-n", "3"]);
    server.join().unwrap();
    assert_eq!(report.number("statuses.200"), 3.0, "{report:?}");
}

#[test]
fn a_server_is_driven_for_a_time_and_judged_by_conditions() {
    let folder = folder();
    let server = Server::start(&folder.0, &[]);
    let flags = ["--duration", "300ms", "--warmup", "5", "--users", "1..3", "-c", "2", "--fail_if", "errors > 0%"];
    let timed = report(&server.url("/rank/rows"), &flags);
    assert!(timed.number("wall_s") >= 0.3 && timed.number("iterations") >= 1.0, "{timed:?}");
    // What warmed it up is not among them.
    assert_eq!(timed.number("statuses.200"), timed.number("iterations"), "{timed:?}");
    let (code, json, told) = bench(&server.url("/rank/failing"), &["-n", "4", "--fail_if", "errors > 50%"]);
    assert_eq!((code, Json::read(&json).number("error_share")), (Some(1), 1.0), "{told}");
    assert!(told.contains("4 without rows (100.00 %): 4 task") && told.contains("failed: errors > 50%"), "{told}");
}
