//! Services on event loops: each runs where it was put, and a stop gives it the drain time and no more.

use rankd_engine::{Engine, Scheduler, Settings};
use std::sync::mpsc::channel;
use std::time::Duration;

fn engine(scheduler: Scheduler, loops: usize) -> Engine {
    let settings = Settings { scheduler, loops, cpu_threads: 1, ..Settings::default() };
    Engine::start(settings, Vec::new()).expect("threads can be started")
}

#[test]
fn every_loop_has_its_service() {
    let engine = engine(Scheduler::Async, 3);
    let (seen, services) = channel();
    assert!(engine.on_every_loop(move |loop_handle| {
        let seen = seen.clone();
        Box::pin(async move {
            let name = std::thread::current().name().map(str::to_owned);
            let _ = seen.send((loop_handle.number(), name));
        })
    }));
    engine.stop(Duration::from_secs(5));
    let mut all: Vec<_> = services.iter().collect();
    all.sort();
    let expected: Vec<_> = (0..3).map(|number| (number, Some(format!("rankd-loop-{number}")))).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_service_that_does_not_end_is_dropped_after_the_drain_time() {
    let engine = engine(Scheduler::Async, 1);
    let (seen, ends) = channel::<()>();
    engine.on_every_loop(move |_| {
        let seen = seen.clone();
        Box::pin(async move {
            std::future::pending::<()>().await;
            let _ = seen.send(());
        })
    });
    engine.stop(Duration::from_millis(10));
    assert!(ends.recv().is_err(), "its sender went with it, unused");
}

#[test]
fn a_poll_that_holds_the_loop_is_seen() {
    let engine = engine(Scheduler::Async, 1);
    let (seen, done) = channel();
    engine.on_every_loop(move |loop_handle| {
        let seen = seen.clone();
        Box::pin(async move {
            loop_handle.spawn(async move {
                let until = rankd_engine::clock::now() + Duration::from_millis(20);
                while rankd_engine::clock::now() < until {}
                let _ = seen.send(());
            });
        })
    });
    assert!(done.recv().is_ok());
    let turns = loop {
        // The turn is counted right after its task has said that it is done.
        let longest = engine.gauges().longest_polls.iter().map(|longest| longest.take_ns()).max().unwrap_or(0);
        if longest > 0 {
            break longest;
        }
        std::thread::yield_now();
    };
    assert!(turns >= 20_000_000, "{turns}");
    engine.stop(Duration::from_secs(5));
}

#[test]
fn a_scheduler_without_loops_takes_no_services() {
    assert!(!engine(Scheduler::Sequential, 1).on_every_loop(|_| Box::pin(async {})));
}
