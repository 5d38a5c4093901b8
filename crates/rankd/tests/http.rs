//! `http_fetch` against a real HTTP service: what rows it gives, and what becomes of requests when the service fails.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts a service and says what is wrong"
)]

#[path = "../../rankd-engine/tests/calls/service.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod service;

use rankd_column::{Batch, Key, RowSet};
use rankd_edge::endpoints;
use rankd_engine::request::Candidates;
use rankd_engine::store::health::{BreakerState, Snapshot};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::Registry;
use rankd_plan::registry::Text;
use service::{Reply, Seen, Service};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_millis(100);
/// An answer that comes later than this after the deadline is late.
const SLACK: Duration = Duration::from_millis(20);
/// Requests for each fault.
const ASKED: i64 = 100;
const PATIENT: Duration = Duration::from_secs(20);

/// An engine with one endpoint on a service, and a plan.
struct Asker {
    engine: Engine,
    plan: Arc<Linked>,
    registry: Registry,
}

/// The rows as text, or the error's code and kind.
type Rows = Result<String, (&'static str, &'static str)>;

impl Asker {
    /// `policy` is more lines for the endpoint, `nodes` the plan; its last node is the output.
    fn new(url: &str, policy: &str, nodes: &[&str], scheduler: Scheduler, deadline: Duration) -> Asker {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let endpoints = format!(
            "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"service\"\nkind = \"http\"\nurl = {url:?}\n\
             connect_timeout_ms = 5000\n{policy}\n"
        );
        let (keys, params) = (read("keys.toml"), read("params.toml"));
        let text = |text| Text { file: "registry", text };
        let (registry, problems) = Registry::parse(text(&keys), text(&params), text(&endpoints));
        let found: Vec<_> = problems.iter().flat_map(|file| file.diagnostics.list()).collect();
        assert!(found.is_empty(), "{found:?}");
        let plan = format!(
            r#"{{"schema_version": 1, "plan_name": "fetched", "nodes": [{}], "outputs": ["n{}"]}}"#,
            nodes.join(","),
            nodes.len() - 1
        );
        let tasks = rankd_tasks::tasks();
        let checked = rankd_plan::check(plan.as_bytes(), &registry, tasks.signatures());
        let Some(plan) = checked.plan else { panic!("{:?}", checked.diagnostics.list()) };
        let plan = Arc::new(Linked::link(&plan, &tasks, &registry).unwrap());
        let stores = endpoints::open(&registry, &mut |_| {}).unwrap();
        let settings =
            Settings { scheduler, loops: 1, cpu_threads: 1, deadline: Some(deadline), ..Settings::default() };
        Asker { engine: Engine::start(settings, stores).unwrap(), plan, registry }
    }

    fn patient(url: &str, policy: &str, nodes: &[&str], scheduler: Scheduler) -> Asker {
        Asker::new(url, &format!("request_timeout_ms = 20000\n{policy}"), nodes, scheduler, PATIENT)
    }

    /// The rows for a user, with these candidates and these keys of the rows.
    fn ask(&self, user: i64, candidates: &[i64], keys: &[&str]) -> Rows {
        let candidates = Some(Candidates::new(RowSet::new(Batch::new(candidates.to_vec()))));
        let request = Request { user_id: user.into(), candidates, ..Request::new(&self.registry) };
        let outcome = self.engine.run(&self.plan, request);
        let rows = match &outcome.result {
            Ok(outputs) => &outputs[0],
            Err(error) => {
                let shown = format!("{error} {:?}", error.detail);
                assert!(!shown.contains("secret"), "{shown}");
                return Err((error.code.id, error.code.kind.name()));
            }
        };
        let keys: Vec<Key> = keys.iter().map(|name| Key(self.registry.keys.named(name).unwrap())).collect();
        let show = |at: usize| {
            let cells = keys.iter().map(|key| rows.value(*key, at).to_string());
            [rows.value(Key::ID, at).to_string()].into_iter().chain(cells).collect::<Vec<_>>().join(" ")
        };
        Ok((0..rows.len()).map(show).collect::<Vec<_>>().join("; "))
    }

    fn health(&self) -> Snapshot {
        self.engine.stats().health(0).unwrap().snapshot()
    }
}

const EVERYWHERE: [Scheduler; 3] = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential];

const SOURCE: &str = r#"{"node_id": "n0", "op": "http_fetch", "params": {"endpoint": "service",
    "path": "/users/{user_id}/items?limit=2", "rows": "/items", "fields": {"title": "title", "/stats/likes": "likes"}}}"#;

const CANDIDATES: &str = r#"{"node_id": "n0", "op": "candidates"}"#;

fn post(params: &str) -> String {
    format!(
        r#"{{"node_id": "n1", "op": "http_fetch", "inputs": ["n0"], "params": {{"endpoint": "service", "path": "/titles",
        "method": "POST", "fields": {{"title": "title"}}, {params}}}}}"#
    )
}

#[test]
fn a_get_without_input_is_a_source() {
    for http2 in [false, true] {
        let service = Service::start(|seen: &Seen| match seen.path.as_str() {
            "/v1/users/7/items?limit=2" => Reply::ok(
                r#"{"items":[{"id":3,"title":"A","stats":{"likes":5}},{"title":"B","id":"2"},{"title":"no id"}]}"#,
            ),
            _ => Reply::status(404, "no such user"),
        });
        for scheduler in EVERYWHERE {
            let policy = format!("http2 = {http2}\nheaders = {{ authorization = \"Bearer secret\" }}");
            let asker = Asker::patient(&format!("{}/v1", service.url()), &policy, &[SOURCE], scheduler);
            assert_eq!(asker.ask(7, &[], &["title", "likes"]), Ok("3 \"A\" 5; 2 \"B\" null".into()));
            assert_eq!(asker.ask(8, &[], &["title"]), Ok(String::new()), "404 is an answer without rows");
        }
        assert!(service.seen().iter().all(|seen| seen.headers["authorization"] == "Bearer secret"));
    }
}

#[test]
fn a_post_with_ids_is_one_call_for_each_batch_and_joined_by_id() {
    let service = Service::start(|seen: &Seen| {
        let ids = seen.body.trim_start_matches("{\"ids\":[").trim_end_matches("]}");
        // In another order, without 4, and with one that nobody asked for.
        let rows =
            ids.split(',').rev().filter(|id| *id != "4").map(|id| format!("{{\"id\":{id},\"title\":\"t{id}\"}}"));
        let rows: Vec<String> = rows.chain(["{\"id\":99,\"title\":\"x\"}".to_owned()]).collect();
        Reply::ok(&format!("[{}]", rows.join(",")))
    });
    for scheduler in EVERYWHERE {
        let fetch = post(r#""body": "ids", "batch_max": 2"#);
        let asker = Asker::patient(&service.url(), "", &[CANDIDATES, &fetch], scheduler);
        let before = service.seen().len();
        assert_eq!(
            asker.ask(1, &[5, 4, 3, 2, 1], &["title"]),
            Ok("5 \"t5\"; 4 null; 3 \"t3\"; 2 \"t2\"; 1 \"t1\"".into())
        );
        let mut bodies: Vec<String> = service.seen()[before..].iter().map(|seen| seen.body.clone()).collect();
        bodies.sort();
        assert_eq!(bodies, ["{\"ids\":[1]}", "{\"ids\":[3,2]}", "{\"ids\":[5,4]}"]);
        assert_eq!(asker.ask(1, &[], &["title"]), Ok(String::new()));
        assert_eq!(service.seen().len(), before + 3, "no rows, no call");
    }
}

#[test]
fn a_post_with_rows_sends_the_keys_that_were_asked_for() {
    let service = Service::start(|_| Reply::ok("[]"));
    let source = r#"{"node_id": "n0", "op": "fixed_source", "params": {"row_count": 2, "columns": {"score": [0.5, null], "country": ["D\"E", null]}}}"#;
    let fetch = post(r#""body": "rows", "keys": ["score", "country"]"#);
    let asker = Asker::patient(&service.url(), "", &[source, &fetch], Scheduler::Async);
    assert_eq!(asker.ask(1, &[], &["title"]), Ok("1 null; 2 null".into()));
    assert_eq!(
        service.seen()[0].body,
        r#"{"rows":[{"id":1,"score":0.5,"country":"D\"E"},{"id":2,"score":null,"country":null}]}"#
    );
}

#[test]
fn a_path_may_name_the_row_and_its_values_are_encoded() {
    let service = Service::start(|seen: &Seen| match seen.path.as_str() {
        "/items/1/a%2Fb%20%3F" => Reply::ok(r#"{"id":1,"title":"one"}"#),
        "/items/2/%C3%A4" => Reply::ok(r#"{"id":2,"title":"two"}"#),
        _ => Reply::status(400, "what"),
    });
    let source = r#"{"node_id": "n0", "op": "fixed_source", "params": {"row_count": 3, "columns": {"country": ["a/b ?", "ä", null]}}}"#;
    let fetch = r#"{"node_id": "n1", "op": "http_fetch", "inputs": ["n0"], "params": {"endpoint": "service",
        "path": "/items/{id}/{key.country}", "fields": {"title": "title"}}}"#;
    let asker = Asker::patient(&service.url(), "", &[source, fetch], Scheduler::Async);
    assert_eq!(asker.ask(1, &[], &["title"]), Ok("1 \"one\"; 2 \"two\"; 3 null".into()));
    assert_eq!(service.seen().len(), 2, "a null is not asked for");

    let dots = source.replace("a/b ?", "..");
    let asker = Asker::patient(&service.url(), "", &[&dots, fetch], Scheduler::Async);
    assert_eq!(asker.ask(1, &[], &["title"]), Err(("E436", "task")));
}

#[test]
fn every_fault_of_a_service_is_an_error_in_time_and_the_breaker_closes_when_it_is_over() {
    /// What it is, what the service does, and which errors say so.
    type Fault = (&'static str, fn() -> Reply, &'static [(&'static str, &'static str)]);
    let faults: [Fault; 9] = [
        ("hangs", || Reply::Never, &[("E301", "timeout"), ("E404", "upstream")]),
        ("drips", || Reply::Drip, &[("E301", "timeout"), ("E404", "upstream")]),
        ("500", || Reply::status(500, "no"), &[("E431", "upstream")]),
        ("429", || Reply::status(429, "slowly"), &[("E431", "upstream")]),
        ("401", || Reply::status(401, "who"), &[("E432", "task")]),
        ("huge", || Reply::Stream(1_000), &[("E433", "upstream")]),
        ("not JSON", || Reply::ok("<html>"), &[("E434", "upstream")]),
        ("wrong JSON", || Reply::ok("{\"rows\":[]}"), &[("E435", "upstream")]),
        ("closes", || Reply::Close, &[("E401", "upstream")]),
    ];
    for http2 in [false, true] {
        for (name, fault, expected) in faults {
            let well = Arc::new(AtomicBool::new(false));
            let is_well = well.clone();
            let service = Service::start(move |_| match is_well.load(Ordering::SeqCst) {
                true => Reply::ok("{\"items\":[{\"id\":1}]}"),
                false => fault(),
            });
            let policy = format!("http2 = {http2}\nrequest_timeout_ms = 200\nbytes_max = 100000");
            let asker = Asker::new(&service.url(), &policy, &[SOURCE], Scheduler::Async, DEADLINE);
            let mut opened = false;
            let mut times = Vec::new();
            for at in 0..ASKED {
                let started = Instant::now();
                let error = asker.ask(at, &[], &[]).unwrap_err();
                times.push(started.elapsed());
                assert!(expected.contains(&error), "{name}, http2 {http2}: {error:?}");
                opened |= asker.health().breaker() != BreakerState::Closed;
            }
            times.sort_unstable();
            let late = times.iter().filter(|time| **time > DEADLINE + SLACK).count();
            let [median, slowest] = [times[times.len() / 2], times[times.len() - 1]];
            println!("{name}, http2 {http2}: {late} of {ASKED} late, median {median:?}, slowest {slowest:?}");
            // A machine may be busy: this only catches a deadline that is not kept at all.
            assert!(slowest < 10 * DEADLINE && late <= times.len() / 4, "{name}: {late} late, {slowest:?}");
            let is_the_services = matches!(name, "hangs" | "drips" | "500" | "429" | "closes");
            assert_eq!(opened, is_the_services, "{name}, http2 {http2}: {:?}", asker.health());
            well.store(true, Ordering::SeqCst);
            let started = Instant::now();
            while asker.ask(100, &[], &[]) != Ok("1".into()) {
                assert!(started.elapsed() < Duration::from_secs(10), "{name}, http2 {http2}: it does not recover");
            }
            assert_eq!(asker.health().breaker(), BreakerState::Closed, "{name}");
        }
    }
}
