//! `rankd.toml`, `RANKD_*` and `rankd config`: flag over variable over file over default.

use crate::folder::Folder;
use crate::json::Json;

/// What `rankd config NAME` says for one command: value and origin.
fn setting(folder: &Folder, name: &str, command: &str, variables: &[(&str, &str)]) -> (String, String) {
    let ran = folder.rankd_in("", &["config", "--json", name], variables, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = Json::read(&ran.stdout);
    let row = shown.list("settings").iter().find(|row| row.texts("commands").contains(&command));
    let row = row.expect("the command has it");
    (row.texts("values").join(","), row.text("from").to_owned())
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let folder = Folder::project();
    let node = "{\"user_id\":7,\"request_id\":\"r\"}";
    let slow = "build: (ctx) => ctx.fixedSource({ rowCount: 1 }).sleep({ durationMs: 5000 })";
    let text = folder.read("plans/people.plan.ts").replace("\"people\"", "\"slow\"");
    let start = text.find("build:").expect("it has one");
    folder.write("plans/slow.plan.ts", &format!("{}{slow},\n}});\n", &text[..start]));
    let deadline = |args: &[&str], variables: &[(&str, &str)]| {
        let ran = folder.rankd_in("", &[&["--plan_name", "slow"], args].concat(), variables, node);
        Json::read(&ran.stdout).text("error.message").to_owned()
    };
    let variable = [("RANKD_DEADLINE_MS", "30")];
    assert_eq!(deadline(&["--deadline_ms", "20"], &[]), "request deadline of 20 ms exceeded");
    assert_eq!(deadline(&[], &variable), "request deadline of 30 ms exceeded");
    folder.write("rankd.toml", "deadline_ms = 40\n");
    assert_eq!(deadline(&[], &[]), "request deadline of 40 ms exceeded");
    assert_eq!(deadline(&[], &variable), "request deadline of 30 ms exceeded");
    assert_eq!(deadline(&["--deadline_ms", "20"], &variable), "request deadline of 20 ms exceeded");
    folder.write("rankd.toml", "deadline_ms = 40\n[run]\ndeadline_ms = 50\n[serve]\ndeadline_ms = 60\n");
    assert_eq!(deadline(&[], &[]), "request deadline of 50 ms exceeded");
    assert_eq!(setting(&folder, "deadline_ms", "run", &[]), ("50".into(), "file".into()));
    assert_eq!(setting(&folder, "deadline_ms", "serve", &[]), ("60".into(), "file".into()));
    assert_eq!(setting(&folder, "deadline_ms", "bench", &[]), ("40".into(), "file".into()));
    assert_eq!(setting(&folder, "deadline-ms", "bench", &variable), ("30".into(), "variable".into()));
    assert_eq!(setting(&folder, "loops", "serve", &[]), ("1".into(), "default".into()));
    assert_eq!(setting(&folder, "otlp", "serve", &[]), (String::new(), "default".into()));
}

#[test]
fn paths_of_the_file_are_those_of_the_project_and_paths_of_variables_are_not() {
    let folder = Folder::project();
    std::fs::rename(folder.path("plans"), folder.path("rankings")).expect("it can be moved");
    folder.write("rankd.toml", "plan_dir = \"rankings\"\nplan_name = \"people\"\n");
    for below in ["", "registry/deep"] {
        let ran = folder.rankd_in(below, &[], &[], "{\"user_id\":7}");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = folder.rankd_in("data", &["plans"], &[("RANKD_PLAN_DIR", "../rankings")], "");
    assert!(ran.code == 0 && ran.stderr.contains("people"), "{}", ran.stderr);
    let ran = folder.rankd_in("data", &["plans"], &[("RANKD_PLAN_DIR", "rankings")], "");
    assert!(ran.code == 2 && ran.stderr.contains("rankings: No such file"), "{}", ran.stderr);
}

#[test]
fn a_flag_beats_a_setting_that_it_excludes() {
    let folder = Folder::project();
    folder.write("rankd.toml", "plan_name = \"nobody\"\n[explain]\njson = true\n");
    let ran = folder.rankd_in("", &["--plan", "plans/people.plan.ts"], &[], "{\"user_id\":7}");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(folder.rankd(&["explain", "people"]).stdout.starts_with('{'));
    assert!(folder.rankd(&["explain", "people", "--dot"]).stdout.starts_with("digraph"));
}

#[test]
fn what_is_wrong_with_a_setting_is_said_with_its_place() {
    let folder = Folder::project();
    let said = |text: &str, args: &[&str], variables: &[(&str, &str)]| {
        folder.write("rankd.toml", text);
        let ran = folder.rankd_in("plans", args, variables, "");
        assert_eq!(ran.code, 2, "{text}: {}", ran.stderr);
        ran.stderr
    };
    let unknown = said("lops = 2\n", &["check"], &[]);
    assert!(
        unknown.contains("error: ../rankd.toml:1: there is no setting \"lops\"; did you mean \"loops\"?"),
        "{unknown}"
    );
    let broken = said("loops = \n", &["check"], &[]);
    assert!(broken.contains("../rankd.toml:1:"), "{broken}");
    let zero = said("\nloops = 0\n", &["--plan_name", "people"], &[]);
    assert!(zero.contains("--loops") && zero.contains("set in ../rankd.toml:2"), "{zero}");
    let soon = said("", &["--plan_name", "people"], &[("RANKD_DEADLINE_MS", "soon")]);
    assert!(soon.contains("\"soon\"") || soon.contains("'soon'"), "{soon}");
    assert!(soon.contains("--deadline-ms is set by RANKD_DEADLINE_MS"), "{soon}");
    let name = said("", &["config", "lops"], &[]);
    assert!(name.contains("did you mean \"loops\"?"), "{name}");
    // Asking for help is possible with any file.
    folder.write("rankd.toml", "lops = 2\n");
    assert_eq!(folder.rankd(&["run", "--help"]).code, 0);
}

#[test]
fn a_variable_that_is_nearly_a_setting_is_mentioned_and_one_of_a_cluster_is_not() {
    let folder = Folder::project();
    let said = |name| folder.rankd_in("", &["plans", "--json"], &[(name, "1")], "").stderr;
    assert!(said("RANKD_DEADLIN_MS").contains("RANKD_DEADLIN_MS sets nothing; did you mean RANKD_DEADLINE_MS?"));
    for other in ["RANKD_SERVICE_HOST", "RANKD_PORT", "RANKD_PORT_8080_TCP", "RANKD_SEED_OF_A_TEST_ELSEWHERE"] {
        assert_eq!(said(other), "", "{other}");
    }
}

#[test]
fn lists_and_switches_can_be_set() {
    let folder = Folder::project();
    folder.write("rankd.toml", "[serve]\nhosts = [\"a.example\", \"b.example\"]\nlenient = true\n");
    assert_eq!(setting(&folder, "hosts", "serve", &[]), ("a.example,b.example".into(), "file".into()));
    assert_eq!(setting(&folder, "lenient", "serve", &[("RANKD_LENIENT", "0")]), ("false".into(), "variable".into()));
    let table = folder.rankd(&["config"]);
    assert!(table.stderr.starts_with(&format!("project: {}", folder.0.display())), "{}", table.stderr);
    assert!(table.stderr.contains("rankd.toml:2"), "{}", table.stderr);
}
