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
