//! `rankd diff`: two plans beside each other, with figures that were computed by hand.

use crate::json::Json;
use crate::program::{Folder, node, read, repository, run};

/// A plan that gives these ids with these scores.
fn fixed(folder: &Folder, name: &str, ids: &[i64], scores: &[f64]) -> String {
    let params = format!(r#""ids":{ids:?},"columns":{{"score":{scores:?}}}"#);
    folder.plan(name, &[node("s", "fixed_source", &[], &params)], &["s"])
}

fn report(args: &[&str]) -> Json {
    let ran = run(&[&["diff"], args, &["--json"]].concat(), b"");
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args:?}");
    Json::read(ran.stdout.trim())
}

#[test]
fn a_plan_beside_itself_differs_in_nothing() {
    for scheduler in ["async", "pools", "sequential"] {
        let report = report(&["for_you", "for_you", "--users", "1..40", "--scheduler", scheduler]);
        assert_eq!(report.number("requests"), 40.0);
        assert_eq!((report.number("figures.differ"), report.number("figures.overlap@20")), (0.0, 1.0), "{scheduler}");
        assert_eq!(report.list("most_different").len(), 0);
    }
}

#[test]
fn figures_are_those_that_were_computed_by_hand_and_the_page_has_them() {
    let folder = Folder::new();
    let a = fixed(&folder, "a", &[1, 2, 3, 4, 4], &[0.9, 0.8, 0.7, 0.6, 0.1]);
    let b = fixed(&folder, "b", &[2, 1, 5], &[0.8, 0.5, 0.4]);
    let labels = folder.write("labels.csv", "user_id,id,gain\n1,5,1\n1,1,1\n");
    let page = folder.path("diff.html").display().to_string();
    let report = report(&[&a, &b, "--users", "1..2", "--k", "3", "--labels", &labels, "--html", &page]);
    let figure = |name: &str| report.number(&format!("figures.{name}"));
    assert_eq!(figure("differ"), 1.0);
    // Of the first three: 1 and 2 of three rows.
    assert!((figure("overlap@3") - 2.0 / 3.0).abs() < 1e-12);
    // 1 and 2 change places; of the repeated 4 the first counts; 3 and 4 leave, 5 enters.
    assert_eq!((figure("displacement"), figure("left"), figure("entered")), (1.0, 2.0, 1.0));
    assert!((figure("drift") - 0.2).abs() < 1e-12, "row 1 by 0.4, row 2 by nothing");
    assert_eq!(report.list("figures.recall@3").len(), 2);
    assert_eq!((report.number("labels.users"), report.number("labels.requests_left_out")), (1.0, 1.0));
    assert_eq!((report.number("labels.recall.first"), report.number("labels.recall.second")), (0.5, 1.0));
    let worst = &report.list("most_different")[0];
    assert!(worst.text("why").contains("| rankd why "), "{}", worst.text("why"));
    assert!(read(folder.path("diff.html").as_ref()).contains("<svg"));
}

#[test]
fn conditions_gate_a_change() {
    let folder = Folder::new();
    let a = fixed(&folder, "a", &[1, 2], &[0.9, 0.8]);
    let b = fixed(&folder, "b", &[1, 3], &[0.9, 0.8]);
    let code = |condition: &str| {
        let ran = run(&["diff", &a, &b, "--users", "7", "--fail_if", condition], b"");
        (ran.code, ran.stderr)
    };
    assert_eq!(code("overlap@20 < 0.5"), (0, String::new()));
    assert_eq!(code("overlap@20 < 0.6"), (1, "failed: overlap@20 < 0.6: overlap@20 is 50.00 %\n".to_owned()));
    assert_eq!(code("errors > 0").0, 0);
    assert_eq!(code("rows < 1x").0, 0, "as many as the first plan");
    let (wrong, told) = code("overlap@10 < 0.6");
    assert!(wrong == 2 && told.contains("did you mean \"overlap@20\"?"), "{told}");
}

#[test]
fn a_plan_that_fails_is_counted_and_what_cannot_be_read_is_named() {
    let folder = Folder::new();
    let a = fixed(&folder, "a", &[1], &[0.9]);
    let nodes =
        [node("s", "fixed_source", &[], ""), node("z", "sleep", &["s"], r#""duration_ms":0,"fail_after_sleep":true"#)];
    let failing = folder.plan("failing", &nodes, &["z"]);
    let report = report(&[&a, &failing, "--users", "1..3"]);
    assert_eq!((report.number("figures.differ"), report.list("figures.errors").len()), (1.0, 2));
    assert_eq!(report.list("most_different").len(), 3);
    let refused = |args: &[&str], expected: &str| {
        let ran = run(&[&["diff", &*a, &*a], args].concat(), b"");
        assert!(ran.code == 2 && ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    };
    refused(&["--users", "1", "--by", "contry"], "did you mean \"country\"?");
    refused(&["--users", "1", "--score", "country"], "a key that is a number");
    refused(&["--users", "1", "--labels", &folder.write("bad.csv", "user,id\n")], "labels have the columns");
    refused(&["--requests", &folder.write("bad.ndjson", "{\"user_id\":1}\n{\"user\":2}\n")], "request 2: ");
    refused(&[], "--requests");
}

/// Captures 40 requests of a plan in the plan folder.
fn capture(folder: &Folder, plan: &str) -> String {
    let captures = folder.path("captures").display().to_string();
    let requests: String =
        (1..=40).map(|user| format!("{{\"user_id\":{user},\"request_id\":\"r{user}\"}}\n")).collect();
    let ran = run(&["run", "--plan_name", plan, "--capture", &captures], requests.as_bytes());
    assert_eq!((ran.answers().len(), &*ran.stderr), (40, ""));
    captures
}

/// The plan complex_dag with another text for a part of it.
fn changed(folder: &Folder, name: &str, from: &str, to: &str) -> String {
    let text = read(&repository().join("plans/complex_dag.plan.json"));
    assert!(text.contains(from));
    folder.write(&format!("{name}.plan.json"), &text.replace(from, to).replace("\"complex_dag\"", &format!("{name:?}")))
}

#[test]
fn captured_requests_are_compared_on_what_was_read_then() {
    let folder = Folder::new();
    let captures = capture(&folder, "complex_dag");
    for scheduler in ["async", "pools", "sequential"] {
        // The stores of this environment are not there, and are not needed.
        let more = ["--capture", &captures, "--env", "dev", "--scheduler", scheduler];
        let report = report(&[&["complex_dag", "complex_dag"], &more[..]].concat());
        let figures = ["requests", "figures.differ", "left_out.other_plan"].map(|name| report.number(name));
        assert_eq!(figures, [40.0, 0.0, 0.0], "{scheduler}");
        assert!(
            report.list("figures.commands").iter().all(|count| matches!(count, Json::Number(count) if *count > 1.0))
        );
    }
    let fewer = changed(&folder, "fewer", "\"count\":50", "\"count\":5");
    let report = report(&["complex_dag", &fewer, "--capture", &captures]);
    assert!(report.number("figures.differ") > 0.5 && report.number("figures.left") > 1.0);
    let left = report.list("outputs")[0].number("left");
    assert_eq!(report.list("outputs")[0].number("sources.media.left"), left, "media brings in all rows");
    assert_eq!(report.list("left_out.missing"), [Json::Number(0.0), Json::Number(0.0)]);
    // The command that is told to be pasted works, and speaks of the plan that lacks the item.
    let why = report.list("most_different")[0].text("why").to_owned();
    let words: Vec<&str> = why.strip_prefix("rankd ").expect("a command").split(' ').collect();
    let ran = run(&words, b"");
    assert!(ran.code == 0 && ran.stdout.contains("dropped by take n9"), "{why}: {} {}", ran.stdout, ran.stderr);
}

#[test]
fn what_was_not_captured_is_counted_and_left_out() {
    let folder = Folder::new();
    let captures = capture(&folder, "complex_dag");
    let other = changed(
        &folder,
        "other",
        "\"op\":\"follow\",\"inputs\":[\"n0\"],\"params\":{",
        "\"op\":\"media\",\"inputs\":[\"n0\"],\"params\":{",
    );
    let args = ["diff", "complex_dag", &*other, "--capture", &*captures];
    let ran = run(&[&args[..], &["--json", "--fail_if", "missing > 10%"]].concat(), b"");
    assert!(ran.code == 1 && ran.stderr.contains("failed: missing > 10%: missing is "), "{}", ran.stderr);
    let report = Json::read(ran.stdout.trim());
    let [Json::Number(first), Json::Number(second)] = report.list("left_out.missing") else { unreachable!("numbers") };
    assert_eq!((*first, *second + report.number("requests")), (0.0, 40.0));
    assert!(*second > 10.0 && report.list("errors") == [Json::Object(Vec::new()), Json::Object(Vec::new())]);
    let told = run(&args, b"").stdout;
    assert!(
        told.contains(&format!("left out: {second} requests, because {other} reads what was not captured")),
        "{told}"
    );
    // Requests of another plan are no business of these two, unless they are asked for.
    let feed = fixed(&folder, "feed", &[1], &[0.5]);
    let ran = run(&["diff", &feed, &feed, "--capture", &captures], b"");
    let expected =
        "no request was captured for feed; there are requests for complex_dag: --captured_plan NAME takes those";
    assert!(ran.code == 2 && ran.stderr.contains(expected), "{}", ran.stderr);
    let ran = run(&["diff", &feed, &feed, "--capture", &captures, "--captured_plan", "complex_dag", "--json"], b"");
    assert_eq!((ran.code, Json::read(ran.stdout.trim()).number("requests")), (0, 40.0), "{}", ran.stderr);
    let refused = run(&["diff", &feed, &feed, "--capture", &captures, "--users", "1"], b"");
    assert!(refused.code == 2 && refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
}

#[test]
fn rows_that_enter_and_leave_are_counted_by_their_sources_and_by_a_key() {
    let folder = Folder::new();
    let source = |id: &str, ids: &[i64], label: &str| {
        let countries: Vec<&str> = ids.iter().map(|id| if id % 2 == 0 { "DE" } else { "US" }).collect();
        node(id, "fixed_source", &[], &format!(r#""ids":{ids:?},"columns":{{"country":{countries:?}}}{label}"#))
    };
    let merged = |name: &str, labelled: &[i64], plain: &[i64]| {
        let nodes = [
            source("a", labelled, r#","trace":"trending""#),
            source("b", plain, ""),
            node("m", "concat", &["a"], r#""rhs":"b""#),
        ];
        folder.plan(name, &nodes, &["m"])
    };
    // Trending loses 1 and 2 and gains 3; the other source gains 12. Row 7 only changes its source.
    let (a, b) = (merged("a", &[1, 2, 7], &[10, 11]), merged("b", &[3], &[10, 11, 12, 7]));
    let page = folder.path("diff.html").display().to_string();
    let args = [&*a, &*b, "--users", "1..3", "--by", "country", "--html", &*page];
    let report = report(&args);
    let groups =
        |name: &str| ["entered", "left"].map(|side| report.list("outputs")[0].number(&format!("{name}.{side}")));
    assert_eq!((groups("sources.trending"), groups("sources.fixed_source")), ([3.0, 6.0], [3.0, 0.0]));
    assert_eq!((groups("groups.DE"), groups("groups.US")), ([3.0, 3.0], [3.0, 3.0]));
    let told = run(&[&["diff"], &args[..]].concat(), b"").stdout;
    let lines: Vec<String> = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in ["source entered left", "trending 3 6", "fixed_source 3 0", "country entered left", "DE 3 3"] {
        assert!(lines.iter().any(|of| of == line), "{line}: {told}");
    }
    assert!(read(page.as_ref()).contains("<td>trending<td class=n>3<td class=n>6"));
}
