//! A model whose file changes while requests run: good, damaged, with a feature that no plan writes.

use crate::client::{get, metric, metrics_until, post};
use crate::server::{Folder, Server, node, plan_text, repository};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const MODEL: &str = include_str!("../../../rankd-testing/src/example_model.txt");

fn reloads(metrics: &str) -> [f64; 2] {
    ["ok", "failed"]
        .map(|outcome| metric(metrics, &format!("rankd_model_reloads_total{{model=\"ctr\",outcome=\"{outcome}\"}}")))
}

#[test]
fn a_changed_model_is_used_and_one_that_does_not_fit_is_not() {
    let (plans, registry) = (Folder::new(), Folder::new());
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), registry.0.join(name)).unwrap();
    }
    registry.write("endpoints.local.toml", "");
    let file = registry.0.join("ctr.txt");
    let entry = format!("[[model]]\nname = \"ctr\"\nfile = \"{}\"\nformat = \"lightgbm\"\n", file.display());
    registry.write("models.toml", &entry);
    registry.write("ctr.txt", MODEL);
    let nodes = [
        node("n0", "fixed_source", &[], "\"row_count\":2,\"columns\":{\"quality\":[0.9,0.3],\"age_hours\":[2.0,48.0]}"),
        node("n1", "model", &["n0"], "\"model\":\"ctr\",\"out_key\":\"score\""),
    ];
    plans.write("all.plan.json", &plan_text("all", &nodes, "n1"));
    // In one step, so that no look sees half of it.
    let change = |text: &str| {
        registry.write("ctr.new", text);
        std::fs::rename(registry.0.join("ctr.new"), &file).unwrap();
    };
    let server = Server::start(&plans.0, &["--watch-ms", "2", "--registry", registry.0.to_str().unwrap()]);
    let scores = || {
        let answer = post(&server.url("/rank/all"), r#"{"user_id":1}"#);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json().list("candidates").iter().map(|row| row.number("score")).collect::<Vec<f64>>()
    };
    assert_eq!(scores(), [1.5, -0.25]);
    let traced = post(&server.url("/rank/all"), r#"{"user_id":1,"trace":true}"#).body;
    let first = get(&server.url("/models")).body;
    assert!(first.contains("\"name\":\"ctr\"") && first.contains("\"key\":\"age_hours\""), "{first}");
    let digest = first.split("\"sha256\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(traced.contains(&format!("\"models\":{{\"ctr\":\"{digest}\"}}")), "{traced}");

    change(&MODEL.replace("leaf_value=-0.5 1\n", "leaf_value=-1.5 2\n"));
    metrics_until(&server.address, |page| reloads(page) == [1.0, 0.0]);
    assert_eq!(scores(), [2.5, -1.25]);
    assert_ne!(get(&server.url("/models")).body, first);

    // Cut off, and with a feature that is a key which nothing in the plan writes.
    change(&MODEL[..MODEL.len() / 2]);
    metrics_until(&server.address, |page| reloads(page) == [1.0, 1.0]);
    change(&MODEL.replace("feature_names=quality", "feature_names=rank_hint"));
    metrics_until(&server.address, |page| reloads(page) == [1.0, 2.0]);
    assert_eq!(scores(), [2.5, -1.25]);
    let ready = get(&server.url("/readyz")).body;
    assert!(ready.contains("plan all: it reads") && ready.contains("rank_hint"), "{ready}");

    change(MODEL);
    metrics_until(&server.address, |page| reloads(page) == [2.0, 2.0]);
    assert_eq!(scores(), [1.5, -0.25]);
    let page = get(&server.url("/metrics")).body;
    assert_eq!(metric(&page, "rankd_models_problem"), 0.0);
    assert_eq!(metric(&page, "rankd_model_rows_total{model=\"ctr\"}"), 10.0);
}

#[test]
fn why_shows_what_each_feature_adds() {
    let project = Folder::new();
    ["registry", "plans"].iter().for_each(|name| std::fs::create_dir(project.0.join(name)).unwrap());
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), project.0.join("registry").join(name)).unwrap();
    }
    project.write("registry/endpoints.local.toml", "");
    project.write("registry/models.toml", "[[model]]\nname = \"ctr\"\nfile = \"ctr.txt\"\nformat = \"lightgbm\"\n");
    project.write("ctr.txt", MODEL);
    let nodes = [
        node("n0", "fixed_source", &[], "\"row_count\":2,\"columns\":{\"likes\":[9,3],\"age_hours\":[2.0,48.0]}"),
        node("n1", "vm", &["n0"], "\"expr\":\"e\",\"out_key\":\"quality\""),
        node("n2", "model", &["n1"], "\"model\":\"ctr\",\"out_key\":\"score\""),
        node("n3", "sort", &["n2"], "\"key\":\"score\",\"order\":\"desc\""),
    ];
    let tenth = r#"{"e":{"op":"mul","a":{"op":"key_ref","key":"likes"},"b":{"op":"const_number","value":0.1}}}"#;
    let plan = plan_text("w", &nodes, "n3").replace("\"expr_table\":{}", &format!("\"expr_table\":{tenth}"));
    project.write("plans/w.plan.json", &plan);
    let why = |more: &[&str]| {
        let mut rankd = Command::new(env!("CARGO_BIN_EXE_rankd"));
        rankd.args(["why", "w", "--user", "1", "--item", "1"]).args(more).current_dir(&project.0);
        let output = rankd.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // The page shows what is printed.
    let page = std::fs::read_to_string(repository().join("docs/models.md")).unwrap();
    let shown = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let printed = why(&[]);
    assert!(shown.lines().count() == 7 && printed.ends_with(shown), "{printed}");
    let json = why(&["--json"]);
    let of_model = concat!(
        r#""of":[{"raw_score_of":"ctr","value":1.5,"of":[{"expected":true,"value":0.9166666666666666},"#,
        r#"{"feature":"quality","key":"quality","node":"n1","op":"vm","contribution":0.4375,"value":0.9,"of":[{"op":"mul","#
    );
    assert!(json.contains(of_model), "{json}");
}

/// A version of the model whose scores tell its number.
fn version(number: usize) -> String {
    MODEL.replace("leaf_value=-0.5 1\n", &format!("leaf_value=-{number} {number}\n"))
}

/// The number of the one version that gave all scores of an answer, or nothing where they are of several.
fn one_version(scores: &[f64]) -> Option<usize> {
    let [first, second, again, and_again] = scores else { return None };
    let number = first - 0.5;
    ([*second, *again, *and_again] == [0.25 - number, *first, *second]).then_some(number as usize)
}

#[test]
fn a_model_that_is_swapped_under_load_fails_no_request_and_no_answer_has_two_versions() {
    const SWAPS: usize = 20;
    let (plans, registry) = (Folder::new(), Folder::new());
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), registry.0.join(name)).unwrap();
    }
    registry.write("endpoints.local.toml", "");
    let file = registry.0.join("ctr.txt");
    let entry = format!("[[model]]\nname = \"ctr\"\nfile = \"{}\"\nformat = \"lightgbm\"\n", file.display());
    registry.write("models.toml", &entry);
    registry.write("ctr.txt", &version(1));
    // Scored twice, one after the other: both nodes must see the same version.
    let nodes = [
        node("n0", "fixed_source", &[], "\"row_count\":2,\"columns\":{\"quality\":[0.9,0.3],\"age_hours\":[2.0,48.0]}"),
        node("n1", "model", &["n0"], "\"model\":\"ctr\",\"out_key\":\"score\""),
        node("n2", "sleep", &["n1"], "\"duration_ms\":2"),
        node("n3", "model", &["n2"], "\"model\":\"ctr\",\"out_key\":\"final_score\""),
    ];
    plans.write("all.plan.json", &plan_text("all", &nodes, "n3"));
    let server = Server::start(&plans.0, &["--watch-ms", "2", "--registry", registry.0.to_str().unwrap()]);
    let (highest, is_over) = (AtomicUsize::new(1), AtomicBool::new(false));
    let versions: Vec<BTreeSet<usize>> = std::thread::scope(|scope| {
        let asking = [(); 3].map(|()| {
            scope.spawn(|| {
                let mut seen = BTreeSet::new();
                while !is_over.load(Ordering::Relaxed) {
                    let answer = post(&server.url("/rank/all"), r#"{"user_id":1}"#);
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    let json = answer.json();
                    let all = |key| json.list("candidates").iter().map(|row| row.number(key)).collect::<Vec<f64>>();
                    let scores = [all("score"), all("final_score")].concat();
                    let one = one_version(&scores).unwrap_or_else(|| panic!("two versions in one answer: {scores:?}"));
                    assert!(one <= highest.load(Ordering::Relaxed), "version {one} was never good");
                    seen.insert(one);
                }
                seen
            })
        });
        for swap in 0..SWAPS {
            let number = swap + 2;
            let text = match swap % 4 {
                0 => version(number)[..MODEL.len() / 2].to_owned(),
                2 => version(number).replace("feature_names=quality", "feature_names=rank_hint"),
                _ => {
                    highest.store(number, Ordering::Relaxed);
                    version(number)
                }
            };
            registry.write("ctr.txt", &text);
            metrics_until(&server.address, |page| reloads(page).iter().sum::<f64>() == (swap + 1) as f64);
        }
        is_over.store(true, Ordering::Relaxed);
        asking.map(|asking| asking.join().unwrap()).to_vec()
    });
    // Half of the versions were good, and the last good one is in use.
    assert_eq!(reloads(&get(&server.url("/metrics")).body), [(SWAPS / 2) as f64; 2]);
    let last = post(&server.url("/rank/all"), r#"{"user_id":1}"#).json();
    assert_eq!(last.list("candidates")[0].number("score"), (SWAPS + 1) as f64 + 0.5);
    let seen: BTreeSet<usize> = versions.into_iter().flatten().collect();
    assert!(seen.len() > 2, "there were requests while versions changed: {seen:?}");
}
