//! `--console`: who may ask it and what every answer says to a browser, by requests as they stand on the wire. The pages themselves are in
//! `console_pages`.

use crate::client::{Answer, Line, curl, get, post};
use crate::downloads;
use crate::server::{Folder, Server, node, plan_text, repository, rows};
use std::net::TcpStream;
use std::process::Command;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(crate) fn start(flags: &[&str]) -> Server {
    Server::start(&repository().join("plans"), &[&["--console", "127.0.0.1:0"], flags].concat())
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.console())
}

/// As the page sends it.
fn ask(server: &Server, path: &str, body: &str) -> Answer {
    let origin = format!("origin: http://{}", server.console());
    curl(&["-H", &origin, "-H", "content-type: application/json", "-d", body, &url(server, path)])
}

#[test]
fn the_page_is_in_the_program_and_every_answer_has_its_headers() {
    let server = start(&[]);
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/static/app.js", "text/javascript; charset=utf-8"),
        ("/static/style.css", "text/css; charset=utf-8"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/api/about", "application/json"),
        ("/api/plans", "application/json"),
        ("/static/nothing.js", "application/json"),
        ("/nowhere", "application/json"),
    ] {
        let answer = get(&url(&server, path));
        let is_there = !path.contains("no");
        assert_eq!(answer.status, if is_there { 200 } else { 404 }, "{path}");
        for header in [
            format!("content-type: {kind}").as_str(),
            format!("content-security-policy: {}", POLICY.to_lowercase()).as_str(),
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cross-origin-opener-policy: same-origin",
            "rankd-build: ",
        ] {
            assert!(answer.headers.contains(header), "{path}: {header}\n{}", answer.headers);
        }
        assert!(!answer.headers.contains("access-control-"), "{}", answer.headers);
        let is_file = is_there && !path.starts_with("/api");
        assert_eq!(answer.headers.contains("etag: \""), is_file, "{path}");
        assert!(answer.headers.contains(if is_file { "cache-control: no-cache" } else { "cache-control: no-store" }));
        if is_file {
            let etag = answer.headers.split("etag: ").nth(1).unwrap().lines().next().unwrap().to_owned();
            let again = curl(&["-H", &format!("if-none-match: \"x\", W/{etag}"), &url(&server, path)]);
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
        }
    }
    // Whatever the page loads is named relative to it, so that any sub-path works.
    let page = get(&url(&server, "/")).body;
    assert!(!page.contains("=\"/") && page.contains("src=\"static/app.js\""), "{page}");
}

#[test]
fn the_console_is_on_its_own_listener_and_nowhere_else() {
    let server = start(&["--admin", "127.0.0.1:0"]);
    for path in ["/", "/static/app.js", "/api/about", "/api/plans", "/api/stores", "/api/picture/for_you"] {
        assert_eq!(get(&url(&server, path)).status, 200, "{path}");
        for other in [server.url(path), format!("http://{}{path}", server.admin())] {
            let answer = get(&other);
            assert_eq!(answer.status, 404, "{other}");
            assert!(!answer.body.contains("console"), "{}", answer.body);
            assert!(!answer.headers.contains("content-security-policy"), "{}", answer.headers);
        }
    }
    for path in ["/rank/for_you", "/metrics", "/plans", "/rollback/for_you", "/why/for_you", "/healthz"] {
        let answer = ask(&server, path, r#"{"user_id":1}"#);
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    let document = get(&url(&server, "/openapi.json")).body;
    assert!(document.contains("\"/api/plans\"") && !document.contains("\"/rank\""), "{document}");
    assert!(!get(&server.url("/openapi.json")).body.contains("/api/"));
}

#[test]
fn a_console_answers_for_loopback_and_for_named_hosts_only() {
    let server = start(&["--console-host", "console.example.com"]);
    for (host, status) in [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("console.example.com", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
    ] {
        let mut line = Line::open(&server.console());
        line.send(&format!("GET /api/plans HTTP/1.1\r\nhost: {host}\r\n\r\n")).unwrap();
        let answer = line.answer().unwrap();
        assert_eq!(answer.status, status, "{host}: {}", answer.body);
        if status == 421 {
            assert!(answer.json().text("error.message").contains("--console_host"), "{}", answer.body);
        }
    }
}

#[test]
fn no_page_but_its_own_gets_an_answer() {
    let server = start(&[]);
    let own = format!("origin: http://{}", server.console());
    let (json, body) = ("content-type: application/json", r#"{"user_id":1}"#);
    let target = url(&server, "/api/ask/complex_dag");
    for (headers, status, code) in [
        (&[json, &own][..], 200, ""),
        (&[json, "sec-fetch-site: same-origin"], 200, ""),
        (&[json], 403, "E514"),
        (&[json, "origin: https://evil.example"], 403, "E514"),
        (&[json, "sec-fetch-site: cross-site"], 403, "E514"),
        (&["content-type: text/plain", &own], 415, "E123"),
        (&[json, "content-encoding: gzip", &own], 415, "E129"),
    ] {
        let mut args: Vec<&str> = headers.iter().flat_map(|header| ["-H", *header]).collect();
        args.extend(["-d", body, &target]);
        let answer = curl(&args);
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.body);
        if status != 200 {
            assert_eq!(answer.json().text("error.code"), code);
        }
    }
    assert_eq!(curl(&["-H", "sec-fetch-site: cross-site", &url(&server, "/api/plans")]).status, 403);
    assert_eq!(curl(&["-X", "DELETE", "-H", &own, "-H", json, &target]).status, 405);
}

#[test]
fn with_a_token_only_those_who_have_it_are_answered() {
    let folder = Folder::new();
    folder.write("token", &format!("{TOKEN}\n"));
    let file = folder.0.join("token");
    let server = start(&["--console-token", file.to_str().unwrap()]);
    assert!(!server.said().contains(TOKEN) && server.said().contains("#token="), "{}", server.said());
    // The page has to come before it can say who asks.
    assert_eq!((get(&url(&server, "/")).status, get(&url(&server, "/static/app.js")).status), (200, 200));
    for path in ["/api/about", "/api/plans", "/api/live/for_you", "/openapi.json", "/nowhere"] {
        let refused = get(&url(&server, path));
        assert_eq!((refused.status, refused.json().text("error.code")), (401, "E512"), "{path}");
        let given = curl(&["-H", &format!("authorization: Bearer {TOKEN}"), &url(&server, path)]);
        assert_eq!(given.status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
    assert_eq!(curl(&["-H", &format!("authorization: Bearer {TOKEN}0"), &url(&server, "/api/plans")]).status, 401);
    assert_eq!(ask(&server, "/api/ask/for_you", r#"{"user_id":1}"#).status, 401);
    // Not in the address, where logs would have it.
    assert_eq!(get(&url(&server, &format!("/api/plans?token={TOKEN}"))).status, 401);
}

#[test]
fn a_console_that_others_can_reach_does_not_start_without_a_token() {
    let folder = Folder::new();
    folder.write("short", "0123456789");
    let short = folder.0.join("short");
    let missing = folder.0.join("missing");
    for (flags, words) in [
        (&["--console", "0.0.0.0:0"][..], "--console_token"),
        (&["--console", "[::]:0"], "--console_token"),
        (&["--console", "0.0.0.0:0", "--console-token", short.to_str().unwrap()], "16 to 1024 characters"),
        (&["--console", "127.0.0.1:0", "--console-token", missing.to_str().unwrap()], "missing"),
        (&["--console-token", short.to_str().unwrap()], "--console"),
    ] {
        let mut rankd = Command::new(env!("CARGO_BIN_EXE_rankd"));
        rankd.current_dir(repository()).args(["serve", "--listen", "127.0.0.1:0"]).args(flags);
        let output = rankd.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{flags:?}: {said}");
        assert!(!said.contains("0123456789"), "{said}");
    }
    folder.write("token", TOKEN);
    let file = folder.0.join("token");
    let flags = ["--console", "0.0.0.0:0", "--console-token", file.to_str().unwrap()];
    let server = Server::start(&repository().join("plans"), &flags);
    let address = server.console().replace("0.0.0.0", "127.0.0.1");
    assert_eq!(get(&format!("http://{address}/api/plans")).status, 401);
    let token = format!("authorization: Bearer {TOKEN}");
    assert_eq!(curl(&["-H", &token, &format!("http://{address}/api/plans")]).status, 200);
}

#[test]
fn plans_are_told_with_their_figures_and_then_only_what_is_new() {
    let folder = Folder::new();
    let (name, nodes) = rows("good", 3);
    folder.plan(&name, &nodes, "n0");
    folder.plan("idle", &rows("idle", 1).1, "n0");
    folder.plan("broken", &[node("n0", "srot", &[], "")], "n0");
    let server = Server::start(&folder.0, &["--console", "127.0.0.1:0"]);
    (0..20).for_each(|_| assert_eq!(post(&server.url("/rank/good"), r#"{"user_id":1}"#).status, 200));
    post(&server.url("/rank/good"), r#"{"user_id":1,"arms":{"none":"none"}}"#);
    let all = get(&url(&server, "/api/plans")).json();
    let plans = all.list("plans");
    assert_eq!(plans.iter().map(|plan| plan.text("plan")).collect::<Vec<_>>(), ["broken", "good", "idle"]);
    let (broken, good, idle) = (&plans[0], &plans[1], &plans[2]);
    assert!(broken.text("problem.message").contains("P301") && broken.text("place").contains("broken.plan.json:1:"));
    assert_eq!((good.number("version"), good.number("nodes"), good.text("sha256").len()), (1.0, 1.0, 64));
    assert!(good.number("now.requests_per_s") > 0.0 && good.number("now.p99_ms") >= good.number("now.p50_ms"));
    assert_eq!((good.number("now.requests"), idle.number("now.requests")), (21.0, 0.0));
    assert!((good.number("now.failed") - 1.0 / 21.0).abs() < 1e-9, "{good:?}");
    assert!(!idle.has("now.p50_ms"));
    // What is idle is not told again, as long as no slot ends in between.
    let next = format!("/api/plans?slot={}&catalog={}", all.number("slot"), all.number("catalog"));
    let news = get(&url(&server, &next)).json();
    if news.number("slot") == all.number("slot") {
        assert_eq!(news.list("plans").iter().map(|plan| plan.text("plan")).collect::<Vec<_>>(), ["good"]);
        assert!(!news.list("plans")[0].has("sha256"));
    }
    // Numbers of another process are as good as none.
    assert_eq!(get(&url(&server, "/api/plans?slot=99999&catalog=99999")).json().list("plans").len(), 3);
    let state = get(&url(&server, "/api/plan/broken")).json();
    assert!(!state.list("diagnostics").is_empty());
    assert_eq!(get(&url(&server, "/api/plan/nobody")).status, 404);
    assert_eq!(get(&url(&server, "/api/picture/broken")).status, 422);
}

#[test]
fn a_picture_has_a_version_and_both_forms() {
    let server = start(&[]);
    let runs = get(&url(&server, "/api/picture/for_you"));
    let written = get(&url(&server, "/api/picture/for_you?form=written")).json();
    assert_eq!(runs.json().list("nodes").len(), written.list("nodes").len());
    assert!(!runs.json().list("frames").is_empty() && written.list("frames").is_empty());
    let etag = runs.headers.split("etag: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let known = format!("if-none-match: {etag}");
    assert_eq!(curl(&["-H", &known, &url(&server, "/api/picture/for_you")]).status, 304);
    assert_eq!(curl(&["-H", &known, &url(&server, "/api/picture/for_you?form=written")]).status, 200);
    let source = get(&url(&server, "/api/source/for_you?node=1")).json();
    assert!(source.texts("lines").iter().any(|line| line.contains("follow(")), "{source:?}");
    for none in ["", "?node=9999", "?node=x"] {
        assert_eq!(get(&url(&server, &format!("/api/source/for_you{none}"))).body, "{}");
    }
}

#[test]
fn figures_of_nodes_are_kept_once_somebody_looks() {
    let server = start(&["--trace-every", "1"]);
    let run = || assert_eq!(post(&server.url("/rank/complex_dag"), r#"{"user_id":1}"#).status, 200);
    run();
    let first = get(&url(&server, "/api/live/complex_dag")).json();
    assert!(first.number("runs") == 0.0 && first.list("nodes").is_empty(), "{first:?}");
    (0..3).for_each(|_| run());
    let told = get(&url(&server, "/api/live/complex_dag?from=0&node=0"));
    let live = told.json();
    assert_eq!(live.number("runs"), 3.0);
    let nodes = get(&url(&server, "/api/picture/complex_dag")).json().list("nodes").len();
    assert_eq!(live.list("nodes").len(), nodes);
    assert!(live.has("histogram") && !told.body.contains("user"), "{}", told.body);
    let later = format!("/api/live/complex_dag?from={}", live.number("slot") + 1.0);
    assert!(get(&url(&server, &later)).json().list("nodes").is_empty());
}

#[test]
fn a_request_is_run_and_questions_are_answered_as_elsewhere() {
    let server = start(&[]);
    let answer = ask(&server, "/api/ask/complex_dag", r#"{"user_id":1}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json().list("candidates").len(), 50);
    assert!(answer.json().list("trace.nodes").iter().any(|node| node.has("critical")));
    let why = ask(&server, "/api/why/complex_dag", r#"{"user_id":1,"items":[44,99999]}"#);
    assert_eq!(why.json().list("items").len(), 2, "{}", why.body);
    assert_eq!(ask(&server, "/api/ask/complex_dag", r#"{"user_id":0}"#).status, 400);
    assert_eq!(ask(&server, "/api/ask/nobody", r#"{"user_id":1}"#).status, 404);
    // Who tries things out does not change what operators see of the plan.
    let plans = get(&url(&server, "/api/plans")).json();
    assert!(plans.list("plans").iter().all(|plan| plan.number("now.requests") == 0.0));
}

#[test]
fn values_of_rows_are_hidden_where_that_is_asked_for() {
    let server = start(&["--console-rows", "off"]);
    let answer = ask(&server, "/api/ask/complex_dag", r#"{"user_id":1,"output_keys":["score"]}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.json().list("candidates").iter().all(|row| row.has("id") && !row.has("score")), "{}", answer.body);
    let why = ask(&server, "/api/why/complex_dag", r#"{"user_id":1,"items":[44]}"#);
    assert_eq!((why.status, why.json().text("error.code")), (403, "E515"));
    assert!(get(&url(&server, "/api/about")).body.contains(r#""rows":false,"why":false"#));
    let server = start(&["--why", "off"]);
    assert_eq!(ask(&server, "/api/why/complex_dag", r#"{"user_id":1,"items":[44]}"#).status, 403);
}

#[test]
fn stores_are_told_without_their_addresses() {
    let registry = Folder::new();
    for file in ["keys.toml", "params.toml"] {
        let text = std::fs::read_to_string(repository().join("registry").join(file)).unwrap();
        registry.write(file, &text);
    }
    registry.write(
        "endpoints.secret.toml",
        "[[endpoint]]\nendpoint_id = \"ep_1\"\nname = \"redis_default\"\nkind = \"redis\"\nurl = \"redis://someone:hunter2@127.0.0.1:1/0\"\n",
    );
    let plans = Folder::new();
    plans.plan("small", &rows("small", 1).1, "n0");
    let flags = ["--console", "127.0.0.1:0", "--registry", registry.0.to_str().unwrap(), "--env", "secret"];
    let server = Server::start(&plans.0, &flags);
    let stores = get(&url(&server, "/api/stores"));
    let told = stores.json();
    let endpoint = &told.list("endpoints")[0];
    assert_eq!(
        (endpoint.text("name"), endpoint.text("kind"), endpoint.text("backend")),
        ("redis_default", "redis", "server")
    );
    for secret in ["hunter2", "someone", "127.0.0.1"] {
        assert!(!stores.body.contains(secret), "{}", stores.body);
    }
}

#[test]
fn a_crowd_at_the_console_keeps_nobody_else_waiting() {
    let server = start(&["--idle-ms", "60000"]);
    let crowd: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(server.console()).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(post(&server.url("/rank/complex_dag"), r#"{"user_id":1}"#).status, 200);
        assert_eq!(get(&url(&server, "/api/about")).status, 200);
    }
    drop(crowd);
}

#[test]
fn a_large_plan_is_laid_out_while_others_are_answered() {
    let folder = Folder::new();
    folder.write("large.plan.json", &large_plan(2000));
    folder.plan("small", &rows("small", 1).1, "n0");
    let server = Server::start(&folder.0, &["--console", "127.0.0.1:0", "--no-trial"]);
    let target = url(&server, "/api/picture/large");
    let drawn = std::thread::spawn(move || get(&target).json().list("nodes").len());
    while !drawn.is_finished() {
        assert_eq!(post(&server.url("/rank/small"), r#"{"user_id":1}"#).status, 200);
    }
    assert_eq!(drawn.join().unwrap(), 2000);
}

/// A plan of so many nodes: many sources, each with a few steps, put together two by two.
pub(crate) fn large_plan(count: usize) -> String {
    let mut nodes = Vec::new();
    let mut open: Vec<String> = Vec::new();
    while nodes.len() < count {
        let id = format!("n{}", nodes.len());
        let left = count - nodes.len();
        let text = if open.len() >= left.max(2) || open.len() > 60 {
            let (a, b) = (open.remove(0), open.remove(0));
            node(&id, "concat", &[&a], &format!("\"rhs\":\"{b}\""))
        } else if nodes.len() % 3 == 2 {
            let input = open.pop().unwrap();
            node(&id, "take", &[&input], "\"count\":5")
        } else {
            node(&id, "fixed_source", &[], "\"row_count\":10")
        };
        nodes.push(text);
        open.push(id);
    }
    plan_text("large", &nodes, &open.pop().unwrap())
}

/// The types in the comments of the page's files hold, where npm can give the compiler.
#[test]
fn the_types_of_the_page_hold() {
    let mut tsc = match downloads::tsc("5.9.3") {
        Ok(tsc) => tsc,
        Err(why) => return downloads::skipped("the types of the console's files", &why),
    };
    let folder = repository().join("crates/rankd-serve/src/console/static");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts = files.filter(|path| path.extension().is_some_and(|extension| extension == "js"));
    tsc.args(["--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "es2022"]);
    let output = tsc.args(["--lib", "es2023,dom,dom.iterable"]).args(scripts).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
