//! A cluster of three real masters: round trips, slots that move under load, a master that dies, and the commands.

use crate::asker::{Asker, FOLLOWED, USERS};
use crate::nodes::{Cluster, settings};
use crate::program::Workspace;
use crate::proxy::Proxy;
use rankd_engine::Scheduler;
use rankd_engine::store::health::BreakerState;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Puts the users on the masters that they belong to.
fn load_users(cluster: &Cluster) {
    for user in 1..=USERS {
        let key = format!("follow:{user}");
        let ids: Vec<String> = (1..=FOLLOWED).map(|number| (user * 1000 + number).to_string()).collect();
        let mut words = vec!["RPUSH", &key];
        words.extend(ids.iter().map(String::as_str));
        cluster.write(&key, &words);
    }
}

/// The users whose lists a master has, by the way that the slots were dealt.
fn users_of(cluster: &Cluster, master: usize) -> Vec<i64> {
    let of = |user: &i64| Cluster::first_owner(cluster.slot_of(&format!("follow:{user}"))) == master;
    (1..=USERS).filter(of).collect()
}

fn all_users() -> Vec<i64> {
    (1..=USERS).collect()
}

const ALL_ROWS: usize = (USERS * FOLLOWED) as usize;

#[test]
fn a_step_takes_one_round_trip_to_each_master() {
    let cluster = Cluster::start();
    load_users(&cluster);
    let proxies: Vec<Proxy> = cluster.masters.iter().map(|master| Proxy::to(master.port)).collect();
    for (master, proxy) in cluster.masters.iter().zip(&proxies) {
        master.must(&["CONFIG", "SET", "cluster-announce-port", &proxy.port.to_string()]);
    }
    let told = |text: String| proxies.iter().all(|proxy| text.contains(&format!(":{}@", proxy.port)));
    let began = Instant::now();
    while !cluster.masters.iter().all(|master| master.text(&["CLUSTER", "NODES"]).is_ok_and(told)) {
        assert!(began.elapsed() < PATIENCE, "the masters tell each other where they are");
        thread::sleep(Duration::from_millis(20));
    }
    // The first seed is nobody: the next one is asked.
    let asker = Asker::patient(Scheduler::Async, &format!("redis://127.0.0.1:1 {}", proxies[2].url()), "");
    let trips = || proxies.iter().map(Proxy::trips).collect::<Vec<_>>();
    assert_eq!(asker.ask(&all_users()).result, Ok(ALL_ROWS));
    // To ask for the layout took one more than the greeting.
    assert_eq!(trips(), [1, 1, 2]);
    for round in 1..=5 {
        assert_eq!(asker.ask(&all_users()).result, Ok(ALL_ROWS));
        assert_eq!(trips(), [1 + round, 1 + round, 2 + round]);
    }
    // Who needs one master only, asks it only.
    assert!(asker.ask(&users_of(&cluster, 1)[..3]).result.is_ok());
    assert_eq!(trips(), [6, 7, 7]);
    let health = asker.health();
    assert_eq!((health.retries, health.errors, health.refreshes), (0, 0, 1));
}

#[test]
fn a_slot_that_moves_under_load_gives_right_rows_all_the_time() {
    let cluster = Cluster::start();
    load_users(&cluster);
    let asker = Asker::patient(Scheduler::Async, &cluster.urls(), "");
    let user = 7;
    let key = format!("follow:{user}");
    let slot = cluster.slot_of(&key);
    let from = Cluster::first_owner(slot);
    let to = (from + 1) % 3;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut asked = 0;
                    while !over.load(Ordering::Relaxed) {
                        let answer = asker.ask(&all_users());
                        assert_eq!(answer.result, Ok(ALL_ROWS), "{}", answer.message);
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        // There and back again, each time with the key on either side for a while.
        for (from, to) in [(from, to), (to, from), (from, to)] {
            let wait = |count: u64| {
                let (began, before) = (Instant::now(), asker.health().steps);
                while asker.health().steps < before + count && began.elapsed() < PATIENCE {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            wait(30);
            cluster.begin_move(slot, from, to);
            wait(30);
            cluster.move_key(&key, from, to);
            let before = asker.health().retries;
            wait(60);
            assert!(asker.health().retries > before, "what is asked of the new node first is a second try");
            cluster.end_move(slot, from, to);
            wait(60);
        }
        over.store(true, Ordering::Relaxed);
        let asked: u32 = workers.into_iter().map(|worker| worker.join().expect("no worker panicked")).sum();
        let health = asker.health();
        println!(
            "{asked} requests: {} commands, {} retries, {} refreshes",
            health.commands, health.retries, health.refreshes
        );
        assert_eq!(health.errors, 0);
        assert!(health.retries * 5 <= health.commands, "{} of {}", health.retries, health.commands);
    });
    let began = Instant::now();
    // When all is quiet the layout has been asked for anew, and nothing is asked twice.
    loop {
        let before = asker.health().retries;
        assert_eq!(asker.ask(&all_users()).result, Ok(ALL_ROWS));
        let health = asker.health();
        if health.retries == before && health.refreshes > 1 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{} refreshes, and it may still ask twice", health.refreshes);
    }
}

#[test]
fn a_master_that_dies_fails_its_own_slots_at_once_and_no_others() {
    let mut cluster = Cluster::start();
    load_users(&cluster);
    for master in &cluster.masters {
        master.must(&["SAVE"]);
    }
    let theirs: Vec<Vec<i64>> = (0..3).map(|master| users_of(&cluster, master)).collect();
    let askers = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential]
        .map(|scheduler| (scheduler, Asker::patient(scheduler, &cluster.urls(), "")));
    for (scheduler, asker) in &askers {
        assert_eq!(asker.ask(&all_users()).result, Ok(ALL_ROWS), "{scheduler:?}");
    }
    cluster.masters[1].kill();
    for (scheduler, asker) in &askers {
        let began = Instant::now();
        for _ in 0..50 {
            for (master, users) in theirs.iter().enumerate() {
                let answer = asker.ask(users);
                let expected = match master {
                    1 => Err(("upstream", "E401")),
                    _ => Ok(users.len() * FOLLOWED as usize),
                };
                assert_eq!(answer.result, expected, "{scheduler:?}, master {master}: {}", answer.message);
            }
        }
        println!("{scheduler:?}: 150 requests with a dead master in {:?}", began.elapsed());
        assert_eq!(asker.ask(&all_users()).result, Err(("upstream", "E401")), "{scheduler:?}");
        assert_ne!(asker.health().breaker(), BreakerState::Closed, "{scheduler:?}");
    }
    cluster.masters[1].start_again(&settings(&cluster.bus_ports[1]));
    assert!(cluster.masters[1].wait_until_it_answers(), "the master comes back");
    let began = Instant::now();
    // It says CLUSTERDOWN for two seconds, until it has heard from the others.
    for (scheduler, asker) in &askers {
        while asker.ask(&all_users()).result != Ok(ALL_ROWS) {
            assert!(began.elapsed() < PATIENCE, "{scheduler:?}: not whole {PATIENCE:?} after the master came back");
            thread::sleep(Duration::from_millis(5));
        }
        println!("{scheduler:?}: whole {:?} after the master's PONG", began.elapsed());
    }
}

#[test]
fn the_commands_work_with_a_cluster() {
    let cluster = Cluster::start();
    let workspace = Workspace::new(&cluster.urls());
    let ran = workspace.rankd(&["check", "complex_dag", "--connect"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = workspace.rankd(&["seed"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let size = |master: &crate::server::Server| -> usize {
        master.command(&["DBSIZE"]).expect("an answer").trim_start_matches(':').parse().expect("a number")
    };
    assert!(cluster.masters.iter().all(|master| size(master) > 100), "every master got some keys");
    let ran = workspace.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    let local = workspace.rankd_in(&["--plan_name", "complex_dag", "--env", "local"], "{\"user_id\": 1}\n");
    let rows = |text: &str| text.split_once("\"candidates\"").map(|(_, rows)| rows.to_owned()).expect("rows");
    assert_eq!(rows(&ran.stdout), rows(&local.stdout), "the same as from the embedded store");
    // A hole in the cluster is told before anything is written.
    cluster.masters[2].must(&["CLUSTER", "DELSLOTS", "16000"]);
    let urls = format!("{} redis://127.0.0.1:1", cluster.masters[2].url());
    for command in [&["check", "complex_dag", "--connect"][..], &["seed"]] {
        let ran = Workspace::new(&urls).rankd(command, "");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("1 of 16384 slots"), "{}", ran.stderr);
    }
    // A server that is no cluster is told to be none.
    let alone = crate::server::Server::start(&[]);
    let ran =
        Workspace::new(&format!("{} {}", alone.url(), alone.url())).rankd(&["check", "complex_dag", "--connect"], "");
    assert!(ran.code == Some(2) && ran.stderr.contains("cluster support disabled"), "{}", ran.stderr);
}
