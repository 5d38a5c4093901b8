//! SIGTERM under load: every request that was accepted is answered, half-sent ones are cut, and the process ends in time.

use crate::client::{Line, metric, metrics_until};
use crate::server::{Folder, Server, node};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn every_accepted_request_is_answered_and_a_half_sent_one_is_cut() {
    let folder = Folder::new();
    let nodes =
        [node("n0", "fixed_source", &[], "\"row_count\":5"), node("n1", "sleep", &["n0"], "\"duration_ms\":20")];
    folder.plan("feed", &nodes, "n1");
    let mut server = Server::start(&folder.0, &["--loops", "2"]);
    let mut half = Line::open(&server.address);
    half.send("POST /rank/feed HTTP/1.1\r\nhost: localhost\r\ncontent-le").unwrap();
    let answered = AtomicUsize::new(0);
    let failed: Vec<String> = thread::scope(|scope| {
        let ask = || {
            let mut line = Line::open(&server.address);
            loop {
                // A connection that the server has said it closes is not used again.
                if line.post("/rank/feed", r#"{"user_id":1}"#).is_err() {
                    return Some("a request could not be sent".to_owned());
                }
                match line.answer() {
                    Ok(answer) if answer.status == 200 => {
                        answered.fetch_add(1, Ordering::Relaxed);
                        if answer.headers.contains("connection: close") {
                            return None;
                        }
                    }
                    Ok(answer) => return Some(format!("{answer:?}")),
                    Err(error) => return Some(format!("no answer: {error}")),
                }
            }
        };
        // As many as may always run at once, so that none is sent away, however crowded the machine is.
        let askers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        while answered.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        server.signal("-TERM");
        askers.into_iter().filter_map(|asker| asker.join().unwrap()).collect()
    });
    assert_eq!(failed, Vec::<String>::new());
    assert!(half.is_closed());
    assert_eq!(server.ended(Duration::from_secs(10)).code(), Some(0), "{}", server.said());
}

#[test]
fn a_run_that_does_not_end_in_time_is_stopped_and_told() {
    let folder = Folder::new();
    let nodes = [node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], "\"duration_ms\":60000")];
    folder.plan("slow", &nodes, "n1");
    let mut server = Server::start(&folder.0, &["--drain-ms", "500", "--no-trial"]);
    let mut line = Line::open(&server.address);
    line.post("/rank/slow", r#"{"user_id":1}"#).unwrap();
    metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 1.0);
    server.signal("-TERM");
    let answer = line.answer().unwrap();
    assert_eq!((answer.status, answer.kind().as_str()), (499, "cancelled"));
    assert_eq!(server.ended(Duration::from_secs(10)).code(), Some(0), "{}", server.said());
}
