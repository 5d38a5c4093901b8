//! A server that lies, stops in the middle or complains: a typed error within the deadline, and a connection that cannot be
//! trusted any more is never used again.

use crate::asker::{Answer, Asker, DEADLINE};
use crate::fake::{Fake, Then};
use crate::program::Workspace;
use rankd_engine::Scheduler;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Room for a crowded machine: what is told in the time of one deadline here takes a millisecond.
const SLACK: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(10);
const GOOD: &[u8] = b"*3\r\n$4\r\n1001\r\n$4\r\n1002\r\n$4\r\n1003\r\n";

fn asker(fake: &Fake, policy: &str) -> Asker {
    Asker::patient(Scheduler::Async, &fake.url(), &format!("connect_timeout_ms = 2000\n{policy}"))
}

fn in_time(answer: &Answer, what: &str) {
    assert!(answer.took < DEADLINE + SLACK, "{what}: {:?} after {:?}", answer.result, answer.took);
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_reply_cut_at_any_byte_is_an_error_in_time() {
    thread::scope(|scope| {
        for (then, code) in [(Then::Close, "E401"), (Then::Stall, "E404")] {
            scope.spawn(move || {
                for cut in 0..GOOD.len() {
                    let what = format!("cut at {cut}, then {then:?}");
                    let fake = Fake::saying(&GOOD[..cut], then);
                    let answer = asker(&fake, "request_timeout_ms = 80").ask(&[1]);
                    assert_eq!(answer.result, Err(("upstream", code)), "{what}: {}", answer.message);
                    in_time(&answer, &what);
                    eventually(&what, || fake.seen()[0].closed);
                    assert_eq!(fake.seen()[0].commands, 1, "{what}");
                }
            });
        }
    });
}

#[test]
fn after_malformed_data_the_connection_is_not_used_again() {
    let deep = b"*1\r\n".repeat(1_000_000);
    let bad: &[(&str, &[u8])] = &[
        ("a status", b"+OK\r\n"),
        ("an int", b":3\r\n"),
        ("a string", b"$4\r\n1001\r\n"),
        ("a null list", b"*-1\r\n"),
        ("a list of lists", b"*1\r\n*1\r\n$1\r\n1\r\n"),
        ("more items than were asked for", b"*101\r\n"),
        ("an absurd count", b"*9223372036854775807\r\n"),
        ("a count beyond all numbers", b"*99999999999999999999999\r\n"),
        ("a negative length", b"*1\r\n$-2\r\n"),
        ("an absurd length", b"*1\r\n$9223372036854775807\r\n"),
        ("a length that is large but a number", b"*1\r\n$2000000000\r\n"),
        ("a string that does not end where it should", b"*1\r\n$1\r\n1001\r\n"),
        ("a line without an end", &[b'x'; 10_000]),
        ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("an error line without an end", &[b'-'; 10_000]),
        ("an error inside a list", b"*1\r\n-ERR no\r\n"),
        ("more than was asked for", b"*0\r\n*0\r\n"),
        ("a million lists in each other", &deep),
    ];
    for (what, bytes) in bad {
        let bytes = bytes.to_vec();
        let fake = Fake::start(move |command, number| match (command, number) {
            ("PING", _) => (b"+PONG\r\n".to_vec(), Then::Listen),
            (_, 0) => (bytes.clone(), Then::Listen),
            _ => (GOOD.to_vec(), Then::Listen),
        });
        let asker = asker(&fake, "");
        let answer = asker.ask(&[1]);
        in_time(&answer, what);
        // Where the surplus comes after the reply, the reply itself was good.
        let surplus = *what == "more than was asked for";
        // More than Redis can hold, but well formed: it is not waited for.
        let large = *what == "a length that is large but a number";
        let expected = match () {
            () if surplus => Ok(0),
            () if large => Err(("upstream", "E421")),
            () => Err(("upstream", "E401")),
        };
        assert_eq!(answer.result, expected, "{what}: {}", answer.message);
        assert!(surplus || large || answer.detail.contains("malformed"), "{what}: {}", answer.detail);
        eventually(what, || fake.seen()[0].closed);
        eventually(what, || asker.ask(&[1]).result == Ok(3));
        assert_eq!(fake.seen()[0].commands, 1, "{what}: the connection was used again");
    }
}

const LINES: &[(&str, &str)] = &[
    ("LOADING Redis is loading the dataset in memory", "E411"),
    ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "E412"),
    ("READONLY You can't write against a read only replica.", "E413"),
    ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "E414"),
    ("CLUSTERDOWN The cluster is down", "E415"),
    ("MOVED 3999 127.0.0.1:6381", "E416"),
    ("ASK 3999 127.0.0.1:6381", "E416"),
    ("NOAUTH Authentication required.", "E417"),
    ("ERR max number of clients reached", "E418"),
    ("ERR something else", "E419"),
    ("TRYAGAIN Multiple keys request during rehashing of slot", "E420"),
];

#[test]
fn each_complaint_of_the_server_has_its_own_code() {
    let wrong_type = ("WRONGTYPE Operation against a key holding the wrong kind of value", "E402");
    for &(line, code) in LINES.iter().chain([&wrong_type]) {
        let fake = Fake::saying(format!("-{line}\r\n").as_bytes(), Then::Listen);
        let asker = asker(&fake, "");
        for _ in 0..2 {
            let answer = asker.ask(&[1]);
            assert_eq!(answer.result, Err(("upstream", code)), "{line}: {}", answer.message);
            in_time(&answer, line);
        }
        assert_eq!(fake.seen().len(), 1, "{line}: a complaint is a good reply, the connection stays");
    }
}

#[test]
fn a_server_that_complains_when_it_is_greeted_is_down_for_that_reason() {
    for &(line, code) in LINES {
        let fake = Fake::start(move |command, number| match (command, number) {
            ("PING", 0 | 1) => (format!("-{line}\r\n").into_bytes(), Then::Close),
            ("PING", _) => (b"+PONG\r\n".to_vec(), Then::Listen),
            _ => (GOOD.to_vec(), Then::Listen),
        });
        let asker = asker(&fake, "");
        let answer = asker.ask(&[1]);
        assert_eq!(answer.result, Err(("upstream", code)), "{line}: {}", answer.message);
        in_time(&answer, line);
        eventually(line, || asker.ask(&[1]).result == Ok(3));
        assert_eq!(fake.seen()[0].commands + fake.seen()[1].commands, 0, "{line}: nothing was asked of it");
    }
}

#[test]
fn a_dribbling_reply_is_cut_at_the_deadline_and_its_connection_given_up() {
    let reply = [&b"*100\r\n"[..], &b"$4\r\n1001\r\n".repeat(100)].concat();
    let fake = Fake::saying(&reply, Then::Dribble);
    let asker = Asker::new(Scheduler::Async, &fake.url(), "request_timeout_ms = 300");
    let answer = asker.ask(&[1]);
    assert_eq!(answer.result, Err(("timeout", "E301")), "{}", answer.message);
    in_time(&answer, "a byte a millisecond");
    eventually("the connection is given up", || fake.seen()[0].closed);
}

#[test]
fn no_reply_makes_the_program_large() {
    let big = [&b"*100\r\n"[..], &[&b"$1000000\r\n"[..], &[b'1'; 1_000_000], b"\r\n"].concat().repeat(100)].concat();
    let modest = memory_after(&Fake::saying(GOOD, Then::Listen));
    for (what, fake) in [
        ("a million lists in each other", Fake::saying(&b"*1\r\n".repeat(1_000_000), Then::Listen)),
        ("a string without end", Fake::saying(b"*1\r\n$2000000000\r\n1111", Then::Repeat)),
        ("a hundred megabytes", Fake::saying(&big, Then::Listen)),
        ("bytes without end", Fake::saying(&[b'1'; 64 << 10], Then::Repeat)),
    ] {
        let more = memory_after(&fake).saturating_sub(modest);
        println!("{what}: {more} kB more than a modest reply");
        assert!(more < 16 << 10, "{what}: {more} kB more");
    }
}

/// The most memory, in kB, that the program had when it has answered a request.
fn memory_after(fake: &Fake) -> usize {
    let workspace = Workspace::new(&fake.url());
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
    command.current_dir(workspace.folder()).args([
        "--plan_name",
        "follow_media",
        "--env",
        "test",
        "--deadline_ms",
        "1000",
    ]);
    workspace.write("plans/follow_media.plan.json", crate::trips::FOLLOW_MEDIA);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("rankd can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    writeln!(stdin, "{{\"user_id\": 1, \"candidates\": [{{\"id\": 1}}]}}").expect("rankd reads");
    let mut answer = String::new();
    BufReader::new(child.stdout.take().expect("stdout is a pipe")).read_line(&mut answer).expect("rankd answers");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    drop(stdin);
    child.wait().expect("rankd ends");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    // Only Linux tells; elsewhere there is nothing to compare.
    peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
