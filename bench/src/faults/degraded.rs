//! One of four sources fails, each on a Redis server of its own: is every request answered in time, with exactly the rows of the other
//! three, and does the answer say which one was missing? And a source that becomes slow: is it left alone, and used again?

use crate::faults::load::{Answer, Load, Step, post};
use crate::faults::network::{self, Loss};
use crate::faults::overload::{DEADLINE, FLAGS, Target};
use crate::faults::proxy::{Mode, Proxy};
use crate::faults::stage::{BODY, Folder, met, noted, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::{Server, repository};
use crate::redis::server::{Server as Redis, command_on};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const PLAN: &str = "sources";
const SOURCES: usize = 4;
/// The one that fails.
const SICK: usize = 1;
const USERS: usize = 10;
const EACH: usize = 5;
const BEFORE: Duration = Duration::from_secs(3);
const FAULT: Duration = Duration::from_secs(3);
const TIME: Duration = Duration::from_secs(10);
const CONNECTIONS: usize = 400;

/// What is done to one of the servers, and undone.
#[derive(Clone, Copy)]
enum Fault {
    /// What the machine by itself does to answers.
    Nothing,
    Killed,
    Frozen,
    Loading,
    Busy,
    MaxClients,
    Proxied(Mode),
    /// So many of a thousand packets are lost.
    Lossy(u64),
}

/// Each with the reasons that may be given for it. What has become slow is not even started once that was learned.
const FAULTS: [(&str, Fault, &[&str]); 11] = [
    ("nothing, to compare with", Fault::Nothing, &[]),
    ("killed", Fault::Killed, &["upstream"]),
    ("frozen", Fault::Frozen, &["timeout", "upstream", "no_time"]),
    ("30 % errors after 300 ms", Fault::Proxied(Mode::Grey), &["timeout", "upstream", "no_time"]),
    ("a byte every 10 ms", Fault::Proxied(Mode::Dribble), &["timeout", "upstream", "no_time"]),
    ("LOADING", Fault::Loading, &["upstream"]),
    ("BUSY", Fault::Busy, &["timeout", "upstream", "no_time"]),
    ("maxclients", Fault::MaxClients, &["upstream"]),
    ("nothing gets through", Fault::Lossy(1000), &["timeout", "upstream", "no_time"]),
    ("1 % of packets lost", Fault::Lossy(10), &["timeout", "upstream", "no_time"]),
    ("5 % of packets lost", Fault::Lossy(50), &["timeout", "upstream", "no_time"]),
];

/// Four servers, of which the sick one is behind a proxy, and a plan that reads from all of them.
pub(super) struct Stage {
    pub(super) redis: Vec<Redis>,
    proxy: Proxy,
    pub(super) server: Server,
    _folder: Folder,
}

impl Stage {
    /// With this plan.
    pub(super) fn new(name: &str, plan: &str) -> Stage {
        let redis: Vec<Redis> = (0..SOURCES).map(|_| Redis::start()).collect();
        redis.iter().enumerate().for_each(|(source, redis)| fill(redis, source));
        let proxy = Proxy::to(redis[SICK].port);
        let folder = Folder::new();
        let registry = folder.path().join("registry");
        std::fs::create_dir(&registry).expect("a folder can be made");
        for file in ["keys.toml", "params.toml"] {
            std::fs::copy(repository().join("registry").join(file), registry.join(file)).expect("a file can be copied");
        }
        let endpoint = |source: usize| {
            let url = if source == SICK { proxy.url() } else { redis[source].url() };
            format!(
                "[[endpoint]]\nendpoint_id = \"ep_000{source}\"\nname = \"source_{source}\"\nkind = \"redis\"\nurl = \"{url}\"\n"
            )
        };
        let endpoints: String = (0..SOURCES).map(endpoint).collect();
        std::fs::write(registry.join("endpoints.fault.toml"), endpoints).expect("a file can be written");
        folder.plan(name, plan);
        let registry = registry.to_str().expect("a path in UTF-8").to_owned();
        let server = Server::rankd(folder.path(), &[&FLAGS[..], &["--registry", &registry, "--env", "fault"]].concat());
        Stage { redis, proxy, server, _folder: folder }
    }

    /// Sends requests for this long and lets something happen to the sick source meanwhile, after a while in which all is well.
    fn drive(
        &mut self,
        rate: f64,
        time: Duration,
        during: impl FnOnce(&mut Sick<'_>),
    ) -> (Vec<Answer>, Vec<(Instant, Rows)>) {
        let Stage { redis, proxy, server, .. } = self;
        let log = Mutex::new(Vec::new());
        let (requests, steps) = ([post(PLAN, BODY)], [Step { rate, time }]);
        let right = |_: usize, answer: &str| {
            let rows = rows(answer);
            log.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), rows));
            rows != Rows::Wrong
        };
        let (address, connections) = (&server.address, CONNECTIONS);
        let load = Load { address, connections, requests: &requests, steps: &steps, retries: 0, right: &right };
        let answers = thread::scope(|scope| {
            let load = scope.spawn(|| load.drive());
            thread::sleep(BEFORE);
            during(&mut Sick { redis: &mut redis[SICK], proxy, loss: None, only_client: None });
            load.join().expect("the load ends")
        });
        (answers, log.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The source that fails, and what is in front of it.
struct Sick<'a> {
    redis: &'a mut Redis,
    proxy: &'a Proxy,
    loss: Option<Loss>,
    only_client: Option<TcpStream>,
}

impl Sick<'_> {
    fn begin(&mut self, fault: Fault) {
        let redis = &mut *self.redis;
        match fault {
            Fault::Nothing => {}
            Fault::Killed => drop(redis.child.kill().and_then(|()| redis.child.wait())),
            Fault::Frozen => signal(redis, "-STOP"),
            Fault::Loading => {
                redis.command(&["SAVE"]).expect("it answers");
                let _ = redis.child.kill().and_then(|()| redis.child.wait());
                redis.start_again(true);
            }
            Fault::Busy => {
                redis.command(&["CONFIG", "SET", "busy-reply-threshold", "50"]).expect("it answers");
                let port = redis.port;
                // It runs until it is killed, so nobody waits for its answer here.
                thread::spawn(move || {
                    Command::new("redis-cli").args(["-p", &port.to_string(), "EVAL", "while true do end", "0"]).output()
                });
            }
            Fault::MaxClients => {
                // The only client there may be is this one.
                let mut only = redis.connect().expect("it accepts");
                for words in [&["CONFIG", "SET", "maxclients", "1"][..], &["CLIENT", "KILL", "TYPE", "normal"]] {
                    command_on(&mut only, words).expect("it answers");
                }
                self.only_client = Some(only);
            }
            Fault::Proxied(mode) => self.proxy.set(mode),
            Fault::Lossy(per_mille) if network::is_own() => self.loss = Some(Loss::at(self.proxy.port, per_mille)),
            Fault::Lossy(1000) => self.proxy.set(Mode::Cut),
            Fault::Lossy(per_mille) => self.proxy.set(Mode::Lose(per_mille)),
        }
    }

    fn end(&mut self, fault: Fault) {
        let redis = &mut *self.redis;
        match fault {
            Fault::Nothing => {}
            Fault::Killed => {
                redis.start_again(false);
                wait_for(redis);
                redis.fill();
                fill(redis, SICK);
            }
            Fault::Frozen => signal(redis, "-CONT"),
            // It has loaded by then, or soon will have.
            Fault::Loading => wait_for(redis),
            Fault::Busy => {
                redis.command(&["SCRIPT", "KILL"]).expect("it answers");
            }
            Fault::MaxClients => {
                let mut only = self.only_client.take().expect("it has begun");
                command_on(&mut only, &["CONFIG", "SET", "maxclients", "10000"]).expect("it answers");
            }
            Fault::Proxied(_) => self.proxy.set(Mode::Pass),
            Fault::Lossy(_) => {
                self.loss = None;
                self.proxy.set(Mode::Pass);
            }
        }
    }
}

fn wait_for(redis: &Redis) {
    while !redis.answers() {
        thread::sleep(Duration::from_millis(5));
    }
}

fn signal(redis: &Redis, signal: &str) {
    let sent = Command::new("kill").args([signal, &redis.child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
}

/// What a source has for a user: which source and user it was can be seen.
fn id(source: usize, user: usize, number: usize) -> usize {
    (source + 1) * 1_000_000 + user * 100 + number
}

fn fill(redis: &Redis, source: usize) {
    for user in 1..=USERS {
        let key = format!("recommendation:{user}");
        let ids: Vec<String> = (0..EACH).map(|number| id(source, user, number).to_string()).collect();
        redis.command(&["DEL", &key]).expect("it answers");
        let words: Vec<&str> = ["RPUSH", &key].into_iter().chain(ids.iter().map(String::as_str)).collect();
        redis.command(&words).expect("it answers");
    }
}

fn node(id: &str, op: &str, inputs: &str, params: &str, more: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":[{inputs}],"params":{{{params}}}{more}}}"#)
}

/// Four sources, each with a fallback to no rows, one after the other.
fn sources() -> String {
    let (nodes, last) = source_nodes();
    plan(PLAN, &nodes, &last)
}

/// Their nodes, and the last of them.
pub(super) fn source_nodes() -> (Vec<String>, String) {
    let mut nodes = vec![node("n0", "fixed_source", "", &format!(r#""row_count":{USERS}"#), "")];
    for source in 0..SOURCES {
        let params = format!(r#""endpoint":"source_{source}""#);
        nodes.push(node(&format!("s{source}"), "recommendation", r#""n0""#, &params, r#","fallback":"none""#));
    }
    let mut all = "s0".to_owned();
    for source in 1..SOURCES {
        let (next, rhs) = (format!("c{source}"), format!(r#""rhs":"s{source}""#));
        nodes.push(node(&next, "concat", &format!("{all:?}"), &rhs, ""));
        all = next;
    }
    (nodes, all)
}

const REASONS: [&str; 3] = ["timeout", "upstream", "no_time"];

/// What an answer with rows is.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    /// Those of all sources, and nothing degraded.
    All,
    /// Those of the others, and the sick one is named, with this of the reasons.
    Others(&'static str),
    Wrong,
}

/// Under more load than C, any source may be too slow: while C is looked for, one that is missing and named is not wrong.
fn is_consistent(answer: &str) -> bool {
    let named = |source: usize| answer.contains(&format!("{{\"node\":\"s{source}\""));
    let has = |source: usize| answer.contains(&format!("{{\"id\":{}", id(source, 1, 0)));
    (0..SOURCES).all(|source| named(source) != has(source))
}

fn rows(answer: &str) -> Rows {
    let id_of = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|id| id.parse().ok());
    let ids: Vec<Option<usize>> = answer.split("{\"id\":").skip(1).map(id_of).collect();
    let of = |sources: &mut dyn Iterator<Item = usize>| {
        let expected = sources.flat_map(|source| {
            (1..=USERS).flat_map(move |user| (0..EACH).map(move |number| Some(id(source, user, number))))
        });
        expected.eq(ids.iter().copied())
    };
    let degraded = answer.split_once("\"degraded\":[").map(|(_, rest)| rest.split(']').next().unwrap_or(""));
    match degraded {
        None if of(&mut (0..SOURCES)) => Rows::All,
        Some(list) if of(&mut (0..SOURCES).filter(|source| *source != SICK)) => {
            let named = format!("{{\"node\":\"s{SICK}\"");
            let told = REASONS.into_iter().find(|reason| list.contains(&format!("\"reason\":\"{reason}\"")));
            let is_only = list.matches("\"node\":").count() == 1;
            match told {
                Some(reason) if list.starts_with(&named) && is_only => Rows::Others(reason),
                _ => Rows::Wrong,
            }
        }
        _ => Rows::Wrong,
    }
}

pub fn run() {
    println!("\n## One of four sources fails\n");
    println!(
        "Four Redis servers, a source on each, `fallback: none`; the second is spoiled for 3 s, by itself, by a proxy in front of it, or by \
         packets that `nft` drops.\n"
    );
    let mut stage = Stage::new(PLAN, &sources());
    let capacity = Target { server: &stage.server, plan: PLAN, right: &|_, answer| is_consistent(answer) }.capacity();
    let rate = capacity.rate / 2.0;
    println!("{rate:.0} requests a second, half of what can be answered in time; a deadline of 100 ms.\n");
    println!(
        "| fault | requests | answered with rows, % | goal | late | goal | wrong rows, node or reason | goal | without the sick one: timeout, upstream, no_time | p99 ms | met |\n\
         |---|---|---|---|---|---|---|---|---|---|---|"
    );
    for (name, fault, reasons) in FAULTS {
        let (answers, log) = stage.drive(rate, TIME, |sick| {
            sick.begin(fault);
            thread::sleep(FAULT);
            sick.end(fault);
        });
        let tally = Tally::of(&answers);
        let given = REASONS.map(|reason| log.iter().filter(|(_, rows)| *rows == Rows::Others(reason)).count());
        let misnamed =
            REASONS.iter().zip(given).filter(|(reason, _)| !reasons.contains(reason)).map(|(_, count)| count);
        let misnamed: usize = misnamed.sum();
        let (good, late, wrong) = (tally.with(200), tally.late(DEADLINE), tally.wrong() + misnamed);
        let share = 100.0 * good as f64 / tally.all() as f64;
        let met = met(good == tally.all() && late == 0 && wrong == 0);
        println!(
            "| {name} | {} | {share:.2} | 100 | {late} | 0 | {wrong} | 0 | {} | {:.1} | {met} |",
            tally.all(),
            given.map(|count| count.to_string()).join(", "),
            tally.ms(99.0)
        );
    }
    becomes_slow(&mut stage, rate);
}

/// One of the sources answers after 5 ms, then after 300 ms, and then after 5 ms again.
fn becomes_slow(stage: &mut Stage, rate: f64) {
    println!("\n## A source becomes slow\n");
    table();
    let (fast, slow) = (Mode::Slow(Duration::from_millis(5)), Mode::Slow(Duration::from_millis(300)));
    stage.proxy.set(fast);
    let slow_for = Duration::from_secs(4);
    let mut fast_again = Instant::now();
    let (answers, log) = stage.drive(rate, TIME, |sick| {
        sick.proxy.set(slow);
        thread::sleep(slow_for);
        sick.proxy.set(fast);
        fast_again = Instant::now();
    });
    stage.proxy.set(Mode::Pass);
    let learned = BEFORE + Duration::from_secs(1);
    let slow = Tally::between(&answers, learned, BEFORE + slow_for);
    let (all, p99, late) = (Tally::of(&answers), slow.ms(99.0), Tally::of(&answers).late(DEADLINE));
    told("a second after it became slow: p99, ms", &format!("{p99:.1}"), "≤ 90", p99 <= 90.0);
    told(&format!("late, of {}", all.all()), &late.to_string(), "0", late == 0);
    let missing = all.all() - all.with(200);
    told("without rows", &missing.to_string(), "0", missing == 0);
    let used = log.iter().find(|(at, rows)| *at > fast_again && *rows == Rows::All).map(|(at, _)| *at - fast_again);
    let shown = used.map_or("not again".to_owned(), |time| format!("{:.0}", time.as_secs_f64() * 1e3));
    told("used again after it was fast again, ms", &shown, "≤ 1000", used.is_some_and(|time| time.as_secs() < 1));
    let without = log.iter().filter(|(_, rows)| matches!(rows, Rows::Others(_))).count();
    noted("answers without it", &without.to_string());
}
