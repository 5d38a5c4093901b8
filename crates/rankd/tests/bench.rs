//! Bench mode as a process: every request is made, every error is counted, and the figures are there.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what tests call fails the test, as an assertion would, and a baseline is a file"
)]

use rankd_plan::json::{Kind, Number, Reader};
use std::path::Path;
use std::process::Command;

/// Runs the program in the repository and gives its exit code, what it tells programs and what it tells people.
fn told(args: &[&str]) -> (Option<i32>, String, String) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_rankd")).current_dir(repository).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The line of JSON of a bench that ends well.
fn bench(args: &[&str]) -> String {
    let (code, json, words) = told(args);
    assert_eq!(code, Some(0), "{args:?}: {words}");
    json
}

/// The number at a path of field names.
fn number(json: &str, path: &[&str]) -> f64 {
    let mut reader = Reader::new(json, 16);
    for wanted in path {
        let mut fields = reader.open_object().unwrap();
        loop {
            match reader.field(&mut fields).unwrap() {
                Some((name, _)) if name == *wanted => break,
                Some(_) => reader.skip().unwrap(),
                None => panic!("there is no {path:?} in {json}"),
            }
        }
    }
    assert_eq!(reader.peek().unwrap(), Kind::Number, "{path:?}");
    match reader.number().unwrap() {
        Number::Int(value) => value as f64,
        Number::Float(value) => value,
        Number::OutOfRange => panic!("{path:?} is out of range"),
    }
}

#[test]
fn the_flags_of_run_and_the_command_bench_make_every_request_on_every_scheduler() {
    for scheduler in ["async", "pools", "sequential"] {
        let by_flags =
            bench(&["--plan_name", "diamond", "--bench", "40", "--bench_concurrency", "4", "--scheduler", scheduler]);
        let by_command = bench(&["bench", "diamond", "-n", "40", "-c", "4", "--json", "--scheduler", scheduler]);
        for json in [by_flags, by_command] {
            assert_eq!(number(&json, &["iterations"]), 40.0);
            assert!(json.contains("\"errors\":{}"), "{json}");
            // The viewer's profile and two lists a request.
            assert_eq!(number(&json, &["commands", "redis_default"]), 120.0);
            let trips = number(&json, &["offload_round_trips"]);
            match scheduler {
                "pools" => assert_eq!(trips, 40.0),
                "sequential" => assert_eq!(trips, 0.0),
                // Its one computation stays on the loop, but for requests that came before its cost was known.
                _ => assert_eq!(trips + number(&json, &["inlined_nodes"]), 40.0),
            }
            let latency = |name: &str| number(&json, &["latency_us", name]);
            assert!(latency("min") <= latency("p50") && latency("p50") <= latency("max"), "{json}");
        }
    }
}

#[test]
fn errors_are_counted_and_stop_nothing() {
    let json = bench(&[
        "bench",
        "complex_dag",
        "-n",
        "20",
        "--json",
        "--request",
        "crates/rankd/tests/bench/bad_weight.ndjson",
    ]);
    assert_eq!(number(&json, &["iterations"]), 20.0);
    assert_eq!(number(&json, &["errors", "task"]), 10.0);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let json = bench(&["bench", "simple_viewer", "-n", "50", "--rate", "500", "--json"]);
    let wall = number(&json, &["wall_s"]);
    // The last request is due after 98 ms; a crowded machine may take longer, but never less.
    assert!((0.098..5.0).contains(&wall), "{wall} s");
}

#[test]
fn a_bench_can_last_for_a_time_on_every_scheduler() {
    for scheduler in ["async", "pools", "sequential"] {
        let json =
            bench(&["bench", "simple_viewer", "--duration", "200ms", "-c", "2", "--scheduler", scheduler, "--json"]);
        let (wall, count) = (number(&json, &["wall_s"]), number(&json, &["iterations"]));
        assert!((0.2..5.0).contains(&wall) && count >= 1.0, "{wall} s, {count} requests");
        assert_eq!(number(&json, &["commands", "redis_default"]), count, "one read a request");
    }
    // With a rate the time says how many.
    let json = bench(&["bench", "simple_viewer", "--duration", "100ms", "--rate", "200", "--json"]);
    assert_eq!(number(&json, &["iterations"]), 20.0);
}

#[test]
fn a_warm_up_counts_for_nothing() {
    for scheduler in ["async", "sequential"] {
        for warmup in ["30", "50ms"] {
            let json = bench(&["bench", "diamond", "-n", "10", "--warmup", warmup, "--json", "--scheduler", scheduler]);
            assert_eq!(number(&json, &["iterations"]), 10.0);
            assert_eq!(number(&json, &["commands", "redis_default"]), 30.0, "{json}");
        }
    }
}

#[test]
fn users_are_asked_for_in_turn() {
    let commands = |users: &str, count: &str| {
        let json = bench(&["bench", "complex_dag", "-n", count, "--users", users, "--json"]);
        number(&json, &["commands", "redis_default"])
    };
    let each: f64 = ["1", "2", "3"].map(|user| commands(user, "1")).iter().sum();
    assert_eq!((commands("1..3", "3"), commands("1..3", "6")), (each, 2.0 * each));
    // One that nobody knows has nobody to read about.
    assert!(commands("900001", "1") < commands("1", "1"));
    let (code, json, words) = told(&["bench", "simple_viewer", "--users", "5..2"]);
    assert!(code == Some(2) && json.is_empty() && words.contains("such as 1..1000"), "{words}");
}

#[test]
fn kinds_of_errors_and_a_picture_are_in_the_table() {
    let file = "crates/rankd/tests/bench/bad_weight.ndjson";
    let (code, json, words) = told(&["bench", "complex_dag", "-n", "20", "--request", file]);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("10 without rows (50.00 %): 10 task"), "{words}");
    assert!(words.contains('█') && words.contains("p99.9"), "{words}");
    assert_eq!(number(&json, &["error_share"]), 0.5);
    let steps = json.split("\"below_us\":").count() - 1;
    assert!(steps >= 1, "{json}");
}

#[test]
fn a_bench_is_judged_by_conditions() {
    let file = "crates/rankd/tests/bench/bad_weight.ndjson";
    let run = |gates: &[&str]| {
        let gates = gates.iter().flat_map(|gate| ["--fail_if", gate]);
        told(
            &[&["bench", "complex_dag", "-n", "20", "--json", "--request", file], &gates.collect::<Vec<_>>()[..]]
                .concat(),
        )
    };
    assert_eq!(run(&["p99 > 1m", "throughput < 0.001", "errors > 60%"]).0, Some(0));
    let (code, json, words) = run(&["p99 > 1m", "errors > 10%", "min > 0.001us"]);
    assert_eq!((code, number(&json, &["iterations"])), (Some(1), 20.0));
    let failed: Vec<&str> = words.lines().filter(|line| line.starts_with("failed: ")).collect();
    assert!(failed.len() == 2 && failed[0] == "failed: errors > 10%: errors is 50.00 %", "{words}");
    // What cannot be judged is said before anything runs.
    for (gate, expected) in
        [("p98 > 5ms", "did you mean \"p90\"?"), ("p99 > 5", "a time with its unit"), ("p99 > 2x", "--baseline")]
    {
        let (code, json, words) = run(&[gate]);
        assert!(code == Some(2) && json.is_empty() && words.contains(expected), "{gate}: {words}");
    }
}

#[test]
fn a_bench_stands_beside_an_earlier_one() {
    let folder = std::env::temp_dir().join(format!("rankd-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let baseline = folder.join("before.json");
    let path = baseline.to_str().unwrap();
    std::fs::write(&baseline, bench(&["bench", "simple_viewer", "-n", "50", "--json"])).unwrap();
    let again = |gate: &str| told(&["bench", "simple_viewer", "-n", "50", "--baseline", path, "--fail_if", gate]);
    let (code, _, words) = again("p50 > 100000x");
    assert!(code == Some(0) && words.contains("now/baseline") && words.contains("throughput"), "{words}");
    let (code, _, words) = again("throughput < 100000x");
    assert!(code == Some(1) && words.contains("failed: throughput < 100000x: throughput is"), "{words}");
    std::fs::write(&baseline, "{\"latency_us\":{}}").unwrap();
    let (code, json, words) = again("p50 > 2x");
    assert!(code == Some(2) && json.is_empty() && words.contains("no bench figures"), "{words}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_plan_is_named_once_by_its_place_or_by_a_flag() {
    for command in ["bench", "explain"] {
        let (code, _, words) = told(&[command, "--plan_name", "diamond"]);
        assert_eq!(code, Some(0), "{words}");
        let (code, _, words) = told(&[command, "diamond", "--plan_name", "complex_dag"]);
        assert!(code == Some(2) && words.contains("cannot be used with"), "{code:?} {words}");
        let (code, _, words) = told(&[command]);
        assert!(code == Some(2) && words.contains("<PLAN>"), "{code:?} {words}");
    }
}

#[test]
fn flags_of_a_plan_are_refused_where_a_server_is_driven() {
    let flags: [&[&str]; 4] =
        [&["--scheduler", "pools"], &["--plan_dir", "x"], &["--deadline_ms", "5"], &["--inline", "off"]];
    for flags in flags {
        let (code, json, words) = told(&[&["bench", "--url", "http://127.0.0.1:1/rank"], flags].concat());
        assert!(code == Some(2) && json.is_empty() && words.contains("cannot be used with"), "{flags:?}: {words}");
    }
}
