//! What the scheduler tests stand on: a real engine over the embedded store, plans written as JSON text, and a look at what
//! came of a run. A test that needs a late job to be over waits for the pool, not for a time.

#![allow(dead_code, reason = "each test binary that mounts this module uses a part of it")]

use rankd_column::{Key, RowSet, Value};
use rankd_engine::clock::{self, Instant};
use rankd_engine::place::Policy;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::trace::{End, NodeTrace, Trace};
use rankd_engine::{Engine, ErrorKind, Linked, Outcome, Request, RunError, Scheduler, Settings};
use rankd_plan::plan::NodeIx;
use rankd_plan::registry::{Endpoint, Inject, Text};
use rankd_plan::{Registry, check};
use rankd_tasks::tasks;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const EVERY: &[Scheduler] = &[Scheduler::Async, Scheduler::Pools, Scheduler::Sequential];

/// How long a node works that is meant to be cut off.
pub(crate) const LONG_MS: u64 = 3000;
/// An answer within this time did not wait for such a node; far more than any limit of these tests, for a crowded machine.
pub(crate) const PROMPT: Duration = Duration::from_millis(2000);
/// A limit within which a node of a few milliseconds is done on a crowded machine, too.
pub(crate) const ROOMY_MS: u64 = 600;

#[expect(clippy::disallowed_methods, reason = "a test reads the repository's own files")]
pub(crate) fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(path).expect("the repository's files can be read")
}

/// The repository's, with a key for vectors.
fn registry() -> Registry {
    registry_with(|keys| {
        keys + "\n[[key]]\nkey_id = 9000\nname = \"example_vector\"\ntype = \"vector<2>\"\nnullable = true\n"
    })
}

/// The repository's registry with other keys.
pub(crate) fn registry_with(change: impl FnOnce(String) -> String) -> Registry {
    let [keys, params, endpoints] =
        ["keys", "params", "endpoints.local"].map(|name| read(&format!("registry/{name}.toml")));
    let keys = change(keys);
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(&keys), text(&params), text(&endpoints));
    assert!(problems.is_empty(), "the registry is good");
    registry
}

/// A rule that makes a command of the embedded store slow.
pub(crate) fn slow(command: &str, latency_us: u64) -> Inject {
    Inject { command: Some(command.to_owned()), latency_us, fail_every: 0 }
}

/// An engine with the demo data, and the registry that plans for it are checked against.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) registry: Registry,
}

impl Rig {
    pub(crate) fn start(scheduler: Scheduler, cpu_threads: usize, inject: Vec<Inject>) -> Rig {
        Rig::set(Settings { scheduler, loops: 1, cpu_threads, ..Settings::default() }, inject)
    }

    /// The event loop with another policy.
    pub(crate) fn with(policy: Policy) -> Rig {
        Rig::set(
            Settings { scheduler: Scheduler::Async, loops: 1, cpu_threads: 2, policy, ..Settings::default() },
            Vec::new(),
        )
    }

    fn set(settings: Settings, inject: Vec<Inject>) -> Rig {
        let registry = registry();
        let data = Arc::new(Data::parse(&read("data/demo.ndjson")).expect("the demo data are good"));
        let open = |endpoint: &Endpoint| {
            Arc::new(MemoryEndpoint::new(&endpoint.name, data.clone(), inject.clone())) as Arc<dyn Open>
        };
        let endpoints = registry.endpoints.list().iter().map(open).collect();
        Rig { engine: Engine::start(settings, endpoints).expect("threads can be started"), registry }
    }

    /// Tells `intent` on each of these schedulers; a failing test shows on which it was.
    #[expect(clippy::print_stdout, reason = "shown only when a test fails")]
    pub(crate) fn on(schedulers: &[Scheduler], cpu_threads: usize, intent: impl Fn(&Rig)) {
        for scheduler in schedulers {
            println!("on the {} scheduler:", scheduler.name());
            intent(&Rig::start(*scheduler, cpu_threads, Vec::new()));
        }
    }

    pub(crate) fn is(&self, scheduler: Scheduler) -> bool {
        self.engine.settings().scheduler == scheduler
    }

    /// Checks and links a plan as the program does.
    pub(crate) fn link(&self, text: &str) -> Arc<Linked> {
        link(text, &self.registry)
    }

    /// A plan of these nodes. The last is the output.
    pub(crate) fn plan(&self, nodes: &[String]) -> Arc<Linked> {
        let last = nodes.last().and_then(|node| node.split('"').nth(3)).expect("a plan has a node");
        let half_id = r#"{"op":"mul","a":{"op":"key_ref","key":"id"},"b":{"op":"const_number","value":0.5}}"#;
        let ten_or_more =
            r#"{"op":"cmp","cmp":">=","a":{"op":"key_ref","key":"score"},"b":{"op":"const_number","value":10}}"#;
        let tables = format!(r#""expr_table":{{"half_id":{half_id}}},"pred_table":{{"ten_or_more":{ten_or_more}}}"#);
        self.link(&format!(
            r#"{{"schema_version":1,"plan_name":"intent","nodes":[{}],"outputs":["{last}"],{tables}}}"#,
            nodes.join(",")
        ))
    }

    pub(crate) fn run(&self, plan: &Arc<Linked>, allowed: Allowed) -> Seen {
        self.run_for(1, plan, allowed)
    }

    pub(crate) fn run_for(&self, user_id: i64, plan: &Arc<Linked>, allowed: Allowed) -> Seen {
        let request = Request {
            user_id: user_id.into(),
            request_id: "intent".into(),
            deadline: allowed.deadline_ms.map(Duration::from_millis),
            node_timeout: allowed.node_timeout_ms.map(Duration::from_millis),
            trace: true,
            // The registries of these tests differ in their keys only, so the parameters are the same.
            registry: Some(plan.registry()),
            ..Request::new(&self.registry)
        };
        let asked: Instant = clock::now();
        let outcome = self.engine.run(plan, request);
        let waited = clock::now().saturating_duration_since(asked);
        let Outcome { result, logged, trace, .. } = outcome;
        Seen { plan: plan.clone(), result, logged, trace: trace.expect("a trace was asked for"), waited }
    }

    /// Waits until the CPU pool has done all that it was given, in the background as well.
    #[expect(clippy::disallowed_methods, reason = "nothing says when the last job is done")]
    pub(crate) fn drain(&self) {
        let gauges = self.engine.gauges();
        while gauges.pool_depth() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn late(&self) -> u64 {
        self.engine.stats().late_completions()
    }
}

/// Checks and links a plan against a registry.
pub(crate) fn link(text: &str, registry: &Registry) -> Arc<Linked> {
    let checked = check(text.as_bytes(), registry, tasks().signatures());
    let plan = checked.plan.unwrap_or_else(|| unreachable!("{text}\n{:?}", checked.diagnostics.list()));
    Arc::new(Linked::link(&plan, &tasks(), registry).expect("a checked plan can be linked"))
}

/// The limits of one request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowed {
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) node_timeout_ms: Option<u64>,
}

pub(crate) fn without_limits() -> Allowed {
    Allowed::default()
}

pub(crate) fn deadline(ms: u64) -> Allowed {
    Allowed { deadline_ms: Some(ms), node_timeout_ms: None }
}

pub(crate) fn node_timeout(ms: u64) -> Allowed {
    Allowed { deadline_ms: None, node_timeout_ms: Some(ms) }
}

/// What came of a run.
pub(crate) struct Seen {
    pub(crate) plan: Arc<Linked>,
    pub(crate) result: Result<Vec<RowSet>, Box<RunError>>,
    /// The rows of nodes that log them.
    pub(crate) logged: Vec<(NodeIx, RowSet)>,
    pub(crate) trace: Trace,
    /// From asking to being answered.
    pub(crate) waited: Duration,
}

impl Seen {
    /// The rows of the first output.
    pub(crate) fn rows(&self) -> &RowSet {
        match &self.result {
            Ok(outputs) => &outputs[0],
            Err(error) => unreachable!("there should be rows, but: {error}"),
        }
    }

    pub(crate) fn ids(&self) -> Vec<i64> {
        self.rows().ids().collect()
    }

    pub(crate) fn error(&self) -> &RunError {
        self.result.as_ref().map(Vec::len).expect_err("there should be an error, but there are rows")
    }

    /// The id of the node that is blamed.
    pub(crate) fn blamed(&self) -> &str {
        self.error().node.as_ref().map_or("nobody", |node| &node.id)
    }

    /// Checks that time won: which limit it was, and that nobody waited for the node that was cut off.
    pub(crate) fn timed_out(&self, code: &str, message: &str) {
        let error = self.error();
        assert_eq!((error.code.kind, error.code.id, &*error.message), (ErrorKind::Timeout, code, message));
        assert!(error.node.is_some(), "a node is named");
        self.answered_promptly();
    }

    pub(crate) fn answered_promptly(&self) {
        assert!(self.waited < PROMPT, "answered after {:?}, which is too late", self.waited);
    }

    /// A node's record, if it was started.
    pub(crate) fn record(&self, id: &str) -> Option<&NodeTrace> {
        self.trace.nodes.iter().find(|record| &*self.plan.node(record.node).id == id)
    }

    pub(crate) fn of(&self, id: &str) -> &NodeTrace {
        self.record(id).unwrap_or_else(|| unreachable!("the node {id} was not started"))
    }

    pub(crate) fn ended(&self, id: &str) -> End {
        self.of(id).end
    }

    /// Whether all of these nodes were under way at one moment.
    pub(crate) fn overlap(&self, ids: &[&str]) -> bool {
        let start = ids.iter().map(|id| self.of(id).start_ns).max();
        start < ids.iter().map(|id| self.of(id).end_ns).min()
    }

    /// Whether one node ended before another began.
    pub(crate) fn before(&self, first: &str, then: &str) -> bool {
        self.of(first).end_ns <= self.of(then).start_ns
    }

    /// Checks that each node began after all that it waits for had ended.
    pub(crate) fn in_dependency_order(&self) {
        for record in &self.trace.nodes {
            let node = self.plan.node(record.node);
            for input in &node.inputs {
                let input = &self.plan.node(*input).id;
                assert!(self.before(input, &node.id), "{} began before {input} had ended", node.id);
            }
        }
    }

    pub(crate) fn value(&self, key: Key, position: usize) -> Value {
        self.rows().value(key, position)
    }
}

fn node(id: &str, op: &str, inputs: &str, params: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":[{inputs}],"params":{{{params}}}}}"#)
}

pub(crate) fn source(id: &str, rows: usize) -> String {
    node(id, "fixed_source", "", &format!(r#""row_count":{rows}"#))
}

pub(crate) fn sleep(id: &str, input: &str, ms: u64) -> String {
    node(id, "sleep", &format!("\"{input}\""), &format!(r#""duration_ms":{ms}"#))
}

pub(crate) fn failing_sleep(id: &str, input: &str, ms: u64) -> String {
    node(id, "sleep", &format!("\"{input}\""), &format!(r#""duration_ms":{ms},"fail_after_sleep":true"#))
}

pub(crate) fn busy(id: &str, input: &str, ms: u64) -> String {
    node(id, "busy_cpu", &format!("\"{input}\""), &format!(r#""busy_wait_ms":{ms}"#))
}

pub(crate) fn vm(id: &str, input: &str) -> String {
    node(id, "vm", &format!("\"{input}\""), r#""out_key":"score","expr":"half_id""#)
}

pub(crate) fn concat(id: &str, left: &str, right: &str) -> String {
    node(id, "concat", &format!("\"{left}\""), &format!(r#""rhs":"{right}""#))
}
