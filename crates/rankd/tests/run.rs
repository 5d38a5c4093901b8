//! `rankd run` as its users meet it: a process, requests on stdin, responses on stdout, an exit code.
//!
//! How it ends is in `run/endings.rs`. What a refused request is told is in `run/refusals.rs`, traces are in `run/traces.rs`, `rankd explain` is in
//! `run/explains.rs`, its pictures in `run/pictures.rs`, `rankd code` in `run/codes.rs`, captures and replays in `run/captures.rs`, `rankd diff` in `run/diffs.rs`,
//! `rankd why` about captured runs in `run/whys.rs`, arms of experiments in
//! `run/arms.rs`, the feature log in `run/feature_logs.rs`, values about persons in `run/personal.rs`.

#[path = "run/arms.rs"]
mod arms;
#[path = "run/captures.rs"]
mod captures;
#[path = "run/codes.rs"]
mod codes;
#[path = "run/diffs.rs"]
mod diffs;
#[path = "run/endings.rs"]
mod endings;
#[path = "run/explains.rs"]
mod explains;
#[path = "run/feature_logs.rs"]
mod feature_logs;
#[path = "run/json.rs"]
mod json;
#[path = "run/personal.rs"]
mod personal;
#[path = "run/pictures.rs"]
mod pictures;
#[path = "run/program.rs"]
mod program;
#[path = "run/refusals.rs"]
mod refusals;
#[path = "run/traces.rs"]
mod traces;
#[path = "run/whys.rs"]
mod whys;

use json::Json;
use program::{Folder, Session, node, read, repository, run};
use rankd_engine::clock;
use std::time::Duration;

#[test]
fn the_first_command_of_the_readme_gives_a_ranked_list() {
    let command = "echo '{\"user_id\": 1}' | cargo run --release -q -p rankd -- --plan_name complex_dag";
    assert!(read(&repository().join("README.md")).contains(command), "the README starts with this command");
    let ran = run(&["--plan_name", "complex_dag"], b"{\"user_id\": 1}\n");
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let [answer] = &ran.answers()[..] else { unreachable!("one line, not {}", ran.stdout) };
    assert_eq!(answer.text("plan"), "complex_dag");
    assert!(!answer.text("request_id").is_empty());
    let scores: Vec<f64> = answer.list("candidates").iter().map(|row| row.number("score")).collect();
    assert_eq!(scores.len(), 50);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let Json::Object(fields) = &answer.list("candidates")[0] else { unreachable!("a row is an object") };
    assert_eq!(fields[0].0, "id", "a row begins with its id");
}

#[test]
fn each_answer_is_there_before_the_next_request_is_sent() {
    let mut session = Session::start(&["--plan_name", "simple_viewer"]);
    for user in [3, 1, 2] {
        let (answer, _) = session.ask(&format!(r#"{{"user_id":{user},"request_id":"r{user}"}}"#));
        assert_eq!(answer.text("request_id"), format!("r{user}"));
        assert_eq!(answer.list("candidates")[0].number("id"), f64::from(user));
    }
    assert_eq!(session.end(), 0);
}

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let ids: Vec<String> = (1..=40).map(|n| format!("r{n}")).collect();
    // Blank lines between requests and a last line without an end are no requests of their own.
    let input = ids.iter().map(|id| format!(r#"{{"user_id":1,"request_id":"{id}"}}"#)).collect::<Vec<_>>().join("\n\n");
    for scheduler in ["async", "pools", "sequential"] {
        let ran = run(&["--plan_name", "parallel_fanout", "--loops", "3", "--scheduler", scheduler], input.as_bytes());
        let answers = ran.answers();
        let answered: Vec<&str> = answers.iter().map(|answer| answer.text("request_id")).collect();
        assert_eq!(answered, ids, "{scheduler}");
        assert_eq!(ran.code, 0);
    }
}

#[test]
fn every_flag_is_spelled_with_dashes_or_underscores() {
    let folder = Folder::new();
    let trace = folder.path("trace.json").display().to_string();
    let flags: &[&[&str]] = &[
        &["--plan_dir", "plans"],
        &["--registry", "registry"],
        &["--env", "local"],
        &["--scheduler", "pools"],
        &["--async_scheduler"],
        &["--within_request_parallelism"],
        &["--deadline_ms", "60000"],
        &["--node_timeout_ms", "60000"],
        &["--cpu_threads", "2"],
        &["--loops", "2"],
        &["--trace", &trace],
        &["--dump_run_trace"],
    ];
    let spelled =
        |flag: &str, dashes: bool| if dashes { format!("--{}", flag[2..].replace('_', "-")) } else { flag.into() };
    for dashes in [true, false] {
        let name = spelled("--plan_name", dashes);
        for flag in flags {
            let flag_name: String = spelled(flag[0], dashes);
            let apart: Vec<&str> =
                [&name, "diamond", &flag_name].into_iter().chain(flag[1..].iter().copied()).collect();
            let joined = flag.get(1).map_or(flag_name.clone(), |value| format!("{flag_name}={value}"));
            let subcommand = ["run", &joined, &name, "diamond"];
            for args in [&apart[..], &subcommand] {
                let ran = run(args, b"{\"user_id\":1}");
                assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args:?}");
                assert_eq!(ran.answers()[0].list("candidates").len(), 30, "{args:?}");
            }
        }
    }
    let ran = run(&["--plan", "plans/diamond.plan.json"], b"{\"user_id\":1}");
    assert_eq!((ran.code, ran.answers().len()), (0, 1));
}

#[test]
fn the_exit_code_says_whether_all_went_well() {
    let good = "{\"user_id\":1}\n";
    let bad = "{\"user_id\":0}\n";
    let run_diamond = |input: &str| run(&["--plan_name", "diamond"], input.as_bytes());
    for (input, code, lines) in [
        ("", 0, 0),
        ("\n \n", 0, 0),
        (good, 0, 1),
        (bad, 1, 1),
        (&format!("{bad}{good}"), 1, 2),
        (&good.repeat(3), 0, 3),
    ] {
        let ran = run_diamond(input);
        assert_eq!((ran.code, ran.answers().len()), (code, lines), "{input:?}");
    }
}

#[test]
fn a_wrong_command_line_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let broken = folder.write("broken.plan.json", "{\"schema_version\": 1,");
    let unknown_op = folder.plan("unknown_op", &[node("n0", "viewr", &[], "")], &["n0"]);
    let nowhere = folder.path("nowhere").display().to_string();
    let table: &[(&[&str], &str)] = &[
        (&[], "--plan_name"),
        (&["--plan_name", "diamnod"], "did you mean \"diamond\"?"),
        (&["--plan_name", "../plans/diamond"], "there is no plan"),
        (&["--plan_name", "diamond", "--plan", "plans/diamond.plan.json"], "cannot be used with"),
        (&["--plan_nam", "diamond"], "--plan-name"),
        (&["--plan_name", "diamond", "--cpu_threads", "0"], "--cpu-threads"),
        (&["--plan_name", "diamond", "--loops", "0"], "--loops"),
        (&["--plan_name", "diamond", "--deadline_ms", "0"], "--deadline-ms"),
        (&["--plan_name", "diamond", "--node_timeout_ms", "soon"], "--node-timeout-ms"),
        (&["--plan_name", "diamond", "--scheduler", "magic"], "pools"),
        (&["--plan_name", "diamond", "--scheduler", "pools", "--async_scheduler"], "cannot be used with"),
        (&["--plan_name", "diamond", "--async_scheduler", "--within_request_parallelism"], "cannot be used with"),
        (&["--plan_name", "diamond", "--env", "locla"], "did you mean --env local?"),
        (&["--plan_name", "diamond", "--registry", &nowhere], "keys.toml"),
        (&["--plan", &nowhere], "cannot be read"),
        (&["--plan", "plans"], "folder"),
        (&["--plan", &broken], "broken.plan.json:1"),
        (&["--plan", &unknown_op], "did you mean \"viewer\"?"),
    ];
    for (args, says) in table {
        let ran = run(args, b"{\"user_id\":1}\n");
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args:?}");
        assert!(ran.stderr.contains(says), "{args:?} should say {says:?}, but says {}", ran.stderr);
    }
}

#[test]
fn nobody_reading_the_answers_is_no_reason_for_a_panic() {
    let mut child = program::command(&["--plan_name", "complex_dag"]).spawn().expect("rankd can be started");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let requests = "{\"user_id\":1}\n".repeat(1000);
    // It stops reading when it sees that nobody listens.
    let _ = std::io::Write::write_all(&mut stdin, requests.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("rankd comes to an end");
    program::no_panic_in(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.code().is_some(), "no signal ended it");
}

fn busy_plan(folder: &Folder) -> String {
    let nodes = [node("s", "fixed_source", &[], ""), node("b", "busy_cpu", &["s"], r#""busy_wait_ms":300"#)];
    folder.plan("busy", &nodes, &["b"])
}

#[test]
fn a_node_timeout_answers_now_and_the_next_request_does_not_wait_for_the_job() {
    let folder = Folder::new();
    let plan = busy_plan(&folder);
    for scheduler in ["async", "pools", "sequential"] {
        let args = ["--plan", &plan, "--node_timeout_ms", "50", "--cpu_threads", "1", "--scheduler", scheduler];
        let mut session = Session::start(&args);
        // The process must be up before the clock counts.
        assert_eq!(session.ask(r#"{"user_id":0}"#).0.text("error.kind"), "bad_request");
        let began = clock::now();
        let (answer, waited) = session.ask(r#"{"user_id":1}"#);
        println!("{scheduler}: a 300 ms job under a node timeout of 50 ms was answered after {waited:?}");
        assert_eq!(answer.text("error.kind"), "timeout");
        assert_eq!(answer.text("error.code"), "E302");
        assert_eq!(answer.text("error.message"), "node timeout of 50 ms exceeded");
        assert_eq!((answer.text("error.node"), answer.text("error.op")), ("b", "busy_cpu"));
        assert!(waited < Duration::from_millis(200), "{scheduler}: {waited:?}");
        let (answer, waited) = session.ask(r#"{"user_id":1,"node_timeout_ms":5}"#);
        let since = clock::now().saturating_duration_since(began);
        println!("{scheduler}: the next request, with 5 ms, was answered after {waited:?}");
        assert_eq!(answer.text("error.message"), "node timeout of 5 ms exceeded");
        assert!(since < Duration::from_millis(300), "{scheduler}: before the first job's own end, not after {since:?}");
        assert_eq!(session.end(), 1);
    }
}

#[test]
fn a_request_may_only_tighten_the_limits_of_the_process() {
    let folder = Folder::new();
    let nodes = [node("s", "fixed_source", &[], ""), node("z", "sleep", &["s"], r#""duration_ms":5000"#)];
    let plan = folder.plan("sleepy", &nodes, &["z"]);
    let table = [
        ("--deadline_ms", r#""deadline_ms":60000"#, "request deadline of 200 ms exceeded"),
        ("--deadline_ms", r#""deadline_ms":100"#, "request deadline of 100 ms exceeded"),
        ("--deadline_ms", r#""node_timeout_ms":100"#, "node timeout of 100 ms exceeded"),
        ("--node_timeout_ms", r#""node_timeout_ms":60000"#, "node timeout of 200 ms exceeded"),
        ("--node_timeout_ms", r#""node_timeout_ms":100"#, "node timeout of 100 ms exceeded"),
    ];
    for scheduler in ["async", "pools", "sequential"] {
        for (flag, field, message) in table {
            let args = ["--plan", &plan, flag, "200", "--scheduler", scheduler];
            let ran = run(&args, format!(r#"{{"user_id":1,{field}}}"#).as_bytes());
            assert_eq!(ran.answers()[0].text("error.message"), message, "{scheduler} {flag} {field}");
            assert_eq!(ran.code, 1);
        }
    }
    let ran = run(&["--plan", &plan], br#"{"user_id":1,"deadline_ms":100}"#);
    assert_eq!(ran.answers()[0].text("error.code"), "E301", "a request may have a limit where the process has none");
}

#[test]
fn the_same_request_gives_the_same_bytes_every_time_and_everywhere() {
    let request = "{\"user_id\":1,\"request_id\":\"same\",\"params\":{\"weight\":0.3}}\n".repeat(100);
    let mut expected = None;
    for scheduler in ["async", "pools", "sequential"] {
        for cpu_threads in ["1", "4"] {
            for loops in ["1", "3"] {
                let settings = ["--scheduler", scheduler, "--cpu_threads", cpu_threads, "--loops", loops];
                let args: Vec<&str> = ["--plan_name", "complex_dag"].into_iter().chain(settings).collect();
                let ran = run(&args, request.as_bytes());
                assert_eq!((ran.code, ran.stdout.lines().count()), (0, 100), "{settings:?}");
                let expected = expected.get_or_insert_with(|| ran.stdout.lines().next().unwrap_or_default().to_owned());
                assert!(expected.contains("\"candidates\":[{\"id\":"), "{expected}");
                assert!(ran.stdout.lines().all(|line| line == expected), "{settings:?}");
            }
        }
    }
}
