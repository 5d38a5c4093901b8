//! The project folder: found from anywhere inside, said to be missing outside.

use crate::folder::{Folder, memory};
use crate::json::Json;

const REQUEST: &str = "{\"user_id\":7}\n";

fn ids(stdout: &str) -> Vec<f64> {
    Json::read(stdout).list("candidates").iter().map(|row| row.number("id")).collect()
}

#[test]
fn every_command_works_from_anywhere_inside_a_project() {
    let folder = Folder::project();
    for below in ["", "plans", "registry", "data", "notes/2024/deep"] {
        for args in [&["--plan_name", "people"][..], &["run", "--plan-name", "people"]] {
            let ran = folder.rankd_in(below, args, &[], REQUEST);
            assert_eq!((ran.code, ids(&ran.stdout)), (0, vec![5.0, 4.0, 3.0]), "{below}: {}", ran.stderr);
        }
        for args in [
            &["check"][..],
            &["check", "people", "--connect"],
            &["explain", "people"],
            &["plans"],
            &["bench", "people", "-n", "2", "--users", "7..7"],
            &["compile"],
            &["dslc", "check"],
            &["dslc", "types"],
            &["config"],
        ] {
            let ran = folder.rankd_in(below, args, &[], "");
            assert_eq!(ran.code, 0, "{args:?} in {below:?}: {}{}", ran.stderr, ran.stdout);
        }
        let ran = folder.dslc_in(below, &["build"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert!(folder.path("plans/people.plan.json").is_file(), "artifacts lie next to their sources");
    assert!(folder.path("plans/tsconfig.json").is_file() && !folder.path("notes/2024/deep/plans").exists());
}

#[test]
fn flags_are_relative_to_the_working_directory_and_the_rest_to_the_project() {
    let folder = Folder::project();
    folder.write("plans/below/other.plan.ts", &folder.read("plans/people.plan.ts").replace("people", "other"));
    let ran = folder.rankd_in("plans", &["--plan", "people.plan.ts"], &[], REQUEST);
    assert_eq!(ids(&ran.stdout), [5.0, 4.0, 3.0], "{}", ran.stderr);
    let ran = folder.rankd_in("plans", &["--plan_dir", "below", "--plan_name", "other"], &[], REQUEST);
    assert_eq!(ids(&ran.stdout), [5.0, 4.0, 3.0], "{}", ran.stderr);
    let ran = folder.rankd_in("plans", &["--plan_dir", "plans", "--plan_name", "people"], &[], REQUEST);
    assert!(ran.stderr.contains("there is no plan \"people\" in plans"), "{}", ran.stderr);
    // A registry's paths are those of its own project, wherever the command runs.
    let other = Folder::empty();
    let (registry, plan) = (folder.path("registry"), folder.path("plans/people.plan.ts"));
    let (registry, plan) = (registry.display().to_string(), plan.display().to_string());
    let ran = other.rankd_in("", &["--registry", &registry, "--plan", &plan], &[], REQUEST);
    assert_eq!((ran.code, ids(&ran.stdout)), (0, vec![5.0, 4.0, 3.0]), "{}", ran.stderr);
}

#[test]
fn the_nearest_project_upwards_counts() {
    let folder = Folder::project();
    folder.write("inner/rankd.toml", "");
    let ran = folder.rankd_in("inner/plans", &["check"], &[], "");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("../registry/keys.toml"), "the inner project has no registry: {}", ran.stderr);
}

#[test]
fn outside_of_a_project_every_command_that_needs_one_says_so_and_names_init() {
    let folder = Folder::empty();
    for args in [
        &["--plan_name", "people"][..],
        &["run", "--plan_name", "people"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["check"],
        &["explain", "people"],
        &["bench", "people"],
        &["plans"],
        &["compile"],
        &["dslc", "build"],
        &["dslc", "check"],
        &["dslc", "types"],
        &["seed", "--env", "dev"],
    ] {
        let ran = folder.rankd(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("R015") && ran.stderr.contains("rankd init NAME"), "{args:?}: {}", ran.stderr);
    }
    let ran = folder.rankd(&["check", "--json"]);
    assert_eq!(Json::read(&ran.stdout).list("diagnostics")[0].text("code"), "R015");
    for args in [&["tasks"][..], &["code", "R015"], &["check", "--limits"], &["config"], &["completions", "bash"]] {
        let ran = folder.rankd(args);
        assert_eq!(ran.code, 0, "{args:?} needs no project: {}", ran.stderr);
    }
}

#[test]
fn a_path_that_is_whole_stays_as_it_is() {
    let (folder, other) = (Folder::project(), Folder::empty());
    other.write("people.ndjson", "{\"key\":\"follow:7\",\"list\":[9]}\n{\"key\":\"user:7\",\"hash\":{}}\n");
    let data = other.path("people.ndjson").display().to_string();
    folder.write("registry/endpoints.local.toml", &memory(&data));
    let ran = folder.rankd_in("plans", &["--plan_name", "people"], &[], REQUEST);
    assert_eq!(ids(&ran.stdout), [9.0], "{}", ran.stderr);
}
