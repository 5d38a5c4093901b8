//! `--admin`: what is for operators, on a listener of its own.

use crate::client::{Line, get, post};
use crate::server::{Server, repository};
use std::net::TcpStream;

#[test]
fn operators_have_a_listener_of_their_own() {
    let server = Server::start(&repository().join("plans"), &["--admin", "127.0.0.1:0", "--loops", "2"]);
    let admin = server.admin();
    let on_admin = |path: &str| format!("http://{admin}{path}");
    for path in ["/plans", "/plans/for_you", "/tasks", "/metrics"] {
        assert_eq!(get(&on_admin(path)).status, 200, "{path}");
        let public = get(&server.url(path));
        assert_eq!(public.status, 404, "{path}");
        assert!(public.json().text("error.message").contains("--admin"), "{}", public.body);
    }
    for path in ["/healthz", "/readyz", "/version", "/openapi.json"] {
        assert_eq!((get(&on_admin(path)).status, get(&server.url(path)).status), (200, 200), "{path}");
    }
    let user = r#"{"user_id":1}"#;
    assert_eq!(
        (post(&server.url("/rank/for_you"), user).status, post(&on_admin("/rank/for_you"), user).status),
        (200, 404)
    );
    let plan = r#"{"plan":"for_you","analyze":true}"#;
    assert_eq!((post(&server.url("/explain"), plan).status, post(&on_admin("/explain"), plan).status), (404, 200));
    // Each describes what it serves.
    let (public, own) = (get(&server.url("/openapi.json")).body, get(&on_admin("/openapi.json")).body);
    assert!(public.contains("\"/rank\"") && !public.contains("\"/plans\""), "{public}");
    assert!(own.contains("\"/plans\"") && !own.contains("\"/rank\""), "{own}");
}

#[test]
fn operators_get_in_when_clients_take_all_places_and_the_other_way_round() {
    let flags = ["--admin", "127.0.0.1:0", "--connections-max", "10", "--idle-ms", "60000"];
    let server = Server::start(&repository().join("plans"), &flags);
    let admin = server.admin();
    let crowd = |address: &str| -> Vec<TcpStream> { (0..100).map(|_| TcpStream::connect(address).unwrap()).collect() };
    let both = [crowd(&server.address), crowd(&admin)];
    for _ in 0..5 {
        assert_eq!(get(&format!("http://{admin}/metrics")).status, 200);
        assert_eq!(get(&server.url("/healthz")).status, 200);
    }
    drop(both);
    // It answers for loopback only, as any listener there.
    let mut line = Line::open(&admin);
    line.send("GET /metrics HTTP/1.1\r\nhost: evil.example\r\n\r\n").unwrap();
    assert_eq!(line.answer().unwrap().status, 421);
}

/// The manifest's flags are ones that the program knows, and its ports fit together.
#[test]
fn the_manifest_starts_a_server_with_a_port_for_operators() {
    let manifest = std::fs::read_to_string(repository().join("deploy/kubernetes.yaml")).unwrap();
    let flags: Vec<&str> = manifest.lines().filter_map(|line| line.trim().strip_prefix("- --")).collect();
    let given = |name: &str| flags.iter().find_map(|flag| flag.strip_prefix(name)?.strip_prefix("=0.0.0.0:")).unwrap();
    let (public, admin) = (given("listen"), given("admin"));
    for line in [
        format!("prometheus.io/port: \"{admin}\""),
        format!("{{name: http, containerPort: {public}}}"),
        format!("{{name: admin, containerPort: {admin}}}"),
        "httpGet: {path: /readyz, port: http}".to_owned(),
        "httpGet: {path: /healthz, port: http}".to_owned(),
        "{protocol: TCP, port: http}".to_owned(),
        "{protocol: TCP, port: admin}".to_owned(),
    ] {
        assert!(manifest.contains(&line), "{line}");
    }
    // The service leads to rows only.
    assert!(!manifest.contains("targetPort: admin"));
    let others = flags.iter().filter(|flag| !flag.starts_with("listen=") && !flag.starts_with("admin="));
    let flags: Vec<String> = others.map(|flag| format!("--{flag}")).chain(["--admin=127.0.0.1:0".to_owned()]).collect();
    let server = Server::start(&repository().join("plans"), &flags.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(get(&format!("http://{}/metrics", server.admin())).status, 200);
    assert_eq!(get(&server.url("/metrics")).status, 404);
}
