//! Captures and replays: whether captured answers come out again, with every scheduler and with less of the processor, and what capturing costs a server.
//!
//! `target/release/rankd` must be built; `wrk` is needed for the cost. Arguments: how many requests to capture (100,000 without; with fewer, the cost is
//! measured in one round, which says only that it works), and which parts to run, of `again` and `cost`; all without any.

use rankd_bench::http::load::{CONNECTIONS, Rounds, Users, race};
use rankd_bench::http::server::{Server, repository};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const REQUESTS: usize = 100_000;
const CLIENTS: usize = 8;
const ROUNDS: usize = 7;
const PLANS: [&str; 4] = ["complex_dag", "for_you", "complex_dag", "mixed_pipeline"];
/// The users of the demo data, and some that it does not have.
const USERS: usize = 110;
/// What the C library may use of the processor: all of it, or no fused multiply-add and narrower vectors.
const PROCESSORS: [(&str, &str); 2] = [("all of it", ""), ("without FMA", "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4")];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count = words.iter().find_map(|word| word.parse().ok()).unwrap_or(REQUESTS);
    let parts: Vec<&str> = words.iter().map(String::as_str).filter(|word| word.parse::<usize>().is_err()).collect();
    let is_wanted = |name: &str| parts.is_empty() || parts.contains(&name);
    if is_wanted("again") {
        again(count);
    }
    if is_wanted("cost") {
        cost(if count < REQUESTS { 1 } else { ROUNDS });
    }
}

/// A folder for this run, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("rankd-bench-replay-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Captures requests and replays them.
fn again(count: usize) {
    let captures = Folder::new("captures");
    let flags = ["--loops", "1", "--watch-ms", "0", "--capture", captures.text(), "--capture_keep_mb", "1000000"];
    let mut server = Server::rankd(&repository().join("plans"), &flags);
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| ask(&server.address, count, &next, &failed));
        }
    });
    server.signal("-TERM");
    let until = Instant::now() + Duration::from_secs(60);
    while server.ended().is_none() {
        assert!(Instant::now() < until, "it ends");
        std::thread::sleep(Duration::from_millis(10));
    }
    let bytes = bytes_of(&captures.0) as f64;
    println!(
        "{count} requests for three plans from the embedded store, {} of which failed, by {CLIENTS} clients; {:.0} MB of captures, {:.1} KB a request.\n",
        failed.into_inner(),
        bytes / 1e6,
        bytes / 1e3 / count as f64
    );
    println!("| scheduler | processor | requests | same | different | missing | not comparable | replayed a second |");
    println!("|---|---|---|---|---|---|---|---|");
    for scheduler in ["async", "pools", "sequential"] {
        for (processor, tunables) in PROCESSORS {
            let began = Instant::now();
            let output = Command::new(repository().join("target/release/rankd"))
                .current_dir(repository())
                .args(["replay", captures.text(), "--json", "--scheduler", scheduler])
                .env("GLIBC_TUNABLES", tunables)
                .output()
                .expect("target/release/rankd is built: cargo build --release -p rankd");
            let took = began.elapsed().as_secs_f64();
            let told = String::from_utf8_lossy(&output.stdout);
            let number = |name: &str| {
                let rest = told.split_once(&format!("\"{name}\":")).map(|(_, rest)| rest);
                let digits = rest.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
                digits.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or_else(|| panic!("{told}"))
            };
            let [requests, same, different, missing] = ["requests", "same", "different", "missing"].map(number);
            let rest = requests - same - different - missing;
            let a_second = requests as f64 / took;
            println!(
                "| {scheduler} | {processor} | {requests} | {same} | {different} | {missing} | {rest} | {a_second:.0} |"
            );
        }
    }
    println!();
}

/// Asks, one request after the other, until so many were sent.
fn ask(address: &str, count: usize, next: &AtomicUsize, failed: &AtomicUsize) {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a socket has options");
    let mut stream = BufReader::new(stream);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        let plan = PLANS[number % PLANS.len()];
        let body = format!(
            r#"{{"user_id":{},"request_id":"r{number}","params":{{"weight":{}.{}}}}}"#,
            1 + number % USERS,
            number % 7,
            number % 1000
        );
        let accept = if number.is_multiple_of(5) { "application/vnd.apache.arrow.stream" } else { "*/*" };
        let length = body.len();
        let request = format!(
            "POST /rank/{plan} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: {accept}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes()).expect("it takes requests");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).expect("it answers") > 0, "it closed the connection: {head}");
        }
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.expect("an answer has a length")];
        stream.read_exact(&mut body).expect("an answer is whole");
        if head.split(' ').nth(1) != Some("200") {
            failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The bytes of the files in a folder, without those of its folders.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("it can be listed").filter_map(Result::ok);
    entries.filter_map(|entry| entry.metadata().ok()).filter(|meta| meta.is_file()).map(|meta| meta.len()).sum()
}

/// What capturing costs: the same load on servers that capture none, one in a hundred, and all.
fn cost(count: usize) {
    println!(
        "wrk, one thread, {CONNECTIONS} connections, {count} alternating rounds of 2 s, one loop, embedded store; CPU is the server's, the thread that writes included.\n"
    );
    println!(
        "| plan | captured | requests/s, best | median | CPU µs a request, best | median | ÷ none, best | median |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let [one, all] = ["one", "all"].map(Folder::new);
    let flags = ["--loops", "1", "--watch-ms", "0"];
    let start = |more: &[&str]| Server::rankd(&repository().join("plans"), &[&flags[..], more].concat());
    let none = start(&[]);
    let one_in_a_hundred = start(&["--capture", one.text(), "--capture_share", "0.01"]);
    let every = start(&["--capture", all.text()]);
    for plan in ["simple_viewer", "complex_dag"] {
        let contenders = [(&none, plan), (&one_in_a_hundred, plan), (&every, plan)];
        let rounds = race(&contenders, Users::Many(USERS as i64), count);
        for (share, Rounds { best, median }) in ["none", "1 %", "all"].iter().zip(&rounds) {
            let ratio = |of: fn(&Rounds) -> f64, own: f64| own / of(&rounds[0]);
            println!(
                "| {plan} | {share} | {:.0} | {:.0} | {:.1} | {:.1} | {:.3} | {:.3} |",
                best.a_second,
                median.a_second,
                best.cpu,
                median.cpu,
                ratio(|rounds| rounds.best.cpu, best.cpu),
                ratio(|rounds| rounds.median.cpu, median.cpu)
            );
        }
    }
    println!();
}
