//! Bench mode as a process: every request is made, every error is counted, and the figures are there.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

use rankd_plan::json::{Kind, Number, Reader};
use std::path::Path;
use std::process::Command;

/// Runs the program in the repository and gives its line of JSON.
fn bench(args: &[&str]) -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_rankd")).current_dir(repository).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
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
