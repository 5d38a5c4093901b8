//! Captures and replays: what `rankd run --capture` writes, `rankd replay` answers in the same way on every scheduler, without a store.

use crate::program::{Folder, Ran, read, repository, run};
use std::path::PathBuf;

fn requests() -> String {
    let line =
        |user: u32| format!("{{\"user_id\":{user},\"request_id\":\"r{user}\",\"trace\":{}}}\n", user.is_multiple_of(5));
    (1..=70).map(line).collect()
}

fn capture(folder: &Folder, plan: &str, scheduler: &str) -> String {
    let captures = folder.path("captures").display().to_string();
    let ran =
        run(&["run", "--plan_name", plan, "--scheduler", scheduler, "--capture", &captures], requests().as_bytes());
    assert_eq!((ran.answers().len(), &*ran.stderr), (70, ""));
    captures
}

fn replay(captures: &str, more: &[&str]) -> Ran {
    run(&[&["replay", captures, "--json"], more].concat(), b"")
}

#[expect(clippy::disallowed_methods, reason = "a test looks at what the program wrote")]
fn files(captures: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(captures).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "arrows"));
    paths.sort();
    paths
}

#[test]
fn every_scheduler_gives_the_captured_answers_again() {
    for scheduler in ["async", "pools", "sequential"] {
        let folder = Folder::new();
        let captures = capture(&folder, "for_you", scheduler);
        for again in ["async", "pools", "sequential"] {
            let ran = replay(&captures, &["--scheduler", again]);
            assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
            let answer = &ran.answers()[0];
            assert_eq!((answer.number("requests"), answer.number("same")), (70.0, 70.0), "{scheduler} on {again}");
        }
    }
}

#[test]
fn another_plan_is_run_on_the_captured_reads() {
    let folder = Folder::new();
    let captures = capture(&folder, "complex_dag", "async");
    let text = read(&repository().join("plans/complex_dag.plan.json"));
    let fewer = folder.write("complex_dag.plan.json", &text.replace("\"count\":50", "\"count\":5"));
    assert_ne!(read(&PathBuf::from(&fewer)), text, "the plan has such a number");
    let ran = replay(&captures, &["--plan", &fewer]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let answer = &ran.answers()[0];
    // Ten of the users have no rows, and so nothing to differ in.
    let counts = ["different", "same", "missing"].map(|name| answer.number(name));
    assert_eq!(counts, [60.0, 10.0, 0.0], "{}", ran.stdout);
    assert!(answer.has("first_difference"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test damages what the program wrote")]
fn a_damaged_capture_is_an_error_and_a_cut_one_is_read_up_to_its_end() {
    let folder = Folder::new();
    let captures = capture(&folder, "complex_dag", "async");
    let [path] = &files(&captures)[..] else { unreachable!("one file") };
    let bytes = std::fs::read(path).expect("it can be read");
    // The first batch has at most 64 requests, and fewer on a machine that is busy: it is closed after a second.
    std::fs::write(path, &bytes[..bytes.len() - 100]).expect("it can be written");
    let (ran, all) = (replay(&captures, &[]), requests().lines().count() as f64);
    let [same, cut] = ["same", "cut_files"].map(|name| ran.answers()[0].number(name));
    assert!(ran.code == 0 && cut == 1.0 && 0.0 < same && same < all, "{} of {all}: {}", same, ran.stdout);
    for step in 0..40 {
        let mut damaged = bytes.clone();
        let at = step * bytes.len() / 40;
        damaged[at] ^= 1 << (step % 8);
        std::fs::write(path, &damaged).expect("it can be written");
        // It says what is wrong, or finds another answer; where a byte says nothing, all is well.
        let ran = replay(&captures, &[]);
        assert!(matches!(ran.code, 0..=2), "{}", ran.stderr);
        assert!(ran.code != 2 || ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    std::fs::write(path, b"nonsense").expect("it can be written");
    let ran = replay(&captures, &[]);
    assert!(ran.code == 2 && ran.stderr.contains("it is no capture"), "{}", ran.stderr);
}

#[test]
fn only_the_owner_can_read_captures_and_a_share_is_captured() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let captures = folder.path("captures").display().to_string();
    let args = ["run", "--plan_name", "simple_viewer", "--capture", &captures, "--capture_share", "0.5"];
    assert_eq!(run(&args, requests().as_bytes()).code, 0);
    let [path] = &files(&captures)[..] else { unreachable!("one file") };
    assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    let captured = replay(&captures, &[]).answers()[0].number("requests");
    assert!(captured > 10.0 && captured < 60.0, "{captured}");
    assert_eq!(run(&["run", "--plan_name", "simple_viewer", "--capture_share", "2"], b"").code, 2);
}
