//! A registry that cannot be used: the one before it stays, every place says so, and no plan is made with the new one.

use crate::client::{get, metric, metrics_until, post};
use crate::server::{Folder, Server, repository};

/// A copy of the repository's registry that a test may change.
fn copy() -> Folder {
    let folder = Folder::new();
    for entry in std::fs::read_dir(repository().join("registry")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.0.join(entry.file_name())).unwrap();
    }
    folder
}

fn plan(rows: usize, key: &str) -> String {
    format!(
        "import {{ definePlan }} from \"@ranking-dsl/runtime\";\nexport default definePlan({{ name: \"typed\", build: (ctx) =>\n\
         ctx.fixedSource({{ rowCount: {rows} }}).vm({{ outKey: Key.{key}, expr: Key.id * 2 }}) }});\n"
    )
}

#[test]
fn a_refused_registry_is_reported_everywhere_and_nothing_is_compiled_with_it() {
    let (plans, registry) = (Folder::new(), copy());
    plans.write("typed.plan.ts", &plan(3, "score"));
    let server = Server::start(&plans.0, &["--watch-ms", "10", "--registry", registry.0.to_str().unwrap()]);
    let good = std::fs::read_to_string(registry.0.join("keys.toml")).unwrap();
    let added = "\n[[key]]\nkey_id = 9001\nname = \"added\"\ntype = \"float\"\nnullable = true\ndoc = \"\"\n";
    let lines = good.lines().count();
    // A key more, and on the last line something that is wrong.
    registry.write("keys.toml", &format!("{good}{added}surprise = 1\n"));
    server.signal("-HUP");
    let problem = |value: f64| {
        metrics_until(&server.address, |now| metric(now, "rankd_registry_problem") == value);
    };
    problem(1.0);
    let ready = get(&server.url("/readyz"));
    assert_eq!(ready.status, 200, "{}", ready.body);
    let json = ready.json();
    let warning = &json.list("warnings")[0];
    assert_eq!(warning.text("about"), "registry");
    let place = format!("keys.toml:{}", lines + 8);
    assert!(warning.text("message").contains(&place), "{place}: {}", ready.body);
    let crate::json::Json::List(all) = get(&server.url("/plans")).json() else { panic!("a list of plans") };
    assert!(all.iter().all(|plan| plan.text("registry_problem.message").contains(&place)));
    server.says(&place);
    // A plan that changes now is made with the registry in use: it has no key `added`, and what it had is still there.
    plans.write("typed.plan.ts", &plan(4, "added"));
    metrics_until(&server.address, |now| metric(now, "rankd_plan_problem{plan=\"typed\"}") == 1.0);
    let told = get(&server.url("/plans/typed")).body;
    assert!(told.contains("added"), "{told}");
    plans.write("typed.plan.ts", &plan(5, "score"));
    metrics_until(&server.address, |now| metric(now, "rankd_plan_problem{plan=\"typed\"}") == 0.0);
    let rows = |server: &Server| post(&server.url("/rank/typed"), r#"{"user_id":1}"#).json().list("candidates").len();
    assert_eq!(rows(&server), 5);
    // Once it is right, it is taken, and with it the new key.
    registry.write("keys.toml", &format!("{good}{added}"));
    server.signal("-HUP");
    problem(0.0);
    assert_eq!(get(&server.url("/readyz")).body, r#"{"status":"ready"}"#);
    plans.write("typed.plan.ts", &plan(6, "added"));
    metrics_until(&server.address, |now| {
        metric(now, "rankd_plan_version{plan=\"typed\"}") == 4.0
            && metric(now, "rankd_plan_problem{plan=\"typed\"}") == 0.0
    });
    assert_eq!(rows(&server), 6);
}

#[test]
fn endpoints_that_have_changed_are_refused_by_name() {
    let (plans, registry) = (Folder::new(), copy());
    plans.write("typed.plan.ts", &plan(3, "score"));
    let server = Server::start(&plans.0, &["--registry", registry.0.to_str().unwrap()]);
    let file = registry.0.join("endpoints.local.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let name = text.split("name = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    registry.write("endpoints.local.toml", &text.replacen("name = ", "max_inflight = 7\nname = ", 1));
    server.signal("-HUP");
    server.says("which requires a restart");
    let ready = get(&server.url("/readyz")).body;
    assert!(ready.contains("endpoints.local.toml") && ready.contains(&name), "{ready}");
}
