//! `POST /why/{plan}`: where it is served, what it refuses, what it counts, and one at a time.

use crate::client::{Answer, curl, get, metric, metrics_until, post};
use crate::server::{Folder, Server, node, plan_text, repository, rows};
use std::thread;

const ASKED: &str = r#"{"user_id":1,"items":[44,10000577,99999]}"#;

fn verdicts(answer: &Answer) -> Vec<String> {
    answer.json().list("items").iter().map(|item| item.text("verdict").to_owned()).collect()
}

#[test]
fn it_is_served_where_the_flag_says() {
    let plans = repository().join("plans");
    // By flag: the status on the address of --listen, and on that of --admin.
    for (flags, public, admin) in [
        (&[][..], 404, 200),
        (&["--why", "admin"], 404, 200),
        (&["--why", "on"], 200, 200),
        (&["--why", "off"], 404, 404),
    ] {
        let server = Server::start(&plans, &[&["--admin", "127.0.0.1:0"][..], flags].concat());
        let on_admin = format!("http://{}/why/complex_dag", server.admin());
        let answers = [post(&server.url("/why/complex_dag"), ASKED), post(&on_admin, ASKED)];
        assert_eq!(answers.each_ref().map(|answer| answer.status), [public, admin], "{flags:?}");
        for answer in answers.iter().filter(|answer| answer.status == 200) {
            assert_eq!(verdicts(answer), ["expanded", "answered", "never"], "{}", answer.body);
        }
        let document = get(&format!("http://{}/openapi.json", server.admin())).body;
        assert_eq!(document.contains("\"/why/{plan}\""), admin == 200, "{flags:?}");
    }
    for (flags, status) in [(&[][..], 404), (&["--why", "on"], 200), (&["--why", "off"], 404)] {
        let server = Server::start(&plans, flags);
        let answer = post(&server.url("/why/complex_dag"), ASKED);
        assert_eq!(answer.status, status, "{flags:?}: {}", answer.body);
        if status == 404 {
            assert!(answer.json().text("error.message").contains("--why"), "{}", answer.body);
        }
    }
}

#[test]
fn what_is_no_question_is_refused_and_told_why() {
    let server = Server::start(&repository().join("plans"), &["--why", "on"]);
    let twenty_one: Vec<String> = (0..21).map(|id| id.to_string()).collect();
    let too_many = format!(r#"{{"user_id":1,"items":[{}]}}"#, twenty_one.join(","));
    for (path, body, status, code) in [
        ("/why/complex_dagg", ASKED, 404, "E201"),
        ("/why/complex_dag", "{", 400, "E101"),
        ("/why/complex_dag", r#"{"user_id":1}"#, 400, "E104"),
        ("/why/complex_dag", r#"{"items":[1]}"#, 400, "E104"),
        ("/why/complex_dag", r#"{"user_id":1,"items":[]}"#, 400, "E105"),
        ("/why/complex_dag", r#"{"user_id":1,"items":[1.5]}"#, 400, "E105"),
        ("/why/complex_dag", r#"{"user_id":1,"items":7}"#, 400, "E105"),
        ("/why/complex_dag", r#"{"user_id":1,"items":["a"]}"#, 400, "E105"),
        ("/why/complex_dag", &too_many, 400, "E105"),
        ("/why/complex_dag", r#"{"user_id":1,"items":[1],"itemz":1}"#, 400, "E103"),
        ("/why/complex_dag", r#"{"user_id":1,"items":[1],"plan":"for_you"}"#, 400, "E108"),
        ("/why/complex_dag", r#"{"user_id":1,"items":[1],"dials":{"none":1}}"#, 400, "E113"),
    ] {
        let answer = post(&server.url(path), body);
        assert_eq!((answer.status, answer.json().text("error.code")), (status, code), "{body}: {}", answer.body);
    }
    let url = server.url("/why/complex_dag");
    let wrong_method = get(&url);
    assert_eq!(wrong_method.status, 405);
    assert!(wrong_method.headers.contains("allow: post"), "{}", wrong_method.headers);
    assert_eq!(curl(&["-H", "content-type: text/plain", "-d", ASKED, &url]).status, 415);
    // The items' ids may be given as digits, and the request's own deadline does not count.
    let answer = post(&url, r#"{"user_id":1,"items":["44","10000577","99999"],"deadline_ms":1,"request_id":"mine"}"#);
    assert_eq!(verdicts(&answer), ["expanded", "answered", "never"], "{}", answer.body);
    assert_eq!(answer.json().text("request_id"), "mine");
}

#[test]
fn questions_are_counted_by_themselves() {
    // Every run is traced that counts.
    let server = Server::start(&repository().join("plans"), &["--why", "on", "--trace-every", "1", "--loops", "1"]);
    assert_eq!(post(&server.url("/rank/complex_dag"), r#"{"user_id":1}"#).status, 200);
    for _ in 0..3 {
        assert_eq!(post(&server.url("/why/complex_dag"), ASKED).status, 200);
    }
    assert_eq!(post(&server.url("/why/complex_dag"), "{}").status, 400);
    assert_eq!(post(&server.url("/why/nowhere"), ASKED).status, 404);
    let metrics = get(&server.url("/metrics")).body;
    for (name, value) in [
        (r#"rankd_why_total{plan="complex_dag",outcome="ok"}"#, 3.0),
        // What cannot be read is for no plan.
        (r#"rankd_why_total{plan="",outcome="bad_request"}"#, 1.0),
        (r#"rankd_why_total{plan="",outcome="unknown_plan"}"#, 1.0),
        (r#"rankd_requests_total{plan="complex_dag",outcome="ok"}"#, 1.0),
        (r#"rankd_requests_total{plan="",outcome="bad_request"}"#, 0.0),
        (r#"rankd_request_seconds_count{plan="complex_dag"}"#, 1.0),
        ("rankd_traced_runs_total", 1.0),
        (r#"rankd_http_responses_total{route="/why/{plan}",status="2xx"}"#, 3.0),
        (r#"rankd_http_responses_total{route="/why/{plan}",status="4xx"}"#, 2.0),
    ] {
        assert_eq!(metric(&metrics, name), value, "{name}\n{metrics}");
    }
}

#[test]
fn one_question_is_answered_at_a_time_and_takes_at_most_five_seconds() {
    let folder = Folder::new();
    let (name, mut nodes) = rows("endless", 3);
    nodes.push(node("n1", "sleep", &["n0"], "\"duration_ms\":3600000"));
    folder.plan(&name, &nodes, "n1");
    folder.plan("rows", &rows("rows", 3).1, "n0");
    let server = Server::start(&folder.0, &["--why", "on", "--loops", "1"]);
    let asked = r#"{"user_id":1,"items":[1]}"#;
    let url = server.url("/why/endless");
    let answers: Vec<Answer> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| post(&url, asked))).collect();
        // Others are answered meanwhile.
        metrics_until(&server.address, |metrics| metric(metrics, r#"rankd_runs_under_way{loop="0"}"#) > 0.0);
        assert_eq!(post(&server.url("/rank/rows"), r#"{"user_id":1}"#).status, 200);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // The first is over after five seconds; the last waits for as long and is refused, however the second fares.
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert!((1..=2).contains(&refused.len()), "{answers:?}");
    assert!(refused.iter().all(|answer| answer.json().text("error.code") == "E609"), "{answers:?}");
    assert!(refused.iter().all(|answer| answer.headers.contains("retry-after: 1")), "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status != 503) {
        assert_eq!((answer.status, answer.json().text("error.code")), (200, "E301"), "{}", answer.body);
        assert_eq!(verdicts(answer), ["failed"]);
    }
}

#[test]
fn a_run_that_keeps_too_much_is_refused() {
    let folder = Folder::new();
    let source = node("n0", "fixed_source", &[], "\"row_count\":60000");
    let twice = node("n1", "concat", &["n0"], "\"rhs\":\"n0\"");
    folder.write("twice.plan.json", &plan_text("twice", &[source, twice], "n1"));
    let server = Server::start(&folder.0, &["--why", "on"]);
    assert_eq!(post(&server.url("/rank/twice"), r#"{"user_id":1}"#).status, 200);
    let answer = post(&server.url("/why/twice"), r#"{"user_id":1,"items":[1]}"#);
    assert_eq!((answer.status, answer.json().text("error.code")), (503, "E608"), "{}", answer.body);
    assert!(answer.json().text("error.message").contains("120000 rows"), "{}", answer.body);
}
