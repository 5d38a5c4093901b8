//! `exclude` and `only` ask for members: on every store the same rows as a reader that goes row by row, in few commands, and never with a hole
//! where a key cannot be asked.

use crate::fake::{Fake, Then};
use crate::nodes::Cluster;
use crate::program::{Ran, Workspace, endpoint};
use crate::proxy::Proxy;
use crate::server::Server;
use std::fmt::Write;

/// Rows of the plans: more than one command asks for.
const ROWS: u64 = 12_000;
const PATIENT: &str = "connect_timeout_ms = 10000\nrequest_timeout_ms = 10000\nstall_timeout_ms = 10000";

/// A plan with rows `1..=ROWS`, whose `likes` is one less than the id and whose `age` is one of 40, and this last node.
fn plan(op: &str, params: &str) -> String {
    format!(
        r#"{{"schema_version": 1, "plan_name": "members", "nodes": [
        {{"node_id": "n0", "op": "fixed_source", "params": {{"row_count": {ROWS}, "columns": {{"likes": {{"sequence": {{"start": 0, "step": 1}}}}, "age": {{"hash": {{"seed": 1, "modulus": 40}}}}}}}}}},
        {{"node_id": "n1", "op": "{op}", "inputs": ["n0"], "params": {{"endpoint": "redis_default", {params}}}}}
    ], "outputs": ["n1"]}}"#
    )
}

fn ask(workspace: &Workspace, env: &str, plan: &str) -> Ran {
    workspace.write("plans/members.plan.json", plan);
    workspace
        .rankd_in(&["--plan_name", "members", "--env", env], "{\"user_id\": 1, \"output_keys\": [\"id\", \"age\"]}\n")
}

/// Id and age of each row of an answer.
fn rows(ran: &Ran) -> Vec<(u64, u64)> {
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let row = |text: &str| Some((number(text)?, number(text.split("\"age\":").nth(1)?)?));
    ran.stdout.split("{\"id\":").skip(1).filter_map(row).collect()
}

/// Whether an id is a member of the collection of a group; some groups have none.
fn is_member(group: u64, id: u64) -> bool {
    group != 7 && (id * 31 + group * 17) % 5 < 2
}

#[test]
fn members_are_found_alike_everywhere() {
    let (server, cluster) = (Server::start(&[]), Cluster::start());
    let workspace = Workspace::new(&server.url());
    let nodes: Vec<String> = cluster.masters.iter().map(Server::url).collect();
    for (name, at, policy) in [
        ("local", "memory:data/members.ndjson", ""),
        ("test", &server.url(), PATIENT),
        ("cluster", &nodes.join(" "), PATIENT),
    ] {
        workspace.write(&format!("registry/endpoints.{name}.toml"), &endpoint(at, policy));
    }
    let mut data = String::new();
    for group in (0..40).filter(|group| *group != 7) {
        let members: Vec<u64> = (1..=ROWS).filter(|id| is_member(group, *id)).collect();
        let list: Vec<String> = members.iter().map(|id| format!("\"{id}\"")).collect();
        let scored: Vec<String> = members.iter().map(|id| format!("[\"{id}\",{}]", id % 3)).collect();
        let _ = writeln!(data, "{{\"key\":\"s:{group}\",\"set\":[{},\"x\"]}}", list.join(","));
        let _ = writeln!(data, "{{\"key\":\"z:{group}\",\"zset\":[{}]}}", scored.join(","));
    }
    workspace.write("data/members.ndjson", &data);
    for env in ["test", "cluster"] {
        let ran = workspace.rankd_in(&["seed", "--env", env, "--data", "data/members.ndjson"], "");
        assert_eq!(ran.code, Some(0), "{env}: {}", ran.stderr);
    }
    let all = rows(&ask(&workspace, "local", &plan("exclude", r#""key": "none", "from": "set""#)));
    assert_eq!(all.len() as u64, ROWS, "a key that is not there has no members");
    for (from, letter) in [("set", "s"), ("zset", "z")] {
        // One key for all rows, and one for each of forty groups.
        for (key, group_of) in [("3", None), ("{key.age}", Some(()))] {
            let is_named = |(id, age): &(u64, u64)| is_member(group_of.map_or(3, |()| *age), *id);
            let (named, others): (Vec<_>, Vec<_>) = all.iter().copied().partition(is_named);
            let params = format!(r#""key": "{letter}:{key}", "from": "{from}""#);
            for env in ["local", "test", "cluster"] {
                assert_eq!(rows(&ask(&workspace, env, &plan("only", &params))), named, "{env} {params}");
                assert_eq!(rows(&ask(&workspace, env, &plan("exclude", &params))), others, "{env} {params}");
            }
        }
        // Any hit of several keys: `likes` is one less than the id.
        let either = |(id, _): &(u64, u64)| is_member(3, *id) || is_member(3, *id - 1) && *id > 1;
        let named: Vec<_> = all.iter().copied().filter(either).collect();
        let params = format!(r#""key": "{letter}:3", "from": "{from}", "by": ["id", "likes"]"#);
        for env in ["local", "test", "cluster"] {
            assert_eq!(rows(&ask(&workspace, env, &plan("only", &params))), named, "{env} {params}");
        }
    }
}

#[test]
fn a_key_is_asked_in_one_command_and_all_keys_in_one_round_trip() {
    let server = Server::start(&[]);
    server.must(&["SADD", "s:1", "1", "2"]);
    let proxy = Proxy::to(server.port);
    let workspace = Workspace::with_policy(&proxy.url(), &format!("{PATIENT}\nretry_percent = 0"));
    let plan = plan("exclude", r#""key": "s:{key.age}", "from": "set""#).replace("12000", "1000");
    assert_eq!(rows(&ask(&workspace, "test", &plan)).len(), 1000 - rows_of_group_1(&workspace, &plan));
    assert_eq!(proxy.trips(), 2, "one for each of two runs");
    let calls = server.text(&["INFO", "commandstats"]).expect("an answer");
    let line = calls.lines().find(|line| line.starts_with("cmdstat_smismember")).expect("it was called");
    assert!(line.contains("calls=80,"), "forty keys, two runs: {line}");
}

/// How many of the rows 1 and 2 are in the group 1.
fn rows_of_group_1(workspace: &Workspace, plan: &str) -> usize {
    let kept = rows(&ask(workspace, "test", &plan.replace("exclude", "only")));
    assert!(kept.iter().all(|(id, age)| *id <= 2 && *age == 1), "{kept:?}");
    kept.len()
}

#[test]
fn what_cannot_be_asked_is_an_error_and_opens_nothing() {
    let server = Server::start(&[]);
    server.must(&["RPUSH", "list", "1"]);
    let workspace = Workspace::with_policy(&server.url(), PATIENT);
    for (from, key, code) in [("set", "list", "E402"), ("zset", "list", "E402"), ("bf", "any", "E422")] {
        let ran = ask(&workspace, "test", &plan("exclude", &format!(r#""key": "{key}", "from": "{from}""#)));
        assert!(ran.stdout.contains(&format!("\"code\":\"{code}\"")), "{from}: {} {}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("candidates"), "{}", ran.stdout);
    }
    let ran = ask(&workspace, "test", &plan("exclude", r#""key": "any", "from": "bf""#));
    assert!(ran.stdout.contains("does not know the command that this read needs"), "{}", ran.stdout);
}

#[test]
fn a_filter_answers_with_numbers_or_truth_values() {
    for answer in [":1\r\n:0\r\n:1\r\n", "#t\r\n#f\r\n#t\r\n"] {
        let fake = Fake::saying(format!("*3\r\n{answer}").as_bytes(), Then::Listen);
        let workspace = Workspace::with_policy(&fake.url(), PATIENT);
        let plan = plan("only", r#""key": "bf", "from": "bf""#).replace("12000", "3");
        let kept: Vec<u64> = rows(&ask(&workspace, "test", &plan)).iter().map(|(id, _)| *id).collect();
        assert_eq!(kept, [1, 3]);
    }
}
