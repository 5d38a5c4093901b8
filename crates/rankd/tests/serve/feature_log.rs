//! The feature log of a server: what is in its files, when there are new ones, and what a disk that is full costs. The files are read by `pyarrow` from PyPI, with the code
//! that docs/feature_log.md shows. Where Python or PyPI is not there, this says SKIPPED and looks at their names and sizes only.

use crate::client::{metric, metrics_until, post};
use crate::downloads;
use crate::server::{Folder, PATIENCE, Server, node, plan_text, repository};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "pyarrow==26.0.1";

/// What the documentation's code is followed by: every row as JSON.
const TELL: &str = r#"
import json
for (version, node), found in sorted(tables.items()):
    table = pa.Table.from_batches(found)
    table.validate(full=True)
    for row in table.to_pylist():
        assert row["plan_sha256"] == version.decode() and row["node"] == node.decode() and row["at_ms"] > 1_600_000_000_000
        row["plan_sha256"] = len(row["plan_sha256"])
        del row["at_ms"]
        print(json.dumps(row))
"#;

fn plan(threshold: &str) -> String {
    let logs = |node: String, keys: &str| node.replacen(r#""op""#, &format!(r#""log":[{keys}],"op""#), 1);
    let nodes = [
        node("n0", "fixed_source", &[], r#""row_count":3,"columns":{"country":["DE",null,"US"],"likes":[1,2,3]}"#),
        logs(node("n1", "vm", &["n0"], r#""out_key":"score","expr":"e""#), r#""score","country""#),
        node("n2", "filter", &["n1"], r#""pred":"p""#),
        logs(node("n3", "sort", &["n2"], r#""key":"score","order":"desc""#), r#""likes""#),
        node("n4", "take", &["n3"], r#""count":1"#),
    ];
    let half = r#"{"e":{"op":"mul","a":{"op":"key_ref","key":"id"},"b":{"op":"const_number","value":0.5}}}"#;
    let least = format!(
        r#"{{"p":{{"op":"cmp","cmp":">=","a":{{"op":"key_ref","key":"score"}},"b":{{"op":"const_number","value":{threshold}}}}}}}"#
    );
    let text = plan_text("for_you", &nodes, "n4");
    text.replace(r#""expr_table":{}"#, &format!(r#""expr_table":{half}"#))
        .replace(r#""pred_table":{}"#, &format!(r#""pred_table":{least}"#))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn ask(server: &Server, id: &str) {
    let answer = post(&server.url("/rank/for_you"), &format!(r#"{{"user_id":7,"request_id":"{id}"}}"#));
    assert_eq!(answer.status, 200, "{}", answer.body);
}

const RESULT: &str = "rankd_feature_log_requests_total";

fn written(metrics: &str) -> f64 {
    metric(metrics, &format!("{RESULT}{{result=\"written\"}}"))
}

#[test]
fn rows_of_nodes_are_logged_also_those_that_are_dropped_and_a_new_version_starts_new_files() {
    let folder = Folder::new();
    folder.write("for_you.plan.json", &plan("1"));
    let features = folder.0.join("features");
    let mut server = Server::start(&folder.0, &["--watch-ms", "5", "--feature-log", features.to_str().unwrap()]);
    ["a", "b"].iter().for_each(|id| ask(&server, id));
    metrics_until(&server.address, |page| written(page) == 2.0);
    assert_eq!(files(&features).len(), 2, "a file for each node that logs");
    folder.write("for_you.plan.json", &plan("1.5"));
    metrics_until(&server.address, |page| metric(page, "rankd_plan_version{plan=\"for_you\"}") == 2.0);
    ask(&server, "c");
    let failed = post(&server.url("/rank/for_you"), r#"{"user_id":7,"params":{"weight":"x"}}"#);
    assert_eq!(failed.status, 400, "{}", failed.body);
    // What waits is written at the end.
    server.signal("-TERM");
    assert!(server.ended(PATIENCE).success(), "{}", server.said());
    let files = files(&features);
    let names: Vec<&str> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert!(names.len() == 4 && names.iter().all(|name| name.ends_with("-for_you.arrows")), "{names:?}");
    for path in &files {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "the stream has an end");
    }
    let page = std::fs::read_to_string(repository().join("docs/feature_log.md")).unwrap();
    let code = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    match downloads::python(VERSION) {
        Err(why) => downloads::skipped("pyarrow does not read the feature log", &why),
        Ok(programs) => {
            let mut python = Command::new(programs.join("python"));
            let output = python.args(["-c", &format!("{code}{TELL}")]).current_dir(&folder.0).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
            let (shown, rows): (Vec<&str>, Vec<&str>) = told.lines().partition(|line| !line.starts_with('{'));
            assert!(shown.iter().any(|line| line.ends_with("requests: ['id', 'score', 'country']")), "{shown:?}");
            let of = |id: &str, node: &str| {
                let request = format!(
                    r#"{{"request_id": "{id}", "user_id": 7, "plan": "for_you", "plan_sha256": 64, "arms": null, "node": "{node}", "#
                );
                let of_node = rows.iter().filter_map(|row| row.strip_prefix(&request));
                of_node.map(|row| row.trim_end_matches('}').to_owned()).collect::<Vec<_>>()
            };
            let scored = [
                r#""position": 0, "id": 1, "score": 0.5, "country": "DE""#,
                r#""position": 1, "id": 2, "score": 1.0, "country": null"#,
                r#""position": 2, "id": 3, "score": 1.5, "country": "US""#,
            ];
            ["a", "b", "c"].iter().for_each(|id| assert_eq!(of(id, "n1"), scored));
            let sorted = [r#""position": 0, "id": 3, "likes": 3"#, r#""position": 1, "id": 2, "likes": 2"#];
            assert_eq!(of("a", "n3"), sorted);
            assert_eq!(of("c", "n3"), sorted[..1], "the new version drops more");
            assert_eq!(rows.len(), 3 * 3 + 2 + 2 + 1);
        }
    }
}

#[test]
fn a_folder_that_is_gone_costs_no_request_and_is_told_once() {
    let folder = Folder::new();
    folder.write("for_you.plan.json", &plan("1"));
    let features = folder.0.join("features");
    let server = Server::start(&folder.0, &["--feature-log", features.to_str().unwrap()]);
    std::fs::remove_dir_all(&features).unwrap();
    (0..3).for_each(|at| ask(&server, &format!("r{at}")));
    let failed = |page: &str| metric(page, &format!("{RESULT}{{result=\"failed\"}}"));
    let page = metrics_until(&server.address, |page| failed(page) == 3.0);
    assert_eq!(written(&page), 0.0);
    server.says("rows cannot be logged: ");
    std::fs::create_dir(&features).unwrap();
    ask(&server, "again");
    metrics_until(&server.address, |page| written(page) == 1.0);
    assert_eq!(server.said().matches("rows cannot be logged").count(), 1, "{}", server.said());
}

#[test]
fn questions_and_other_pages_log_nothing() {
    let folder = Folder::new();
    folder.write("for_you.plan.json", &plan("1"));
    let features = folder.0.join("features");
    let server = Server::start(&folder.0, &["--why", "on", "--feature-log", features.to_str().unwrap()]);
    assert_eq!(post(&server.url("/why/for_you"), r#"{"user_id":1,"items":[1]}"#).status, 200);
    let explained = post(&server.url("/explain"), r#"{"plan":"for_you","analyze":true,"request":{"user_id":1}}"#);
    assert_eq!(explained.status, 200, "{}", explained.body);
    ask(&server, "last");
    let page = metrics_until(&server.address, |page| written(page) > 0.0);
    assert_eq!(written(&page), 1.0);
}
