//! From the first moment to the last: signals and health while plans load, as process 1, twice, with a resolver that hangs; one
//! process for one port; and nobody who got through is reset.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::server::{Folder, PATIENCE, Server, node, repository, rows};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Plans that keep the server loading: each takes the two seconds after which its compiler is stopped.
fn slow_to_load() -> Folder {
    let folder = Folder::new();
    for number in 0..20 {
        folder.write(&format!("slow_{number}.plan.ts"), "while (true) {}");
    }
    folder
}

/// Waits until somebody listens there.
fn is_open(address: &str) {
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < until, "nobody listens on {address}");
        thread::yield_now();
    }
}

#[test]
fn health_is_answered_and_a_signal_is_heard_while_plans_load() {
    let (folder, address) = (slow_to_load(), free_address());
    let mut server = Server::start_at(&address, &folder.0, &[]);
    is_open(&address);
    assert_eq!(get(&server.url("/healthz")).status, 200);
    let ready = get(&server.url("/readyz"));
    assert_eq!((ready.status, ready.body.as_str()), (503, r#"{"status":"loading"}"#));
    let early = post(&server.url("/rank/feed"), r#"{"user_id":1}"#);
    assert_eq!((early.status, early.json().text("error.code")), (503, "E605"), "{}", early.body);
    server.signal("-TERM");
    assert_eq!(server.ended(Duration::from_secs(10)).code(), Some(0), "{}", server.said());
    assert!(!server.said().contains("serves"), "it was still loading: {}", server.said());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let folder = Folder::new();
    let nodes = [node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], "\"duration_ms\":60000")];
    folder.plan("slow", &nodes, "n1");
    let mut server = Server::start(&folder.0, &["--drain-ms", "60000", "--no-trial"]);
    let mut line = Line::open(&server.address);
    line.post("/rank/slow", r#"{"user_id":1}"#).unwrap();
    metrics_until(&server.address, |now| metric(now, "rankd_runs_under_way{loop=\"0\"}") == 1.0);
    server.signal("-TERM");
    server.says("stopping");
    server.signal("-TERM");
    assert_eq!(server.ended(Duration::from_secs(10)).code(), Some(1), "requests were cut: {}", server.said());
}

#[test]
fn as_process_1_it_heeds_signals_also_while_plans_load() {
    let unshare = |command: &mut Command| {
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    };
    let mut allowed = Command::new("unshare");
    unshare(&mut allowed);
    if !allowed.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not run: this system does not let a test have a process 1 of its own");
        return;
    }
    let (folder, address) = (slow_to_load(), free_address());
    let mut command = Command::new("unshare");
    unshare(&mut command);
    let mut child = command
        .arg(env!("CARGO_BIN_EXE_rankd"))
        .current_dir(repository())
        .args(["serve", "--listen", &address, "--plan-dir"])
        .arg(&folder.0)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    is_open(&address);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let one = std::fs::read_to_string(children).unwrap().trim().to_owned();
    let status = std::fs::read_to_string(format!("/proc/{one}/status")).unwrap();
    assert!(status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1")), "{status}");
    assert!(Command::new("kill").args(["-TERM", &one]).status().unwrap().success());
    let until = Instant::now() + Duration::from_secs(10);
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > until => break None,
            None => thread::yield_now(),
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "a signal to process 1 was lost");
}

/// Runs a server whose names are looked up by a server that never answers: one for the store, one for spans.
const HUNG_RESOLVER: &str = r#"
set -e
ip link set lo up
mount --bind "$FOLDER/resolv.conf" /etc/resolv.conf
python3 -c 'import socket,time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 53)); print("bound", flush=True); time.sleep(120)' > "$FOLDER/bound" &
silent=$!
until grep -q bound "$FOLDER/bound"; do kill -0 $silent; done
"$RANKD" serve --listen 127.0.0.1:8080 --plan-dir "$FOLDER/plans" --registry "$FOLDER/registry" --otlp http://collector.example:4318 --otlp-sample 1 2> "$FOLDER/stderr" &
server=$!
until curl -s -f -o /dev/null http://127.0.0.1:8080/readyz; do kill -0 $server; done
curl -s -o /dev/null --max-time 2 -H 'content-type: application/json' -d '{"user_id":1,"deadline_ms":1000}' http://127.0.0.1:8080/rank/feed || true
date +%s%N > "$FOLDER/told"
kill -TERM $server
code=0; wait $server || code=$?
date +%s%N > "$FOLDER/ended"
kill $silent
exit $code
"#;

#[test]
fn a_resolver_that_hangs_does_not_delay_the_end() {
    let folder = Folder::new();
    for name in ["plans", "registry"] {
        std::fs::create_dir(folder.0.join(name)).unwrap();
    }
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), folder.0.join("registry").join(name)).unwrap();
    }
    let endpoint = "[[endpoint]]\nendpoint_id = \"ep_1\"\nname = \"redis_default\"\nkind = \"redis\"\nurl = \"redis://store.example:6379\"\n";
    std::fs::write(folder.0.join("registry/endpoints.local.toml"), endpoint).unwrap();
    let viewer = node("n0", "viewer", &[], "\"endpoint\":\"redis_default\"");
    let plan = crate::server::plan_text("feed", &[viewer], "n0");
    std::fs::write(folder.0.join("plans/feed.plan.json"), plan).unwrap();
    folder.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n");
    let isolated = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", script]);
        command.env("FOLDER", &folder.0).env("RANKD", env!("CARGO_BIN_EXE_rankd")).current_dir(repository());
        command
    };
    let tools = "ip link set lo up && mount --bind \"$FOLDER/resolv.conf\" /etc/resolv.conf && python3 -V && curl -V";
    if !isolated(tools).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not run: this system does not let a test have a resolver of its own");
        return;
    }
    let output = isolated(HUNG_RESOLVER).output().unwrap();
    let said = std::fs::read_to_string(folder.0.join("stderr")).unwrap_or_default();
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let at = |file: &str| -> u64 { std::fs::read_to_string(folder.0.join(file)).unwrap().trim().parse().unwrap() };
    let took = Duration::from_nanos(at("ended") - at("told"));
    println!("the end took {took:?}");
    assert!(took < Duration::from_secs(10), "the end took {took:?}: {said}");
}

#[test]
fn a_second_process_on_the_port_is_refused() {
    let folder = Folder::new();
    let (name, nodes) = rows("feed", 1);
    folder.plan(&name, &nodes, "n0");
    for loops in ["1", "2"] {
        let server = Server::start(&folder.0, &["--loops", loops]);
        let output = Command::new(env!("CARGO_BIN_EXE_rankd"))
            .current_dir(repository())
            .args(["serve", "--loops", loops, "--listen", &server.address, "--plan-dir"])
            .arg(&folder.0)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("another process is listening there"), "{said}");
    }
}

const ROUNDS: usize = 6;
const AT_ONCE: usize = 40;

/// Makes connections, many at a time, so that there are always some that nobody has accepted yet, and asks on each. `None` once it does
/// not get in any more; what became of one that did get in, if that is not an answer.
fn ask_until_refused(address: &SocketAddr, answered: &AtomicUsize) -> Option<String> {
    loop {
        let ask = |_| {
            let mut stream = TcpStream::connect_timeout(address, Duration::from_secs(5)).ok()?;
            let connected = Instant::now();
            let sent = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            Some((stream, sent, connected.elapsed()))
        };
        let asked: Vec<_> = (0..AT_ONCE).map_while(ask).collect();
        let is_refused = asked.len() < AT_ONCE;
        for (mut stream, sent, delay) in asked {
            let mut answer = String::new();
            match sent.and_then(|()| stream.read_to_string(&mut answer)) {
                Ok(_) if answer.starts_with("HTTP/1.1 200") => drop(answered.fetch_add(1, Ordering::Relaxed)),
                // On a crowded machine somebody may connect and not come to ask in the time that this takes at the end.
                _ if delay > Duration::from_millis(150) => {}
                Ok(_) => return Some(format!("connected, and answered {answer:?}")),
                Err(error) => return Some(format!("connected, and then: {error}")),
            }
        }
        // Not to get in is fine: a balancer asks elsewhere.
        if is_refused {
            return None;
        }
    }
}

#[test]
fn whoever_has_connected_is_answered_and_not_reset_when_it_stops() {
    let folder = Folder::new();
    let (name, nodes) = rows("feed", 1);
    folder.plan(&name, &nodes, "n0");
    for _ in 0..ROUNDS {
        let mut server = Server::start(&folder.0, &["--loops", "2"]);
        let answered = AtomicUsize::new(0);
        let address = server.address.parse().unwrap();
        let failed: Vec<String> = thread::scope(|scope| {
            let askers: Vec<_> = (0..3).map(|_| scope.spawn(|| ask_until_refused(&address, &answered))).collect();
            while answered.load(Ordering::Relaxed) < 200 {
                thread::yield_now();
            }
            server.signal("-TERM");
            askers.into_iter().filter_map(|asker| asker.join().unwrap()).collect()
        });
        assert_eq!(failed, Vec::<String>::new());
        assert_eq!(server.ended(Duration::from_secs(20)).code(), Some(0));
    }
}
