//! How `rankd run` prints answers, and what shells complete.

use crate::folder::Folder;
use crate::json::Json;
use std::process::Command;

#[test]
fn a_table_has_aligned_numbers_and_the_first_rows() {
    let folder = Folder::project();
    let ran = folder.rankd(&["run", "--plan_name", "people", "--user", "7", "--format", "table"]);
    assert_eq!(
        ran.stdout,
        "id  parent_id  score\n 5          7    2.5\n 4          7      2\n 3          7    1.5\n3 rows\n"
    );
    let many: Vec<String> = (1..=25).map(|id| id.to_string()).collect();
    folder.write(
        "data/people.ndjson",
        &format!("{{\"key\":\"follow:7\",\"list\":[{}]}}\n{{\"key\":\"user:7\",\"hash\":{{}}}}\n", many.join(",")),
    );
    let ran = folder.rankd(&["run", "--plan_name", "people", "--user", "7", "--format", "table"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!((lines.len(), lines[21]), (22, "… 5 more of 25 rows; --format json shows all"), "{}", ran.stdout);
    let ran = folder.rankd(&["run", "--plan_name", "people", "--user", "no", "--format", "table"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("error: E1"), "{}", ran.stdout);
}

#[test]
fn piped_answers_are_json_and_pretty_is_the_same_over_lines() {
    let folder = Folder::project();
    let request = "{\"user_id\":7,\"request_id\":\"r\"}";
    let plain = folder.rankd_in("", &["--plan_name", "people"], &[], request);
    let pretty = folder.rankd_in("", &["--plan_name", "people", "--format", "pretty"], &[], request);
    assert_eq!(plain.stdout.lines().count(), 1);
    assert!(pretty.stdout.starts_with("{\n  \"request_id\": \"r\",\n"), "{}", pretty.stdout);
    assert_eq!(Json::read(plain.stdout.trim()), Json::read(&pretty.stdout));
    let asked = folder.rankd(&["--plan_name", "people", "--user", "7"]);
    assert_eq!(Json::read(&asked.stdout).list("candidates"), Json::read(&plain.stdout).list("candidates"));
}

#[test]
fn names_of_plans_complete_in_bash() {
    let folder = Folder::project();
    assert_eq!(folder.rankd_in("data", &["plans", "--names"], &[], "").stdout, "people\n");
    assert_eq!(Folder::empty().rankd(&["plans", "--names"]).stdout, "");
    folder.write("complete.bash", &folder.rankd(&["completions", "bash"]).stdout);
    let complete = |words: &str, prev: &str| {
        let script = format!(
            "source complete.bash; COMP_WORDS=({words} pe); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _rankd rankd pe {prev}; echo \"${{COMPREPLY[@]}}\""
        );
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_rankd")).parent().expect("it is in a folder");
        let path = format!("{}:{}", program.display(), search_path());
        let bash = Command::new("bash").args(["-c", &script]).current_dir(&folder.0).env("PATH", path).output();
        let output = bash.expect("there is a bash");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(complete("rankd --plan_name", "--plan_name"), "people");
    assert_eq!(complete("rankd run --plan-name", "--plan-name"), "people");
    assert_eq!(complete("rankd explain", "explain"), "people");
}

#[test]
fn every_command_shows_an_example_in_its_help() {
    let folder = Folder::empty();
    let help = folder.rankd(&["--help"]).stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"init") && commands.contains(&"serve"), "{commands:?}");
    for command in commands {
        assert!(folder.rankd(&[command, "--help"]).stdout.contains("Example"), "{command}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell needs to find its programs")]
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
