//! Plans that change under load: good, broken, half-written and failing ones, as artifacts and as TypeScript.

use crate::client::{Line, get, metric, metrics_until};
use crate::server::{Folder, Server, node, plan_text};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A version of a plan: as many rows as its number says, in two nodes that must be of the same version.
fn version(name: &str, number: usize) -> String {
    let source = node("n0", "fixed_source", &[], &format!("\"row_count\":{number}"));
    let take = node(&format!("v{number}"), "take", &["n0"], &format!("\"count\":{number}"));
    plan_text(name, &[source, take], &format!("v{number}"))
}

const PLANS: usize = 20;
const ROUNDS: usize = 50;

/// Twenty plans, fifty rounds: a thousand reloads.
#[test]
fn a_thousand_reloads_fail_no_request_and_mix_no_plans() {
    let folder = Folder::new();
    let name = |plan: usize| format!("plan_{plan}");
    for plan in 0..PLANS {
        folder.write(&format!("{}.plan.json", name(plan)), &version(&name(plan), 1));
    }
    // As many askers as may always run at once, so that none is sent away, however crowded the machine is.
    let server = Server::start(&folder.0, &["--watch-ms", "2"]);
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let highest: Vec<AtomicUsize> = (0..PLANS).map(|_| AtomicUsize::new(1)).collect();
    thread::scope(|scope| {
        for asker in 0..4 {
            let (server, done, answered, highest) = (&server, &done, &answered, &highest);
            scope.spawn(move || {
                let mut line = Line::open(&server.address);
                for turn in asker.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let plan = turn % PLANS;
                    line.post(&format!("/rank/{}", name(plan)), r#"{"user_id":1,"trace":true}"#).unwrap();
                    let answer = line.answer().unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    let json = answer.json();
                    let rows = json.list("candidates").len();
                    // Its rows and its nodes are of one version, and of one that was good.
                    let last = json.list("trace.nodes").last().unwrap().text("node").to_owned();
                    assert_eq!(last, format!("v{rows}"));
                    assert!(rows <= highest[plan].load(Ordering::Relaxed), "{rows} rows were never good");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut handled = PLANS as f64;
        for round in 2..ROUNDS + 2 {
            for (plan, highest) in highest.iter().enumerate() {
                let file = format!("{}.plan.json", name(plan));
                let text = version(&name(plan), round);
                match (round + plan) % 5 {
                    0 => folder.write(&file, "{\"schema_version\":1,"),
                    // In place, and only half of it.
                    1 => std::fs::write(folder.0.join(&file), &text[..text.len() / 2]).unwrap(),
                    2 => {
                        let fail = format!("\"duration_ms\":0,\"fail_after_sleep\":true,\"trace\":\"r{round}\"");
                        let nodes = [node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], &fail)];
                        folder.write(&file, &plan_text(&name(plan), &nodes, "n1"));
                    }
                    _ => {
                        highest.store(round, Ordering::Relaxed);
                        folder.write(&file, &text);
                    }
                }
            }
            handled += PLANS as f64;
            metrics_until(&server.address, |now| {
                metric(now, "rankd_reloads_total{result=\"ok\"}")
                    + metric(now, "rankd_reloads_total{result=\"failed\"}")
                    >= handled
            });
        }
        done.store(true, Ordering::Relaxed);
    });
    let metrics = get(&server.url("/metrics")).body;
    let [ok, failed] =
        ["ok", "failed"].map(|result| metric(&metrics, &format!("rankd_reloads_total{{result=\"{result}\"}}")));
    println!("{ok} good reloads, {failed} refused, {} requests answered", answered.load(Ordering::Relaxed));
    assert!(ok + failed >= 1000.0 && failed >= 500.0, "{ok} {failed}");
    assert_eq!(metric(&metrics, "rankd_panics_caught_total"), 0.0);
    let shown = get(&server.url("/plans")).json();
    let crate::json::Json::List(plans) = &shown else { panic!("a list of plans") };
    assert_eq!(plans.len(), PLANS);
    assert!(plans.iter().any(|plan| plan.has("problem.message")), "a refused version is shown");
}

#[test]
fn a_plan_in_typescript_is_compiled_beside_and_a_hostile_one_hurts_nobody() {
    let folder = Folder::new();
    let plan = |count: usize, more: &str| {
        format!(
            "import {{ definePlan }} from \"@ranking-dsl/runtime\";\n{more}\nexport default definePlan({{ name: \"typed\", \
             build: (ctx) => ctx.fixedSource({{ rowCount: {count} }}) }});\n"
        )
    };
    folder.write("typed.plan.ts", &plan(3, ""));
    let server = Server::start(&folder.0, &["--watch-ms", "20"]);
    // On a crowded machine even a good plan may be stopped for taking too long: then it is written again.
    let serve = |text: &str| {
        let is_served = || {
            let metrics = get(&server.url("/metrics")).body;
            metric(&metrics, "rankd_plan_problem{plan=\"typed\"}") == 0.0
                && metric(&metrics, "rankd_plan_version{plan=\"typed\"}") >= 1.0
        };
        for _ in 0..20 {
            folder.write("typed.plan.ts", text);
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                if is_served() {
                    return;
                }
            }
        }
        panic!("a good plan is not served: {}", server.said());
    };
    let ask = || crate::client::post(&server.url("/rank/typed"), r#"{"user_id":1}"#).json().list("candidates").len();
    serve(&plan(3, ""));
    assert_eq!(ask(), 3);
    folder.write("typed.plan.ts", &plan(4, "while (true) {}"));
    metrics_until(&server.address, |now| metric(now, "rankd_plan_problem{plan=\"typed\"}") == 1.0);
    assert_eq!(ask(), 3, "the last good version stays");
    let told = get(&server.url("/plans/typed")).json();
    assert!(!told.text("problem.message").is_empty());
    serve(&plan(5, ""));
    assert_eq!(ask(), 5);
}

#[test]
fn a_folder_that_is_swapped_by_a_link_is_seen_and_a_signal_reads_all_again() {
    let folder = Folder::new();
    for number in [1, 2] {
        let release = folder.0.join(format!("release_{number}"));
        std::fs::create_dir(&release).unwrap();
        std::fs::write(release.join("feed.plan.json"), version("feed", number)).unwrap();
    }
    let point_at = |release: &str| {
        let aside = folder.0.join("aside");
        std::os::unix::fs::symlink(release, &aside).unwrap();
        std::fs::rename(aside, folder.0.join("current")).unwrap();
    };
    point_at("release_1");
    let server = Server::start(&folder.0.join("current"), &["--watch-ms", "10"]);
    let serves = |version: f64| {
        metrics_until(&server.address, |now| metric(now, "rankd_plan_version{plan=\"feed\"}") == version)
    };
    serves(1.0);
    point_at("release_2");
    serves(2.0);
    let still = Server::start(&folder.0.join("current"), &["--watch-ms", "0"]);
    std::fs::write(folder.0.join("release_2/feed.plan.json"), version("feed", 3)).unwrap();
    assert_eq!(metric(&get(&still.url("/metrics")).body, "rankd_plan_version{plan=\"feed\"}"), 1.0);
    still.signal("-HUP");
    metrics_until(&still.address, |now| metric(now, "rankd_plan_version{plan=\"feed\"}") == 2.0);
}

#[test]
fn an_emptied_folder_keeps_the_plans_and_ready_says_so() {
    let folder = Folder::new();
    folder.write("feed.plan.json", &version("feed", 2));
    let server = Server::start(&folder.0, &["--watch-ms", "10"]);
    std::fs::rename(folder.0.join("feed.plan.json"), folder.0.join("feed.aside")).unwrap();
    let problem = |value: f64| {
        metrics_until(&server.address, |now| metric(now, "rankd_plan_folder_problem") == value);
    };
    problem(1.0);
    server.signal("-HUP");
    server.says("reloaded on SIGHUP");
    let rows = || crate::client::post(&server.url("/rank/feed"), r#"{"user_id":1}"#).json().list("candidates").len();
    assert_eq!(rows(), 2, "the last good version stays");
    let ready = get(&server.url("/readyz"));
    let json = ready.json();
    assert_eq!((ready.status, json.text("status")), (200, "ready"));
    let warning = &json.list("warnings")[0];
    assert_eq!(warning.text("about"), "plan_folder");
    assert!(warning.text("message").contains("has no plans any more"), "{}", ready.body);
    folder.write("feed.plan.json", &version("feed", 3));
    problem(0.0);
    metrics_until(&server.address, |now| metric(now, "rankd_plan_version{plan=\"feed\"}") == 2.0);
    assert_eq!(rows(), 3);
    assert_eq!(get(&server.url("/readyz")).body, r#"{"status":"ready"}"#);
}

#[test]
fn a_pipe_in_the_folder_stops_neither_reloading_nor_the_end() {
    let folder = Folder::new();
    folder.write("feed.plan.json", &version("feed", 1));
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(folder.0.join(name)).status();
        assert!(made.unwrap().success());
    };
    // One is there at the start, one comes later, and one is imported by a plan.
    pipe("early.plan.json");
    let mut server = Server::start(&folder.0, &["--watch-ms", "10"]);
    pipe("late.plan.json");
    pipe("part.ts");
    folder.write("typed.plan.ts", "import { a } from \"./part\";\nexport default a;\n");
    folder.write("feed.plan.json", &version("feed", 2));
    metrics_until(&server.address, |now| {
        let problem = |plan: &str| metric(now, &format!("rankd_plan_problem{{plan=\"{plan}\"}}")) == 1.0;
        ["early", "late", "typed"].iter().all(|plan| problem(plan))
            && metric(now, "rankd_plan_version{plan=\"feed\"}") == 2.0
    });
    let told = get(&server.url("/plans/late")).json();
    assert!(told.text("problem.message").contains("it is not a regular file"), "{}", told.text("problem.message"));
    server.signal("-TERM");
    assert_eq!(server.ended(Duration::from_secs(20)).code(), Some(0), "{}", server.said());
}

#[test]
fn a_version_that_always_times_out_fails_its_trial() {
    let folder = Folder::new();
    let slow = |ms: usize| {
        let sleep = node("n1", "sleep", &["n0"], &format!("\"duration_ms\":{ms}"));
        plan_text("feed", &[node("n0", "fixed_source", &[], ""), sleep], "n1")
    };
    folder.write("feed.plan.json", &slow(0));
    // A first version is taken whatever its trial would say: there is nothing better.
    folder.write("never.plan.json", &slow(60_000).replace("feed", "never"));
    let server = Server::start(&folder.0, &["--watch-ms", "10", "--deadline-ms", "300"]);
    folder.write("feed.plan.json", &slow(60_000));
    metrics_until(&server.address, |now| metric(now, "rankd_plan_problem{plan=\"feed\"}") == 1.0);
    let problem = get(&server.url("/plans/feed")).json();
    assert!(problem.text("problem.message").contains("its trial run timed out"), "{}", problem.text("problem.message"));
    assert_eq!(crate::client::post(&server.url("/rank/feed"), r#"{"user_id":1}"#).status, 200);
    // Where the version that is served times out, too, it may be the stores: the new one is taken.
    folder.write("never.plan.json", &slow(50_000).replace("feed", "never"));
    metrics_until(&server.address, |now| metric(now, "rankd_plan_version{plan=\"never\"}") == 2.0);
}
