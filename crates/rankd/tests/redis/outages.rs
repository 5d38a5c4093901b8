//! A server that dies, freezes and comes back under a stream of requests: each is answered in time, with the right error or
//! the right rows, and service is back soon after the server is.

use crate::asker::{Answer, Asker, DEADLINE, FOLLOWED, USERS, load_users};
use crate::proxy::Proxy;
use crate::server::Server;
use rankd_engine::Scheduler;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The promise is 20 ms. A crowded machine wakes threads late, so the test allows more and prints what it saw.
const LATE: Duration = Duration::from_millis(150);
/// The promise is 500 ms.
const BACK: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);
const WORKERS: usize = 8;

/// Requests that keep coming while something happens.
struct Stream<'a> {
    asker: &'a Asker,
    over: AtomicBool,
    next: AtomicI64,
    answers: Mutex<Vec<Answer>>,
}

impl Stream<'_> {
    fn work(&self) {
        while !self.over.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(3, Ordering::Relaxed) % (USERS - 3) + 1;
            let answer = self.asker.ask(&[first, first + 1, first + 2]);
            self.answers.lock().expect("no worker panicked").push(answer);
            // A rate, not a wait: a failure takes no time and would be repeated without end.
            thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits for the first request, asked after a moment, whose answer is as wanted; says how long after the moment it came.
    fn first(&self, since: Instant, wanted: impl Fn(&Answer) -> bool) -> Duration {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let answers = self.answers.lock().expect("no worker panicked");
            if let Some(found) = answers.iter().find(|answer| answer.asked >= since && wanted(answer)) {
                return found.asked + found.took - since;
            }
            drop(answers);
            thread::sleep(Duration::from_millis(2));
        }
        panic!("no such answer in {PATIENCE:?}");
    }

    /// Waits for so many answers more: whole, but for a few that a crowded machine keeps waiting.
    fn mostly_whole(&self, count: usize) {
        let before = self.answers.lock().expect("no worker panicked").len();
        let began = Instant::now();
        // Those that are under way may have been asked before.
        let from = before + WORKERS;
        while self.answers.lock().expect("no worker panicked").len() < from + count {
            assert!(began.elapsed() < PATIENCE, "fewer than {count} answers in {PATIENCE:?}");
            thread::sleep(Duration::from_millis(2));
        }
        let answers = self.answers.lock().expect("no worker panicked");
        let failed: Vec<&Answer> = answers[from..].iter().filter(|answer| !is_whole(answer)).collect();
        let told = failed.first().map(|answer| &answer.message);
        assert!(failed.len() <= count / 20, "service was back, but {} failed, the first: {told:?}", failed.len());
    }
}

fn is_whole(answer: &Answer) -> bool {
    answer.result == Ok(3 * FOLLOWED as usize)
}

/// Keeps asking while `during` happens, and holds every answer to the promises.
fn under_load(asker: &Asker, during: impl FnOnce(&Stream<'_>)) -> Vec<Answer> {
    let stream = Stream { asker, over: AtomicBool::new(false), next: AtomicI64::new(0), answers: Mutex::default() };
    /// Ends the workers, also when `during` panics.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        let _over = Over(&stream.over);
        for _ in 0..WORKERS {
            scope.spawn(|| stream.work());
        }
        during(&stream);
    });
    let answers = stream.answers.into_inner().expect("no worker panicked");
    for answer in &answers {
        let good = match answer.result {
            Ok(_) => is_whole(answer),
            Err((kind, _)) => kind == "upstream" || kind == "timeout",
        };
        assert!(good, "{:?}: {}", answer.result, answer.message);
    }
    let worst = answers.iter().map(|answer| answer.took).max().unwrap_or_default();
    let failed = answers.iter().filter(|answer| answer.result.is_err()).count();
    println!("{} requests, {failed} failed; the slowest took {worst:?} of {DEADLINE:?}", answers.len());
    assert!(worst < DEADLINE + LATE, "an answer came after {worst:?}");
    answers
}

#[test]
fn a_server_that_is_killed_and_comes_back_costs_no_late_answer() {
    let mut server = Server::start(&[]);
    load_users(&server);
    server.must(&["SAVE"]);
    let proxy = Proxy::to(server.port);
    let asker = Asker::new(Scheduler::Async, &proxy.url(), "");
    let answers = under_load(&asker, |stream| {
        stream.first(Instant::now(), is_whole);
        let killed = Instant::now();
        server.kill();
        stream.first(killed, |answer| answer.result == Err(("upstream", "E401")));
        // As long as the outage is meant to be.
        thread::sleep(Duration::from_secs(1));
        // Five milliseconds a key: it says LOADING for a second.
        server.start_again(&["--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"]);
        let started = Instant::now();
        assert!(server.wait_until_it_answers(), "the server comes back");
        let answering = Instant::now();
        println!("the server answers {:?} after its start", answering - started);
        let back = stream.first(answering, is_whole);
        println!("whole answers {back:?} after the server's PONG");
        assert!(back < BACK, "service is back only after {back:?}");
        stream.mostly_whole(500);
    });
    let loading = answers.iter().filter(|answer| answer.result == Err(("upstream", "E411"))).count();
    assert!(loading > 0, "a server that loads its data is said to");
    let most = proxy.most_connections_a_second();
    println!("at most {most} connections a second");
    assert!(most <= 20, "{most} connections in a second");
}

#[test]
fn a_server_that_freezes_is_given_up_and_no_late_reply_is_taken_for_another() {
    let server = Server::start(&[]);
    load_users(&server);
    let proxy = Proxy::to(server.port);
    let asker = Asker::new(Scheduler::Async, &proxy.url(), "request_timeout_ms = 200");
    for frozen_ms in [60, 150, 2000] {
        under_load(&asker, |stream| {
            stream.first(Instant::now(), is_whole);
            stream.mostly_whole(200);
            let frozen = Instant::now();
            server.freeze();
            if frozen_ms > 1000 {
                let opened = stream.first(frozen, |answer| answer.result == Err(("upstream", "E401")));
                println!("given up {opened:?} after the freeze");
                assert!(opened < Duration::from_millis(500), "given up only after {opened:?}");
            }
            // As long as the server is meant to be frozen.
            thread::sleep(Duration::from_millis(frozen_ms).saturating_sub(frozen.elapsed()));
            let thawed = Instant::now();
            server.thaw();
            let back = stream.first(thawed, is_whole);
            println!("whole answers {back:?} after a freeze of {frozen_ms} ms");
            assert!(back < BACK, "service is back only after {back:?}");
            stream.mostly_whole(500);
        });
    }
    let most = proxy.most_connections_a_second();
    println!("at most {most} connections a second");
    assert!(most <= 20, "{most} connections in a second");
}

#[test]
fn every_scheduler_finds_a_server_that_came_back() {
    for scheduler in [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential] {
        let mut server = Server::start(&[]);
        load_users(&server);
        server.must(&["SAVE"]);
        let asker = Asker::patient(scheduler, &server.url(), "");
        assert_eq!(asker.ask(&[7]).result, Ok(FOLLOWED as usize));
        server.kill();
        let answer = asker.ask(&[7]);
        assert_eq!(answer.result, Err(("upstream", "E401")), "{scheduler:?}: {}", answer.message);
        server.start_again(&[]);
        assert!(server.wait_until_it_answers(), "the server comes back");
        let back = Instant::now();
        // Every thread that reads has a connection of its own, and each has to find out.
        let mut good = 0;
        while good < 20 {
            let answer = asker.ask(&[7]);
            assert!(back.elapsed() < BACK, "{scheduler:?}: still {:?}: {}", answer.result, answer.message);
            good = if answer.result == Ok(FOLLOWED as usize) { good + 1 } else { 0 };
            thread::sleep(Duration::from_millis(5));
        }
        println!("{scheduler:?}: twenty good answers {:?} after the server's PONG", back.elapsed());
    }
}
