//! How often rankd goes to the server, and what a long list costs.

use crate::asker::Asker;
use crate::fake::{Fake, Then};
use crate::program::Workspace;
use crate::proxy::Proxy;
use crate::server::Server;
use rankd_engine::Scheduler;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const FOLLOW_MEDIA: &str = r#"{"schema_version": 1, "plan_name": "follow_media", "nodes": [
    {"node_id": "n0", "op": "candidates"},
    {"node_id": "n1", "op": "follow", "inputs": ["n0"], "params": {"endpoint": "redis_default", "fanout": 100}},
    {"node_id": "n2", "op": "media", "inputs": ["n1"], "params": {"endpoint": "redis_default", "fanout": 3}}
], "outputs": ["n2"]}"#;

#[test]
fn a_hundred_rows_are_read_in_one_round_trip() {
    let server = Server::start(&[]);
    let script = "for i = 1, 100 do redis.call('RPUSH', 'follow:1', i) redis.call('RPUSH', 'media:' .. i, i * 10, i * 10 + 1) end return 1";
    server.must(&["EVAL", script, "0"]);
    let proxy = Proxy::to(server.port);
    let workspace = Workspace::with_policy(&proxy.url(), "retry_percent = 0");
    workspace.write("plans/follow_media.plan.json", FOLLOW_MEDIA);
    let ran = workspace.rankd(&["--plan_name", "follow_media"], "{\"user_id\": 1, \"candidates\": [{\"id\": 1}]}\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("\"parent_id\"").count(), 200, "{}", ran.stdout);
    assert_eq!(proxy.trips(), 2, "follow, then media");
}

#[test]
fn a_huge_step_goes_out_in_batches() {
    let server = Server::start(&[]);
    let script = "for i = 5000, 25000, 10000 do redis.call('RPUSH', 'follow:' .. i, i + 1, i + 2) end return 1";
    server.must(&["EVAL", script, "0"]);
    let proxy = Proxy::to(server.port);
    let workspace = Workspace::new(&proxy.url());
    workspace.write("plans/followed.plan.json", crate::asker::PLAN);
    let rows: Vec<String> = (1..=25_000).map(|id| format!("{{\"id\":{id}}}")).collect();
    let request = format!("{{\"user_id\": 1, \"candidates\": [{}]}}\n", rows.join(","));
    let ran = workspace.rankd(&["--plan_name", "followed"], &request);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    for parent in [5_000, 15_000, 25_000] {
        assert_eq!(ran.stdout.matches(&format!("\"parent_id\":{parent}}}")).count(), 2, "{}", ran.stdout);
    }
    // A server that answers while it is still asked makes more bursts of a batch, never fewer.
    assert!(proxy.trips() >= 3, "{} bursts", proxy.trips());
}

#[test]
fn a_plan_takes_as_many_round_trips_as_its_longest_path_has_reads() {
    let server = Server::start(&[]);
    let proxy = Proxy::to(server.port);
    let loaded = Workspace::new(&server.url()).rankd(&["seed"], "");
    assert_eq!(loaded.code, Some(0), "{}", loaded.stderr);
    let workspace = Workspace::with_policy(&proxy.url(), "retry_percent = 0");
    let ran = workspace.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"id\""), "{}", ran.stdout);
    assert_eq!(proxy.trips(), 3, "viewer, then follow and recommendation together, then both media together");
}

#[test]
fn a_list_of_five_million_costs_what_a_hundred_cost() {
    let server = Server::start(&[]);
    let script = "local n = tonumber(ARGV[1]) for at = 1, n, 5000 do local part = {} \
                  for i = at, math.min(at + 4999, n) do part[#part + 1] = tonumber(KEYS[1]:sub(8)) * 1000 + i % 1000 end \
                  redis.call('RPUSH', KEYS[1], unpack(part)) end return n";
    server.must(&["EVAL", script, "1", "follow:1", "5000000"]);
    server.must(&["EVAL", script, "1", "follow:2", "100"]);
    let asker = Asker::patient(Scheduler::Async, &server.url(), "");
    let median = |user: i64| {
        let mut took: Vec<Duration> = Vec::new();
        for _ in 0..200 {
            let answer = asker.ask(&[user]);
            assert_eq!(answer.result, Ok(100), "{}", answer.message);
            took.push(answer.took);
        }
        took.sort();
        took[took.len() / 2]
    };
    // The first requests also connect.
    median(2);
    let (short, long) = (median(2), median(1));
    println!("median request: {short:?} of 100 elements, {long:?} of 5,000,000");
    assert!(long < short * 3 + Duration::from_millis(1), "{long:?} is more than {short:?}");
}

/// Answers nothing before so many reads have come, then all of them: the last is for user 2, the others for user 1.
fn patient(reads: usize) -> Fake {
    let come = AtomicUsize::new(0);
    Fake::start(move |command, _| match command {
        "PING" => (b"+PONG\r\n".to_vec(), Then::Listen),
        _ if come.fetch_add(1, Ordering::SeqCst) + 1 < reads => (Vec::new(), Then::Listen),
        _ => ([b"*1\r\n$4\r\n1001\r\n".repeat(reads - 1), b"*1\r\n$4\r\n2001\r\n".to_vec()].concat(), Then::Listen),
    })
}

const ELEVEN: [&[i64]; 11] = [&[1], &[1], &[1], &[1], &[1], &[1], &[1], &[1], &[1], &[1], &[2]];

#[test]
fn the_same_reads_under_way_are_sent_once_and_shared() {
    // Without second tries: a read that a crowded machine keeps waiting would be sent again.
    for policy in ["retry_percent = 0", "retry_percent = 0\nmax_inflight = 2"] {
        let fake = patient(2);
        let asker = Asker::patient(Scheduler::Async, &fake.url(), policy);
        assert_eq!(asker.ask_all(&ELEVEN), [Ok(1); 11], "{policy}");
        assert_eq!(fake.seen()[0].commands, 2, "{policy}");
    }
    // The same read takes the same connection, also where there are several.
    let server = Server::start(&[]);
    crate::asker::load_users(&server);
    let asker = Asker::patient(Scheduler::Async, &server.url(), "connections = 4");
    let users: Vec<[i64; 1]> = (1..=100).flat_map(|user| [[user], [user]]).collect();
    let requests: Vec<&[i64]> = users.iter().map(|user| &user[..]).collect();
    assert_eq!(asker.ask_all(&requests), vec![Ok(crate::asker::FOLLOWED as usize); 200]);
}

#[test]
fn sharing_can_be_switched_off() {
    let fake = patient(11);
    let asker = Asker::patient(Scheduler::Async, &fake.url(), "single_flight = false\nretry_percent = 0");
    assert_eq!(asker.ask_all(&ELEVEN), [Ok(1); 11]);
    assert_eq!(fake.seen()[0].commands, 11);
}

#[test]
fn those_who_share_a_read_share_its_failure() {
    let fake = Fake::saying(b"-BUSY a script runs\r\n", Then::Listen);
    let asker = Asker::patient(Scheduler::Async, &fake.url(), "");
    assert_eq!(asker.ask_all(&[&[1], &[1], &[1]]), [Err(("upstream", "E412")); 3]);
    let fake = Fake::saying(b"*1", Then::Close);
    let asker = Asker::patient(Scheduler::Async, &fake.url(), "");
    assert_eq!(asker.ask_all(&[&[1], &[1], &[1]]), [Err(("upstream", "E401")); 3]);
}
