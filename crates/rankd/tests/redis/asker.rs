//! An engine with one endpoint, asked for whom users follow. `follow:{u}` holds `u * 1000 + 1` and so on, so that every row
//! shows whose it is.

use crate::program::{endpoint, repository};
use crate::server::Server;
use rankd_column::{Batch, Key, RowSet, Value};
use rankd_engine::engine::Ticket;
use rankd_engine::request::Candidates;
use rankd_engine::store::Open;
use rankd_engine::store::health::Snapshot;
use rankd_engine::store::redis::{Address, RedisEndpoint};
use rankd_engine::store::tls::Trust;
use rankd_engine::{Engine, Linked, Outcome, Request, Scheduler, Settings};
use rankd_plan::Registry;
use rankd_plan::registry::{Backend, EndpointSettings, Text};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const DEADLINE: Duration = Duration::from_millis(100);
const PATIENT: Duration = Duration::from_secs(2);
/// How many each user follows, and how many users there are.
pub(crate) const FOLLOWED: i64 = 20;
pub(crate) const USERS: i64 = 200;

pub(crate) const PLAN: &str = r#"{"schema_version": 1, "plan_name": "followed", "nodes": [
    {"node_id": "n0", "op": "candidates"},
    {"node_id": "n1", "op": "follow", "inputs": ["n0"], "params": {"endpoint": "redis_default", "fanout": 100}}
], "outputs": ["n1"]}"#;

/// Puts the users on the server.
pub(crate) fn load_users(server: &Server) {
    let script = "for u = 1, ARGV[1] do for i = 1, ARGV[2] do redis.call('RPUSH', 'follow:' .. u, u * 1000 + i) end end return 1";
    server.must(&["EVAL", script, "0", &USERS.to_string(), &FOLLOWED.to_string()]);
}

pub(crate) struct Asker {
    engine: Engine,
    plan: Arc<Linked>,
    parent_id: Key,
}

/// How many rows, or the error's kind and code.
pub(crate) type Rows = Result<usize, (&'static str, &'static str)>;

/// What came of a request.
pub(crate) struct Answer {
    pub(crate) asked: Instant,
    pub(crate) took: Duration,
    pub(crate) result: Rows,
    pub(crate) message: String,
    /// What callers are not told.
    pub(crate) detail: String,
}

fn request(users: &[i64], plan: &Linked) -> Request {
    let candidates = Some(Candidates::new(RowSet::new(Batch::new(users.to_vec()))));
    Request { candidates, registry: Some(plan.registry()), ..Request::default() }
}

impl Asker {
    /// One with the deadline that the promises are about. `policy` is more lines for the endpoint.
    pub(crate) fn new(scheduler: Scheduler, url: &str, policy: &str) -> Asker {
        Asker::within(DEADLINE, scheduler, url, policy)
    }

    /// One that is not about time: a crowded machine may be slow.
    pub(crate) fn patient(scheduler: Scheduler, url: &str, policy: &str) -> Asker {
        Asker::within(PATIENT, scheduler, url, policy)
    }

    pub(crate) fn within(deadline: Duration, scheduler: Scheduler, url: &str, policy: &str) -> Asker {
        let read = |name: &str| std::fs::read_to_string(repository().join("registry").join(name)).expect("it is there");
        let (keys, params, endpoints) = (read("keys.toml"), read("params.toml"), endpoint(url, policy));
        let text = |text| Text { file: "registry", text };
        let (registry, problems) = Registry::parse(text(&keys), text(&params), text(&endpoints));
        assert!(problems.iter().all(|file| !file.diagnostics.has_errors()), "the registry is good");
        let plan = rankd_plan::check(PLAN.as_bytes(), &registry, rankd_tasks::tasks().signatures())
            .plan
            .expect("the plan is good");
        let plan = Linked::link(&plan, &rankd_tasks::tasks(), &registry).expect("the plan can be linked");
        let stores = registry.endpoints.list().iter().map(|endpoint| {
            let address = |url: &String| Address::parse(url).expect("the url is good");
            let pem = |file: &String| std::fs::read_to_string(file).expect("the file of authorities is there");
            let EndpointSettings::Redis(settings) = &endpoint.settings else { panic!("the endpoint is on Redis") };
            let trust = settings.ca_file.as_ref().map(|file| Trust::in_pem(&pem(file)).expect("it is good"));
            Arc::new(match &settings.backend {
                Backend::Server { url } => RedisEndpoint::server(&endpoint.name, address(url), settings.policy, trust),
                Backend::Cluster { urls } => {
                    RedisEndpoint::cluster(&endpoint.name, urls.iter().map(address).collect(), settings.policy, trust)
                }
                Backend::Memory { .. } => panic!("the endpoint is on a server"),
            }) as Arc<dyn Open>
        });
        let settings =
            Settings { scheduler, loops: 1, cpu_threads: 1, deadline: Some(deadline), ..Settings::default() };
        let engine = Engine::start(settings, stores.collect()).expect("threads can be started");
        let parent_id = Key(registry.keys.named("parent_id").expect("it is a key"));
        Asker { engine, plan: Arc::new(plan), parent_id }
    }

    /// The endpoint's counters.
    pub(crate) fn health(&self) -> Snapshot {
        self.engine.stats().health(0).expect("a server's endpoint counts").snapshot()
    }

    /// Asks for whom these users follow; every row must be of the user that it says.
    pub(crate) fn ask(&self, users: &[i64]) -> Answer {
        let asked = Instant::now();
        let outcome = self.engine.run(&self.plan, request(users, &self.plan));
        let took = asked.elapsed();
        let (result, message) = self.judge(users, &outcome);
        let detail = outcome.result.err().and_then(|error| error.detail).map(String::from).unwrap_or_default();
        Answer { asked, took, result, message, detail }
    }

    /// Hands in all these requests before any is answered, and gives their results.
    pub(crate) fn ask_all(&self, requests: &[&[i64]]) -> Vec<Rows> {
        let submit = |users: &&[i64]| self.engine.start_run(&self.plan, request(users, &self.plan));
        let tickets: Vec<Ticket> = requests.iter().map(submit).collect();
        let answers = tickets.into_iter().zip(requests);
        answers.map(|(ticket, users)| self.judge(users, &ticket.wait()).0).collect()
    }

    fn judge(&self, users: &[i64], outcome: &Outcome) -> (Rows, String) {
        let rows = match &outcome.result {
            Ok(outputs) => &outputs[0],
            Err(error) => return (Err((error.code.kind.name(), error.code.id)), error.message.clone()),
        };
        for (at, id) in rows.ids().enumerate() {
            let Value::Int(parent) = rows.value(self.parent_id, at) else { panic!("a row without its parent") };
            assert!(users.contains(&parent), "nobody asked for user {parent}");
            assert_eq!(id / 1000, parent, "the row {id} was taken for one of user {parent}");
        }
        (Ok(rows.len()), String::new())
    }
}
