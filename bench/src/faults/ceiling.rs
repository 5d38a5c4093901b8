//! 64 of the largest requests at once in a process that may have 256 MB of data: answered or sent away, never killed.
//!
//! The ceiling is a limit on the process's own writable memory (`prlimit --data`), so that what does not fit fails inside it.

use crate::faults::load::{Load, Step, post};
use crate::faults::stage::{Folder, metric, node, noted, page, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::time::Duration;

const CEILING: [&str; 2] = ["prlimit", "--data=268435456"];
const PLAN: &str = "largest";
const AT_ONCE: usize = 64;
/// As large as a body may be.
const BODY_BYTES: usize = 1 << 20;

pub fn run() {
    let folder = Folder::new();
    // The rows stay for a while, so that many runs have theirs at once.
    let nodes = [
        node("n0", "candidates", &[], ""),
        node("n1", "sort", &["n0"], r#""key":"score","order":"desc""#),
        node("n2", "sleep", &["n1"], r#""duration_ms":50"#),
        node("n3", "concat", &["n2"], r#""rhs":"n0""#),
    ];
    folder.plan(PLAN, &crate::faults::stage::plan(PLAN, &nodes, "n3"));
    println!("\n## 256 MB\n");
    table();
    let mut server = Server::rankd_under(&CEILING, folder.path(), &["--deadline-ms", "2000"]);
    let mut body = r#"{"user_id":1,"candidates":["#.to_owned();
    let mut rows = 0;
    while body.len() + 32 < BODY_BYTES {
        rows += 1;
        body.push_str(&format!(r#"{{"id":{rows},"score":0.5}},"#));
    }
    body.pop();
    body.push_str("]}");
    let requests = [post(PLAN, &body)];
    let right = move |_: usize, answer: &str| answer.matches("{\"id\":").count() == 2 * rows;
    let steps = [Step { rate: f64::INFINITY, time: Duration::from_secs(10) }];
    let address = &server.address;
    let load = Load { address, connections: AT_ONCE, requests: &requests, steps: &steps, retries: 0, right: &right };
    let answers = load.drive();
    let tally = Tally::of(&answers);
    assert_eq!(server.ended(), None, "it is alive");
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, or wrongly answered");
    assert_eq!(tally.others(&[503, 504]), [], "statuses that nobody expects");
    told("kills", "0", "0", true);
    let statuses = [200, 503, 504].map(|status| tally.with(status).to_string()).join(", ");
    noted(&format!("{rows} rows in {} bytes, {AT_ONCE} at once for 10 s: rows, 503, 504", body.len()), &statuses);
    noted(
        "refused for memory",
        &format!("{:.0}", metric(&server, r#"rankd_admission_rejected_total{reason="memory"}"#)),
    );
    noted("most memory in use, MB", &format!("{:.0}", server.most_resident()));
    let healthy = page(&server, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"));
    told("/healthz afterwards", if healthy { "200" } else { "nothing" }, "200", healthy);
}
