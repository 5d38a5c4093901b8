//! `rankd seed --env` fills a server; `rankd check --connect` says what is wrong with one.

use crate::program::Workspace;
use crate::server::Server;
use std::net::TcpListener;

const CHECK: &[&str] = &["check", "complex_dag", "--connect"];

#[test]
fn the_demo_data_is_loaded_and_loading_again_changes_nothing() {
    let server = Server::start(&[]);
    let workspace = Workspace::new(&server.url());
    let keys = std::fs::read_to_string(crate::program::repository().join("data/demo.ndjson")).expect("it is there");
    let keys = keys.lines().filter(|line| !line.ends_with("\"list\":[]}")).count();
    for _ in 0..2 {
        let ran = workspace.rankd(&["seed"], "");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("redis_default: {keys} keys")), "{}", ran.stderr);
        assert_eq!(server.command(&["DBSIZE"]).expect("an answer"), format!(":{keys}"));
    }
}

#[test]
fn a_database_number_is_kept_to() {
    let server = Server::start(&[]);
    let workspace = Workspace::new(&format!("{}/3", server.url()));
    assert_eq!(workspace.rankd(&["seed"], "").code, Some(0));
    assert_eq!(server.command(&["DBSIZE"]).expect("an answer"), ":0");
    let ran = workspace.rankd(CHECK, "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = workspace.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
    assert!(ran.code == Some(0) && ran.stdout.contains("\"parent_id\""), "{} {}", ran.stdout, ran.stderr);
    let workspace = Workspace::new(&format!("{}/99", server.url()));
    let ran = workspace.rankd(CHECK, "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("DB index is out of range"), "{}", ran.stderr);
}

#[test]
fn a_unix_socket_works_like_a_port() {
    let server = Server::start(&["--unixsocket", "redis.sock"]);
    let workspace = Workspace::new(&format!("unix:{}/redis.sock?db=1", server.folder.display()));
    let ran = workspace.rankd(&["seed"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(workspace.rankd(CHECK, "").stderr.contains("endpoint redis_default: ok"));
    let ran = workspace.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
    assert!(ran.code == Some(0) && ran.stdout.contains("\"parent_id\""), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn a_password_must_be_the_right_one_and_is_never_shown() {
    let server = Server::start(&["--requirepass", "open-sesame"]);
    let at = format!("127.0.0.1:{}", server.port);
    let right = Workspace::new(&format!("redis://:open-sesame@{at}"));
    for command in [CHECK, &["seed"]] {
        let ran = right.rankd(command, "");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    for (url, says) in [(format!("redis://:open-barley@{at}"), "WRONGPASS"), (format!("redis://{at}"), "NOAUTH")] {
        let wrong = Workspace::new(&url);
        for command in [CHECK, &["seed"]] {
            let ran = wrong.rankd(command, "");
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            assert!(ran.stderr.contains(says) && ran.stderr.contains(&at), "{}", ran.stderr);
            assert!(!ran.stderr.contains("open-"), "{}", ran.stderr);
        }
        let ran = wrong.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
        assert!(ran.code == Some(1) && ran.stdout.contains("\"code\":\"E417\""), "{} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_so() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    let workspace = Workspace::new(&format!("redis://127.0.0.1:{port}"));
    for command in [CHECK, &["seed"]] {
        let ran = workspace.rankd(command, "");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("refused") && ran.stderr.contains(&port.to_string()), "{}", ran.stderr);
    }
}
