//! How `rankd run` ends when it is told to stop, and when nobody can take what it writes.

use crate::program::{Folder, Session, command, no_panic_in, node};
use std::fs::File;

/// A plan that takes so long.
fn slow(folder: &Folder, ms: u32) -> String {
    let nodes = [node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], &format!("\"duration_ms\":{ms}"))];
    folder.plan("slow", &nodes, &["n1"])
}

#[test]
fn told_to_stop_it_answers_what_it_has_read_and_ends_as_usual() {
    let folder = Folder::new();
    let mut session = Session::start(&["--plan", &slow(&folder, 200)]);
    let requests: Vec<String> = (1..=4).map(|n| format!(r#"{{"user_id":1,"request_id":"r{n}"}}"#)).collect();
    // All in one go, so that they are read in one go; of the last line there is only a half, which is no request.
    session.send(&format!("{}\n{}", requests.join("\n"), r#"{"user_id":1,"#));
    assert_eq!(session.next_answer().text("request_id"), "r1");
    session.signal("-TERM");
    for id in ["r2", "r3", "r4"] {
        assert_eq!(session.next_answer().text("request_id"), id);
    }
    assert_eq!(session.ended(), 0);
}

#[test]
fn told_to_stop_twice_it_ends_at_once() {
    let folder = Folder::new();
    let nodes = [node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], "\"duration_ms\":60000")];
    let plan = folder.plan("slow", &nodes, &["n1"]);
    let mut session = Session::start(&["--plan", &plan]);
    // The first one is refused, so that its answer says that the second is being run.
    session.send("{}\n{\"user_id\":1}\n");
    assert!(!session.next_answer().text("error.code").is_empty());
    // Signals of one kind that come together are one: send the second until it is heard.
    session.signal("-TERM");
    session.signal("-INT");
    assert_eq!(session.ended(), 1);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test chooses where a program writes")]
fn what_cannot_be_written_is_a_failure_that_is_reported() {
    let folder = Folder::new();
    let input = folder.write("requests", "{\"user_id\":1}\n");
    let commands: [&[&str]; 4] =
        [&["--plan_name", "simple_viewer"], &["check", "--json"], &["tasks", "--json"], &["completions", "bash"]];
    for args in commands {
        let full = File::options().write(true).open("/dev/full").expect("it is there");
        let input = File::open(&input).expect("it was written");
        let output = command(args).stdin(input).stdout(full).output().expect("rankd can be started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        no_panic_in(&said);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("stdout cannot be written: No space left on device"), "{args:?}: {said}");
    }
}
