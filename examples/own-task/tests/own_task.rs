//! The task of this crate: the example in its header, and the program that has it, from outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-task"));
    command.current_dir(folder()).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &str) -> Output {
    let mut child = program(args).spawn().expect("the program starts");
    child.stdin.take().expect("it has an input").write_all(input.as_bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The ids of an answer, in order: what stands behind each `"id":`.
fn ids(answer: &str) -> Vec<i64> {
    let after = answer.split("\"id\":").skip(1);
    after.map(|rest| rest.split([',', '}']).next().expect("an id").parse().expect("an id is an int")).collect()
}

#[test]
fn the_example_in_the_header_gives_what_it_says() {
    let registry = rankd_testing::registry_in(folder().join("registry"));
    rankd_testing::run_examples(own_task::definitions(), folder().join("src/tasks"), &registry);
}

#[test]
fn the_command_line_lists_the_task_and_runs_a_plan_with_it() {
    assert!(text(&run(&["tasks", "unseen"], "").stderr).contains("Drop the rows that the user has seen."));
    let answer = text(&run(&["run", "--plan_name", "feed"], "{\"user_id\": 1}\n").stdout);
    assert_eq!(ids(&answer), [13, 15, 11], "{answer}");
}

#[test]
fn the_types_for_editors_have_the_task() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("types");
    std::fs::create_dir_all(&out).expect("a folder can be made");
    run(&["dslc", "types", "--out", &out.display().to_string()], "");
    let types = std::fs::read_to_string(out.join("ranking-dsl.d.ts")).expect("the types were written");
    assert!(types.contains("unseen("), "{types}");
}

/// A server that is killed with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn the_server_ranks_with_the_task_and_counts_it() {
    let mut child = program(&["serve", "--listen", "127.0.0.1:0", "--trace_every", "1"]).spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("it has a stderr"));
    let server = Server(child);
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert!(said.read_line(&mut line).expect("it can be read") > 0, "the server ended before it was ready");
        if let Some((_, rest)) = line.split_once(" serves ") {
            assert!(rest.starts_with("1 of 1 plans"), "{line}");
            let (_, address) = rest.split_once("http://").expect("it says where");
            break address.split_whitespace().next().expect("an address").to_owned();
        }
    };
    let body = "{\"user_id\": 1}";
    let head = "host: localhost\r\nconnection: close\r\ncontent-type: application/json";
    let answer =
        ask(&address, &format!("POST /rank/feed HTTP/1.1\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(ids(&answer), [13, 15, 11], "{answer}");
    let metrics = ask(&address, &format!("GET /metrics HTTP/1.1\r\n{head}\r\n\r\n"));
    assert!(metrics.contains("rankd_op_run_seconds_count{op=\"unseen\"} 1"), "{metrics}");
    drop(server);
}
