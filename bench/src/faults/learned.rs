//! What a server makes of runs that were not like those after them: a store that was down, requests with hardly any time, runs that
//! take longer than they did, large answers to clients that wait for them. The processor is idle most of the time, so nobody is refused.

use crate::faults::load::{Answer, Load, Step, post};
use crate::faults::stage::{BODY, Folder, metric, node, noted, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::{Server, repository};
use crate::redis::server::Server as Redis;
use std::time::Duration;

const DOZE: &str = "doze";
const MANY: &str = "many";
const RATE: f64 = 200.0;
const DOWN: Duration = Duration::from_secs(2);
const AFTERWARDS: Duration = Duration::from_secs(10);
/// How soon nobody may be refused any more.
const SOON: Duration = Duration::from_secs(1);

fn drive(server: &Server, plan: &str, body: &str, connections: usize, steps: &[Step]) -> Vec<Answer> {
    let requests = [post(plan, body)];
    let address = &server.address;
    let answers = Load { address, connections, requests: &requests, steps, retries: 0, right: &|_, _| true }.drive();
    assert_eq!(Tally::of(&answers).unanswered(), 0, "unanswered");
    answers
}

fn none_refused(what: &str, answers: &Tally<'_>) {
    let refused = answers.with(503);
    let name = format!("{what}: refused, of {}", answers.all());
    told(&name, &refused.to_string(), "0", refused == 0 && answers.all() > 0);
}

fn doze(folder: &Folder, first: &str, ms: u32) {
    let sleep = node("n1", "sleep", &["n0"], &format!(r#""duration_ms":{ms}"#));
    folder.plan(DOZE, &plan(DOZE, &[first.to_owned(), sleep], "n1"));
}

pub fn run() {
    println!("\n## What was learned before\n");
    table();
    for flags in [&[][..], &["--deadline-ms", "500"]] {
        let with = if flags.is_empty() { "no deadline" } else { "a deadline of 500 ms" };
        store_down(with, flags);
        hasty(with, flags);
        grows(with, flags);
    }
    large_answers();
}

/// 200 a second of 80 ms each that read from Redis, which is killed for two seconds.
fn store_down(with: &str, flags: &[&str]) {
    let (folder, mut redis) = (Folder::new(), Redis::start());
    let registry = folder.path().join("registry");
    std::fs::create_dir(&registry).expect("a folder can be made");
    for file in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(file), registry.join(file)).expect("a file can be copied");
    }
    let endpoint = format!(
        "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\nurl = \"{}\"\n",
        redis.url()
    );
    std::fs::write(registry.join("endpoints.fault.toml"), endpoint).expect("a file can be written");
    doze(&folder, &node("n0", "viewer", &[], r#""endpoint":"redis_default""#), 80);
    let registry = registry.to_str().expect("a path in UTF-8");
    let server = Server::rankd(folder.path(), &[&["--registry", registry, "--env", "fault"], flags].concat());
    let steps = [2, 2, 10].map(|seconds| Step { rate: RATE, time: Duration::from_secs(seconds) });
    let answers = std::thread::scope(|scope| {
        let load = scope.spawn(|| drive(&server, DOZE, BODY, 400, &steps));
        std::thread::sleep(steps[0].time);
        let _ = redis.child.kill().and_then(|()| redis.child.wait());
        std::thread::sleep(DOWN);
        redis.start_again(false);
        load.join().expect("the load ends")
    });
    let back = steps[0].time + DOWN;
    let what = format!("Redis down for 2 s, {with}");
    none_refused(&format!("{what}: from 1 s after it"), &Tally::between(&answers, back + SOON, back + AFTERWARDS));
    let during = Tally::step(&answers, 1);
    let counts = [200, 502, 503, 504].map(|status| during.with(status).to_string()).join(", ");
    noted(&format!("{what}: with rows, store failed, refused, timed out, while it was down"), &counts);
}

/// 40 requests with a millisecond each, and then 200 a second of 80 ms.
fn hasty(with: &str, flags: &[&str]) {
    let folder = Folder::new();
    doze(&folder, &node("n0", "fixed_source", &[], ""), 80);
    let server = Server::rankd(folder.path(), flags);
    let hasty = [Step { rate: 100.0, time: Duration::from_millis(400) }];
    drive(&server, DOZE, r#"{"user_id":1,"deadline_ms":1}"#, 4, &hasty);
    let answers = drive(&server, DOZE, BODY, 400, &[Step { rate: RATE, time: Duration::from_secs(5) }]);
    none_refused(&format!("after 40 requests with 1 ms each, {with}"), &Tally::of(&answers));
}

/// 500 a second of 2 ms, and then of 60 ms by a new version.
fn grows(with: &str, flags: &[&str]) {
    let folder = Folder::new();
    let first = node("n0", "fixed_source", &[], "");
    doze(&folder, &first, 2);
    let server = Server::rankd(folder.path(), flags);
    let load = |seconds| drive(&server, DOZE, BODY, 400, &[Step { rate: 500.0, time: Duration::from_secs(seconds) }]);
    load(2);
    doze(&folder, &first, 60);
    while metric(&server, &format!("rankd_plan_version{{plan=\"{DOZE}\"}}")) < 2.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    none_refused(&format!("from 2 ms to 60 ms a run, {with}"), &Tally::of(&load(5)));
}

/// Sixteen clients without a deadline, each with one request at a time, answers of 5,000 rows.
fn large_answers() {
    let folder = Folder::new();
    folder.plan(MANY, &plan(MANY, &[node("n0", "fixed_source", &[], r#""row_count":5000"#)], "n0"));
    let server = Server::rankd(folder.path(), &[]);
    let answers = drive(&server, MANY, BODY, 16, &[Step { rate: f64::INFINITY, time: Duration::from_secs(5) }]);
    none_refused("16 clients without a deadline, 5,000 rows each", &Tally::of(&answers));
}
