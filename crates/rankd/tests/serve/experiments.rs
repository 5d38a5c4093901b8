//! Experiments whose file changes while requests run: good, damaged, gone, with a plan that comes and goes. No plan gets a new version.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::server::{Folder, Server, repository};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A registry without endpoints.
fn registry(experiments: &str) -> Folder {
    let folder = Folder::new();
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), folder.0.join(name)).unwrap();
    }
    folder.write("endpoints.local.toml", "");
    folder.write("experiments.toml", experiments);
    folder
}

/// Everybody is in the one arm, which sets the weight.
fn weight(weight: usize) -> String {
    format!(
        "[[layer]]\nname = \"home\"\n[[experiment]]\nname = \"w\"\nlayer = \"home\"\nfrom = 0\nto = 10000\n\
         arm = [{{ name = \"arm{weight}\", set = {{ weight = {weight} }} }}]\n"
    )
}

/// A plan with one row, whose score is the parameter `weight`, or else `otherwise`.
fn write_plan(plans: &Folder, name: &str, otherwise: f64) {
    let expr = format!(
        r#"{{"op":"coalesce","a":{{"op":"param_ref","param":"weight"}},"b":{{"op":"const_number","value":{otherwise}}}}}"#
    );
    let text = format!(
        r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{{"node_id":"n0","op":"fixed_source","params":{{"row_count":1}}}},
        {{"node_id":"n1","op":"vm","inputs":["n0"],"params":{{"out_key":"score","expr":"e0"}}}}],"outputs":["n1"],"expr_table":{{"e0":{expr}}}}}"#
    );
    plans.write(&format!("{name}.plan.json"), &text);
}

fn start(plans: &Folder, registry: &Folder, flags: &[&str]) -> Server {
    let all = [&["--watch-ms", "2", "--registry", registry.0.to_str().unwrap()], flags].concat();
    Server::start(&plans.0, &all)
}

fn reloads(metrics: &str) -> [f64; 2] {
    ["ok", "failed"]
        .map(|outcome| metric(metrics, &format!("rankd_experiments_reloads_total{{outcome=\"{outcome}\"}}")))
}

/// In one step, so that no look sees half of it.
fn change(registry: &Folder, text: &str) {
    registry.write("experiments.new", text);
    std::fs::rename(registry.0.join("experiments.new"), registry.0.join("experiments.toml")).unwrap();
}

#[test]
fn a_changed_file_is_used_at_once_and_a_broken_one_is_not() {
    let (plans, registry) = (Folder::new(), registry(&weight(1)));
    write_plan(&plans, "feed", 0.0);
    let server = start(&plans, &registry, &[]);
    let (done, highest) = (AtomicBool::new(false), AtomicUsize::new(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut line = Line::open(&server.address);
            while !done.load(Ordering::Relaxed) {
                line.post("/rank/feed", r#"{"user_id":1}"#).unwrap();
                let answer = line.answer().unwrap();
                assert_eq!(answer.status, 200, "{}", answer.body);
                // The value and the name of the arm are of one version, and of a good one.
                let score = answer.json().list("candidates")[0].number("score");
                assert!(answer.body.contains(&format!(r#""arms":{{"w":"arm{score}"}}"#)), "{}", answer.body);
                assert!(score as usize <= highest.load(Ordering::Relaxed), "{score} was never good");
            }
        });
        for round in 2..22 {
            let is_good = round % 2 == 0;
            if is_good {
                highest.store(round, Ordering::Relaxed);
            }
            let text = weight(round);
            change(&registry, if is_good { &text } else { &text[..text.len() - 3] });
            metrics_until(&server.address, |now| reloads(now).iter().sum::<f64>() == (round - 1) as f64);
            let problem = f64::from(u8::from(!is_good));
            metrics_until(&server.address, |now| metric(now, "rankd_experiments_problem") == problem);
        }
        done.store(true, Ordering::Relaxed);
    });
    let metrics = get(&server.url("/metrics")).body;
    assert_eq!(reloads(&metrics), [10.0, 10.0]);
    assert_eq!(metric(&metrics, "rankd_plan_version{plan=\"feed\"}"), 1.0);
    let ready = get(&server.url("/readyz")).body;
    assert!(ready.contains(r#""about":"experiments""#) && ready.contains("experiments.toml:"), "{ready}");
    std::fs::remove_file(registry.0.join("experiments.toml")).unwrap();
    metrics_until(&server.address, |now| reloads(now) == [10.0, 11.0]);
    assert!(get(&server.url("/readyz")).body.contains("is gone"));
    assert!(post(&server.url("/rank/feed"), r#"{"user_id":1}"#).body.contains(r#""w":"arm20""#));
    registry.write("experiments.toml", "");
    metrics_until(&server.address, |now| reloads(now) == [11.0, 11.0]);
    assert!(!post(&server.url("/rank/feed"), r#"{"user_id":1}"#).body.contains("arms"));
}

const SWITCH: &str = "[[layer]]\nname = \"home\"\n[[experiment]]\nname = \"next\"\nlayer = \"home\"\nfrom = 0\nto = 10000\n\
                      plans = [\"feed\"]\narm = [{ name = \"new\", plan = \"feed_next\" }]\n";

#[test]
fn another_plan_answers_while_it_is_there() {
    let (plans, registry) = (Folder::new(), registry(SWITCH));
    write_plan(&plans, "feed", 1.0);
    write_plan(&plans, "feed_next", 2.0);
    let log = registry.0.join("access.log");
    let mut server = start(&plans, &registry, &["--access-log", log.to_str().unwrap()]);
    let url = server.url("/rank/feed");
    let ask = || post(&url, r#"{"user_id":1,"request_id":"r"}"#).body;
    assert_eq!(
        ask(),
        r#"{"request_id":"r","plan":"feed_next","candidates":[{"id":1,"score":2.0}],"arms":{"next":"new"}}"#
    );
    let metrics = get(&server.url("/metrics")).body;
    assert_eq!(metric(&metrics, "rankd_arm_requests_total{experiment=\"next\",arm=\"new\"}"), 1.0);
    assert_eq!(metric(&metrics, "rankd_requests_total{plan=\"feed_next\",outcome=\"ok\"}"), 1.0);
    let headers = ["content-type: application/json", "accept: application/vnd.apache.arrow.stream"];
    let mut command = Command::new("curl");
    for header in headers {
        command.args(["-H", header]);
    }
    let stream = command.args(["-s", "-d", r#"{"user_id":1}"#, &url]).output().unwrap().stdout;
    let wanted = br#""arms":{"next":"new"}"#;
    assert!(stream.windows(wanted.len()).any(|part| part == wanted), "the metadata has no arms");

    std::fs::remove_file(plans.0.join("feed_next.plan.json")).unwrap();
    metrics_until(&server.address, |now| metric(now, "rankd_experiments_problem") == 1.0);
    assert_eq!(ask(), r#"{"request_id":"r","plan":"feed","candidates":[{"id":1,"score":1.0}]}"#);
    assert!(get(&server.url("/readyz")).body.contains("its plan feed_next is not served"));
    write_plan(&plans, "feed_next", 3.0);
    metrics_until(&server.address, |now| metric(now, "rankd_experiments_problem") == 0.0);
    assert!(ask().contains(r#""plan":"feed_next""#));
    // The log is whole once the process has ended.
    server.signal("-TERM");
    server.ended(Duration::from_secs(60));
    let lines = std::fs::read_to_string(log).unwrap();
    let with_arm = lines.lines().filter(|line| line.contains(r#""arms":{"next":"new"}"#)).count();
    assert_eq!(with_arm, 3, "{lines}");
}

#[test]
fn requests_choose_arms_only_where_that_is_allowed() {
    let (plans, registry) = (Folder::new(), registry(&weight(5)));
    write_plan(&plans, "feed", 0.0);
    let request = r#"{"user_id":1,"request_id":"r","arms":{"w":"arm5"}}"#;
    let refused = start(&plans, &registry, &[]);
    let answer = post(&refused.url("/rank/feed"), request);
    assert!(answer.status == 400 && answer.body.contains("E119"), "{}", answer.body);
    let allowed = start(&plans, &registry, &["--force-arms"]);
    let answer = post(&allowed.url("/rank/feed"), request);
    assert!(answer.body.contains(r#""arms":{"w":"arm5"},"forced":true"#), "{}", answer.body);
    let metrics = get(&allowed.url("/metrics")).body;
    assert_eq!(metric(&metrics, "rankd_arm_requests_total{experiment=\"w\",arm=\"arm5\"}"), 0.0);
}

#[test]
fn questions_are_in_arms_and_may_choose_them_and_count_for_none() {
    let arms = "{ name = \"nobody\", weight = 0, set = { weight = 7 } }, { name = \"arm5\"";
    let (plans, registry) = (Folder::new(), registry(&weight(5).replace("{ name = \"arm5\"", arms)));
    write_plan(&plans, "feed", 0.0);
    let server = start(&plans, &registry, &["--why", "on"]);
    let ask = |more: &str| post(&server.url("/why/feed"), &format!(r#"{{"user_id":1,"items":[1]{more}}}"#));
    let told = ask("");
    assert!(told.status == 200 && told.body.contains(r#""arms":{"w":"arm5"}"#), "{}", told.body);
    assert!(told.body.contains(r#""score":5.0"#) && !told.body.contains("forced"), "{}", told.body);
    let told = ask(r#","arms":{"w":"nobody"}"#);
    assert!(told.status == 200 && told.body.contains(r#""arms":{"w":"nobody"},"forced":true"#), "{}", told.body);
    assert!(told.body.contains(r#""score":7.0"#), "{}", told.body);
    let metrics = get(&server.url("/metrics")).body;
    assert_eq!(metric(&metrics, "rankd_arm_requests_total{experiment=\"w\",arm=\"arm5\"}"), 0.0);
    let explained = post(&server.url("/explain"), r#"{"plan":"feed"}"#).json();
    let experiment = &explained.list("experiments")[0];
    assert_eq!((experiment.text("experiment"), experiment.texts("overrides")), ("w", vec!["weight"]));
}

#[test]
fn a_registry_is_renewed_with_the_experiments_that_fit_it() {
    let (plans, registry) = (Folder::new(), registry(&weight(5)));
    write_plan(&plans, "feed", 0.0);
    let server = start(&plans, &registry, &[]);
    let params = std::fs::read_to_string(registry.0.join("params.toml")).unwrap();
    let ask = || post(&server.url("/rank/feed"), r#"{"user_id":1}"#).body;
    // Positions move; the experiment is about the same parameter as before.
    let first = "[[param]]\nparam_id = 999\nname = \"first\"\ntype = \"int\"\nnullable = true\n";
    registry.write("params.toml", &format!("{first}{params}"));
    server.signal("-HUP");
    metrics_until(&server.address, |now| metric(now, "rankd_plan_version{plan=\"feed\"}") == 2.0);
    assert!(ask().contains(r#""score":5.0"#));
    // Without the parameter that the experiment overrides, the registry is refused.
    registry.write("params.toml", &params.replace("name = \"weight\"", "name = \"weight2\""));
    server.signal("-HUP");
    metrics_until(&server.address, |now| metric(now, "rankd_registry_problem") == 1.0);
    assert!(get(&server.url("/readyz")).body.contains("R033"));
    assert!(ask().contains(r#""score":5.0"#));
}
