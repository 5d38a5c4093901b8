//! How an answer came about: the trace in a response, the trace file for a viewer, and what the schedulers' times show.

use crate::json::Json;
use crate::program::{Folder, node, read, run};

#[test]
fn a_dumped_trace_has_a_record_and_a_schema_delta_for_each_node() {
    let by_flag = run(&["--plan_name", "complex_dag", "--dump_run_trace"], b"{\"user_id\":1}");
    let by_request = run(&["--plan_name", "complex_dag"], b"{\"user_id\":1,\"trace\":true}");
    for ran in [by_flag, by_request] {
        assert_eq!(ran.code, 0);
        let answer = &ran.answers()[0];
        let nodes = answer.list("trace.nodes");
        let mut ids: Vec<&str> = nodes.iter().map(|record| record.text("node")).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"]);
        for record in nodes {
            assert_eq!(record.text("outcome"), "done");
            let times = ["ready_us", "start_us", "end_us"].map(|time| record.number(time));
            assert!(times.is_sorted() && times[2] <= answer.number("trace.total_us"), "{record:?}");
            assert!(!record.text("where").is_empty() && record.has("critical") && record.has("rows_out"), "{record:?}");
        }
        let delta = |id: &str| {
            let deltas = answer.list("trace.schema_deltas");
            assert_eq!(deltas.len(), 10);
            deltas.iter().find(|delta| delta.text("node") == id).expect("each node has one").clone()
        };
        assert_eq!(delta("n3").texts("new_keys"), ["score"], "vm writes the score");
        assert_eq!(delta("n3").texts("in_keys"), ["id", "parent_id"]);
        assert_eq!(delta("n3").texts("out_keys"), ["id", "parent_id", "score"]);
        assert!(delta("n1").texts("removed_keys").contains(&"country"), "a fan-out does not carry the profile over");
        assert_eq!(delta("n9").texts("new_keys"), [] as [&str; 0]);
    }
    let without = run(&["--plan_name", "complex_dag"], b"{\"user_id\":1}");
    assert!(!without.answers()[0].has("trace"), "no trace unless it is asked for");
}

#[test]
fn a_failed_request_has_a_trace_too() {
    let folder = Folder::new();
    let nodes = [
        node("s", "fixed_source", &[], ""),
        node("z", "sleep", &["s"], r#""duration_ms":1,"fail_after_sleep":true"#),
        node("t", "take", &["z"], r#""count":1"#),
    ];
    let plan = folder.plan("failing", &nodes, &["t"]);
    for scheduler in ["async", "pools", "sequential"] {
        let ran = run(&["--plan", &plan, "--scheduler", scheduler], b"{\"user_id\":1,\"trace\":true}");
        let answer = &ran.answers()[0];
        assert_eq!((ran.code, answer.text("error.kind"), answer.text("error.node")), (1, "task", "z"));
        let outcomes: Vec<&str> = answer.list("trace.nodes").iter().map(|record| record.text("outcome")).collect();
        assert_eq!(outcomes, ["done", "failed"], "{scheduler}");
    }
}

#[test]
fn a_trace_file_opens_in_a_viewer_and_its_lanes_never_overlap() {
    let folder = Folder::new();
    let file = folder.path("trace.json");
    for scheduler in ["async", "pools", "sequential"] {
        let args = ["--plan_name", "complex_dag", "--scheduler", scheduler, "--trace", &file.display().to_string()];
        let ran = run(&args, "{\"user_id\":1}\n{\"user_id\":0}\n".repeat(5).as_bytes());
        assert_eq!(ran.code, 1);
        assert!(ran.answers().iter().all(|answer| !answer.has("trace")), "the file has it, the answers do not");
        let trace = Json::read(read(&file).trim());
        let of_phase = |phase: &str| -> Vec<&Json> {
            trace.list("traceEvents").iter().filter(|event| event.text("ph") == phase).collect()
        };
        let spans = of_phase("X");
        assert_eq!(spans.len(), 5 * 11, "{scheduler}: ten nodes and the run itself, five times");
        // Lane, start and end, in whole nanoseconds.
        let nanos = |micros: f64| (micros * 1e3).round() as u64;
        let mut times: Vec<(u64, u64, u64)> = spans
            .iter()
            .map(|span| {
                let start = nanos(span.number("ts"));
                (span.number("tid") as u64, start, start + nanos(span.number("dur")))
            })
            .collect();
        times.sort_unstable();
        for pair in times.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[0].2 <= pair[1].1, "{scheduler}: {pair:?} overlap in their lane");
        }
        let names: Vec<f64> = of_phase("M").iter().map(|lane| lane.number("tid")).collect();
        assert!(spans.iter().all(|span| names.contains(&span.number("tid"))), "every lane has a name");
        assert!(spans.iter().any(|span| span.text("name") == "n7 concat"));
    }
}

#[test]
fn a_trace_file_that_cannot_be_written_is_said_and_the_answers_are_given() {
    let folder = Folder::new();
    let file = folder.path("no/such/folder.json").display().to_string();
    let ran = run(&["--plan_name", "diamond", "--trace", &file], b"{\"user_id\":1}");
    assert!(ran.answers()[0].has("candidates"));
    assert!(ran.code != 0 && ran.stderr.contains("folder.json"), "{}", ran.stderr);
}

/// Twenty sleeps of 50 ms: one loop waits for all at once, four IO threads for four at a time.
#[test]
fn twenty_sleeps_take_as_long_as_one_on_the_loop_and_as_five_on_four_io_threads() {
    let folder = Folder::new();
    let ids: Vec<String> = (0..20).map(|n| format!("z{n}")).collect();
    let mut nodes = vec![node("s", "fixed_source", &[], "")];
    nodes.extend(ids.iter().map(|id| node(id, "sleep", &["s"], r#""duration_ms":50"#)));
    let plan = folder.plan("twenty", &nodes, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    let total_ms = |scheduler: &str| {
        let ran = run(&["--plan", &plan, "--scheduler", scheduler, "--dump_run_trace"], b"{\"user_id\":1}");
        assert_eq!((ran.code, ran.answers()[0].list("outputs").len()), (0, 20));
        ran.answers()[0].number("trace.total_us") / 1e3
    };
    // On a crowded machine one run may be held up; the best of three shows what the scheduler does.
    let on_the_loop = (0..3).map(|_| total_ms("async")).fold(f64::INFINITY, f64::min);
    let on_io_threads = total_ms("pools");
    println!("twenty sleeps of 50 ms: {on_the_loop:.1} ms on async, {on_io_threads:.1} ms on pools");
    assert!((50.0..120.0).contains(&on_the_loop), "{on_the_loop} ms");
    assert!(on_io_threads >= 240.0, "{on_io_threads} ms");
}
