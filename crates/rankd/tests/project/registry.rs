//! Registries of a project: ids that nobody wrote, environments that are broken, values that stand elsewhere.

use crate::folder::{Folder, memory};
use crate::json::Json;

const REQUEST: &str = "{\"user_id\":7}\n";

#[test]
fn a_broken_environment_stops_no_other_and_check_reports_it() {
    let folder = Folder::project();
    let run = || folder.rankd_in("", &["--plan_name", "people"], &[], REQUEST);
    for (text, says) in [
        ("[[endpoint]\nname = ", "R001"),
        ("[[endpoint]]\nname = \"store\"\n", "the field \"kind\" is missing"),
        ("[[endpoint]]\nname = \"other\"\nkind = \"redis\"\nurl = \"redis://h\"\n", "R011"),
    ] {
        folder.write("registry/endpoints.prod.toml", text);
        let ran = run();
        assert_eq!((ran.code, &*ran.stderr.replace(NOTE, "")), (0, ""), "{text}");
        let ran = folder.rankd(&["check"]);
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.stderr.contains(says) && ran.stderr.contains("prod"), "{says}: {}", ran.stderr);
    }
    let ran = folder.rankd_in("", &["--plan_name", "people", "--env", "prod"], &[], REQUEST);
    assert_eq!(ran.code, 2);
}

/// What is said of every data file that was written by hand.
const NOTE: &str = "note: data/people.ndjson has no closing line: damage to it would change answers unnoticed\n";

#[test]
fn an_address_comes_from_a_variable_and_is_never_shown() {
    let folder = Folder::project();
    folder.write(
        "registry/endpoints.prod.toml",
        "[[endpoint]]\nname = \"store\"\nkind = \"redis\"\nurl = \"env:PEOPLE_URL\"\n",
    );
    let run = |url: Option<&str>, args: &[&str]| {
        let variables: Vec<(&str, &str)> = url.map(|url| ("PEOPLE_URL", url)).into_iter().collect();
        folder.rankd_in("plans", &[args, &["--env", "prod"]].concat(), &variables, REQUEST)
    };
    let ran = run(None, &["--plan_name", "people"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("R016") && ran.stderr.contains("env:PEOPLE_URL"), "{}", ran.stderr);
    let ran = run(Some("memory:data/people.ndjson"), &["--plan_name", "people"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Other environments are checked without their variables.
    assert_eq!(folder.rankd(&["check"]).code, 0);
    for url in [
        "redis://:hunter2@127.0.0.1:1",
        "hunter2",
        "redis://:a/hunter2@h",
        "redis://hunter2:hunter2",
        "redis://:hunter2",
    ] {
        for args in [
            &["--plan_name", "people", "--dump_run_trace"][..],
            &["check", "--connect"],
            &["check", "--json"],
            &["config"],
        ] {
            let ran = run(Some(url), if args == ["config"] { &["plans"] } else { args });
            assert!(!ran.stderr.contains("hunter2") && !ran.stdout.contains("hunter2"), "{}{}", ran.stderr, ran.stdout);
        }
    }
}

#[test]
fn a_password_comes_from_a_variable_or_a_file_and_is_not_written_in_the_registry() {
    let folder = Folder::project();
    let endpoint = |password: &str| {
        folder.write(
            "registry/endpoints.local.toml",
            &format!("[[endpoint]]\nname = \"store\"\nkind = \"redis\"\nurl = \"redis://127.0.0.1:1\"\npassword = \"{password}\"\n"),
        );
        folder.rankd_in("plans", &["check"], &[("PEOPLE_PASSWORD", "hunter2")], "")
    };
    let plain = endpoint("hunter2");
    assert!(plain.code == 2 && plain.stderr.contains("env:NAME or file:PATH"), "{}", plain.stderr);
    assert_eq!(endpoint("env:PEOPLE_PASSWORD").code, 0);
    let missing = endpoint("file:secrets/people");
    assert!(missing.stderr.contains("R016") && missing.stderr.contains("file:secrets/people"), "{}", missing.stderr);
    folder.write("secrets/people", "hunter2\n");
    assert_eq!(endpoint("file:secrets/people").code, 0, "a path of a registry is one of the project");
    folder.write("secrets/people", "\n");
    assert!(endpoint("file:secrets/people").stderr.contains("empty"));
    folder.write(
        "registry/endpoints.local.toml",
        &(memory("data/people.ndjson") + "password = \"env:PEOPLE_PASSWORD\"\n"),
    );
    let ran = folder.rankd_in("", &["check"], &[("PEOPLE_PASSWORD", "x")], "");
    assert!(ran.stderr.contains("a memory: endpoint has no password"), "{}", ran.stderr);
}

#[test]
fn missing_ids_are_assigned_and_written_into_the_files_as_they_are() {
    let folder = Folder::project();
    folder.write(
        "registry/endpoints.prod.toml",
        "# Production\n[[endpoint]]   # the store\nname = \"store\"\nkind = \"redis\"\nurl = \"redis://h\"\n",
    );
    let keys = folder.read("registry/keys.toml");
    let ran = folder.rankd_in("plans", &["registry", "fix", "--dry_run"], &[], "");
    assert!(ran.code == 0 && ran.stderr.contains("key_id of score would be 3"), "{}", ran.stderr);
    assert_eq!(folder.read("registry/keys.toml"), keys);
    let ran = folder.rankd_in("plans", &["registry", "fix"], &[], "");
    assert!(ran.stderr.contains("../registry/keys.toml: key_id of id is 1"), "{}", ran.stderr);
    assert!(folder.read("registry/keys.toml").contains("[[key]]\nkey_id = 3\nname = \"score\"\n"));
    assert!(
        folder
            .read("registry/endpoints.prod.toml")
            .starts_with("# Production\n[[endpoint]]   # the store\nendpoint_id = \"ep_0001\"\n")
    );
    assert_eq!(folder.rankd(&["check"]).code, 0);
    // A key that is added later gets a number that none has had.
    folder.write(
        "registry/keys.toml",
        &(folder.read("registry/keys.toml") + "\n[[key]]\nname = \"new\"\ntype = \"int\"\nnullable = true\n"),
    );
    assert_eq!(folder.rankd(&["check"]).code, 2);
    assert!(folder.rankd(&["registry", "fix"]).stderr.contains("key_id of new is 4"));
    assert!(folder.rankd(&["registry", "fix"]).stderr.contains("nothing is missing"));
    assert_eq!(folder.rankd(&["check"]).code, 0);
    let ran = Folder::empty().rankd(&["registry", "fix"]);
    assert!(ran.code == 2 && ran.stderr.contains("rankd init NAME"), "{}", ran.stderr);
}

#[test]
fn a_sample_shows_the_cells_that_cannot_be_read() {
    let folder = Folder::project();
    folder.write(
        "data/people.ndjson",
        "{\"key\":\"user:1\",\"hash\":{\"score\":\"n/a\",\"other\":1}}\n{\"key\":\"user:7\",\"hash\":{\"score\":1}}\n{\"key\":\"follow:7\",\"list\":[1]}\n",
    );
    let ran = folder.rankd(&["check", "--connect", "--sample", "10"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said = "endpoint store: ok; 3 keys read as 2 nodes of plans would, 1 value cannot be used\n  \"user:1\", score: \"n/a\" is not float\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let ran = folder.rankd(&["check", "--connect", "--sample", "10", "--json"]);
    let sampled = &Json::read(&ran.stdout).list("endpoints")[0].clone();
    assert_eq!((sampled.number("keys"), sampled.list("unreadable")[0].text("value")), (3.0, "n/a"));
    assert_eq!(folder.rankd(&["check", "--sample", "10"]).code, 2, "a sample needs a connection");
}
