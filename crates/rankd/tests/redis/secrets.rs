//! Where the servers are is for the log and the trace, and not for callers.

use crate::asker::{Asker, load_users};
use crate::fake::{Fake, Then};
use crate::program::Workspace;
use crate::server::Server;
use rankd_engine::Scheduler;
use std::net::TcpListener;

#[test]
fn an_error_names_the_endpoint_and_not_its_address() {
    let nobody =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    let fakes = [
        Fake::saying(b"-MOVED 3999 10.1.2.3:6381\r\n", Then::Listen),
        Fake::saying(b"-NOPERM User alice at 10.1.2.3 has no permissions\r\n", Then::Listen),
        Fake::saying(b"-ERR no route to 10.1.2.3\r\n", Then::Listen),
        Fake::saying(b"*1\r\n*1\r\n", Then::Listen),
        Fake::saying(b"*1\r\n", Then::Stall),
    ];
    let urls = fakes.iter().map(Fake::url).chain([format!("redis://127.0.0.1:{nobody}")]);
    for url in urls {
        let asker = Asker::patient(Scheduler::Async, &url, "request_timeout_ms = 100");
        let answer = asker.ask(&[1]);
        assert!(answer.result.is_err());
        let (message, detail) = (answer.message, answer.detail);
        assert!(message.contains("\"redis_default\"") && !message.contains("alice"), "{message}");
        assert!(!message.contains("127.0.0.1") && !message.contains("10.1.2.3"), "{message}");
        assert!(
            detail.contains("127.0.0.1") || detail.contains("10.1.2.3") || detail.contains("malformed"),
            "{detail}"
        );
    }
}

#[test]
fn the_address_is_on_stderr_and_in_the_trace() {
    let mut server = Server::start(&[]);
    load_users(&server);
    let workspace = Workspace::new(&server.url());
    workspace.write("plans/followed.plan.json", crate::asker::PLAN);
    server.kill();
    let ask = |trace: &str| {
        let request = format!("{{\"user_id\": 1, \"candidates\": [{{\"id\": 1}}]{trace}}}\n");
        let ran = workspace.rankd(&["--plan_name", "followed"], &request);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        ran
    };
    let (address, plain, traced) = (format!("127.0.0.1:{}", server.port), ask(""), ask(", \"trace\": true"));
    assert!(plain.stdout.contains("the endpoint \\\"redis_default\\\" cannot be reached"), "{}", plain.stdout);
    assert!(!plain.stdout.contains(&address), "{}", plain.stdout);
    assert!(plain.stderr.contains(&address), "{}", plain.stderr);
    let (error, trace) = traced.stdout.split_once("\"trace\":").expect("it has a trace");
    assert!(!error.contains(&address) && trace.contains(&address), "{}", traced.stdout);
}
