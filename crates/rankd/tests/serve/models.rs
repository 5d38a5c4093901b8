//! A model whose file changes while requests run: good, damaged, with a feature that no plan writes.

use crate::client::{get, metric, metrics_until, post};
use crate::server::{Folder, Server, node, plan_text, repository};

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
