//! rankd: the real engine with one loop, its own client, and a plan of that shape.

use crate::redis::{FANOUT, Reader};
use rankd_column::{Key, Value};
use rankd_engine::clock;
use rankd_engine::store::Open;
use rankd_engine::store::health::Snapshot;
use rankd_engine::store::redis::{Address, RedisEndpoint};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::registry::{Policy, Text};
use rankd_plan::{Registry, check};
use rankd_tasks::tasks;
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Which plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The five reads and nothing else.
    Reads,
    /// And the two fields of each of the twenty.
    Hydrated,
    /// All ten nodes: the reads, two scores, joined, sorted, the first fifty.
    Whole,
}

pub struct Rankd {
    engine: Arc<Engine>,
    plan: Arc<Linked>,
    params: Vec<Value>,
    parent_id: Key,
    /// How long each request took, where that is asked for.
    pub latencies: Option<Vec<Duration>>,
}

impl Rankd {
    pub fn new(url: &str, shape: Shape, scheduler: Scheduler) -> Rankd {
        Rankd::with_deadline(url, shape, scheduler, None)
    }

    pub fn with_deadline(url: &str, shape: Shape, scheduler: Scheduler, deadline: Option<Duration>) -> Rankd {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name: &str| std::fs::read_to_string(repository.join(name)).expect("a file of the repository");
        let [keys, params, endpoints] =
            ["keys", "params", "endpoints.local"].map(|name| read(&format!("registry/{name}.toml")));
        let text = |text| Text { file: "", text };
        let (registry, problems) = Registry::parse(text(&keys), text(&params), text(&endpoints));
        assert!(problems.is_empty(), "the registry is good");
        let checked = check(plan(shape).as_bytes(), &registry, tasks().signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
        let plan = Arc::new(Linked::link(&plan, &tasks(), &registry).expect("a checked plan links"));
        let address = Address::parse(url).expect("it is one");
        let endpoint: Arc<dyn Open> = Arc::new(RedisEndpoint::server("redis_default", address, policy(deadline), None));
        let settings = Settings { scheduler, cpu_threads: 1, deadline, ..Settings::default() };
        let engine = Arc::new(Engine::start(settings, vec![endpoint]).expect("an engine starts"));
        let params = registry.params.list().iter().map(|_| Value::Null).collect();
        let parent_id = Key(registry.keys.named("parent_id").expect("it is a key"));
        Rankd { engine, plan, params, parent_id, latencies: None }
    }

    pub fn health(&self) -> Snapshot {
        self.engine.stats().health(0).expect("a server's endpoint counts").snapshot()
    }

    fn request(&self, user: i64) -> Request {
        Request {
            user_id: user.into(),
            params: self.params.clone(),
            registry: Some(self.plan.registry()),
            ..Request::default()
        }
    }

    /// The ids of one user's rows.
    pub fn ids(&self, user: i64) -> Vec<i64> {
        let rows = self.engine.run(&self.plan, self.request(user)).result.expect("the plan runs");
        rows.iter().flat_map(|rows| rows.ids().collect::<Vec<_>>()).collect()
    }

    /// Starts a request; `then` is told how many rows it gave, if it gave any. Each must be of the user that it says.
    pub fn start(&self, user: i64, then: impl FnOnce(Option<usize>) + Send + 'static) {
        let parent_id = self.parent_id;
        self.engine.start_run_then(&self.plan, self.request(user), move |outcome| {
            let Ok(outputs) = outcome.result else { return then(None) };
            for rows in &outputs {
                for (at, id) in rows.ids().enumerate() {
                    assert_eq!(rows.value(parent_id, at), Value::Int(id / 1000), "a row of another's");
                }
            }
            then(Some(outputs.iter().map(|rows| rows.len()).sum()));
        });
    }

    /// Reads from so many threads of the caller's: for schedulers that have no loop.
    pub fn read_from_threads(&self, users: &[i64], threads: usize) {
        let next = Mutex::new(users.iter());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(user) = { next.lock().expect("no thread panicked").next() } {
                        self.engine.run(&self.plan, self.request(*user)).result.expect("the plan runs");
                    }
                });
            }
        });
    }
}

impl Reader for Rankd {
    /// Each request that ends is followed by the next, right on the loop, as a server's connections do it.
    fn read(&mut self, users: &[i64], in_flight: usize) -> usize {
        let (done, results) = channel();
        let (plan, params, users) = (self.plan.clone(), self.params.clone(), users.to_vec());
        self.engine.on_every_loop(move |loop_handle| {
            let (plan, params, users, done) = (plan.clone(), params.clone(), users.clone(), done.clone());
            Box::pin(async move {
                let (users, next) = (Rc::new(users), Rc::new(Cell::new(0)));
                for _ in 0..in_flight {
                    let (plan, params, users, next) = (plan.clone(), params.clone(), users.clone(), next.clone());
                    let (done, own) = (done.clone(), loop_handle.clone());
                    loop_handle.spawn(async move {
                        let (mut rows, mut took) = (0, Vec::new());
                        while let Some(user) = users.get(next.replace(next.get() + 1)) {
                            let began = Instant::now();
                            let (params, registry) = (params.clone(), Some(plan.registry()));
                            let request = Request { user_id: (*user).into(), params, registry, ..Request::default() };
                            let limits = own.limits(clock::now(), &request);
                            let outcome = own.run(&plan, request, limits, Arc::default()).await;
                            rows += outcome.result.expect("the plan runs").iter().map(|rows| rows.len()).sum::<usize>();
                            took.push(began.elapsed());
                        }
                        // The bench waits for all of them.
                        let _ = done.send((rows, took));
                    });
                }
            })
        });
        let mut rows = 0;
        for (more, took) in results.iter().take(in_flight) {
            rows += more;
            if let Some(latencies) = &mut self.latencies {
                latencies.extend(took);
            }
        }
        rows
    }
}

/// Without a deadline nothing is about time, and a crowded machine may take its own to connect.
fn policy(deadline: Option<Duration>) -> Policy {
    match deadline {
        Some(_) => Policy::default(),
        None => Policy {
            connect_timeout_ms: 10_000,
            request_timeout_ms: 10_000,
            stall_timeout_ms: 10_000,
            ..Policy::default()
        },
    }
}

fn plan(shape: Shape) -> String {
    let read = |id: &str, op: &str, input: &str| {
        format!(
            r#",{{"node_id":"{id}","op":"{op}","inputs":["{input}"],"params":{{"endpoint":"redis_default","fanout":{FANOUT}}}}}"#
        )
    };
    let reads = read("f", "follow", "v")
        + &read("r", "recommendation", "v")
        + &read("a", "media", "f")
        + &read("b", "media", "r");
    let score = |id: &str, input: &str| {
        format!(r#",{{"node_id":"{id}","op":"vm","inputs":["{input}"],"params":{{"out_key":"score","expr":"e"}}}}"#)
    };
    let hydrate = |id: &str, input: &str| {
        format!(
            r#",{{"node_id":"{id}","op":"hydrate","inputs":["{input}"],"params":{{"endpoint":"redis_default","prefix":"user","keys":["country","age"]}}}}"#
        )
    };
    let (more, outputs) = match shape {
        Shape::Reads => (String::new(), r#""a","b""#),
        Shape::Hydrated => (hydrate("g", "f") + &hydrate("h", "r"), r#""a","b","g","h""#),
        Shape::Whole => {
            let rest = r#",{"node_id":"c","op":"concat","inputs":["x"],"params":{"rhs":"y"}},{"node_id":"s","op":"sort","inputs":["c"],"params":{"key":"score","order":"desc"}},{"node_id":"t","op":"take","inputs":["s"],"params":{"count":50}}"#;
            (score("x", "a") + &score("y", "b") + rest, r#""t""#)
        }
    };
    format!(
        r#"{{"schema_version":1,"plan_name":"bench","nodes":[{{"node_id":"v","op":"viewer","params":{{"endpoint":"redis_default"}}}}{reads}{more}],"outputs":[{outputs}],"expr_table":{{"e":{{"op":"mul","a":{{"op":"key_ref","key":"id"}},"b":{{"op":"coalesce","a":{{"op":"param_ref","param":"weight"}},"b":{{"op":"const_number","value":0.1}}}}}}}}}}"#
    )
}
