//! A version that passes its checks and its trial and then fails for most users, under load: with `--auto_rollback` it is gone a moment after enough
//! answers have shown what it is like, and whoever asks meanwhile gets an answer of one version.

use crate::faults::load::{Load, Step, post};
use crate::faults::stage::{Folder, metric, node, noted, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::time::{Duration, Instant};

const NAME: &str = "feed";
const RATE: f64 = 1000.0;
const BEFORE: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(5);
/// Answers before which nothing is decided.
const ANSWERS_MIN: f64 = 200.0;
/// The promise: this long after they are there.
const PROMISED: f64 = 1.0;

fn good() -> String {
    plan(NAME, &[node("n0", "fixed_source", &[], "\"row_count\":3")], "n0")
}

/// Fails where the request's weight is 0.
fn bad() -> String {
    let nodes = [
        node("n0", "fixed_source", &[], "\"row_count\":3"),
        node("n1", "vm", &["n0"], "\"out_key\":\"score\",\"expr\":\"e0\""),
    ];
    let divide = r#""expr_table":{"e0":{"op":"div","a":{"op":"const_number","value":1},"b":{"op":"param_ref","param":"weight"}}},"outputs""#;
    plan(NAME, &nodes, "n1").replace("\"outputs\"", divide)
}

pub fn run() {
    println!("\n## A bad version is rolled back\n");
    table();
    let folder = Folder::new();
    folder.plan(NAME, &good());
    let server = Server::rankd(folder.path(), &["--deadline-ms", "100", "--watch-ms", "5", "--auto-rollback"]);
    let request = |weight: usize| post(NAME, &format!(r#"{{"user_id":1,"params":{{"weight":{weight}}}}}"#));
    let requests = [request(1), request(0), request(0), request(0)];
    let right = |_: usize, answer: &str| answer.matches("{\"id\":").count() == 3;
    let (answers, served, back) = std::thread::scope(|scope| {
        let change = scope.spawn(|| {
            std::thread::sleep(BEFORE);
            let began = Instant::now();
            folder.plan(NAME, &bad());
            let wait = |value: f64| {
                while metric(&server, "rankd_plan_version{plan=\"feed\"}") < value && began.elapsed() < AFTER {
                    std::thread::sleep(Duration::from_millis(2));
                }
                began.elapsed()
            };
            (wait(2.0), wait(3.0))
        });
        let steps = [Step { rate: RATE, time: BEFORE + AFTER }];
        let address = &server.address;
        let load = Load { address, connections: 64, requests: &requests, steps: &steps, retries: 0, right: &right };
        let answers = load.drive();
        let (served, back) = change.join().expect("the plan changes");
        (answers, served, back)
    });
    let tally = Tally::of(&answers);
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, and of no version");
    assert_eq!(tally.others(&[500, 503]), [], "statuses that nobody expects");
    let rollbacks = metric(&server, "rankd_plan_rollbacks_total{plan=\"feed\"}");
    told("rollbacks", &format!("{rollbacks:.0}"), "1", rollbacks == 1.0);
    let in_service = back.saturating_sub(served).as_secs_f64();
    let allowed = ANSWERS_MIN / RATE + PROMISED;
    let goal = format!("{allowed:.1}: {ANSWERS_MIN:.0} answers and {PROMISED:.0} s");
    told("in service, s", &format!("{in_service:.2}"), &goal, in_service <= allowed);
    let failed = tally.with(500);
    noted(&format!("failed of {} requests", tally.all()), &failed.to_string());
    let last = BEFORE + back + Duration::from_millis(100);
    let late = answers.iter().filter(|answer| answer.due > last && answer.status != 200).count();
    told("failed of those after it was rolled back", &late.to_string(), "0", late == 0);
}
