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

/// The spans of a trace file: lane, start and end in whole nanoseconds, and name.
fn spans(trace: &Json) -> Vec<(u64, u64, u64, String)> {
    let nanos = |micros: f64| (micros * 1e3).round() as u64;
    let events = trace.list("traceEvents").iter().filter(|event| event.text("ph") == "X");
    let mut spans: Vec<_> = events
        .map(|event| {
            let (start, took) = (nanos(event.number("ts")), nanos(event.number("dur")));
            (event.number("tid") as u64, start, start + took, event.text("name").to_owned())
        })
        .collect();
    spans.sort_unstable();
    spans
}

#[test]
fn a_trace_file_opens_in_a_viewer_and_its_lanes_never_overlap() {
    let folder = Folder::new();
    let file = folder.path("trace.json").display().to_string();
    let mut nodes = vec![node("s", "fixed_source", &[], "")];
    nodes.extend((0..6).map(|n| node(&format!("z{n}"), "sleep", &["s"], &format!(r#""duration_ms":{}"#, 5 + n))));
    nodes.push(node("b", "busy_cpu", &["s"], r#""busy_wait_ms":5"#));
    let outputs = ["z0", "z1", "z2", "z3", "z4", "z5", "b"];
    let side_by_side = folder.plan("side_by_side", &nodes, &outputs);
    for scheduler in ["async", "pools", "sequential"] {
        for (plan, nodes, one) in [("plans/complex_dag.plan.json", 10, "n7 concat"), (&*side_by_side, 8, "z5 sleep")] {
            let args = ["--plan", plan, "--scheduler", scheduler, "--trace", &file];
            let ran = run(&args, "{\"user_id\":1}\n{\"user_id\":0}\n".repeat(5).as_bytes());
            assert_eq!(ran.code, 1);
            assert!(ran.answers().iter().all(|answer| !answer.has("trace")), "the file has it, the answers do not");
            let trace = Json::read(read(file.as_ref()).trim());
            let spans = spans(&trace);
            assert_eq!(spans.len(), 5 * (nodes + 1), "{scheduler}: every node and the run itself, five times");
            assert!(spans.iter().any(|(.., name)| name == one), "{scheduler}: {one}");
            for pair in spans.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                assert!(pair[0].2 <= pair[1].1, "{scheduler}: {pair:?} overlap in their lane");
            }
            let names = trace.list("traceEvents").iter().filter(|event| event.text("ph") == "M");
            let named: Vec<u64> = names.map(|lane| lane.number("tid") as u64).collect();
            assert!(spans.iter().all(|(lane, ..)| named.contains(lane)), "every lane has a name");
            if plan == side_by_side && scheduler == "async" {
                assert!(named.len() >= 7, "six sleeps at once and their run need as many lanes, not {named:?}");
            }
        }
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
