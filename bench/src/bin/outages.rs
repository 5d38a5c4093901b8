//! A Redis that is killed, frozen and loading under an open-loop load at half of what the plan can do: is any answer late, is
//! any missing, how soon is service back, how often is it tried to connect?
//!
//! Capacity is measured first, in short steps: the highest rate at which 99 of 100 answers come within the deadline. Each fault
//! lasts three seconds. A request counts from when it was due.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use rankd_bench::redis::engine::{Rankd, Shape};
use rankd_bench::redis::server::Server;
use rankd_bench::redis::users;
use rankd_engine::Scheduler;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_millis(100);
const FAULT: Duration = Duration::from_secs(3);

/// One request: when it was due, when it was answered, and whether with all rows.
struct Answer {
    due: Instant,
    at: Instant,
    whole: bool,
}

fn main() {
    let mut server = Server::start();
    let rankd = Rankd::with_deadline(&server.url(), Shape::Reads, Scheduler::Async, Some(DEADLINE));
    let capacity = capacity(&rankd);
    let rate = capacity / 2;
    println!("Capacity {capacity} requests/s; load {rate}/s; deadline {} ms; a fault of 3 s.\n", DEADLINE.as_millis());
    println!(
        "| fault | requests | unanswered | failed | slowest ms | later than 120 ms | whole again after ms | connects a second of the fault |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for fault in ["killed", "frozen", "loading"] {
        let connects = rankd.health().connects;
        let mut back = None;
        let answers = load(&rankd, rate, Duration::from_secs(10), || {
            thread::sleep(Duration::from_secs(3));
            match fault {
                "frozen" => {
                    signal(&server, "-STOP");
                    thread::sleep(FAULT);
                    signal(&server, "-CONT");
                }
                _ => {
                    if fault == "loading" {
                        let saved = server.command(&["SAVE"]);
                        assert_eq!(saved.expect("it answers").trim_end(), "+OK");
                    }
                    let _ = server.child.kill().and_then(|()| server.child.wait());
                    if fault == "killed" {
                        thread::sleep(FAULT);
                    }
                    server.start_again(fault == "loading");
                }
            }
            while !server.answers() {
                thread::sleep(Duration::from_millis(1));
            }
            // What was killed without having been saved has come back empty.
            if fault == "killed" {
                server.fill();
            }
            back = Some(Instant::now());
        });
        let back = back.expect("the fault is over");
        let slowest = answers.iter().map(|answer| answer.at - answer.due).max().unwrap_or_default();
        let late =
            answers.iter().filter(|answer| answer.at - answer.due > DEADLINE + Duration::from_millis(20)).count();
        let failed = answers.iter().filter(|answer| !answer.whole).count();
        let whole =
            answers.iter().filter(|answer| answer.whole && answer.at > back).map(|answer| answer.at - back).min();
        let due = rate as usize * 10;
        println!(
            "| {fault} | {due} | {} | {failed} | {:.1} | {late} | {:.0} | {:.1} |",
            due - answers.len(),
            slowest.as_secs_f64() * 1e3,
            whole.map_or(f64::NAN, |whole| whole.as_secs_f64() * 1e3),
            (rankd.health().connects - connects) as f64 / FAULT.as_secs_f64()
        );
    }
}

fn signal(server: &Server, signal: &str) {
    let sent = Command::new("kill").args([signal, &server.child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
}

/// Doubles the rate, then goes back in between.
fn capacity(rankd: &Rankd) -> u64 {
    let good = |rate: u64| {
        let answers = load(rankd, rate, Duration::from_millis(700), || {});
        let on_time = answers.iter().filter(|answer| answer.whole && answer.at - answer.due <= DEADLINE).count();
        on_time * 100 >= answers.len() * 99
    };
    good(500);
    let (mut low, mut high) = (500, 1_000);
    while high < 100_000 && good(high) {
        (low, high) = (high, high * 2);
    }
    for _ in 0..3 {
        let middle = (low + high) / 2;
        if good(middle) { low = middle } else { high = middle }
    }
    low
}

/// Starts so many requests a second for a while, whatever becomes of them, while `during` happens.
fn load(rankd: &Rankd, rate: u64, time: Duration, during: impl FnOnce() + Send) -> Vec<Answer> {
    let count = (rate as f64 * time.as_secs_f64()) as u64;
    let (sender, answers) = channel();
    thread::scope(|scope| {
        scope.spawn(during);
        let began = Instant::now();
        for (number, user) in users(count as usize, None).into_iter().enumerate() {
            let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let sender = sender.clone();
            rankd.start(user, move |rows| {
                // Every row shows whose it is: a medium's id is its owner's times a thousand and a bit.
                let _ = sender.send(Answer { due, at: Instant::now(), whole: rows == Some(200) });
            });
        }
    });
    drop(sender);
    answers.iter().collect()
}
