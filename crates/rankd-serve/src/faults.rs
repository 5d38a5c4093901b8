//! Tests of the server with tasks that no release has: one request in a hundred runs into a panic.

use crate::acceptor::Acceptor;
use crate::app::{App, ServeSettings};
use crate::audience::WhyServed;
use crate::catalog::{Arrival, Catalog, CatalogBase, GoodVersion, PlanCounters, ServedPlan};
use crate::connection_state::ClientTimeouts;
use crate::hosts::Hosts;
use crate::limiter::AdmissionSettings;
use crate::listen::listen;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::readiness::{Phase, Readiness};
use crate::reload_experiments::ServedExperiments;
use crate::routes;
use crate::version_history::{KeptVersion, VersionHistory};
use crate::version_wish::{self, VersionSettings};
use arc_swap::ArcSwap;
use rankd_column::{Batch, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, Maker};
use rankd_engine::{Engine, Linked, Settings, Tasks};
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Plan, Registry, check};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const SCRIPTED: &str = "as the test wants it:";

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{SCRIPTED} in a drop");
    }
}

struct ReadFuse;

impl Fetch for ReadFuse {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        tokio::task::yield_now().await;
        let user = cx.user_id()?;
        match user % 300 {
            100 => panic!("{SCRIPTED} in a poll"),
            200 => drop(Bomb),
            _ => {}
        }
        Ok(RowSet::new(Batch::new(vec![user])))
    }
}

struct WorkFuse;

impl Compute for WorkFuse {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        assert!(inputs[0].batch().ids()[0] % 300 != 0, "{SCRIPTED} in the pool");
        Ok(inputs[0].take(1))
    }
}

const fn contract(inputs: Inputs, rows: RowEffect) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: &[], cost: Cost::Unknown }
}

static READ: Contract = contract(Inputs::None, RowEffect::Source);
static WORK: Contract = contract(Inputs::One, RowEffect::Fewer);

pub(crate) fn tasks() -> Tasks {
    let signature = |op, contract| Signature { op, summary: "", contract };
    let definitions = [
        Definition { signature: signature("read_fuse", &READ), maker: Maker::Fetch(|_| Arc::new(ReadFuse)) },
        Definition { signature: signature("work_fuse", &WORK), maker: Maker::Compute(|_| Arc::new(WorkFuse)) },
    ];
    Tasks::new(definitions).unwrap()
}

/// A plan of both tasks: `w` works on what `r` reads.
pub(crate) fn plan(tasks: &Tasks) -> (Registry, Plan, Linked) {
    const KEYS: &str =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n";
    let text = |file, text| Text { file, text };
    let (registry, problems) = Registry::parse(text("keys", KEYS), text("params", ""), text("endpoints", ""));
    assert!(problems.is_empty(), "{}", problems.len());
    let plan = r#"{"schema_version":1,"plan_name":"fuse","nodes":[
        {"node_id":"r","op":"read_fuse","inputs":[],"params":{}},
        {"node_id":"w","op":"work_fuse","inputs":["r"],"params":{},"scheduling":{"inline":false}}],
        "outputs":["w"],"expr_table":{},"pred_table":{}}"#;
    let checked = check(plan.as_bytes(), &registry, tasks.signatures());
    let plan = checked.plan.expect("the plan is good");
    let linked = Linked::link(&plan, tasks, &registry);
    (registry, plan, linked.unwrap_or_else(|error| panic!("{}", error.message)))
}

fn catalog(tasks: &Tasks) -> Catalog {
    let (registry, plan, linked) = plan(tasks);
    let (registry, linked) = (Arc::new(registry), Arc::new(linked));
    let (sha256, since) = (String::new(), String::new());
    let kept = KeptVersion { sha256, since, artifact: None, counts: None, rolled_back: None };
    let served = ServedPlan {
        name: "fuse".to_owned(),
        file: String::new(),
        good: Some(GoodVersion::new(plan, linked, None, &kept, None, Arrival::File)),
        problem: None,
        history: VersionHistory::default(),
        registry: registry.clone(),
        counters: Arc::new(PlanCounters::new(1, None)),
    };
    let experiments = ServedExperiments::new(Arc::default(), None);
    let base = CatalogBase { registry, texts: Arc::default(), experiments, shadows: Arc::default() };
    Catalog::new(base, HashMap::from([("fuse".to_owned(), Arc::new(served))]))
}

fn start() -> (Engine, watch::Sender<Option<rankd_engine::clock::Instant>>, SocketAddr) {
    let engine = Engine::start(Settings::default(), Vec::new()).unwrap();
    let listeners = listen("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let address = listeners[0].local_addr().unwrap();
    let minute = Duration::from_secs(60);
    let settings = ServeSettings {
        timeouts: ClientTimeouts { head: minute, body: minute, idle: minute, stall: minute },
        admission: AdmissionSettings { queue: Some(minute), limit_max: 100.0 },
        connections_max: 100,
        body_bytes_max: 1 << 20,
        answer_bytes_max: 1 << 20,
        trace_every: 10,
        plan_limits: HashMap::new(),
        hosts: Hosts::of(address),
        admin_hosts: None,
        lenient: true,
        why: WhyServed::Everywhere,
        force_arms: false,
        versions: VersionSettings::default(),
    };
    let app = Arc::new(App {
        settings,
        changing: Mutex::default(),
        switches: version_wish::channel().0,
        catalog: ArcSwap::from_pointee(catalog(&tasks())),
        metrics: Metrics::new(1, tasks().signatures(), routes::paths()),
        tasks: tasks(),
        log: Log::start(None, None).unwrap(),
        feature_log: None,
        collector: None,
        capture: None,
        shadows: None,
        gauges: engine.gauges(),
        engine: engine.settings().clone(),
        readiness: Readiness::new(Phase::Ready),
        documents: Default::default(),
        open: Default::default(),
        listeners: Mutex::new(listeners.into_iter().map(Some).collect()),
        admin: Mutex::default(),
        console: None,
        tables: None,
        models: None,
        endpoints: Vec::new(),
        started_ms: 0,
    });
    let (stop, stopped) = watch::channel(None);
    assert!(engine.on_every_loop(move |loop_handle| Acceptor::open(app.clone(), loop_handle, stopped.clone())));
    (engine, stop, address)
}

/// The status and the body of an answer.
fn ask(stream: &mut TcpStream, user: i64) -> (u16, String) {
    let body = format!("{{\"user_id\":{user}}}");
    let request =
        format!("POST /rank/fuse HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        let parts = text.split_once("\r\n\r\n").map(|(head, body)| (head.to_lowercase(), body.to_owned()));
        if let Some((head, body)) = parts
            && head.contains(&format!("content-length: {}", body.len()))
        {
            return (head.split(' ').nth(1).unwrap().parse().unwrap(), body);
        }
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "closed after {text:?}");
        answer.extend_from_slice(&chunk[..read]);
    }
}

#[test]
fn of_one_request_in_a_hundred_that_panics_exactly_those_fail() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload_as_str().is_some_and(|text| text.starts_with(SCRIPTED)) {
            usual(panic);
        }
    }));
    let (engine, stop, address) = start();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for user in 1..=3000 {
        let (status, body) = ask(&mut stream, user);
        match user % 300 {
            0 | 100 | 200 => {
                assert_eq!(status, 500, "{user}: {body}");
                assert!(body.contains("\"kind\":\"bug\""), "{body}");
                assert!(body.contains(if user % 300 == 0 { "\"node\":\"w\"" } else { "\"node\":\"r\"" }), "{body}");
            }
            _ => assert_eq!((status, body.contains(&format!("[{{\"id\":{user}}}]"))), (200, true), "{user}: {body}"),
        }
    }
    assert_eq!(engine.stats().panics(), 30);
    drop(stream);
    let _ = stop.send(Some(rankd_engine::clock::now() + Duration::from_secs(5)));
    engine.stop(Duration::from_secs(10));
}
