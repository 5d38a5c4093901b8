//! The plan's reads on a real Redis: requests a second, CPU time of both sides, and what waiting for many reads at once is worth.
//!
//! Starts a redis-server of its own. `--features redis-rs` adds the library client. Arguments: which parts to run, of `rates`,
//! `latency`, `sharing` and `schedulers`; or `profile`.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use rankd_bench::redis::delay::far_away;
use rankd_bench::redis::engine::{Rankd, Shape};
use rankd_bench::redis::floor::Floor;
use rankd_bench::redis::measure::{Figures, race};
use rankd_bench::redis::server::Server;
use rankd_bench::redis::{Reader, users};
use rankd_engine::Scheduler;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const REQUESTS: usize = 3_000;

fn main() {
    let server = Server::start();
    same_rows(&server);
    let parts: [(&str, fn(&Server)); 4] =
        [("rates", rates), ("latency", latency), ("sharing", sharing), ("schedulers", schedulers)];
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.iter().any(|word| word == "profile") {
        return profile(&server);
    }
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(&server);
        }
    }
}

/// Nothing but the five reads, 16 at a time: for a profiler.
fn profile(server: &Server) {
    let mut reads = Rankd::new(&server.url(), Shape::Reads, Scheduler::Async);
    reads.read(&users(30_000, None), 16);
}

/// Before anything is timed, all must give the same rows.
fn same_rows(server: &Server) {
    let (mut floor, rankd) =
        (Floor::connect(server.port, false), Rankd::new(&server.url(), Shape::Reads, Scheduler::Async));
    for user in users(50, None) {
        assert_eq!(floor.read(&[user], 1), 200);
        assert_eq!(rankd.ids(user), floor.last, "user {user}");
    }
}

fn rates(server: &Server) {
    let mut floor = Floor::connect(server.port, false);
    let mut hydrated = Floor::connect(server.port, true);
    let [mut reads, mut whole, mut both] =
        [Shape::Reads, Shape::Whole, Shape::Hydrated].map(|shape| Rankd::new(&server.url(), shape, Scheduler::Async));
    #[cfg(feature = "redis-rs")]
    let mut library = rankd_bench::redis::library::Library::connect(&server.url());
    println!("Requests a second, and microseconds of CPU a request, best / median of {ROUNDS} rounds of {REQUESTS}.\n");
    println!("| in flight | reader | requests/s | client µs | Redis µs |\n|---|---|---|---|---|");
    for in_flight in [1, 16, 64] {
        let mut readers: Vec<(&str, &mut dyn Reader)> = vec![("floor: raw pipelined client, 23 commands", &mut floor)];
        #[cfg(feature = "redis-rs")]
        readers.push(("redis-rs, multiplexed", &mut library));
        readers.push(("rankd, the five reads", &mut reads));
        readers.push(("rankd, the whole plan of ten nodes", &mut whole));
        readers.push(("floor, hydrated, 43 commands", &mut hydrated));
        readers.push(("rankd, hydrated", &mut both));
        let requests = if in_flight == 1 { REQUESTS / 3 } else { REQUESTS };
        let figures = race(server, &mut readers, &users(requests, None), in_flight, ROUNDS);
        for ((name, _), Figures { best, median }) in readers.iter().zip(&figures) {
            let (rate, client, redis) = (best.requests_per_second, best.client_us, best.server_us);
            println!(
                "| {in_flight} | {name} | {rate:.0} / {:.0} | {client:.1} / {:.1} | {redis:.1} / {:.1} |",
                median.requests_per_second, median.client_us, median.server_us
            );
        }
    }
}

/// One request at a time.
fn latency(server: &Server) {
    println!("\nMicroseconds from asking to the answer, one request at a time, of {REQUESTS}: p50 / p99.\n");
    println!("| floor | rankd, the five reads | rankd, the whole plan |\n|---|---|---|");
    let mut floor = Floor::connect(server.port, false);
    let mut took: Vec<Duration> = Vec::new();
    for user in users(REQUESTS, None) {
        let began = Instant::now();
        floor.read(&[user], 1);
        took.push(began.elapsed());
    }
    let mut cells = vec![percentiles(took)];
    for shape in [Shape::Reads, Shape::Whole] {
        let mut rankd = Rankd::new(&server.url(), shape, Scheduler::Async);
        rankd.read(&users(REQUESTS / 3, None), 1);
        rankd.latencies = Some(Vec::new());
        rankd.read(&users(REQUESTS, None), 1);
        cells.push(percentiles(rankd.latencies.take().unwrap_or_default()));
    }
    println!("| {} |", cells.join(" | "));
}

fn percentiles(mut took: Vec<Duration>) -> String {
    took.sort();
    let at = |share: usize| took[took.len() * share / 100].as_secs_f64() * 1e6;
    format!("{:.0} / {:.0}", at(50), at(99))
}

/// How many commands a request takes where users repeat.
fn sharing(server: &Server) {
    println!("\nCommands a request, where requests are of eight users only, by requests in flight.\n");
    println!("| 1 | 4 | 16 | 64 |\n|---|---|---|---|");
    let mut rankd = Rankd::new(&server.url(), Shape::Reads, Scheduler::Async);
    let cells = [1, 4, 16, 64].map(|in_flight| {
        let before = rankd.health().commands;
        rankd.read(&users(REQUESTS, Some(8)), in_flight);
        format!("{:.1}", (rankd.health().commands - before) as f64 / REQUESTS as f64)
    });
    println!("| {} |", cells.join(" | "));
}

/// The same requests on a server that is 10 ms away, 64 at a time. Reads in flight are what Little's law says: steps a second
/// times how long each takes.
fn schedulers(server: &Server) {
    const DELAY: Duration = Duration::from_millis(10);
    let url = format!("redis://127.0.0.1:{}", far_away(server.port, DELAY));
    println!("\nThe five reads from a server 10 ms away, 64 requests at a time.\n");
    println!("| scheduler | threads that wait | requests/s | reads in flight | a thread |\n|---|---|---|---|---|");
    for (scheduler, threads, requests) in
        [(Scheduler::Async, 1, 4_000), (Scheduler::Pools, 4, 300), (Scheduler::Sequential, 64, 1_000)]
    {
        let mut rankd = Rankd::new(&url, Shape::Reads, scheduler);
        let mut read = |users: &[i64]| match scheduler {
            Scheduler::Async => drop(rankd.read(users, 64)),
            _ => rankd.read_from_threads(users, 64),
        };
        read(&users(64, None));
        let began = Instant::now();
        read(&users(requests, None));
        let rate = requests as f64 / began.elapsed().as_secs_f64();
        let in_flight = rate * 5.0 * DELAY.as_secs_f64();
        let name = scheduler.name();
        println!("| {name} | {threads} | {rate:.0} | {in_flight:.1} | {:.1} |", in_flight / f64::from(threads));
    }
}
