//! `rankd why` about captured runs: what it tells is what it told when they ran, whatever has changed since.

use crate::json::Json;
use crate::program::{Folder, Ran, node, run};

/// Captures one request for each of three users, called r1 to r3.
fn capture(folder: &Folder, plan: &[&str]) -> String {
    let captures = folder.path("captures").display().to_string();
    let requests: String = (1..=3).map(|user| format!("{{\"user_id\":{user},\"request_id\":\"r{user}\"}}\n")).collect();
    let ran = run(&[&["run", "--capture", &captures], plan].concat(), requests.as_bytes());
    assert_eq!((ran.answers().len(), &*ran.stderr), (3, ""));
    captures
}

fn why(captures: &str, request_id: &str, items: &[&str], more: &[&str]) -> Ran {
    let items: Vec<&str> = items.iter().flat_map(|item| ["--item", item]).collect();
    run(&[&["why", "--capture", captures, "--request_id", request_id, "--json"], &items[..], more].concat(), b"")
}

/// A plan that reads lists of 2 of each of the user's followers, and keeps the best `count`.
fn feed(folder: &Folder, count: usize) -> String {
    let nodes = [
        node("v", "viewer", &[], r#""endpoint":"redis_default""#),
        node("f", "follow", &["v"], r#""endpoint":"redis_default","fanout":4"#),
        node("m", "media", &["f"], r#""endpoint":"redis_default","fanout":2"#),
        node("s", "sort", &["m"], r#""key":"id","order":"desc""#),
        node("t", "take", &["s"], &format!(r#""count":{count}"#)),
    ];
    folder.plan("feed", &nodes, &["t"])
}

#[test]
fn a_captured_run_is_told_as_it_was_when_it_ran() {
    let folder = Folder::new();
    let plan = feed(&folder, 2);
    let captures = capture(&folder, &["--plan", &plan]);
    let answer = run(&["run", "--plan", &feed(&folder, 100)], b"{\"user_id\":1}\n").answers().remove(0);
    let ids: Vec<String> = answer.list("candidates").iter().map(|row| row.number("id").to_string()).collect();
    assert!(ids.len() > 3, "{ids:?}");
    let items: Vec<&str> = ids.iter().take(5).map(String::as_str).collect();
    let asked: Vec<&str> = items.iter().flat_map(|item| ["--item", item]).collect();
    let live =
        run(&[&["why", &feed(&folder, 2), "--json"], &asked[..]].concat(), b"{\"user_id\":1,\"request_id\":\"r1\"}\n");
    assert_eq!(live.code, 0, "{}", live.stderr);
    // The plan has changed since, and there is no store.
    feed(&folder, 100);
    for scheduler in ["async", "pools", "sequential"] {
        let then = why(&captures, "r1", &items, &["--scheduler", scheduler]);
        assert_eq!((then.code, &*then.stderr, &*then.stdout), (0, "", &*live.stdout), "{scheduler}");
    }
    let told = Json::read(live.stdout.trim());
    let verdicts: Vec<&str> = told.list("items").iter().map(|item| item.text("verdict")).collect();
    assert_eq!(verdicts[..3], ["answered", "answered", "dropped"]);
    let change = told.list("items")[2].at("change");
    assert_eq!((change.text("what"), change.number("from"), change.number("to")), ("count", 2.0, 3.0));
    // The plan of today, on what was read then.
    let today = why(&captures, "r1", &items[2..3], &[&plan]);
    assert_eq!(Json::read(today.stdout.trim()).list("items")[0].text("verdict"), "answered", "{}", today.stderr);
}

#[test]
fn what_was_read_says_why_an_item_was_in_no_source() {
    let folder = Folder::new();
    let captures = capture(&folder, &["--plan", &feed(&folder, 2)]);
    let told = why(&captures, "r2", &["999999"], &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let never = Json::read(told.stdout.trim()).list("items")[0].list("never").to_vec();
    let whys: Vec<&str> = never.iter().map(|source| source.text("why")).collect();
    // Four followers are read of more, so whether it stands behind them was not captured.
    assert_eq!((whys[0], whys.len()), ("user", 3), "{whys:?}");
    assert!(whys[1..].iter().all(|why| ["failed", "absent"].contains(why)), "{whys:?}");
}

#[test]
fn weather_of_a_captured_run_is_told() {
    let folder = Folder::new();
    let sleep = r#"{"node_id":"z","op":"sleep","inputs":["s"],"params":{"duration_ms":3600000},"timeout_ms":1,"fallback":{"node":"r"}}"#;
    let source = |id: &str, ids: &str| node(id, "fixed_source", &[], &format!(r#""ids":{ids}"#));
    let plan = folder.plan("slow", &[source("s", "[1,2]"), source("r", "[7]"), sleep.to_owned()], &["z"]);
    let captures = capture(&folder, &["--plan", &plan]);
    let told = why(&captures, "r3", &["1"], &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let told = Json::read(told.stdout.trim());
    assert_eq!((told.text("request_id"), told.list("degraded").len()), ("r3", 1));
    let dropped: Vec<&Json> =
        told.list("items")[0].list("rows").iter().filter(|row| row.text("end") == "dropped").collect();
    assert!(dropped.iter().any(|row| row.text("dropped.why") == "fallback"), "{dropped:?}");
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_reason() {
    let folder = Folder::new();
    let captures = capture(&folder, &["--plan", &feed(&folder, 2)]);
    let refused = |args: &[&str], code: i32, expected: &str| {
        let ran = run(&[&["why", "--item", "1"], args].concat(), b"");
        assert!(ran.code == code && ran.stderr.contains(expected), "{args:?}: {} {}", ran.code, ran.stderr);
    };
    refused(&["--capture", &captures, "--request_id", "r9"], 1, "no request with the id \"r9\" was captured there");
    refused(&["--capture", &captures], 2, "--request-id");
    refused(&["feed", "--request_id", "r1"], 2, "--capture");
    refused(&["--capture", &captures, "--request_id", "r1", "--user", "1"], 2, "cannot be used with");
    refused(&["--capture", "/nowhere", "--request_id", "r1"], 1, "/nowhere");
    let nonsense = folder.write("nonsense.arrows", "nonsense");
    refused(&["--capture", &nonsense, "--request_id", "r1"], 1, "it is no capture");
}
