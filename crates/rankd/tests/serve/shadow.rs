//! `--shadow PLAN=SHADOW:SHARE`: what is compared, what it costs the store, what a bad shadow costs others, and what is refused.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::redis_server;
use crate::server::{Folder, PATIENCE, Server, node, plan_text, repository};
use std::time::Duration;

const ASK: &str = r#"{"user_id":1}"#;

/// The name of a metric of a pair.
fn of(name: &str, plan: &str, shadow: &str, more: &str) -> String {
    format!("rankd_shadow_{name}{{plan=\"{plan}\",shadow=\"{shadow}\"{more}}}")
}

/// How many runs there were of `b` as the shadow of `a`, whatever came of them.
fn runs(metrics: &str, plan: &str, shadow: &str) -> f64 {
    ["same", "differs", "degraded", "failed"]
        .iter()
        .map(|result| metric(metrics, &of("runs_total", plan, shadow, &format!(",result=\"{result}\""))))
        .sum()
}

/// A plan that gives these rows.
fn ids(folder: &Folder, name: &str, ids: &[i64]) {
    folder.plan(name, &[node("n0", "fixed_source", &[], &format!("\"ids\":{ids:?}"))], "n0");
}

/// Asks for a plan so many times on one connection, and waits for the shadows now and then, so that none is dropped.
fn ask(server: &Server, (plan, shadow): (&str, &str), times: usize) {
    let before = runs(&get(&server.url("/metrics")).body, plan, shadow);
    let mut line = Line::open(&server.address);
    for time in 1..=times {
        line.post(&format!("/rank/{plan}"), ASK).unwrap();
        let answer = line.answer().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        if time % 32 == 0 || time == times {
            metrics_until(&server.address, |now| runs(now, plan, shadow) == before + time as f64);
            // On a busy machine that takes longer than a connection may be idle.
            line = Line::open(&server.address);
        }
    }
}

fn near(metrics: &str, name: &str, value: f64) {
    let seen = metric(metrics, name);
    assert!((seen - value).abs() < 1e-9, "{name} is {seen}, not {value}\n{metrics}");
}

#[test]
fn two_lists_have_the_figures_that_were_computed_by_hand() {
    let folder = Folder::new();
    ids(&folder, "a", &[1, 2, 3, 4]);
    ids(&folder, "b", &[2, 1, 3, 5]);
    let server = Server::start(&folder.0, &["--shadow", "a=b:1", "--trace-every", "1"]);
    ask(&server, ("a", "b"), 10);
    let metrics = get(&server.url("/metrics")).body;
    let figure = |name: &str| of(name, "a", "b", "");
    // 1, 2 and 3 are in both: 3 of 4. Two of these moved by one place, one by none. Shared at depths 1 to 4: 0, 2, 3, 3, so with p = 0.9 it is
    // 0.1 / 0.9 × (0.81 + 0.729 + 0.75 × 0.6561) + 0.75 × 0.6561.
    for (name, mean) in [("overlap", 0.75), ("displacement", 2.0 / 3.0), ("rbo", 0.71775)] {
        near(&metrics, &figure(&format!("{name}_sum")), 10.0 * mean);
        near(&metrics, &figure(&format!("{name}_count")), 10.0);
    }
    near(&metrics, &of("overlap_bucket", "a", "b", ",le=\"0.7\""), 0.0);
    near(&metrics, &of("overlap_bucket", "a", "b", ",le=\"0.8\""), 10.0);
    near(&metrics, &of("runs_total", "a", "b", ",result=\"differs\""), 10.0);
    // A shadow is in no count but its own.
    for (name, value) in [
        (r#"rankd_requests_total{plan="a",outcome="ok"}"#, 10.0),
        (r#"rankd_requests_total{plan="b",outcome="ok"}"#, 0.0),
        (r#"rankd_request_seconds_count{plan="b"}"#, 0.0),
        (r#"rankd_rows_total{plan="a"}"#, 40.0),
        (r#"rankd_op_nodes_total{op="fixed_source",where="loop"}"#, 10.0),
        ("rankd_traced_runs_total", 10.0),
    ] {
        near(&metrics, name, value);
    }
}

#[test]
fn a_plan_beside_itself_is_the_same_page_by_page() {
    let folder = Folder::new();
    for plan in ["for_you", "complex_dag"] {
        let text = std::fs::read_to_string(repository().join(format!("plans/{plan}.plan.json"))).unwrap();
        folder.write(&format!("{plan}.plan.json"), &text);
        let (name, copy) = (format!("\"plan_name\":\"{plan}\""), format!("\"plan_name\":\"{plan}_copy\""));
        let text = text.replace(&name.replace(':', ": "), &copy).replace(&name, &copy);
        assert!(text.contains(&copy), "{text}");
        folder.write(&format!("{plan}_copy.plan.json"), &text);
    }
    let captures = Folder::new();
    let path = captures.0.display().to_string();
    let flags =
        ["--shadow", "for_you=for_you_copy:1", "--shadow", "complex_dag=complex_dag_copy:1", "--capture", &path];
    let server = Server::start(&folder.0, &flags);
    ask(&server, ("complex_dag", "complex_dag_copy"), 40);
    let first = post(&server.url("/rank/for_you"), r#"{"user_id":1,"now_ms":1700000000000}"#);
    let cursor = first.json().text("cursor").to_owned();
    assert!(!cursor.is_empty(), "{}", first.body);
    // The second page, a dial that the request sets, and a parameter.
    for more in [format!("\"params\":{{\"cursor\":{cursor:?}}}"), "\"params\":{\"score_min\":0.5}".to_owned()] {
        let answer = post(&server.url("/rank/for_you"), &format!("{{\"user_id\":1,{more}}}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    // What is captured of the same requests is whole, and shadows are not captured.
    let done = |now: &str| runs(now, "for_you", "for_you_copy") == 3.0 && metric(now, "rankd_captured_total") == 43.0;
    let metrics = metrics_until(&server.address, done);
    for (plan, times) in [("for_you", 3.0), ("complex_dag", 40.0)] {
        let copy = format!("{plan}_copy");
        near(&metrics, &of("runs_total", plan, &copy, ",result=\"same\""), times);
        near(&metrics, &of("overlap_sum", plan, &copy, ""), times);
        near(&metrics, &of("overlap_count", plan, &copy, ""), times);
        near(&metrics, &of("displacement_sum", plan, &copy, ""), 0.0);
        near(&metrics, &of("reads_total", plan, &copy, ",from=\"store\""), 0.0);
        assert!(metric(&metrics, &of("reads_total", plan, &copy, ",from=\"plan\"")) > times, "{metrics}");
    }
}

/// A folder with the repository's registry, whose store is this server.
fn registry(store: &redis_server::Server) -> Folder {
    let folder = Folder::new();
    for name in ["keys.toml", "params.toml"] {
        let text = std::fs::read_to_string(repository().join("registry").join(name)).unwrap();
        folder.write(name, &text);
    }
    let endpoint = "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\n";
    folder.write("endpoints.test.toml", &format!("{endpoint}url = {:?}\n", store.url()));
    folder
}

/// What a server was asked to do so far, by `INFO commandstats`, without what this test asks itself.
fn commands(store: &redis_server::Server) -> u64 {
    let stats = store.text(&["INFO", "commandstats"]).unwrap();
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let is_own = ["info", "eval", "ping"].contains(&name) || name.starts_with("config");
        (!is_own).then(|| rest.split(',').next().unwrap().parse::<u64>().unwrap())
    });
    calls.sum()
}

/// From a viewer to the media of those whom it follows, with their fields; what comes last is given.
fn feed(folder: &Folder, name: &str, fanout: usize, order: &str) {
    let endpoint = "\"endpoint\":\"redis_default\"";
    let nodes = [
        node("n0", "viewer", &[], endpoint),
        node("n1", "follow", &["n0"], &format!("{endpoint},\"fanout\":10")),
        node("n2", "media", &["n1"], &format!("{endpoint},\"fanout\":{fanout}")),
        node("n3", "hydrate", &["n2"], &format!("{endpoint},\"prefix\":\"media\",\"keys\":[\"topic\"]")),
        node("n4", "sort", &["n3"], &format!("\"key\":\"id\",\"order\":\"{order}\"")),
        node("n5", "take", &["n4"], "\"count\":10"),
    ];
    folder.write(&format!("{name}.plan.json"), &plan_text(name, &nodes, "n5"));
}

#[test]
fn a_shadow_that_differs_in_its_last_nodes_asks_the_store_for_nothing() {
    let store = redis_server::Server::start(&[]);
    let script = "redis.call('HSET', 'user:1', 'country', 'DE') \
        for i = 1, 10 do redis.call('RPUSH', 'follow:1', i) \
        for j = 1, 4 do redis.call('RPUSH', 'media:' .. i, i * 100 + j) redis.call('HSET', 'media:' .. (i * 100 + j), 'topic', 'cats') end end return 1";
    store.must(&["EVAL", script, "0"]);
    let (registry, plans) = (registry(&store), Folder::new());
    feed(&plans, "feed", 3, "asc");
    feed(&plans, "feed_next", 3, "desc");
    feed(&plans, "feed_shorter", 2, "asc");
    feed(&plans, "feed_longer", 4, "asc");
    let path = registry.0.display().to_string();
    let with_registry = ["--registry", &path, "--env", "test", "--watch-ms", "0"];
    const TIMES: usize = 200;
    let asked = |flags: &[&str], pair: Option<(&str, &str)>| {
        let server = Server::start(&plans.0, &[&with_registry, flags].concat());
        let before = commands(&store);
        match pair {
            Some(pair) => ask(&server, pair, TIMES),
            None => {
                let mut line = Line::open(&server.address);
                for _ in 0..TIMES {
                    line.post("/rank/feed", ASK).unwrap();
                    assert_eq!(line.answer().unwrap().status, 200);
                }
            }
        }
        (commands(&store) - before, get(&server.url("/metrics")).body)
    };
    let (alone, metrics) = asked(&[], None);
    // 1 viewer, 1 follow, 10 media, 30 hydrated.
    let each = 42;
    assert!(alone >= each * TIMES as u64, "{alone}");
    let own = metric(&metrics, "rankd_store_commands_total{endpoint=\"redis_default\"}");
    for (shadow, live) in [("feed_next", 0.0), ("feed_shorter", 0.0)] {
        let flag = format!("feed={shadow}:1");
        let (with_shadow, metrics) = asked(&["--shadow", &flag], Some(("feed", shadow)));
        assert!(with_shadow as f64 <= alone as f64 * 1.02, "{with_shadow} commands, {alone} without a shadow");
        near(&metrics, &of("reads_total", "feed", shadow, ",from=\"store\""), live);
        // The commands of shadows are not counted with those of requests.
        near(&metrics, "rankd_store_commands_total{endpoint=\"redis_default\"}", own);
        near(&metrics, &of("runs_total", "feed", shadow, ",result=\"differs\""), TIMES as f64);
        println!("{shadow}: {with_shadow} commands, {alone} without a shadow");
    }
    // A longer list is read again, and so are the fields of the ten media that are new.
    let (with_shadow, metrics) = asked(&["--shadow", "feed=feed_longer:1"], Some(("feed", "feed_longer")));
    near(&metrics, &of("reads_total", "feed", "feed_longer", ",from=\"store\""), 20.0 * TIMES as f64);
    let more = with_shadow - alone;
    assert!((20 * TIMES as u64..=20 * TIMES as u64 + 40).contains(&more), "{more} commands more");
}

#[test]
fn a_shadow_that_hangs_is_given_up_and_those_that_wait_are_bounded() {
    let folder = Folder::new();
    ids(&folder, "a", &[1, 2]);
    // It computes: a run on recorded reads does not sleep.
    let (first, never) =
        (node("n0", "fixed_source", &[], "\"ids\":[1,2]"), node("n1", "busy_cpu", &["n0"], "\"busy_wait_ms\":600000"));
    folder.plan("b", &[first, never], "n1");
    let mut server = Server::start(&folder.0, &["--shadow", "a=b:1"]);
    let mut line = Line::open(&server.address);
    for _ in 0..100 {
        line.post("/rank/a", ASK).unwrap();
        assert_eq!(line.answer().unwrap().status, 200);
    }
    let queue = of("dropped_total", "a", "b", ",reason=\"queue\"");
    let timeout = of("failed_total", "a", "b", ",kind=\"timeout\"");
    let metrics = metrics_until(&server.address, |now| metric(now, &queue) > 0.0);
    assert!(metric(&metrics, "rankd_shadow_waiting") <= 64.0, "{metrics}");
    // One runs, 64 wait; one that has been given up makes room for another.
    let metrics = metrics_until(&server.address, |now| metric(now, &timeout) >= 1.0);
    let (dropped, ended) = (metric(&metrics, &queue), runs(&metrics, "a", "b"));
    assert!(dropped + ended + 65.0 >= 100.0, "{metrics}");
    near(&metrics, r#"rankd_requests_total{plan="a",outcome="ok"}"#, 100.0);
    near(&metrics, r#"rankd_requests_total{plan="a",outcome="timeout"}"#, 0.0);
    let told = get(&server.url("/plans/a")).json().text("shadow.last_failure").to_owned();
    assert!(told.contains("E301") && told.contains("5000 ms"), "{told}");
    // Nobody waits for a shadow.
    server.signal("-TERM");
    assert_eq!(server.ended(Duration::from_secs(30)).code(), Some(0), "{}", server.said());
}

#[test]
fn a_shadow_that_makes_too_many_rows_fails_alone() {
    let folder = Folder::new();
    ids(&folder, "a", &[1]);
    let source = node("n0", "fixed_source", &[], "\"row_count\":60000");
    folder.plan("b", &[source, node("n1", "concat", &["n0"], "\"rhs\":\"n0\"")], "n1");
    let server = Server::start(&folder.0, &["--shadow", "a=b:1"]);
    ask(&server, ("a", "b"), 3);
    let metrics = get(&server.url("/metrics")).body;
    near(&metrics, &of("failed_total", "a", "b", ",kind=\"overloaded\""), 3.0);
    near(&metrics, &of("overlap_count", "a", "b", ""), 0.0);
    let told = get(&server.url("/plans/a")).json().text("shadow.last_failure").to_owned();
    assert!(told.contains("E608") && told.contains("120000 rows"), "{told}");
    // For requests, it may.
    assert_eq!(post(&server.url("/rank/b"), r#"{"user_id":1,"output_keys":[]}"#).status, 200);
}

#[test]
fn what_cannot_be_a_shadow_is_refused_at_the_start() {
    let folder = Folder::new();
    ids(&folder, "feed", &[1]);
    ids(&folder, "feed_next", &[1]);
    let params = Folder::new();
    for name in ["keys.toml", "endpoints.local.toml"] {
        params.write(name, &std::fs::read_to_string(repository().join("registry").join(name)).unwrap());
    }
    params.write(
        "params.toml",
        "[[param]]\nparam_id = 1\nname = \"most\"\ntype = \"int\"\nnullable = false\ndoc = \"\"\n",
    );
    let needs = r#"{"schema_version":1,"plan_name":"needs","nodes":[{"node_id":"n0","op":"fixed_source","inputs":[],"params":{"ids":[1]}},
        {"node_id":"n1","op":"filter","inputs":["n0"],"params":{"pred":"p0"}}],"outputs":["n1"],"expr_table":{},
        "pred_table":{"p0":{"op":"cmp","cmp":"<=","a":{"op":"key_ref","key":"id"},"b":{"op":"param_ref","param":"most"}}}}"#;
    folder.write("needs.plan.json", needs);
    let with_params = ["--registry", &params.0.display().to_string()].map(str::to_owned);
    for (flags, said) in [
        (
            &["feed=feed_nxt:0.1"][..],
            "--shadow feed=feed_nxt:0.1: there is no plan \"feed_nxt\"; did you mean \"feed_next\"?",
        ),
        (&["fead=feed_next:1"], "there is no plan \"fead\"; did you mean \"feed\"?"),
        (
            &["feed=needs:1"],
            "the plan \"needs\" needs the parameter \"most\", which requests for \"feed\" need not give",
        ),
        (&["feed=feed:1"], "a plan cannot be its own shadow"),
        (&["feed=feed_next"], "write it as PLAN=SHADOW:SHARE"),
        (&["feed_next"], "write it as PLAN=SHADOW:SHARE"),
        (&["feed=feed_next:0"], "SHARE must be a number above 0 and at most 1"),
        (&["feed=feed_next:1.1"], "SHARE must be a number above 0 and at most 1"),
        (&["feed=feed_next:NaN"], "SHARE must be a number above 0 and at most 1"),
        (&["feed=feed_next:1", "feed=needs:1"], "--shadow is given twice for feed"),
    ] {
        let mut all: Vec<&str> = with_params.iter().map(String::as_str).collect();
        flags.iter().for_each(|flag| all.extend(["--shadow", flag]));
        let mut server = Server::start_at("127.0.0.1:0", &folder.0, &all);
        assert_eq!(server.ended(PATIENCE).code(), Some(2), "{flags:?}: {}", server.said());
        server.says(said);
    }
}

#[test]
fn a_shadow_follows_the_files_of_both_plans() {
    let folder = Folder::new();
    ids(&folder, "a", &[1, 2]);
    ids(&folder, "b", &[1, 2]);
    let server = Server::start(&folder.0, &["--shadow", "a=b:1", "--watch-ms", "20"]);
    ask(&server, ("a", "b"), 2);
    ids(&folder, "b", &[1, 3]);
    server.says("plan b: version 2 is served");
    ask(&server, ("a", "b"), 2);
    let metrics = get(&server.url("/metrics")).body;
    near(&metrics, &of("runs_total", "a", "b", ",result=\"same\""), 2.0);
    near(&metrics, &of("runs_total", "a", "b", ",result=\"differs\""), 2.0);
    near(&metrics, &of("overlap_sum", "a", "b", ""), 3.0);
    assert_eq!(get(&server.url("/plans/a")).json().text("shadow.plan"), "b");
    // Without its file there is nothing to run, and requests are answered as before.
    std::fs::remove_file(folder.0.join("b.plan.json")).unwrap();
    server.says("plan b removed");
    server.says("--shadow a=b:1: there is no plan");
    assert_eq!(post(&server.url("/rank/a"), ASK).status, 200);
    let metrics = get(&server.url("/metrics")).body;
    near(&metrics, &of("dropped_total", "a", "b", ",reason=\"unfit\""), 1.0);
    assert_eq!(get(&server.url("/plans/a")).json().text("shadow.problem"), "there is no plan \"b\"");
    assert!(get(&server.url("/readyz")).body.contains("\"about\":\"shadows\""));
    ids(&folder, "b", &[1, 2]);
    server.says("all shadows can run again");
    ask(&server, ("a", "b"), 1);
    assert!(!get(&server.url("/readyz")).body.contains("shadows"));
}

#[test]
fn a_shadow_runs_for_its_share_of_the_requests() {
    let folder = Folder::new();
    ids(&folder, "a", &[1]);
    ids(&folder, "b", &[1]);
    let server = Server::start(&folder.0, &["--shadow", "a=b:0.1"]);
    let mut line = Line::open(&server.address);
    for _ in 0..2_000 {
        line.post("/rank/a", ASK).unwrap();
        assert_eq!(line.answer().unwrap().status, 200);
    }
    // 200 are expected; five times the deviation of a fair draw is 67.
    let drawn = |now: &str| runs(now, "a", "b") + metric(now, &of("dropped_total", "a", "b", ",reason=\"queue\""));
    let metrics =
        metrics_until(&server.address, |now| metric(now, "rankd_shadow_waiting") == 0.0 && drawn(now) >= 133.0);
    assert!(drawn(&metrics) <= 267.0, "{metrics}");
}

#[test]
fn shadows_are_the_first_to_go_under_pressure() {
    let folder = Folder::new();
    ids(&folder, "a", &[1]);
    ids(&folder, "b", &[1]);
    let source = node("n0", "fixed_source", &[], "\"ids\":[1]");
    for (name, ms) in [("doze", 500), ("hold", 600_000)] {
        folder.plan(name, &[source.clone(), node("n1", "sleep", &["n0"], &format!("\"duration_ms\":{ms}"))], "n1");
    }
    let flags = ["--runs-max", "1", "--queue-ms", "1", "--deadline-ms", "3600000", "--shadow", "a=b:1"];
    let server = Server::start(&folder.0, &flags);
    ask(&server, ("a", "b"), 1);
    // Before the first run it is not known that they take long.
    assert_eq!(post(&server.url("/rank/doze"), ASK).status, 200);
    let mut holds = Line::open(&server.address);
    holds.post("/rank/hold", ASK).unwrap();
    metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 1.0);
    assert_eq!(post(&server.url("/rank/a"), ASK).status, 503);
    near(&get(&server.url("/metrics")).body, "rankd_pressure{loop=\"0\"}", 1.0);
    drop(holds);
    metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 0.0);
    assert_eq!(post(&server.url("/rank/a"), ASK).status, 200);
    let metrics = get(&server.url("/metrics")).body;
    near(&metrics, &of("dropped_total", "a", "b", ",reason=\"pressure\""), 1.0);
    assert_eq!(runs(&metrics, "a", "b"), 1.0, "{metrics}");
}

#[test]
fn an_answer_that_is_not_whole_is_not_compared() {
    let folder = Folder::new();
    let source = node("n0", "fixed_source", &[], "\"ids\":[1]");
    let late = r#"{"node_id":"n1","op":"sleep","inputs":["n0"],"params":{"duration_ms":3600000},"timeout_ms":5,"fallback":"input"}"#;
    folder.plan("a", &[source.clone(), late.to_owned()], "n1");
    folder.plan("fails", &[source, node("n1", "sleep", &["n0"], "\"duration_ms\":1,\"fail_after_sleep\":true")], "n1");
    ids(&folder, "b", &[1]);
    let server = Server::start(&folder.0, &["--shadow", "a=b:1", "--shadow", "fails=b:1"]);
    assert_eq!(post(&server.url("/rank/a"), ASK).status, 200);
    assert_eq!(post(&server.url("/rank/fails"), ASK).status, 500);
    let metrics = get(&server.url("/metrics")).body;
    for plan in ["a", "fails"] {
        near(&metrics, &of("dropped_total", plan, "b", ",reason=\"answer\""), 1.0);
        assert_eq!(runs(&metrics, plan, "b"), 0.0, "{metrics}");
    }
}

#[test]
fn a_shadow_is_in_the_arms_of_its_request_and_is_not_counted_in_them() {
    let (plans, registry) = (Folder::new(), Folder::new());
    for name in ["keys.toml", "params.toml"] {
        registry.write(name, &std::fs::read_to_string(repository().join("registry").join(name)).unwrap());
    }
    registry.write("endpoints.local.toml", "");
    // Everybody has the weight 2, and nobody does without the experiment.
    let experiments = "[[layer]]\nname = \"home\"\n[[experiment]]\nname = \"w\"\nlayer = \"home\"\nfrom = 0\nto = 10000\n\
                       arm = [{ name = \"two\", set = { weight = 2 } }]\n";
    registry.write("experiments.toml", experiments);
    for (name, count) in [("a", 2), ("b", 3)] {
        let text = format!(
            r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{{"node_id":"n0","op":"fixed_source","params":{{"row_count":{count}}}}},
            {{"node_id":"n1","op":"filter","inputs":["n0"],"params":{{"pred":"p0"}}}}],"outputs":["n1"],
            "pred_table":{{"p0":{{"op":"cmp","cmp":"<=","a":{{"op":"key_ref","key":"id"}},"b":{{"op":"param_ref","param":"weight"}}}}}}}}"#
        );
        plans.write(&format!("{name}.plan.json"), &text);
    }
    let path = registry.0.display().to_string();
    let server = Server::start(&plans.0, &["--registry", &path, "--shadow", "a=b:1"]);
    ask(&server, ("a", "b"), 5);
    let metrics = get(&server.url("/metrics")).body;
    // Two rows each: the third row of `b` is beyond the weight of the arm, and without an arm there would be none.
    near(&metrics, &of("runs_total", "a", "b", ",result=\"same\""), 5.0);
    near(&metrics, "rankd_rows_total{plan=\"a\"}", 10.0);
    near(&metrics, "rankd_arm_requests_total{experiment=\"w\",arm=\"two\"}", 5.0);
}
