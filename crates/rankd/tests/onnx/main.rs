//! ONNX models through the program that is built with the feature `onnx`: checks, runs, listings, a server whose model changes.
//!
//! `cargo test -p rankd --features onnx --test onnx`, which `cargo xtask ready` runs.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test lays out files and starts servers")]

#[path = "../../../rankd-onnx/tests/onnx/c_library.rs"]
mod c_library;
#[path = "../serve/client.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod client;
#[path = "../downloads/mod.rs"]
mod downloads;
#[path = "../run/json.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod json;
#[path = "../../../rankd-onnx/tests/onnx/model_file.rs"]
mod model_file;
#[path = "../serve/server.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod server;
#[path = "../../../rankd-onnx/tests/onnx/wheel.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod wheel;

use crate::client::{get, metric, metrics_until, post};
use crate::model_file::{FLOAT, ModelFile, layers};
use crate::server::{Folder, Server, node, plan_text, repository};
use crate::wheel::Wheel;
use std::process::{Command, Output};

/// A project with a model of two features and a plan that scores three rows with it.
struct Project {
    folder: Folder,
}

impl Project {
    fn new(model: &[u8], params: &str) -> Project {
        let folder = Folder::new();
        for name in ["plans", "registry"] {
            std::fs::create_dir(folder.0.join(name)).unwrap();
        }
        for name in ["keys.toml", "params.toml"] {
            std::fs::copy(repository().join("registry").join(name), folder.0.join("registry").join(name)).unwrap();
        }
        folder.write("registry/endpoints.local.toml", "");
        let entry = "[[model]]\nname = \"ctr\"\nfile = \"ctr.onnx\"\nformat = \"onnx\"\nfeatures = [\"quality\", \"age_hours\"]\n";
        folder.write("registry/models.toml", entry);
        folder.write("rankd.toml", "");
        let project = Project { folder };
        project.put(model);
        let columns = "\"row_count\":3,\"columns\":{\"quality\":[0.5,0.25,1.0],\"age_hours\":[2.0,48.0,1.0]}";
        let nodes = [
            node("n0", "fixed_source", &[], columns),
            node("n1", "model", &["n0"], &format!("\"model\":\"ctr\",\"out_key\":\"score\"{params}")),
        ];
        project.folder.write("plans/all.plan.json", &plan_text("all", &nodes, "n1"));
        project
    }

    /// Puts a model in place in one step.
    fn put(&self, model: &[u8]) {
        let aside = self.folder.0.join("ctr.aside");
        std::fs::write(&aside, model).unwrap();
        std::fs::rename(aside, self.folder.0.join("ctr.onnx")).unwrap();
    }

    fn rankd(&self, args: &[&str]) -> (Output, String) {
        let mut rankd = Command::new(env!("CARGO_BIN_EXE_rankd"));
        rankd.current_dir(&self.folder.0).env_remove("RANKD_ONNXRUNTIME").args(args);
        let output = rankd.output().unwrap();
        let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said)).concat();
        (output, said)
    }
}

/// `quality × first + age_hours × second`.
fn weighted(first: f32, second: f32) -> Vec<u8> {
    let file = ModelFile::default().weights("w", &[2, 1], &[first, second]).input("x", FLOAT, &[None, Some(2)]);
    file.node("MatMul", &["x", "w"], &["y"]).output("y", FLOAT, &[None, Some(1)]).finish()
}

#[test]
fn a_project_with_an_onnx_model_is_checked_listed_and_run() {
    let Some(wheel) = Wheel::get("ONNX models through the program") else { return };
    let flags = ["--onnxruntime", wheel.library.to_str().unwrap()];
    let with = |args: &[&'static str]| [args, &flags].concat();
    let project = Project::new(&weighted(2.0, 0.5), "");
    let (checked, said) = project.rankd(&with(&["check"]));
    assert!(checked.status.success(), "{said}");
    let (_, said) = project.rankd(&with(&["models", "--json"]));
    for part in ["\"format\":\"onnx\"", "\"outputs\":1", "\"key\":\"age_hours\"", "\"sha256\":\""] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("\"trees\""), "{said}");
    let (ran, said) = project.rankd(&with(&["run", "--plan_name", "all", "--user", "1"]));
    assert!(ran.status.success(), "{said}");
    for score in ["\"score\":2.0", "\"score\":24.5", "\"score\":2.5"] {
        assert!(said.contains(score), "{score}: {said}");
    }
    // A logarithm of what is negative.
    let file = ModelFile::default().weights("w", &[2, 1], &[-1.0, 0.0]).input("x", FLOAT, &[None, Some(2)]);
    let file = file.node("MatMul", &["x", "w"], &["z"]).node("Log", &["z"], &["y"]);
    project.put(&file.output("y", FLOAT, &[None, Some(1)]).finish());
    let (ran, said) = project.rankd(&with(&["run", "--plan_name", "all", "--user", "1"]));
    assert!(!ran.status.success() && said.contains("E502") && said.contains("the score is NaN"), "{said}");
    project.put(b"no model");
    let (checked, said) = project.rankd(&with(&["check"]));
    assert!(!checked.status.success() && said.contains("R018") && said.contains("as an onnx model"), "{said}");
}

#[test]
fn what_is_no_library_is_said_at_once_and_so_is_what_trees_only_have() {
    let project = Project::new(&weighted(2.0, 0.5), ",\"output\":\"raw\"");
    let (checked, said) = project.rankd(&["check"]);
    assert!(!checked.status.success(), "{said}");
    for part in ["R025", "no shared library is named", "RANKD_ONNXRUNTIME", "P412"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for (library, why) in [("ctr.onnx", "does not begin as an ELF file"), ("none.so", "No such file")] {
        let (checked, said) = project.rankd(&["check", "--onnxruntime", library]);
        assert!(!checked.status.success() && said.contains("R025") && said.contains(why), "{said}");
    }
    let (ran, said) = project.rankd(&["run", "--plan_name", "all", "--user", "1", "--onnxruntime", "/bin/ls"]);
    assert!(!ran.status.success() && said.contains("does not export OrtGetApiBase"), "{said}");
}

#[test]
fn a_library_that_hangs_or_crashes_is_refused_and_the_program_ends() {
    let project = Project::new(&weighted(2.0, 0.5), "");
    for (name, does, why) in [
        ("sleeps", "for (;;) pause();", "it hangs while it starts"),
        ("spins", "for (volatile int i = 0;; i++) { }", "it hangs while it starts"),
        ("crashes", "*(volatile int *)0 = 1;", "it crashes while it starts (signal 11)"),
        ("ends", "_exit(7);", "it cannot be started (exit status: 7)"),
        ("is_empty", "", "cannot be used"),
    ] {
        let library = c_library::that(&project.folder.0, name, does);
        let (checked, said) = project.rankd(&["check", "--onnxruntime", library.to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains("R025") && said.contains(why), "{name}: {said}");
    }
}

#[test]
fn a_changed_model_is_used_and_one_that_does_not_fit_is_not() {
    let Some(wheel) = Wheel::get("ONNX models of a server") else { return };
    let project = Project::new(&weighted(2.0, 0.5), "");
    let path = |name: &str| project.folder.0.join(name).display().to_string();
    let flags = ["--watch-ms", "2", "--registry", &path("registry"), "--onnxruntime", wheel.library.to_str().unwrap()];
    let entry = std::fs::read_to_string(path("registry/models.toml")).unwrap();
    project.folder.write("registry/models.toml", &entry.replace("\"ctr.onnx\"", &format!("{:?}", path("ctr.onnx"))));
    let server = Server::start(&project.folder.0.join("plans"), &flags);
    let scores = || {
        let answer = post(&server.url("/rank/all"), r#"{"user_id":1}"#);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json().list("candidates").iter().map(|row| row.number("score")).collect::<Vec<f64>>()
    };
    assert_eq!(scores(), [2.0, 24.5, 2.5]);
    let first = get(&server.url("/models")).body;
    let digest = first.split("\"sha256\":\"").nth(1).unwrap().split('"').next().unwrap();
    let traced = post(&server.url("/rank/all"), r#"{"user_id":1,"trace":true}"#).body;
    assert!(traced.contains(&format!("\"models\":{{\"ctr\":\"{digest}\"}}")), "{traced}");
    let reloads = |page: &str| {
        ["ok", "failed"]
            .map(|outcome| metric(page, &format!("rankd_model_reloads_total{{model=\"ctr\",outcome=\"{outcome}\"}}")))
    };
    project.put(&weighted(4.0, 0.0));
    metrics_until(&server.address, |page| reloads(page) == [1.0, 0.0]);
    assert_eq!(scores(), [2.0, 1.0, 4.0]);
    // Damaged; with another number of features; with more numbers a row than the plan has keys for.
    for (bad, failed) in [(b"no model".to_vec(), 1.0), (layers(&[3, 1]), 2.0), (layers(&[2, 2]), 3.0)] {
        project.put(&bad);
        metrics_until(&server.address, |page| reloads(page) == [1.0, failed]);
        assert_eq!(scores(), [2.0, 1.0, 4.0]);
    }
    let page = metrics_until(&server.address, |_| true);
    assert!(metric(&page, "rankd_model_rows_total{model=\"ctr\"}") >= 18.0, "{page}");
}
