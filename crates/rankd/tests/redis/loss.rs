//! Packets are lost on the way to the server: a step that is held up is asked on another connection, and nobody else notices.

use crate::asker::{Answer, Asker, FOLLOWED, USERS, load_users};
use crate::proxy::Proxy;
use crate::server::Server;
use rankd_engine::Scheduler;
use rankd_engine::store::health::Snapshot;
use std::thread;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(1);
/// Requests before anything is lost: what is sent twice is a share of what was sent before.
const BEFORE: i64 = 20;

/// One after the other, through a proxy of their own.
fn ask(server: &Server, per_mille: u64, requests: i64) -> (Vec<Answer>, Snapshot) {
    let proxy = Proxy::to(server.port);
    let asker = Asker::within(DEADLINE, Scheduler::Async, &proxy.url(), "");
    let mut answers = Vec::new();
    for number in 0..BEFORE + requests {
        if number == BEFORE {
            proxy.loses(per_mille);
        }
        let first = number % (USERS - 3) + 1;
        let answer = asker.ask(&[first, first + 1, first + 2]);
        if number >= BEFORE {
            answers.push(answer);
        }
        // A rate, not a wait.
        thread::sleep(Duration::from_millis(10));
    }
    (answers, asker.health())
}

#[test]
fn lost_packets_cost_hardly_any_rows() {
    let server = Server::start(&[]);
    load_users(&server);
    // Which packets are lost is chance, and failures come several at a time, because a breaker that opens takes the next requests along: over many runs at
    // 50 of 1000 about 5 fail, 12 are exceeded in one run of twenty, and the worst had 27; at 10 of 1000 mostly none, and 5 where a breaker opened. Without
    // second tries 85 in 100 requests fail.
    for (per_mille, failed_max) in [(50, 36), (10, 12)] {
        let asked: Vec<(Vec<Answer>, Snapshot)> = thread::scope(|scope| {
            let askers: Vec<_> = (0..12).map(|_| scope.spawn(|| ask(&server, per_mille, 100))).collect();
            askers.into_iter().map(|asker| asker.join().expect("it did not panic")).collect()
        });
        let sum = |count: fn(&Snapshot) -> u64| asked.iter().map(|(_, health)| count(health)).sum::<u64>();
        let answers: Vec<&Answer> = asked.iter().flat_map(|(answers, _)| answers).collect();
        let failed: Vec<_> = answers.iter().filter(|answer| answer.result != Ok(3 * FOLLOWED as usize)).collect();
        let mut took: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
        took.sort();
        println!(
            "{per_mille} of 1000 lost: {} of {} failed; p50 {:?}, p99 {:?}; {} of {} commands sent twice; breakers opened {} times",
            failed.len(),
            answers.len(),
            took[took.len() / 2],
            took[took.len() * 99 / 100],
            sum(|health| health.retries),
            sum(|health| health.commands),
            sum(|health| health.opened)
        );
        let told = failed.first().map(|answer| (&answer.result, &answer.detail));
        assert!(failed.len() <= failed_max, "{} of {} failed, the first: {told:?}", failed.len(), answers.len());
        assert!(asked.iter().all(|(_, health)| health.retries * 5 <= health.commands));
    }
}
