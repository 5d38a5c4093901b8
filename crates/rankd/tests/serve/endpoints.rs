//! Every path, by curl, over HTTP/1.1 and HTTP/2.

use crate::client::{curl, get, post};
use crate::json::Json;
use crate::server::{Server, repository};

#[test]
fn every_path_answers_over_both_versions_of_http() {
    let server = Server::start(&repository().join("plans"), &["--loops", "2"]);
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let get = |path: &str| curl(&[version, &server.url(path)]);
        for path in ["/healthz", "/readyz", "/plans", "/plans/for_you", "/tasks", "/openapi.json", "/version"] {
            let answer = get(path);
            assert_eq!(answer.status, 200, "{version} {path}: {}", answer.body);
            assert!(answer.headers.contains("content-type: application/json"), "{path}");
            // It is JSON, whole and strictly read.
            Json::read(&answer.body);
        }
        let metrics = get("/metrics");
        assert!(metrics.headers.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.headers);
        let lines = metrics.body.lines().filter(|line| !line.starts_with('#'));
        assert!(lines.clone().count() > 50 && lines.clone().all(|line| line.starts_with("rankd_")), "{}", metrics.body);
        let flags = [version, "-H", "content-type: application/json; charset=utf-8", "-d"];
        for (path, body) in
            [("/rank", r#"{"user_id":1,"plan":"complex_dag"}"#), ("/rank/complex_dag", r#"{"user_id":"1"}"#)]
        {
            let url = server.url(path);
            let answer = curl(&[flags.as_slice(), &[body, &url]].concat());
            assert_eq!(answer.status, 200, "{}", answer.body);
            assert_eq!(answer.json().text("plan"), "complex_dag");
            assert_eq!(answer.json().list("candidates").len(), 50);
        }
    }
}

#[test]
fn a_plan_is_explained_and_run_when_that_is_asked() {
    let server = Server::start(&repository().join("plans"), &[]);
    let url = server.url("/explain");
    let planned = post(&url, r#"{"plan":"complex_dag"}"#);
    assert_eq!(planned.status, 200, "{}", planned.body);
    let run = post(&url, r#"{"plan":"complex_dag","analyze":true,"request":{"user_id":1}}"#);
    assert_eq!(run.status, 200, "{}", run.body);
    assert!(run.json().has("plan") && run.body.len() > planned.body.len(), "{}", run.body);
    for (body, status) in [
        (r#"{"plan":"complex_da"}"#, 404),
        (r#"{"plan":7}"#, 400),
        (r#"{"plan":"complex_dag","analyze":true,"request":{"user_id":0}}"#, 400),
    ] {
        assert_eq!(post(&url, body).status, status, "{body}");
    }
}

#[test]
fn the_answer_is_that_of_rankd_run() {
    let server = Server::start(&repository().join("plans"), &[]);
    let request = r#"{"user_id":1,"request_id":"same","params":{"weight":2},"output_keys":["score"]}"#;
    for plan in ["for_you", "mixed_pipeline", "parallel_fanout", "related_items"] {
        let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_rankd"));
        run.current_dir(repository()).args(["run", "--plan_name", plan]);
        run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = run.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), request.as_bytes()).unwrap();
        let expected = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let answer = post(&server.url(&format!("/rank/{plan}")), request);
        assert_eq!(answer.body, expected.trim_end(), "{plan}");
    }
}

#[test]
fn what_was_served_is_counted() {
    let server = Server::start(&repository().join("plans"), &["--trace_every", "1"]);
    for _ in 0..3 {
        assert_eq!(post(&server.url("/rank/complex_dag"), r#"{"user_id":1}"#).status, 200);
    }
    assert_eq!(post(&server.url("/rank/complex_dag"), r#"{"user_id":1,"deadline":5}"#).status, 400);
    let metrics = get(&server.url("/metrics")).body;
    for line in [
        "rankd_requests_total{plan=\"complex_dag\",outcome=\"ok\"} 3",
        "rankd_requests_total{plan=\"\",outcome=\"bad_request\"} 1",
        "rankd_request_seconds_count{plan=\"complex_dag\"} 3",
        "rankd_rows_total{plan=\"complex_dag\"} 150",
        "rankd_op_run_seconds_count{op=\"viewer\"} 3",
        "rankd_reloads_total{result=\"failed\"} 0",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line} is not in:\n{metrics}");
    }
}

#[test]
fn the_health_of_a_server_can_be_asked_without_any_other_program() {
    let server = Server::start(&repository().join("plans"), &[]);
    let ask = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rankd"));
        command.arg("healthcheck").args(args).output().unwrap().status.code()
    };
    assert_eq!(ask(&["--listen", &server.address]), Some(0));
    assert_eq!(ask(&["--listen", &server.address, "--alive"]), Some(0));
    let address = server.address.clone();
    drop(server);
    assert_eq!(ask(&["--listen", &address]), Some(1));
}
