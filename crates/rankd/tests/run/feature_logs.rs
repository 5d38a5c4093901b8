//! `rankd run --feature_log`: every row of every answer is logged, on every scheduler.

use crate::program::{Folder, run};
use std::path::{Path, PathBuf};

#[expect(clippy::disallowed_methods, reason = "a test looks at what the program wrote")]
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    paths
}

#[expect(clippy::disallowed_methods, reason = "a test looks at what the program wrote")]
fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("it can be read")
}

/// Ids of one length, none of which is a part of another.
fn requests(count: u32) -> String {
    (1..=count).map(|user| format!("{{\"user_id\":{user},\"request_id\":\"request-{user:03}\"}}\n")).collect()
}

#[test]
fn every_scheduler_logs_every_row_of_every_answer_once() {
    for scheduler in ["async", "pools", "sequential"] {
        let folder = Folder::new();
        let features = folder.path("features");
        let args = ["run", "--plan_name", "for_you", "--scheduler", scheduler, "--feature_log"];
        let args = [&args[..], &[features.to_str().expect("it is text")]].concat();
        let ran = run(&args, requests(40).as_bytes());
        assert_eq!((ran.code, ran.answers().len(), &*ran.stderr), (0, 40, ""));
        let written: Vec<u8> = files(&features).iter().flat_map(|path| bytes(path)).collect();
        let written = String::from_utf8_lossy(&written);
        for answer in ran.answers() {
            // Each row has the id of its request, and nothing else has.
            let (id, rows) = (answer.text("request_id"), answer.list("candidates").len());
            assert_eq!(written.matches(id).count(), rows, "{scheduler}, {id}");
        }
    }
}

#[test]
fn a_share_is_logged_and_a_folder_that_cannot_be_is_refused() {
    let folder = Folder::new();
    let features = folder.path("features").display().to_string();
    let run_with = |more: &[&str]| {
        let args = [&["run", "--plan_name", "simple_viewer", "--feature_log", &features], more].concat();
        run(&args, requests(60).as_bytes())
    };
    assert_eq!(run_with(&["--feature_log_share", "0"]).code, 0);
    assert_eq!(files(Path::new(&features)).len(), 0);
    assert_eq!(run_with(&["--feature_log_share", "1.5"]).code, 2);
    let blocked = folder.write("file", "");
    let refused = run(&["run", "--plan_name", "simple_viewer", "--feature_log", &blocked], b"");
    assert!(refused.code == 2 && refused.stderr.contains("cannot write the feature log to "), "{}", refused.stderr);
}
