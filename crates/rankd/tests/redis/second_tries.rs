//! What is asked again and what is not, and when a server that keeps refusing is left alone.

use crate::asker::{Asker, FOLLOWED, load_users};
use crate::fake::{Fake, Then};
use crate::server::Server;
use rankd_engine::Scheduler;
use rankd_engine::store::health::BreakerState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const GOOD: &[u8] = b"*1\r\n$4\r\n1001\r\n";
const PATIENCE: Duration = Duration::from_secs(10);

/// Closes its first connection in the middle of the first reply that is asked for after so long.
fn closing_once(after: Duration) -> Fake {
    let started = Instant::now();
    Fake::start(move |command, number| match (command, number) {
        ("PING", _) => (b"+PONG\r\n".to_vec(), Then::Listen),
        (_, 0) if started.elapsed() > after => (GOOD[..5].to_vec(), Then::Close),
        _ => (GOOD.to_vec(), Then::Listen),
    })
}

#[test]
fn a_read_whose_connection_was_closed_is_asked_again_within_the_budget() {
    for (policy, failures) in [("", 0), ("retry_percent = 0", 1)] {
        let fake = closing_once(Duration::from_millis(1500));
        let asker = Asker::patient(Scheduler::Async, &fake.url(), policy);
        let (began, mut failed) = (Instant::now(), 0);
        while fake.seen().len() < 2 || asker.ask(&[1]).result.is_err() {
            assert!(began.elapsed() < PATIENCE, "{policy}: the connection was never closed");
            failed += u32::from(asker.ask(&[1]).result.is_err());
        }
        assert_eq!(failed, failures, "{policy}");
        let health = asker.health();
        // On a crowded machine an answer may be overdue, which is another reason for a second try and a second connection.
        assert_eq!(health.errors, u64::from(failures), "{policy}");
        assert!(health.connects >= 2 && (health.retries > 0) == (failures == 0), "{policy}: {health:?}");
    }
}

#[test]
fn connections_that_a_real_server_closes_cost_nothing() {
    let server = Server::start(&[]);
    load_users(&server);
    let asker = Asker::patient(Scheduler::Async, &server.url(), "");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let answer = asker.ask(&[7]);
                assert_eq!(answer.result, Ok(FOLLOWED as usize), "{}", answer.message);
            }
        });
        for _ in 0..3 {
            // As long as a connection must have been up to be thought sound.
            thread::sleep(Duration::from_millis(1200));
            server.must(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        }
        thread::sleep(Duration::from_millis(100));
        over.store(true, Ordering::Relaxed);
        asking.join().expect("it did not panic");
    });
    let health = asker.health();
    println!("{} commands, {} retries, {} connects", health.commands, health.retries, health.connects);
    assert!(health.errors == 0 && health.connects >= 4, "{health:?}");
}

#[test]
fn a_server_that_keeps_refusing_is_left_alone_until_it_is_well() {
    let (sick, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let fake = Fake::start({
        let (sick, asked) = (sick.clone(), asked.clone());
        move |command, _| {
            if command == "PING" {
                return (b"+PONG\r\n".to_vec(), Then::Listen);
            }
            asked.fetch_add(1, Ordering::SeqCst);
            let reply =
                if sick.load(Ordering::SeqCst) { &b"-MASTERDOWN Link with MASTER is down\r\n"[..] } else { GOOD };
            (reply.to_vec(), Then::Listen)
        }
    });
    let asker = Asker::patient(Scheduler::Async, &fake.url(), "retry_percent = 0");
    for number in 0..500 {
        let answer = asker.ask(&[1]);
        assert_eq!(answer.result, Err(("upstream", "E414")), "request {number}: {}", answer.message);
    }
    let (seen, health) = (asked.load(Ordering::SeqCst), asker.health());
    println!("500 requests, {seen} of them reached the server");
    assert!(seen < 250, "{seen} of 500 reached a server that refuses");
    assert_ne!(health.breaker(), BreakerState::Closed);
    assert_eq!((health.opened, health.errors, fake.seen().len()), (1, 500, 1));
    sick.store(false, Ordering::SeqCst);
    let began = Instant::now();
    while asker.ask(&[1]).result != Ok(1) {
        assert!(began.elapsed() < PATIENCE, "it is well and still left alone");
    }
    println!("back {:?} after it was well", began.elapsed());
    assert_eq!(asker.health().breaker(), BreakerState::Closed);
}
