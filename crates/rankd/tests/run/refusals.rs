//! Requests that cannot be answered: each is told what is wrong with it, and the next one is answered as if nothing had been.

use crate::program::{Folder, Session, node, run};

const NEXT: &str = r#"{"user_id":1,"request_id":"next","candidates":[{"id":7,"score":0.5},{"id":8}]}"#;

fn candidates_plan(folder: &Folder) -> String {
    let nodes = [node("c", "candidates", &[], ""), node("t", "take", &["c"], r#""count":10"#)];
    folder.plan("rerank", &nodes, &["t"])
}

/// A request that is refused, and what must be in the message.
fn refused() -> Vec<(Vec<u8>, &'static [&'static str])> {
    let mut table: Vec<(Vec<u8>, &'static [&'static str])> = Vec::new();
    let mut add = |request: &str, says| table.push((request.as_bytes().to_vec(), says));
    // What is not a request at all.
    add("[]", &["expected an object"]);
    add("user 1", &["expected an object"]);
    add("{\"user_id\":1", &["comma or }"]);
    add("{\"user_id\":1} {\"user_id\":2}", &["the document has ended, but text follows", "byte 14"]);
    add("{'user_id':1}", &["expected a field name"]);
    add("{\"user_id\":1,}", &["a comma before the end"]);
    // Fields: unknown, missing, twice.
    add(r#"{"user_idd":1}"#, &["\"user_idd\"", "did you mean \"user_id\"?"]);
    add(r#"{"user_id":1,"deadline":5}"#, &["no field \"deadline\"", "did you mean \"deadline_ms\"?"]);
    add(r#"{"request_id":"r"}"#, &["\"user_id\" is missing"]);
    add(r#"{"user_id":1,"user_id":1}"#, &["\"user_id\" appears twice"]);
    add(r#"{"user_id":1,"params":{"weight":1,"weight":2}}"#, &["\"weight\" appears twice"]);
    // The user's id: an int from 1 on.
    for id in ["0", "-1", "1.5", "1.0", "\"abc\"", "\"\"", "\"+1\"", "\" 1\"", "\"-1\"", "9223372036854775808"] {
        add(&format!(r#"{{"user_id":{id}}}"#), &["user_id must be an int from 1 to 9223372036854775807"]);
    }
    for id in ["\"9223372036854775808\"", "1e999", "-1e999", "1e3", "true", "null", "[1]", "{}"] {
        add(&format!(r#"{{"user_id":{id}}}"#), &["user_id must be an int from 1 to 9223372036854775807"]);
    }
    // Values of another type or out of range.
    add(r#"{"user_id":1,"request_id":5}"#, &["request_id must be a string"]);
    add(&format!(r#"{{"user_id":1,"request_id":"{}"}}"#, "x".repeat(129)), &["request_id", "128 bytes"]);
    add(r#"{"user_id":1,"plan":7}"#, &["plan must be a string"]);
    add(r#"{"user_id":1,"params":[]}"#, &["params must be an object"]);
    add(r#"{"user_id":1,"params":{"weight":"heavy"}}"#, &["\"weight\" must be of type float"]);
    add(r#"{"user_id":1,"params":{"half_life_hours":null}}"#, &["\"half_life_hours\" cannot be null"]);
    add(r#"{"user_id":1,"params":{"weight":1e999}}"#, &["\"weight\"", "does not fit 64 bits"]);
    add(r#"{"user_id":1,"candidates":{}}"#, &["candidates must be a list"]);
    add(r#"{"user_id":1,"candidates":[1]}"#, &["candidates[0] must be an object"]);
    add(r#"{"user_id":1,"candidates":[{"id":1},{"score":2}]}"#, &["candidates[1] has no id"]);
    add(r#"{"user_id":1,"candidates":[{"id":1,"score":"x"}]}"#, &["candidates[0].score must be of type float"]);
    add(r#"{"user_id":1,"candidates":[{"id":1.5}]}"#, &["candidates[0].id must be of type int"]);
    add(r#"{"user_id":1,"candidates":[{"id":1,"id":2}]}"#, &["candidates[0] has \"id\" twice"]);
    add(r#"{"user_id":1,"output_keys":"score"}"#, &["output_keys must be a list"]);
    add(r#"{"user_id":1,"output_keys":[1]}"#, &["output_keys must be a list of key names"]);
    add(r#"{"user_id":1,"trace":1}"#, &["trace must be true or false"]);
    for ms in ["0", "-5", "1.5", "86400001", "\"5\"", "1e999"] {
        add(&format!(r#"{{"user_id":1,"deadline_ms":{ms}}}"#), &["deadline_ms must be an int from 1 to 86400000"]);
        add(&format!(r#"{{"user_id":1,"node_timeout_ms":{ms}}}"#), &["node_timeout_ms must be an int from 1"]);
    }
    // Names that nothing has, and one that nobody may use.
    add(r#"{"user_id":1,"params":{"wieght":1}}"#, &["no parameter \"wieght\"", "did you mean \"weight\"?"]);
    add(r#"{"user_id":1,"output_keys":["scoer"]}"#, &["no key \"scoer\"", "did you mean \"score\"?"]);
    add(r#"{"user_id":1,"candidates":[{"id":1,"scoer":2}]}"#, &["no key \"scoer\"", "did you mean \"score\"?"]);
    add(r#"{"user_id":1,"output_keys":["email"]}"#, &["\"email\" cannot be used"]);
    add(r#"{"user_id":1,"plan":"diamond"}"#, &["\"diamond\"", "\"rerank\""]);
    add(r#"{"user_id":1,"params":{"weight":1},"param_overrides":{"weight":2}}"#, &["\"weight\"", "different values"]);
    add(
        r#"{"user_id":1,"param_overrides":{"weight":null},"params":{"weight":2}}"#,
        &["\"weight\"", "different values"],
    );
    // A long name is cut wherever it is shown.
    let long = "x".repeat(500_000);
    const CUT: &str = "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"…";
    add(&format!(r#"{{"user_id":1,"plan":"{long}"}}"#), &["the request is for plan", CUT]);
    add(&format!(r#"{{"user_id":1,"{long}":1}}"#), &["there is no field", CUT]);
    add(&format!(r#"{{"user_id":1,"params":{{"{long}":1}}}}"#), &["there is no parameter", CUT]);
    add(&format!(r#"{{"user_id":1,"output_keys":["{long}"]}}"#), &["there is no key", CUT]);
    add(&format!(r#"{{"user_id":1,"candidates":[{{"{long}":1}}]}}"#), &["there is no key", CUT]);
    // Words that are not JSON are told by their place.
    add(r#"{"user_id":NaN}"#, &["expected a value", "byte 11"]);
    add(r#"{"user_id":1,"params":{"weight":NaN}}"#, &["expected a value", "byte 32"]);
    add(r#"{"user_id":1,"params":{"weight":-Infinity}}"#, &["expected a digit", "byte 33"]);
    add(r#"{"user_id":1,"request_id":"\ud800"}"#, &["half of a surrogate pair"]);
    // Nesting.
    for depth in [65, 100_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        add(&format!(r#"{{"user_id":1,"params":{{"weight":{open}{close}}}}}"#), &["\"weight\" must be of type float"]);
        add(&format!(r#"{{"user_id":1,"candidates":{open}{close}}}"#), &["candidates[0] must be an object"]);
        add(&"{\"params\":".repeat(depth), &["params"]);
    }
    table.push((b"{\"user_id\":1,\"request_id\":\"\xff\"}".to_vec(), &["byte 27 is not UTF-8"]));
    table.push((b"\x00\xfe".to_vec(), &["UTF-8"]));
    let long = format!(r#"{{"user_id":1,"request_id":"{}"}}"#, "x".repeat(1 << 20));
    table.push((long.into_bytes(), &["at most 1048576 bytes"]));
    table
}

#[test]
fn a_bad_request_is_told_what_is_wrong_and_the_next_one_is_answered() {
    let folder = Folder::new();
    let plan = candidates_plan(&folder);
    let table = refused();
    let mut input = Vec::new();
    for (request, _) in &table {
        input.extend_from_slice(request);
        input.extend_from_slice(format!("\n{NEXT}\n").as_bytes());
    }
    let ran = run(&["--plan", &plan], &input);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stderr, "");
    let answers = ran.answers();
    assert_eq!(answers.len(), 2 * table.len(), "one answer a line");
    for ((request, says), pair) in table.iter().zip(answers.chunks(2)) {
        let request = String::from_utf8_lossy(&request[..request.len().min(120)]);
        assert_eq!(pair[0].text("error.kind"), "bad_request", "{request}");
        assert!(pair[0].text("error.code").starts_with("E1"), "{request}");
        assert!(!pair[0].text("request_id").is_empty() && pair[0].text("plan") == "rerank", "{request}");
        let message = pair[0].text("error.message");
        assert!(message.len() < 300, "{request}: a message is short, whatever it is about: {message}");
        for words in *says {
            assert!(message.contains(words), "{request} should be told {words:?}, not {message:?}");
        }
        assert_eq!((pair[1].text("request_id"), pair[1].list("candidates").len()), ("next", 2), "after {request}");
    }
}

#[test]
fn a_candidate_that_is_there_twice_is_the_requests_mistake() {
    let folder = Folder::new();
    let mut session = Session::start(&["--plan", &candidates_plan(&folder)]);
    let (answer, _) = session.ask(r#"{"user_id":1,"request_id":"r","candidates":[{"id":7},{"id":8},{"id":7}]}"#);
    assert_eq!((answer.text("request_id"), answer.text("error.kind")), ("r", "bad_request"));
    assert_eq!(answer.text("error.message"), "the candidate id 7 appears twice");
    assert_eq!((answer.text("error.node"), answer.text("error.op")), ("c", "candidates"));
    assert_eq!(session.ask(NEXT).0.list("candidates").len(), 2);
    assert_eq!(session.end(), 1);
}

#[test]
fn what_is_unusual_but_allowed_is_answered() {
    let folder = Folder::new();
    let mut session = Session::start(&["--plan", &candidates_plan(&folder)]);
    for request in [
        r#"{"user_id":9223372036854775807}"#,
        r#"{"user_id":"9223372036854775807"}"#,
        r#"  {"user_id" : "1"}  "#,
        "{\"user_id\":1,\"candidates\":[]}\r",
        r#"{"user_id":1,"request_id":"\ud83d\ude00 \u0000"}"#,
        r#"{"user_id":1,"param_overrides":{"weight":1}}"#,
        r#"{"user_id":1,"plan":"rerank","output_keys":[],"trace":false}"#,
        r#"{"user_id":1,"params":{"weight":1},"param_overrides":{"weight":1.0,"score_min":2}}"#,
    ] {
        assert!(session.ask(request).0.has("candidates"), "{request}");
    }
    assert!(!session.ask(r#"{"user_id":1,"trace":null}"#).0.has("trace"), "null is no trace");
    let (answer, _) = session.ask(r#"{"user_id":1,"output_keys":["score"],"candidates":[{"id":7,"score":1,"age":3}]}"#);
    assert_eq!(answer.list("candidates")[0].number("score"), 1.0);
    assert!(!answer.list("candidates")[0].has("age"), "only the keys that were asked for");
    assert_eq!(session.end(), 0);
}
