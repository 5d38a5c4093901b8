//! How servers old and new are greeted, and what a new one may say that an old one cannot.

use crate::asker::Asker;
use crate::fake::{Fake, Then};
use crate::program::Workspace;
use crate::server::Server;
use rankd_engine::Scheduler;

const HELLO: &[u8] = b"%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$7\r\nmodules\r\n*0\r\n";
const PUSH: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n_\r\n";

fn ask(fake: &Fake) -> Asker {
    Asker::patient(Scheduler::Async, &fake.url(), "connect_timeout_ms = 2000")
}

#[test]
fn a_real_server_is_spoken_to_in_the_newer_protocol() {
    let server = Server::start(&["--requirepass", "open-sesame"]);
    let url = format!("redis://:open-sesame@127.0.0.1:{}/2", server.port);
    let asker = Asker::patient(Scheduler::Async, &url, "");
    assert_eq!(asker.ask(&[1]).result, Ok(0));
    let mut library = redis::Client::open(url).and_then(|client| client.get_connection()).expect("it connects");
    let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut library).expect("it answers");
    assert!(clients.lines().any(|line| line.contains(" db=2 ") && line.contains(" resp=3")), "{clients}");
}

#[test]
fn maps_nulls_and_pushes_are_understood() {
    let fake = Fake::knowing_hello(|command, _| {
        let reply: &[u8] = match command {
            "HELLO" => HELLO,
            "PING" => b"+PONG\r\n",
            "LRANGE" => b"*3\r\n$4\r\n1001\r\n_\r\n$4\r\n1002\r\n",
            _ => b"%1\r\n$7\r\ncountry\r\n$2\r\nDE\r\n",
        };
        // Between the greeting and the first reply, before a reply and after it.
        let pushes = if command == "HELLO" { reply.to_vec() } else { [reply, PUSH].concat() };
        let pushes = if command == "PING" { reply.to_vec() } else { pushes };
        (if command == "LRANGE" { [PUSH, &pushes].concat() } else { pushes }, Then::Listen)
    });
    let asker = ask(&fake);
    for _ in 0..5 {
        // A null is no id: it is skipped.
        let answer = asker.ask(&[1]);
        assert_eq!(answer.result, Ok(2), "{}", answer.message);
    }
    let workspace = Workspace::new(&fake.url());
    workspace.write(
        "plans/me.plan.json",
        r#"{"schema_version": 1, "plan_name": "me", "nodes": [
            {"node_id": "n0", "op": "viewer", "params": {"endpoint": "redis_default"}}], "outputs": ["n0"]}"#,
    );
    let ran = workspace.rankd(&["--plan_name", "me"], "{\"user_id\": 1}\n{\"user_id\": 2}\n");
    assert_eq!(ran.stdout.matches("\"country\":\"DE\"").count(), 2, "{} {}", ran.stdout, ran.stderr);
    assert_eq!(fake.seen().len(), 2, "one connection each");
}

#[test]
fn an_old_server_with_a_password_is_greeted_the_old_way() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let known = AtomicBool::new(false);
    let fake = Fake::start(move |command, _| {
        let reply: &[u8] = match command {
            "AUTH" => {
                known.store(true, Ordering::SeqCst);
                b"+OK\r\n"
            }
            _ if !known.load(Ordering::SeqCst) => b"-NOAUTH Authentication required.\r\n",
            "PING" => b"+PONG\r\n",
            "SELECT" => b"+OK\r\n",
            _ => b"*1\r\n$4\r\n1001\r\n",
        };
        (reply.to_vec(), Then::Listen)
    });
    let url = fake.url().replace("redis://", "redis://:secret@");
    let answer = Asker::patient(Scheduler::Async, &format!("{url}/1"), "").ask(&[1]);
    assert_eq!(answer.result, Ok(1), "{}", answer.message);
    assert_eq!(fake.seen().len(), 1);
}

#[test]
fn a_greeting_that_is_no_greeting_is_refused() {
    let deep = b"*1\r\n".repeat(1_000_000);
    let bad: &[&[u8]] = &[
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"%99999999\r\n",
        b"$-7\r\n",
        &deep,
        b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
    ];
    for bytes in bad {
        let reply = bytes.to_vec();
        let fake = Fake::knowing_hello(move |command, _| match command {
            "HELLO" => (reply.clone(), Then::Listen),
            _ => (b"+PONG\r\n".to_vec(), Then::Listen),
        });
        let answer = ask(&fake).ask(&[1]);
        let code = if bytes.starts_with(b"-") { "E417" } else { "E401" };
        assert_eq!(answer.result, Err(("upstream", code)), "{}", answer.message);
        assert_eq!(fake.seen()[0].commands, 0, "nothing is asked of it");
    }
}
