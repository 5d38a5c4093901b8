//! `rankd diff`: two plans beside each other, with figures that were computed by hand.

use crate::json::Json;
use crate::program::{Folder, node, read, run};

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
