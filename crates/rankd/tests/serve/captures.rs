//! What a server captures: every run of the share, with the bytes that its caller got, and nothing that did not run. What becomes of a disk that is full or hangs is in
//! `capture_disks`, a store that fails in `capture_weather`.

use crate::client::{Answer, get, metric, metrics_until, post};
use crate::downloads;
use crate::json::Json;
use crate::server::{Folder, PATIENCE, Server, node, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARROW: &str = "accept: application/vnd.apache.arrow.stream";

/// The files of captures in a folder, in order of time.
pub(crate) fn files(captures: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(captures).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "arrows"));
    paths.sort();
    paths
}

/// What `rankd replay --json` says, and its exit code.
pub(crate) fn replay(captures: &Path, more: &[&str]) -> (Json, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
    command.current_dir(repository()).arg("replay").arg(captures).arg("--json").args(more);
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!stdout.is_empty(), "{stderr}");
    (Json::read(&stdout), output.status.code().unwrap())
}

/// All that was captured comes out again, on every scheduler.
pub(crate) fn all_is_the_same(captures: &Path, requests: usize) {
    for scheduler in ["async", "pools", "sequential"] {
        let (told, code) = replay(captures, &["--scheduler", scheduler]);
        let counts = ["requests", "same", "different", "missing"].map(|name| told.number(name));
        assert_eq!((counts, code), ([requests as f64, requests as f64, 0.0, 0.0], 0), "{scheduler}: {told:?}");
    }
}

/// Ends a server as operators do.
pub(crate) fn stop(mut server: Server) {
    server.signal("-TERM");
    assert!(server.ended(PATIENCE).success(), "{}", server.said());
}

fn start(plans: &Path, captures: &Path, flags: &[&str]) -> Server {
    Server::start(plans, &[&["--capture", captures.to_str().unwrap()], flags].concat())
}

#[test]
fn every_run_is_captured_with_the_bytes_that_its_caller_got() {
    let folder = Folder::new();
    let captures = folder.0.join("captures");
    let server = start(&repository().join("plans"), &captures, &["--deadline_ms", "20000"]);
    for user in 1..=30 {
        let body = format!(r#"{{"user_id":{user},"trace":{}}}"#, user % 7 == 0);
        assert_eq!(post(&server.url("/rank/for_you"), &body).status, 200);
        let named = format!(r#"{{"user_id":{user},"plan":"complex_dag","params":{{"weight":0.{user}}}}}"#);
        assert_eq!(post(&server.url("/rank"), &named).status, 200);
        let arrow = ["-o", "/dev/null", "-H", ARROW, "-H", "content-type: application/json", "-d"];
        let url = server.url("/rank/for_you");
        curl_quietly(&[&arrow[..], &[&format!(r#"{{"user_id":{user}}}"#), &url]].concat());
    }
    // What does not run is not captured: no such plan, no such field.
    assert_eq!(post(&server.url("/rank/none"), r#"{"user_id":1}"#).status, 404);
    assert_eq!(post(&server.url("/rank/for_you"), r#"{"user_id":1,"x":1}"#).status, 400);
    let version = get(&server.url("/plans/complex_dag")).json().text("sha256").to_owned();
    let answer = post(&server.url("/rank/complex_dag"), r#"{"user_id":1,"trace":true}"#);
    assert!(answer.headers.contains(&format!("rankd-plan-sha256: {}\r\n", &version[..16])), "{answer:?}");
    assert_eq!(answer.json().text("trace.plan_sha256"), version);
    assert_eq!(answer.json().text("trace.registry_sha256").len(), 64);
    stop(server);
    all_is_the_same(&captures, 91);
    let plan = captures.join(format!("plans/{version}.plan.json"));
    assert_eq!(std::fs::read(plan).unwrap(), std::fs::read(repository().join("plans/complex_dag.plan.json")).unwrap());
}

/// An answer that may be no text.
fn curl_quietly(args: &[&str]) {
    let output = Command::new("curl").args(["-s", "-S", "-f", "--max-time", "60"]).args(args).output().unwrap();
    assert!(output.status.success(), "curl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn answers_that_are_errors_are_captured_if_they_ran() {
    let folder = Folder::new();
    let slow =
        [node("n0", "fixed_source", &[], "\"row_count\":5"), node("n1", "sleep", &["n0"], "\"duration_ms\":60000")];
    folder.plan("slow", &slow, "n1");
    let broken = [
        node("n0", "fixed_source", &[], "\"row_count\":5"),
        node("n1", "sleep", &["n0"], "\"duration_ms\":1,\"fail_after_sleep\":true"),
    ];
    folder.plan("broken", &broken, "n1");
    let captures = folder.0.join("captures");
    let server = start(&folder.0, &captures, &[]);
    assert_eq!(post(&server.url("/rank/slow"), r#"{"user_id":1,"deadline_ms":30}"#).status, 504);
    assert_eq!(post(&server.url("/rank/slow"), r#"{"user_id":1,"node_timeout_ms":30}"#).status, 504);
    assert_ne!(post(&server.url("/rank/broken"), r#"{"user_id":1}"#).status, 200);
    stop(server);
    all_is_the_same(&captures, 3);
}

#[test]
fn a_share_is_captured_and_counted() {
    let folder = Folder::new();
    let captures = folder.0.join("captures");
    let server = start(&repository().join("plans"), &captures, &["--capture_share", "0.5"]);
    for at in 0..40 {
        let body = format!(r#"{{"user_id":1,"request_id":"r{at}"}}"#);
        assert_eq!(post(&server.url("/rank/simple_viewer"), &body).status, 200);
    }
    // A batch is written within a second.
    let metrics = metrics_until(&server.address, |now| metric(now, "rankd_captured_total") >= 5.0);
    assert_eq!(metric(&metrics, "rankd_capture_files_total"), 1.0);
    assert!(metric(&metrics, "rankd_capture_bytes_total") > 1000.0);
    let [path] = &files(&captures)[..] else { unreachable!("one file") };
    let path = path.clone();
    stop(server);
    let (told, _) = replay(&path, &[]);
    let captured = told.number("requests");
    assert!(captured > 5.0 && captured < 35.0 && told.number("same") == captured, "{told:?}");
    // The same ids, so the same requests: who asks decides nothing.
    let again = folder.0.join("again");
    let server = start(&repository().join("plans"), &again, &["--capture_share", "0.5"]);
    (0..40).for_each(|at| {
        post(&server.url("/rank/simple_viewer"), &format!(r#"{{"user_id":2,"request_id":"r{at}"}}"#));
    });
    stop(server);
    assert_eq!(replay(&again, &[]).0.number("requests"), captured);
}

/// Two layers: one sets the weight for everybody, the other lets another plan answer for half of them.
const EXPERIMENTS: &str = "[[layer]]\nname = \"home\"\n[[layer]]\nname = \"plans\"\n\
    [[experiment]]\nname = \"w\"\nlayer = \"home\"\nfrom = 0\nto = 10000\n\
    arm = [{ name = \"low\", set = { weight = 2 } }, { name = \"high\", set = { weight = 3 } }]\n\
    [[experiment]]\nname = \"next\"\nlayer = \"plans\"\nfrom = 0\nto = 5000\nplans = [\"feed\"]\n\
    arm = [{ name = \"new\", plan = \"feed_next\" }]\n";

fn weight_plan(folder: &Folder, name: &str, otherwise: f64) {
    let expr = format!(
        r#"{{"op":"coalesce","a":{{"op":"param_ref","param":"weight"}},"b":{{"op":"const_number","value":{otherwise}}}}}"#
    );
    let text = format!(
        r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{{"node_id":"n0","op":"fixed_source","params":{{"row_count":1}}}},
        {{"node_id":"n1","op":"vm","inputs":["n0"],"params":{{"out_key":"score","expr":"e0"}}}}],"outputs":["n1"],"expr_table":{{"e0":{expr}}}}}"#
    );
    folder.write(&format!("{name}.plan.json"), &text);
}

#[test]
fn a_request_in_arms_is_replayed_in_them_whatever_the_experiments_of_today_are() {
    let (plans, registry) = (Folder::new(), Folder::new());
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), registry.0.join(name)).unwrap();
    }
    registry.write("endpoints.local.toml", "");
    registry.write("experiments.toml", EXPERIMENTS);
    weight_plan(&plans, "feed", 0.5);
    weight_plan(&plans, "feed_next", 0.25);
    let captures = plans.0.join("captures");
    let flags = ["--registry", registry.0.to_str().unwrap(), "--force_arms", "--watch-ms", "2"];
    let server = start(&plans.0, &captures, &flags);
    let ask = |body: &str| post(&server.url("/rank/feed"), body);
    let answers: Vec<Answer> = (1..=40).map(|user| ask(&format!(r#"{{"user_id":{user}}}"#))).collect();
    for what in [r#""plan":"feed""#, r#""plan":"feed_next""#, r#""w":"low""#, r#""w":"high""#, r#""next":"new""#] {
        assert!(answers.iter().any(|answer| answer.body.contains(what)), "nobody is in {what}");
    }
    let forced = ask(r#"{"user_id":1,"arms":{"w":"high"}}"#);
    assert!(forced.body.contains(r#""forced":true"#), "{forced:?}");
    assert!(!ask(r#"{"user_id":1,"params":{"weight":9}}"#).body.contains(r#""w":"#));
    // Other experiments, while the server runs.
    registry.write("experiments.toml", &EXPERIMENTS.replace("weight = 2", "weight = 7"));
    metrics_until(&server.address, |now| metric(now, "rankd_experiments_reloads_total{outcome=\"ok\"}") == 1.0);
    (1..=20).for_each(|user| drop(ask(&format!(r#"{{"user_id":{user}}}"#))));
    stop(server);
    all_is_the_same(&captures, 62);
    assert_eq!(std::fs::read_dir(captures.join("experiments")).unwrap().count(), 2);
    for file in std::fs::read_dir(captures.join("experiments")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let (told, code) = replay(&captures, &[]);
    assert_eq!(code, 1);
    assert!(told.number("same") < 62.0 && told.number("different") == 0.0, "{told:?}");
}

#[test]
fn a_changed_table_makes_requests_not_comparable_and_traces_have_its_digest() {
    let (plans, registry) = (Folder::new(), Folder::new());
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), registry.0.join(name)).unwrap();
    }
    let file = registry.0.join("items.csv");
    let endpoint = format!(
        "[[endpoint]]\nendpoint_id = \"ep_0010\"\nname = \"items\"\nkind = \"table\"\nurl = \"file:{}\"\n",
        file.display()
    );
    registry.write("endpoints.local.toml", &endpoint);
    registry.write("items.csv", "id,title,likes\n1,one,10\n2,two,20\n");
    plans.plan("all", &[node("n0", "scan", &[], "\"endpoint\":\"items\"")], "n0");
    let captures = plans.0.join("captures");
    let server = start(&plans.0, &captures, &["--registry", registry.0.to_str().unwrap()]);
    let answer = post(&server.url("/rank/all"), r#"{"user_id":1,"trace":true}"#);
    let sum = Command::new("sha256sum").arg(&file).output().unwrap();
    let sum = String::from_utf8_lossy(&sum.stdout).split(' ').next().unwrap().to_owned();
    assert_eq!((answer.status, answer.json().text("trace.tables.items")), (200, &*sum), "{answer:?}");
    stop(server);
    all_is_the_same(&captures, 1);
    registry.write("items.csv", "id,title,likes\n1,one,10\n2,two,21\n");
    let (told, code) = replay(&captures, &[]);
    assert_eq!((told.number("same"), told.number("different"), code), (0.0, 0.0, 1), "{told:?}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_rankd")).current_dir(repository()).arg("replay").arg(&captures).output();
    let words = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    assert!(words.contains(r#"not comparable: 1: the table "items" is not the one that was captured"#), "{words}");
}

/// Reads a file of captures and ends with what is wrong.
const READ: &str = r#"
import json, sys
import pyarrow as pa
with pa.ipc.open_stream(sys.argv[1]) as reader:
    table = reader.read_all()
table.validate(full=True)
read = pa.struct([("endpoint", pa.utf8()), ("read", pa.utf8()), ("key", pa.utf8()), ("fields", pa.list_(pa.utf8())), ("limit", pa.int64()),
                  ("status", pa.utf8()), ("ids", pa.list_(pa.int64())), ("values", pa.list_(pa.binary()))])
types = {"request_id": pa.utf8(), "at_ms": pa.int64(), "plan": pa.utf8(), "plan_sha256": pa.utf8(), "registry_sha256": pa.utf8(),
         "engine_version": pa.utf8(), "request": pa.utf8(), "answer": pa.binary(), "run": pa.utf8(), "weather": pa.utf8()}
assert table.schema.names == [*types, "reads"], table.schema
for name, type_of in types.items():
    assert table.schema.field(name).type == type_of, table.schema
of_reads = table.schema.field("reads").type
assert pa.types.is_list(of_reads), of_reads
assert [(field.name, str(field.type).split("<")[0]) for field in of_reads.value_type] == [(field.name, str(field.type).split("<")[0]) for field in read], of_reads
for row in table.to_pylist():
    answer = json.loads(row["answer"])
    assert answer["request_id"] == row["request_id"] and answer["plan"] == row["plan"], row
    assert json.loads(row["request"])["user_id"] >= 1 and "pressure" in json.loads(row["run"]), row
    assert json.loads(row["weather"]) == {"nodes": [], "ended_run": False, "short": []}, row
    keys = {(one["read"], one["key"]) for one in row["reads"]}
    assert ("hash", "user:%d" % json.loads(row["request"])["user_id"]) in keys, keys
    for one in row["reads"]:
        assert one["status"] in ("ok", "missing"), one
        assert (one["status"] == "ok") == (len(one["ids"]) + len([v for v in one["values"] if v is not None]) > 0), one
print(table.num_rows, "requests,", sum(len(reads) for reads in table["reads"].to_pylist()), "reads")
"#;

#[test]
fn pyarrow_reads_the_files() {
    let python = match downloads::python("pyarrow==26.0.1") {
        Ok(python) => python,
        Err(why) => return downloads::skipped("captures are not read by pyarrow", &why),
    };
    let folder = Folder::new();
    let captures = folder.0.join("captures");
    let server = start(&repository().join("plans"), &captures, &[]);
    (1..=70).for_each(|user| {
        assert_eq!(post(&server.url("/rank/complex_dag"), &format!(r#"{{"user_id":{user}}}"#)).status, 200);
    });
    stop(server);
    let [path] = &files(&captures)[..] else { unreachable!("one file") };
    let output = Command::new(python.join("python")).args(["-c", READ]).arg(path).output().unwrap();
    let (told, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.starts_with("70 requests, "), "{told}{wrong}");
}

#[test]
fn what_was_not_captured_is_read_live_where_that_is_asked_for() {
    let folder = Folder::new();
    let captures = folder.0.join("captures");
    let server = start(&repository().join("plans"), &captures, &[]);
    (1..=20).for_each(|user| {
        assert_eq!(post(&server.url("/rank/simple_viewer"), &format!(r#"{{"user_id":{user}}}"#)).status, 200);
    });
    stop(server);
    let more = repository().join("plans/complex_dag.plan.json");
    let more = ["--plan", more.to_str().unwrap()];
    let (told, code) = replay(&captures, &more);
    assert_eq!((told.number("missing"), code), (20.0, 1), "{told:?}");
    let (told, code) = replay(&captures, &[&more[..], &["--live"]].concat());
    assert_eq!((told.number("missing"), told.number("different"), code), (0.0, 20.0, 1), "{told:?}");
    assert!(
        told.number("live_requests") > 0.0 && told.number("live_reads") >= told.number("live_requests"),
        "{told:?}"
    );
    assert!(told.text("first_difference.replayed").contains(r#""candidates":[{"id":"#), "{told:?}");
    // The same plan reads nothing more.
    let (told, code) = replay(&captures, &["--live"]);
    assert_eq!((told.number("same"), told.number("live_reads"), code), (20.0, 0.0, 0), "{told:?}");
}
