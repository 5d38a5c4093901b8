//! Regular expressions made to hurt, in requests and in plans: they are refused, and nobody else notices.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::server::{Folder, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// 54 KB that take half a gigabyte to compile.
fn bomb() -> String {
    r"[^\\w]".repeat(9_000)
}

fn filtered(name: &str, pattern: &str) -> String {
    format!(
        r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{{"node_id":"n0","op":"candidates"}},{{"node_id":"n1","op":"filter","inputs":["n0"],"params":{{"pred":"p"}}}}],"outputs":["n1"],"pred_table":{{"p":{{"op":"not","x":{{"op":"regex","key":"title","pattern":{pattern},"flags":"i"}}}}}}}}"#
    )
}

fn asking(pattern: &str) -> String {
    format!(
        r#"{{"user_id":1,"params":{{"blocked_titles":"{pattern}"}},"candidates":[{{"id":1,"title":"casino"}},{{"id":2,"title":"cat"}}]}}"#
    )
}

#[test]
fn a_caller_s_pattern_costs_nobody_else() {
    let folder = Folder::new();
    folder.write("filtered.plan.json", &filtered("filtered", r#"{"param":"blocked_titles"}"#));
    let server = Server::start(&folder.0, &["--watch-ms", "2"]);
    let before = server.kilobytes("VmHWM:");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let hostile = [bomb(), r"[^\\w]".repeat(170), r"\\w{1000}".to_owned(), "(".to_owned()];
        for pattern in hostile {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut line = Line::open(&server.address);
                while !done.load(Ordering::Relaxed) {
                    line.post("/rank/filtered", &asking(&pattern)).unwrap();
                    let answer = line.answer().unwrap();
                    assert_eq!((answer.status, answer.kind().as_str()), (400, "bad_request"), "{}", answer.body);
                    assert_eq!(answer.json().text("error.code"), "E503");
                    assert_eq!(answer.json().text("error.node"), "n1");
                }
            });
        }
        let mut line = Line::open(&server.address);
        for turn in 0..300 {
            // A good pattern, a different one now and then, and none.
            let body = match turn % 3 {
                0 => asking("^casino$"),
                1 => asking(&format!("casino|{turn}")),
                _ => r#"{"user_id":1,"candidates":[{"id":2,"title":"cat"}]}"#.to_owned(),
            };
            line.post("/rank/filtered", &body).unwrap();
            let answer = line.answer().unwrap();
            assert_eq!(answer.status, 200, "{}", answer.body);
            let candidates = answer.json().list("candidates").len();
            assert_eq!(candidates, 1, "{}", answer.body);
        }
        done.store(true, Ordering::Relaxed);
    });
    let more = server.kilobytes("VmHWM:") - before;
    assert!(more < 48 << 10, "{more} kilobytes more");

    // The same as part of a plan that changes while the server runs.
    let handled = |count: f64| {
        metrics_until(&server.address, |now| metric(now, "rankd_reloads_total{result=\"failed\"}") >= count)
    };
    folder.write("filtered.plan.json", &filtered("filtered", &format!(r#"{{"literal":"{}"}}"#, bomb())));
    handled(1.0);
    folder.write("other.plan.json", &filtered("other", &format!(r#"{{"literal":"{}"}}"#, r"[^\\w]".repeat(1_300))));
    handled(2.0);
    assert!(get(&server.url("/plans")).body.contains("P503"));
    assert_eq!(post(&server.url("/rank/filtered"), &asking("x")).status, 200, "the plan from before is kept");
    let more = server.kilobytes("VmHWM:") - before;
    assert!(more < 48 << 10, "{more} kilobytes more");
}
