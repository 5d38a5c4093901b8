//! Plans with fallbacks, as operators see them.

use crate::client::{get, post};
use crate::server::{Folder, Server};

/// Three rows, of which `slow` keeps all, in its own time.
fn plan(folder: &Folder, name: &str, slow: &str) {
    let text = format!(
        r#"{{"schema_version":1,"plan_name":"{name}","nodes":[
            {{"node_id":"all","op":"fixed_source","params":{{"row_count":3}}}},
            {{"node_id":"so slow","op":"sleep","inputs":["all"],{slow}}}],
            "outputs":["so slow"],"expr_table":{{}},"pred_table":{{}}}}"#
    );
    folder.write(&format!("{name}.plan.json"), &text);
}

#[test]
fn only_nodes_with_a_fallback_are_counted_and_from_the_start() {
    let folder = Folder::new();
    plan(&folder, "spared", r#""params":{"duration_ms":1},"fallback":"input""#);
    plan(&folder, "plain", r#""params":{"duration_ms":1}"#);
    let server = Server::start(&folder.0, &[]);
    let answer = post(&server.url("/rank/spared"), r#"{"user_id":1}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.body.contains("degraded"), "{}", answer.body);
    let metrics = get(&server.url("/metrics")).body;
    let series: Vec<&str> = metrics.lines().filter(|line| line.starts_with("rankd_degraded_total{")).collect();
    let of = |reason: &str| format!(r#"rankd_degraded_total{{plan="spared",node="so slow",reason="{reason}"}} 0"#);
    assert_eq!(series, ["timeout", "upstream", "no_time"].map(of));
    for (outcome, count) in [("ok", 1), ("degraded", 0)] {
        let line = format!(r#"rankd_requests_total{{plan="spared",outcome="{outcome}"}} {count}"#);
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    let document = get(&server.url("/openapi.json")).body;
    assert!(document.contains(r#""headers":{"rankd-degraded":"#), "{document}");
}

#[test]
fn an_answer_that_is_not_whole_says_so_everywhere() {
    let folder = Folder::new();
    plan(&folder, "spared", r#""params":{"duration_ms":60000},"timeout_ms":20,"fallback":"input""#);
    let server = Server::start(&folder.0, &[]);
    let answer = post(&server.url("/rank/spared"), r#"{"user_id":1}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let rows = r#""candidates":[{"id":1},{"id":2},{"id":3}],"degraded":[{"node":"so slow","op":"sleep","reason":"timeout","code":"E302","fallback":"input","after_ms":"#;
    assert!(answer.body.contains(rows), "{}", answer.body);
    assert!(answer.headers.contains("rankd-degraded: so%20slow"), "{answer:?}");
    let strict = post(&server.url("/rank/spared"), r#"{"user_id":1,"strict":true}"#);
    assert_eq!(strict.status, 504, "{}", strict.body);
    assert!(strict.body.contains(r#""code":"E302""#) && !strict.headers.contains("rankd-degraded"), "{strict:?}");
    let metrics = get(&server.url("/metrics")).body;
    for line in [
        r#"rankd_degraded_total{plan="spared",node="so slow",reason="timeout"} 1"#,
        r#"rankd_requests_total{plan="spared",outcome="degraded"} 1"#,
        r#"rankd_requests_total{plan="spared",outcome="timeout"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

/// A source that is too slow is not started any more once that is known, and its deadline is kept all the while.
#[test]
fn a_source_that_is_too_slow_is_soon_left_out() {
    let folder = Folder::new();
    plan(&folder, "slow", r#""params":{"duration_ms":60000},"fallback":"input""#);
    let server = Server::start(&folder.0, &["--deadline_ms", "100"]);
    let url = server.url("/rank/slow");
    let left_out = |url: &str| {
        let answer = post(url, r#"{"user_id":1}"#);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body.contains(r#""reason":"no_time""#)
    };
    assert!(!left_out(&url), "nothing was known of it");
    // It is tried again every 100 ms, so there have to be more requests than that.
    let count = || (0..10).filter(|_| left_out(&url)).count();
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(count)).collect();
        clients.into_iter().map(|client| client.join().expect("no client fails")).collect()
    });
    assert!(counts.iter().sum::<usize>() > 0, "{counts:?}");
}
