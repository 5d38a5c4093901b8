//! `rankd serve` beside the floor, and what it costs to start, to be idle, to have many clients and to read from stores.
//!
//! `target/release/rankd` must be built and `wrk` installed. What both are asked and answer is in `http::shape`; before
//! anything is timed, their answers must be the same but for the request's id. Arguments: which parts to run, of `floor`, `nodes`,
//! `shapes` and `rest`; all without any.

use rankd_bench::http::alone;
use rankd_bench::http::load::{CONNECTIONS, Rounds, Users, race, round};
use rankd_bench::http::server::{FLOOR_ITSELF, Server, repository};
use rankd_bench::http::shape::{FIFTY, SMALL, TEN_OPERATORS, TINY, rows, write_plans, write_shapes};
use rankd_bench::redis::floor::Floor;
use rankd_bench::redis::{self, Reader, measure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROUNDS: usize = 5;
const ONE_LOOP: [&str; 4] = ["--loops", "1", "--watch-ms", "0"];
const TWO_LOOPS: [&str; 4] = ["--loops", "2", "--watch-ms", "0"];
const IDLE_CLIENTS: usize = 10_000;
/// Of the raw client, in a round.
const RAW_REQUESTS: usize = 6_000;
/// As the published figures have it.
const IN_FLIGHT: usize = 16;

fn main() {
    if std::env::args().nth(1).as_deref() == Some(FLOOR_ITSELF) {
        rankd_bench::http::floor::serve().expect("the floor serves");
        return;
    }
    let folder = Folder::new();
    write_plans(&folder.0);
    println!(
        "wrk, one thread, {CONNECTIONS} connections, {ROUNDS} alternating rounds of 2 s; CPU is the server's; the load shares the machine's cores.\n"
    );
    let parts: [(&str, fn(&Path)); 4] =
        [("floor", against_the_floor), ("nodes", ten_nodes), ("shapes", shapes), ("rest", at_rest)];
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(&folder.0);
        }
    }
}

/// A folder for this run, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("rankd-bench-http-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn against_the_floor(plans: &Path) {
    let (floor, rankd, two) = (Server::floor(), Server::rankd(plans, &ONE_LOOP), Server::rankd(plans, &TWO_LOOPS));
    for plan in [FIFTY, TINY] {
        let body = |server: &Server| {
            let answer = server.ask(plan).expect("it answers");
            answer.split_once("\"plan\":").expect("rows").1.to_owned()
        };
        assert_eq!(body(&floor), body(&rankd), "the answers are the same");
    }
    println!("| | plan | requests/s, best | median | CPU µs a request, best | median | p99 ms, median |");
    println!("|---|---|---|---|---|---|---|");
    for (plan, name) in [(TINY, "tiny"), (FIFTY, "50 candidates")] {
        let all = race(&[(&floor, plan), (&rankd, plan), (&two, plan)], Users::One, ROUNDS);
        for (who, rounds) in ["floor", "rankd, one loop", "rankd, two loops"].iter().zip(&all) {
            row(&format!("{who} | {name}"), rounds);
        }
        let [floor, one, two] = all.as_slice() else { unreachable!("three contenders") };
        ratio(&format!("rankd, one loop ÷ floor | {name}"), one, floor);
        let alone = alone::micros(&rows(plan).plan(plan), ROUNDS);
        let [best, median] =
            [(one.best, floor.best), (one.median, floor.median)].map(|(one, floor)| (one.cpu - alone) / floor.cpu);
        println!("| the same without the plan's own {alone:.1} µs | {name} | | | {best:.2} | {median:.2} | |");
        ratio(&format!("two loops ÷ one loop | {name}"), two, one);
    }
    println!();
}

fn row(name: &str, Rounds { best, median }: &Rounds) {
    let rates = format!("{:.0} | {:.0}", best.a_second, median.a_second);
    println!("| {name} | {rates} | {:.1} | {:.1} | {:.2} |", best.cpu, median.cpu, median.p99);
}

fn ratio(name: &str, over: &Rounds, under: &Rounds) {
    let rates = format!(
        "{:.2} | {:.2}",
        over.best.a_second / under.best.a_second,
        over.median.a_second / under.median.a_second
    );
    let cpu = format!("{:.2} | {:.2}", over.best.cpu / under.best.cpu, over.median.cpu / under.median.cpu);
    println!("| {name} | {rates} | {cpu} | |");
}

/// The plan of ten nodes, five of which read, from the embedded store and from a redis-server of the bench's own.
fn ten_nodes(folder: &Path) {
    let plans = folder.join("ten");
    std::fs::create_dir_all(&plans).expect("a folder can be made");
    let plan = "complex_dag.plan.json";
    std::fs::copy(repository().join("plans").join(plan), plans.join(plan)).expect("the plan is there");
    let store = redis::server::Server::start();
    let registry = folder.join("registry");
    std::fs::create_dir_all(&registry).expect("a folder can be made");
    for file in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(file), registry.join(file)).expect("the registry is there");
    }
    let local = std::fs::read_to_string(repository().join("registry/endpoints.local.toml")).expect("it is there");
    let own = local.replace("memory:data/demo.ndjson", &store.url());
    std::fs::write(registry.join("endpoints.bench.toml"), own).expect("a registry can be written");
    let registry = registry.to_str().expect("a path in UTF-8");
    let embedded = Server::rankd(&plans, &ONE_LOOP);
    let redis = Server::rankd(&plans, &[&ONE_LOOP[..], &["--registry", registry, "--env", "bench"]].concat());
    for server in [&embedded, &redis] {
        let answer = server.ask("complex_dag").expect("it answers");
        assert_eq!(answer.matches("{\"id\":").count(), 50, "fifty rows: {answer}");
    }
    let mut raw = Floor::connect(store.port, false);
    let mut raw: [(&str, &mut dyn Reader); 1] = [("raw", &mut raw)];
    let raw = measure::race(&store, &mut raw, &redis::users(RAW_REQUESTS, None), CONNECTIONS, ROUNDS)[0];
    println!(
        "Ten nodes, five of which read, from redis-server each time for another user; and a raw client that only reads the same.\n"
    );
    println!("| one loop, from | requests/s, best | median | CPU µs a request, best | median | p99 ms, median |");
    println!("|---|---|---|---|---|---|");
    // The embedded store knows few users.
    let embedded = race(&[(&embedded, "complex_dag")], Users::One, ROUNDS);
    let redis = race(&[(&redis, "complex_dag")], Users::Many(redis::USERS), ROUNDS);
    row("the embedded store, one user", &embedded[0]);
    row("redis-server", &redis[0]);
    let (best, median) = (raw.best.requests_per_second, raw.median.requests_per_second);
    println!(
        "| redis-server, raw client, {CONNECTIONS} in flight | {best:.0} | {median:.0} | {:.1} | {:.1} | |",
        raw.best.client_us, raw.median.client_us
    );
    println!(
        "| redis-server ÷ raw client | {:.2} | {:.2} | | | |\n",
        redis[0].best.a_second / best,
        redis[0].median.a_second / median
    );
}

/// Plans of the shapes that others have published figures for, on all cores.
fn shapes(folder: &Path) {
    let plans = folder.join("shapes");
    std::fs::create_dir_all(&plans).expect("a folder can be made");
    write_shapes(&plans);
    let server = Server::rankd(&plans, &TWO_LOOPS);
    println!("Static rows, {IN_FLIGHT} connections, two loops; rows in and out.\n");
    println!("| plan | requests/s, best | median | CPU µs a request, best | median | p99 ms, median |");
    println!("|---|---|---|---|---|---|");
    for (plan, name) in [(SMALL, "100 rows, 4 operators, 20 out"), (TEN_OPERATORS, "1,000 rows, 9 operators, 500 out")]
    {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| round(&server, plan, Users::One, IN_FLIGHT)).collect();
        row(name, &Rounds::of(&rounds));
    }
    println!();
}

/// Starting, and what an idle server takes.
fn at_rest(plans: &Path) {
    let mut starts: Vec<f64> = (0..ROUNDS).map(|_| start_to_answer(plans)).collect();
    starts.sort_unstable_by(f64::total_cmp);
    println!("| at rest, two plans, one loop | |\n|---|---|");
    println!("| start to first answer, ms, best | {:.1} |", starts[0]);
    println!("| start to first answer, ms, median | {:.1} |", starts[ROUNDS / 2]);
    let flags = [&ONE_LOOP[..], &["--idle-ms", "600000"]].concat();
    let limit = descriptors();
    let server = Server::rankd(plans, &flags);
    let _ = server.ask(FIFTY).expect("it answers");
    println!("| idle, MiB resident | {:.1} |", server.resident());
    let count = IDLE_CLIENTS.min(limit.saturating_sub(100) as usize);
    let idle: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(&server.address).expect("room")).collect();
    // Answered on a connection made last, so all before it are accepted.
    let _ = server.ask(FIFTY).expect("it answers");
    println!("| with {} idle connections, MiB resident | {:.1} |", idle.len(), server.resident());
}

fn start_to_answer(plans: &Path) -> f64 {
    let began = Instant::now();
    let server = Server::rankd(plans, &ONE_LOOP);
    let answer = server.ask(FIFTY).expect("it answers");
    let took = began.elapsed();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    took.as_secs_f64() * 1e3
}

/// How many descriptors we may have: as many as the system lets us.
fn descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(_) => current.unwrap_or(u64::MAX),
    }
}
