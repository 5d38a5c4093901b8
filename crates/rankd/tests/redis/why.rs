//! Why an item was in no source, told by the embedded store, a server and a cluster: the same in all of them, and what commands show.

use crate::fake::{Fake, Then};
use crate::nodes::Cluster;
use crate::program::{Workspace, endpoint};
use crate::server::Server;

/// A source or fan-out for each kind of what a store can have.
const PLAN: &str = r#"{"schema_version": 1, "plan_name": "sources", "nodes": [
  {"node_id": "fixed", "op": "fixed_source", "inputs": [], "params": {"ids": [1, 2]}},
  {"node_id": "given", "op": "candidates", "inputs": [], "params": {}},
  {"node_id": "list", "op": "follow", "inputs": ["fixed"], "params": {"endpoint": "redis_default", "fanout": 2}},
  {"node_id": "set", "op": "expand", "inputs": [], "params": {"endpoint": "redis_default", "key": "set:{user_id}", "from": "set", "fanout": 2}},
  {"node_id": "up", "op": "expand", "inputs": [], "params": {"endpoint": "redis_default", "key": "zset:{user_id}", "from": "zset", "fanout": 2}},
  {"node_id": "down", "op": "expand", "inputs": [], "params": {"endpoint": "redis_default", "key": "zset:{user_id}", "from": "zset", "order": "desc", "fanout": 2}},
  {"node_id": "hash", "op": "expand", "inputs": [], "params": {"endpoint": "redis_default", "key": "hash:{user_id}", "from": "hash", "fanout": 2}},
  {"node_id": "json", "op": "expand", "inputs": [], "params": {"endpoint": "redis_default", "key": "json:{user_id}", "from": "json", "fanout": 2}},
  {"node_id": "none", "op": "media", "inputs": ["given"], "params": {"endpoint": "redis_default"}},
  {"node_id": "all", "op": "merge", "inputs": ["fixed", "list", "set", "up", "down", "hash", "json", "none"], "params": {"how": "append"}}],
  "outputs": ["all"]}"#;

const DATA: &str = r#"{"key": "follow:1", "list": [11, 12, 90, 91]}
{"key": "follow:2", "list": [21]}
{"key": "set:1", "set": [31, 32, 90]}
{"key": "zset:1", "zset": [["41", 1], ["42", 2], ["90", 3], ["43", 4], ["44", 5]]}
{"key": "hash:1", "hash": {"51": 1, "52": 2, "90": 3}}
{"key": "json:1", "string": "[{\"id\": 61}]"}
"#;

/// For each source: its node, why, the key and the position.
fn never(workspace: &Workspace, env: &str, scheduler: &str, item: &str) -> Vec<String> {
    let args = ["why", "sources", "--user", "1", "--item", item, "--json", "--env", env, "--scheduler", scheduler];
    let ran = workspace.rankd_in(&args, "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let (_, never) = ran.stdout.split_once("\"never\":[").unwrap_or_else(|| panic!("{}", ran.stdout));
    let field = |part: &str, name: &str| {
        let rest = part.split_once(&format!("\"{name}\":")).map(|(_, rest)| rest);
        rest.map(|rest| rest.split([',', '}']).next().unwrap_or_default().trim_matches('"').to_owned())
    };
    let parts = never.split("{\"node\":").skip(1);
    let told = parts.map(|part| {
        let node = part.split('"').nth(1).unwrap_or_default();
        let words = ["why", "key", "position"].iter().filter_map(|name| field(part, name));
        [vec![node.to_owned()], words.collect()].concat().join(" ")
    });
    told.collect()
}

#[test]
fn every_store_says_where_an_item_is_that_no_source_gave() {
    let (server, cluster) = (Server::start(&[]), Cluster::start());
    let workspace = Workspace::new(&server.url());
    workspace.write("plans/sources.plan.json", PLAN);
    workspace.write("data/sources.ndjson", DATA);
    workspace.write("registry/endpoints.memory.toml", &endpoint("memory:data/sources.ndjson", ""));
    let nodes: Vec<String> = cluster.masters.iter().map(Server::url).collect();
    workspace.write("registry/endpoints.cluster.toml", &endpoint(&nodes.join(" "), ""));
    for env in ["test", "cluster"] {
        let ran = workspace.rankd_in(&["seed", "--env", env, "--data", "data/sources.ndjson"], "");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let cut = [
        "fixed plan",
        "given request",
        "list cut follow:1 2",
        "set cut set:1 null",
        "up cut zset:1 2",
        "down cut zset:1 2",
        "hash cut hash:1 null",
        "json not_asked",
        "none no_input",
    ];
    let absent = [
        "fixed plan",
        "given request",
        "list absent",
        "set absent",
        "up absent",
        "down absent",
        "hash absent",
        "json not_asked",
        "none no_input",
    ];
    for env in ["memory", "test", "cluster"] {
        for scheduler in ["async", "pools", "sequential"] {
            assert_eq!(never(&workspace, env, scheduler, "90"), cut, "{env} {scheduler}");
            assert_eq!(never(&workspace, env, scheduler, "7777"), absent, "{env} {scheduler}");
        }
    }
    let told = workspace.rankd_in(&["why", "sources", "--user", "1", "--item", "91", "--env", "cluster"], "").stdout;
    assert!(
        told.contains("not from follow list: element 3 of follow:1 in redis_default, which is cut at fanout 2"),
        "{told}"
    );
    assert!(told.contains("not from expand set: not in set:1 of redis_default"), "{told}");
    // What has gone by the time that it is asked for is told as it is now.
    server.must(&["DEL", "follow:1", "follow:2"]);
    let gone = never(&workspace, "test", "async", "90");
    assert_eq!(gone[2], "list absent");
    // A key of another type has no such element.
    server.must(&["SET", "follow:1", "text"]);
    let wrong = workspace.rankd_in(&["why", "sources", "--user", "1", "--item", "90", "--env", "test"], "");
    assert!(wrong.stdout.contains("the run failed"), "{}", wrong.stdout);
}

#[test]
fn a_server_that_cannot_be_asked_costs_only_that_answer() {
    let fake = Fake::start(|command, _| match command {
        "PING" => (b"+PONG\r\n".to_vec(), Then::Listen),
        "LRANGE" => (b"*1\r\n$2\r\n11\r\n".to_vec(), Then::Listen),
        _ => (b"-ERR unknown command 'LPOS'\r\n".to_vec(), Then::Listen),
    });
    let workspace = Workspace::new(&fake.url());
    let plan = r#"{"schema_version": 1, "plan_name": "sources", "nodes": [
      {"node_id": "fixed", "op": "fixed_source", "inputs": [], "params": {"ids": [1]}},
      {"node_id": "list", "op": "follow", "inputs": ["fixed"], "params": {"endpoint": "redis_default"}}], "outputs": ["list"]}"#;
    workspace.write("plans/sources.plan.json", plan);
    let ran = workspace.rankd(&["why", "sources", "--user", "1", "--item", "90"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("not from follow list: redis_default could not be asked"), "{}", ran.stdout);
}
