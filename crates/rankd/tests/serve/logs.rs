//! Logs on a full disk: lines are lost, counted and reported, and requests go on.

use crate::client::{metric, metrics_until, post};
use crate::server::{Folder, Server, rows};

#[test]
fn lines_that_a_full_disk_does_not_take_are_counted_and_reported() {
    let (folder, logs) = (Folder::new(), Folder::new());
    let (name, nodes) = rows("feed", 1);
    folder.plan(&name, &nodes, "n0");
    let log = logs.0.join("access.log");
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let server = Server::start(&folder.0, &["--access-log", log.to_str().unwrap()]);
    for _ in 0..3 {
        assert_eq!(post(&server.url("/rank/feed"), r#"{"user_id":1}"#).status, 200);
    }
    let metrics = metrics_until(&server.address, |now| metric(now, "rankd_log_lines_lost_total") >= 3.0);
    assert_eq!(metric(&metrics, "rankd_log_lines_dropped_total"), 0.0);
    server.says("log lines are being lost");
    // A disk with room again.
    std::fs::remove_file(&log).unwrap();
    server.signal("-HUP");
    server.says("reloaded on SIGHUP");
    assert_eq!(post(&server.url("/rank/feed"), r#"{"user_id":1}"#).status, 200);
    server.says("written again, after");
    assert_eq!(server.said().matches("log lines are being lost").count(), 1, "{}", server.said());
    assert!(std::fs::read_to_string(&log).unwrap().contains("\"route\":\"/rank/{plan}\""));
}
