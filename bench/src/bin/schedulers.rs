//! The three schedulers on the same plans: what waiting at once is worth, what a trip to the CPU pool costs, and from which size
//! on it pays.
//!
//! Real engine, real tasks, the embedded store with the demo data. One request at a time unless said otherwise.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use rankd_bench::stage::Stage;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::{Engine, Linked, Policy, Request, Scheduler, Settings};
use rankd_plan::registry::Text;
use rankd_plan::{Registry, check};
use rankd_tasks::tasks;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SCHEDULERS: [Scheduler; 3] = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential];
const ROUNDS: usize = 9;

fn main() {
    let bench = Bench::new();
    println!("Milliseconds for twenty sleeps of 50 ms side by side, min / median of {ROUNDS} runs.\n");
    println!("| async, one loop | pools, four IO threads | sequential |\n|---|---|---|");
    let sleeps = bench.link(&sleeps(20));
    println!("| {} |", SCHEDULERS.map(|scheduler| bench.row(scheduler, &sleeps, 1, 1e3)).join(" | "));
    println!("\nMicroseconds a request, min / median of {ROUNDS} rounds of 200 requests, one after the other.\n");
    println!("| plan | async | pools | sequential |\n|---|---|---|---|");
    let complex_dag = bench.link(&bench.read("plans/complex_dag.plan.json"));
    for (name, plan) in [
        ("complex_dag: 10 nodes, 5 of them for the CPU", complex_dag),
        ("one source, nothing for the CPU", bench.link(&hops(0))),
        ("one source, one hop to the CPU pool", bench.link(&hops(1))),
        ("one source, four hops one after the other", bench.link(&hops(4))),
    ] {
        println!("| {name} | {} |", SCHEDULERS.map(|scheduler| bench.row(scheduler, &plan, 200, 1e6)).join(" | "));
    }
    Bench::settings();
}

/// What the executor may do, by name.
const POLICIES: [(&str, Policy); 4] = [
    (
        "all on the loop",
        Policy { inline: true, chaining: true, inline_threshold_ns: u32::MAX, max_inline_depth: 10_000 },
    ),
    ("as it is set", Policy { inline: true, chaining: true, inline_threshold_ns: 10_000, max_inline_depth: 10_000 }),
    ("inline off", Policy { inline: false, chaining: true, inline_threshold_ns: 10_000, max_inline_depth: 10_000 }),
    (
        "inline and chaining off",
        Policy { inline: false, chaining: false, inline_threshold_ns: 10_000, max_inline_depth: 10_000 },
    ),
];

struct Bench {
    repository: PathBuf,
    registry: Registry,
    data: Arc<Data>,
}

impl Bench {
    /// One and two branches of vm, filter, sort and take, with the executor's settings side by side.
    fn settings() {
        println!(
            "\nMicroseconds a request of `vm → filter → sort → take`, in one branch and in two side by side, min / median. The\n\
             requests come from the loop's own thread, so no thread has to be woken but those of the pool.\n"
        );
        println!("| branches, rows | {} |", POLICIES.map(|(name, _)| name).join(" | "));
        println!("|---|{}", "---|".repeat(POLICIES.len()));
        for branches in [1, 2] {
            for rows in [10, 100, 1_000, 10_000, 100_000] {
                let plan = ranked(branches, rows);
                let requests = if rows > 1_000 { 20 } else { 200 };
                let cell = |(_, policy): (&str, Policy)| {
                    let stage = Stage::new(policy, false);
                    let plan = stage.link_text(&plan);
                    let mut rounds: Vec<Duration> = (0..=ROUNDS)
                        .map(|_| {
                            let start = Instant::now();
                            stage.runs(&plan, requests);
                            start.elapsed() / requests as u32
                        })
                        .skip(1)
                        .collect();
                    min_and_median(&mut rounds, 1e6)
                };
                println!("| {branches}, {rows} | {} |", POLICIES.map(cell).join(" | "));
            }
        }
    }

    fn new() -> Bench {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name: &str| std::fs::read_to_string(repository.join(name)).expect("a file of the repository");
        let [keys, params, endpoints] =
            ["keys", "params", "endpoints.local"].map(|name| read(&format!("registry/{name}.toml")));
        let text = |text| Text { file: "", text };
        let (registry, problems) = Registry::parse(text(&keys), text(&params), text(&endpoints));
        assert!(problems.is_empty(), "the registry is good");
        let data = Arc::new(Data::parse(&read("data/demo.ndjson")).expect("the demo data are good"));
        Bench { repository, registry, data }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.repository.join(name)).expect("a file of the repository")
    }

    fn link(&self, plan: &str) -> Arc<Linked> {
        let checked = check(plan.as_bytes(), &self.registry, tasks().signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
        Arc::new(Linked::link(&plan, &tasks(), &self.registry).expect("a checked plan links"))
    }

    /// Min / median of the rounds, a request, in parts of a second.
    fn row(&self, scheduler: Scheduler, plan: &Arc<Linked>, requests: u32, per_second: f64) -> String {
        self.timed(Settings { scheduler, loops: 1, cpu_threads: 2, ..Settings::default() }, plan, requests, per_second)
    }

    fn timed(&self, settings: Settings, plan: &Arc<Linked>, requests: u32, per_second: f64) -> String {
        let endpoints: Vec<Arc<dyn Open>> =
            vec![Arc::new(MemoryEndpoint::new("redis_default", self.data.clone(), Vec::new()))];
        let engine = Engine::start(settings, endpoints).expect("an engine starts");
        let mut rounds: Vec<Duration> = (0..=ROUNDS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..requests {
                    let request = Request { user_id: 1.into(), ..Request::new(&self.registry) };
                    engine.run(plan, request).result.expect("the plan runs");
                }
                start.elapsed() / requests
            })
            .skip(1)
            .collect();
        min_and_median(&mut rounds, per_second)
    }
}

fn min_and_median(rounds: &mut [Duration], per_second: f64) -> String {
    rounds.sort();
    let shown = |time: Duration| format!("{:.1}", time.as_secs_f64() * per_second);
    format!("{} / {}", shown(rounds[0]), shown(rounds[rounds.len() / 2]))
}

fn sleeps(count: usize) -> String {
    let nodes: String = (0..count)
        .map(|n| format!(r#",{{"node_id":"s{n}","op":"sleep","inputs":["a"],"params":{{"duration_ms":50}}}}"#))
        .collect();
    let outputs: Vec<String> = (0..count).map(|n| format!("\"s{n}\"")).collect();
    plan(&nodes, &outputs.join(","))
}

fn hops(count: usize) -> String {
    let nodes: String = (0..count)
        .map(|n| {
            let input = if n == 0 { "a".to_owned() } else { format!("b{}", n - 1) };
            format!(r#",{{"node_id":"b{n}","op":"take","inputs":["{input}"],"params":{{"count":1}}}}"#)
        })
        .collect();
    let output = if count == 0 { "\"a\"".to_owned() } else { format!("\"b{}\"", count - 1) };
    plan(&nodes, &output)
}

/// Branches over the same rows, each an expression, a filter, a sort and a take.
fn ranked(branches: usize, rows: usize) -> String {
    let node = |id: String, op: &str, input: String, params: &str| {
        format!(r#",{{"node_id":"{id}","op":"{op}","inputs":["{input}"],"params":{{{params}}}}}"#)
    };
    let branch = |n: usize| {
        let id = |letter: &str| format!("{letter}{n}");
        node(id("v"), "vm", "a".into(), r#""out_key":"score","expr":"e""#)
            + &node(id("f"), "filter", id("v"), r#""pred":"p""#)
            + &node(id("s"), "sort", id("f"), r#""key":"score","order":"desc""#)
            + &node(id("t"), "take", id("s"), r#""count":50"#)
    };
    let nodes: String = (0..branches).map(branch).collect();
    let outputs: Vec<String> = (0..branches).map(|n| format!("\"t{n}\"")).collect();
    let expr = r#"{"op":"mul","a":{"op":"key_ref","key":"id"},"b":{"op":"coalesce","a":{"op":"key_ref","key":"score"},"b":{"op":"const_number","value":0.5}}}"#;
    let pred = r#"{"op":"cmp","cmp":">=","a":{"op":"key_ref","key":"score"},"b":{"op":"const_number","value":100}}"#;
    format!(
        r#"{{"schema_version":1,"plan_name":"bench","nodes":[{{"node_id":"a","op":"fixed_source","params":{{"row_count":{rows},"columns":{{"score":{{"hash":{{"seed":1}}}}}}}}}}{nodes}],"outputs":[{}],"expr_table":{{"e":{expr}}},"pred_table":{{"p":{pred}}}}}"#,
        outputs.join(",")
    )
}

fn plan(nodes: &str, outputs: &str) -> String {
    format!(
        r#"{{"schema_version":1,"plan_name":"bench","nodes":[{{"node_id":"a","op":"fixed_source"}}{nodes}],"outputs":[{outputs}]}}"#
    )
}
