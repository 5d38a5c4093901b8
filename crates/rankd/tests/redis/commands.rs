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
    let keys = keys.lines().filter(|line| line.starts_with("{\"key\"")).count();
    for told in
        [format!("({keys} new, 0 overwritten, 0 were there)"), format!("(0 new, 0 overwritten, {keys} were there)")]
    {
        let ran = workspace.rankd(&["seed"], "");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("redis_default: {keys} keys")), "{}", ran.stderr);
        assert!(ran.stderr.contains(&told), "{}", ran.stderr);
        assert_eq!(server.command(&["DBSIZE"]).expect("an answer"), format!(":{keys}"));
    }
}

#[test]
fn data_that_seed_did_not_write_is_shown_and_overwritten_only_by_force() {
    let server = Server::start(&[]);
    let workspace = Workspace::new(&server.url());
    server.must(&["HSET", "user:1", "name", "somebody real"]);
    server.must(&["SET", "user:2", "a string"]);
    server.must(&["RPUSH", "follow:3", "4711"]);
    server.must(&["SET", "elsewhere", "is nobody's business"]);
    let ran = workspace.rankd(&["seed"], "");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let told = "nothing was written, because it would overwrite other data";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("--force: follow:3, user:1, user:2"), "{}", ran.stderr);
    assert_eq!(server.command(&["DBSIZE"]).expect("an answer"), ":4");
    assert_eq!(server.text(&["HGET", "user:1", "name"]).expect("an answer"), "somebody real");
    let ran = workspace.rankd(&["seed", "--force"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(" 3 overwritten, 0 were there)"), "{}", ran.stderr);
    assert_ne!(server.text(&["HGET", "user:1", "name"]).expect("an answer"), "somebody real");
    assert_eq!(server.text(&["GET", "elsewhere"]).expect("an answer"), "is nobody's business");
    assert_eq!(workspace.rankd(&["seed"], "").code, Some(0));
}

#[test]
fn a_data_file_that_seed_did_not_write_is_overwritten_only_by_force() {
    let workspace = Workspace::new("redis://127.0.0.1:1");
    let seed =
        |more: &[&str]| workspace.rankd_in(&[&["seed", "--users", "3", "--out", "data/own.ndjson"], more].concat(), "");
    let read = || std::fs::read_to_string(workspace.folder().join("data/own.ndjson")).expect("it is there");
    for _ in 0..2 {
        let ran = seed(&[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let written = read();
    assert!(written.trim_end().lines().last().is_some_and(|line| line.starts_with("{\"lines\":")), "{written}");
    let changed = written.replacen("\"age\":", "\"age\":1", 1);
    for text in [changed.as_str(), "{\"key\":\"user:1\",\"list\":[1]}\n", "something else"] {
        workspace.write("data/own.ndjson", text);
        let ran = seed(&[]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("--force overwrites it"), "{}", ran.stderr);
        assert_eq!(read(), text);
    }
    assert_eq!((seed(&["--force"]).code, read()), (Some(0), written));
}

#[test]
fn a_damaged_data_file_is_refused_and_one_without_a_closing_line_is_noted() {
    let workspace = Workspace::new("redis://127.0.0.1:1");
    let ask = || workspace.rankd_in(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
    let good = std::fs::read_to_string(workspace.folder().join("data/demo.ndjson")).expect("it is there");
    let ran = ask();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    workspace.write("data/demo.ndjson", &good.replacen("\"age\":", "\"age\":1", 1));
    let ran = ask();
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("data/demo.ndjson:881: the lines before this one are not those"), "{}", ran.stderr);
    let (open, _) = good.trim_end().rsplit_once('\n').expect("it has lines");
    workspace.write("data/demo.ndjson", open);
    let ran = ask();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: data/demo.ndjson has no closing line"), "{}", ran.stderr);
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
