//! `rankd check --connect --sample N`: values that the nodes of plans cannot use, alike from a file, a server and a cluster.

use crate::nodes::Cluster;
use crate::program::{Workspace, endpoint};
use crate::server::Server;

const KEYS: [(&str, &str); 8] = [
    ("parent_id", "int"),
    ("score", "float"),
    ("count", "int"),
    ("title", "string"),
    ("topic", "string"),
    ("numbers", "list<int>"),
    ("tags", "list<string>"),
    ("embedding", "vector<2>"),
];

/// The nodes that read, as their op and parameters.
const NODES: [(&str, &str); 15] = [
    ("expand", r#""key": "u:{user_id}:list", "from": "list""#),
    ("expand", r#""key": "u:{user_id}:set", "from": "set""#),
    ("expand", r#""key": "{{{user_id}}}:zset", "from": "zset", "score_key": "count""#),
    ("expand", r#""key": "u:{user_id}:hash", "from": "hash", "value_key": "score""#),
    ("expand", r#""key": "u:{user_id}:json", "from": "json", "rows": "/items", "fields": {"/n/0": "count"}"#),
    ("hydrate", r#""key": "h:{id}", "from": "hash", "fields": {"t": "title", "s": "score", "n": "numbers"}"#),
    ("hydrate", r#""key": "v:{id}", "from": "hash", "fields": {"e": "embedding"}, "vectors": "f32""#),
    ("hydrate", r#""key": "j:{key.topic}", "from": "json", "fields": {"t": "title", "/m/y": "count"}"#),
    ("hydrate", r#""key": "s:{id}", "from": "string", "out_key": "count""#),
    ("hydrate", r#""key": "f:{id}", "from": "vector_f32", "out_key": "embedding""#),
    ("hydrate", r#""key": "l:{id}", "from": "list", "out_key": "numbers""#),
    ("hydrate", r#""key": "z:{id}", "from": "zset", "out_key": "numbers""#),
    ("hydrate", r#""prefix": "user", "keys": ["count"]"#),
    ("follow", r#""fanout": 5"#),
    ("hydrate", r#""key": "S:{id}", "from": "set", "out_key": "numbers""#),
];

/// What is stored, and what is said of each key; nothing of those that can be used, or that no template gives.
const STORED: [(&str, &str); 30] = [
    (r#"{"key":"u:1:list","list":["1","x","2"]}"#, r#""u:1:list", id: "x" is not int"#),
    (r#"{"key":"u:2:list","set":["1"]}"#, r#""u:2:list": it is not a list"#),
    (r#"{"key":"u:3:list","list":["1","-2"]}"#, ""),
    (r#"{"key":"u:x:list","list":["no user of ours"]}"#, ""),
    (r#"{"key":"u:1:set","set":["1","1.5"]}"#, r#""u:1:set", id: "1.5" is not int"#),
    (r#"{"key":"{1}:zset","zset":[["7",1],["8",1.5],["y",2]]}"#, r#""{1}:zset", count: "1.5" is not int"#),
    (r#"{"key":"{2}:zset","zset":[["a\nb",2]]}"#, r#""{2}:zset", id: "a\nb" is not int"#),
    (r#"{"key":"u:1:hash","hash":{"1":"0.5","2":"half"}}"#, r#""u:1:hash", score: "half" is not float"#),
    (
        r#"{"key":"u:1:json","string":"{\"items\":[{\"id\":1,\"n\":[\"one\"]},{\"id\":2}]}"}"#,
        r#""u:1:json", count: "\"one\"" is not int"#,
    ),
    (
        r#"{"key":"u:2:json","string":"{\"items\":[{\"id\":1}"}"#,
        r#""u:2:json", id: "{\"items\":[{\"id\":1}" is not int"#,
    ),
    (r#"{"key":"u:3:json","string":"{\"items\":[{\"n\":[1]}]}"}"#, r#""u:3:json", id: "{\"n\":[1]}" is not int"#),
    (r#"{"key":"h:1","hash":{"t":"a","s":"1,5"}}"#, r#""h:1", score: "1,5" is not float"#),
    (r#"{"key":"h:2","hash":{"n":"[1,null]"}}"#, r#""h:2", numbers: "[1,null]" is not list<int>"#),
    (r#"{"key":"h:3","hash":{"t":"a","s":"1.5","n":"[1]"}}"#, ""),
    (r#"{"key":"h:4:more","hash":{"s":"another layout"}}"#, ""),
    (r#"{"key":"v:1","hash":{"e":"[1,2]"}}"#, r#""v:1", embedding: "[1,2]" is not vector<2>"#),
    (r#"{"key":"j:a","string":"{\"t\":7,\"m\":{\"y\":1}}"}"#, r#""j:a", title: "7" is not string"#),
    (r#"{"key":"j:b","string":"{\"t\":null,\"m\":{\"y\":\"1\"}}"}"#, r#""j:b", count: "\"1\"" is not int"#),
    (r#"{"key":"j:c","string":"no json"}"#, r#""j:c", title: "no json" is not string"#),
    (r#"{"key":"s:1","string":"12x"}"#, r#""s:1", count: "12x" is not int"#),
    (r#"{"key":"s:2","list":["12"]}"#, r#""s:2": it is not a string"#),
    (r#"{"key":"f:1","base64":"AACAfwAAgH8="}"#, r#""f:1", embedding: "8 bytes: 0000807f0000807f" is not vector<2>"#),
    (r#"{"key":"f:2","base64":"AACAPwAAgD8="}"#, ""),
    (r#"{"key":"l:1","list":["1","two","3"]}"#, r#""l:1", numbers: "two" is not list<int>"#),
    (r#"{"key":"z:1","zset":[["three",3]]}"#, r#""z:1", numbers: "three" is not list<int>"#),
    (
        r#"{"key":"user:1","hash":{"count":"many","title":"nobody reads this"}}"#,
        r#""user:1", count: "many" is not int"#,
    ),
    (r#"{"key":"user:2","list":["1"]}"#, r#""user:2": it is not a hash"#),
    (r#"{"key":"follow:1","list":["2","three"]}"#, r#""follow:1", id: "three" is not int"#),
    (r#"{"key":"follow:2","list":["2","3"]}"#, ""),
    (r#"{"key":"S:1","set":["1","four"]}"#, r#""S:1", numbers: "four" is not list<int>"#),
];

/// More is said of the keys of which two values are wrong.
const MORE: [&str; 2] = [r#""{1}:zset", id: "y" is not int"#, r#""j:c", count: "no json" is not int"#];

fn write_project(workspace: &Workspace) {
    let mut keys =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n".to_owned();
    for (at, (name, type_of)) in KEYS.iter().enumerate() {
        let key_id = at + 2;
        keys += &format!("[[key]]\nkey_id = {key_id}\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\n");
    }
    workspace.write("registry/keys.toml", &keys);
    let nodes = NODES.iter().enumerate().map(|(at, (op, params))| {
        let inputs = if *op == "expand" { "[]" } else { "[\"n\"]" };
        format!(
            r#"{{"node_id": "n{at}", "op": "{op}", "inputs": {inputs}, "params": {{"endpoint": "redis_default", {params}}}}}"#
        )
    });
    let nodes: Vec<String> = nodes.collect();
    let outputs: Vec<String> = (0..NODES.len()).map(|at| format!("\"n{at}\"")).collect();
    let plan = format!(
        r#"{{"schema_version": 1, "plan_name": "layouts", "nodes": [{{"node_id": "n", "op": "candidates"}}, {}], "outputs": [{}]}}"#,
        nodes.join(", "),
        outputs.join(", ")
    );
    workspace.write("plans/layouts.plan.json", &plan);
    let lines: Vec<&str> = STORED.iter().map(|(line, _)| *line).collect();
    workspace.write("data/layouts.ndjson", &lines.join("\n"));
}

#[test]
fn a_sample_shows_what_nodes_cannot_use_of_every_layout() {
    let (server, cluster) = (Server::start(&[]), Cluster::start());
    let workspace = Workspace::new(&server.url());
    let patient = "connect_timeout_ms = 10000\nrequest_timeout_ms = 10000\nstall_timeout_ms = 10000";
    let masters: Vec<String> = cluster.masters.iter().map(Server::url).collect();
    let local = "memory:data/layouts.ndjson";
    for (name, at) in [("local", local), ("test", &server.url()), ("cluster", &masters.join(" "))] {
        let policy = if name == "local" { "" } else { patient };
        workspace.write(&format!("registry/endpoints.{name}.toml"), &endpoint(at, policy));
    }
    write_project(&workspace);
    for env in ["test", "cluster"] {
        let seeded = workspace.rankd_in(&["seed", "--env", env, "--data", "data/layouts.ndjson"], "");
        assert_eq!(seeded.code, Some(0), "{}", seeded.stderr);
    }
    // More than the texts show: all are in the JSON.
    let mut expected: Vec<&str> = STORED.iter().map(|(_, said)| *said).filter(|said| !said.is_empty()).collect();
    expected.extend(MORE);
    for env in ["local", "test", "cluster"] {
        let args = ["check", "layouts", "--connect", "--sample", "100", "--env", env];
        let ran = workspace.rankd_in(&args, "");
        assert_eq!(ran.code, Some(0), "{env}: {}", ran.stderr);
        let count = format!("28 keys read as 15 nodes of plans would, {} values cannot be used", expected.len());
        assert!(ran.stderr.contains(&count), "{env}: {}", ran.stderr);
        let lines: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert_eq!(lines.len(), 21, "twenty values, and how many more there are: {}", ran.stderr);
        for line in &lines[..20] {
            assert!(expected.contains(line), "{env}: {line}");
        }
        let ran = workspace.rankd_in(&[&args[..], &["--json"]].concat(), "");
        assert_eq!(ran.stdout.matches("{\"key\":").count(), expected.len(), "{env}: {}", ran.stdout);
        for (at, value) in [("u:1:list", "\"x\""), ("{2}:zset", r#""a\nb""#), ("S:1", "\"four\"")] {
            let (at, value) = (format!("{{\"key\":\"{at}\",\"field\":"), format!("\"value\":{value},"));
            let found = ran
                .stdout
                .split(&at)
                .nth(1)
                .is_some_and(|rest| rest.split('}').next().is_some_and(|cell| cell.contains(&value)));
            assert!(found, "{env}: {at} {value}: {}", ran.stdout);
        }
    }
    // Few keys of many, and a server that is gone.
    let ran = workspace.rankd_in(&["check", "layouts", "--connect", "--sample", "1", "--env", "test"], "");
    assert!(ran.stderr.contains("15 keys read as 15 nodes"), "{}", ran.stderr);
    drop(server);
    let ran = workspace.rankd_in(&["check", "layouts", "--connect", "--sample", "1", "--env", "test"], "");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}
