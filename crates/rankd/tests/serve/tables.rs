//! Tables whose files change under load: good, half-written, with a repeated id, without a column that a plan reads.

use crate::client::{Line, get, metric, metrics_until, post};
use crate::server::{Folder, Server, node, plan_text, repository};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A registry with the table `items`, whose file is in the same folder.
fn registry() -> Folder {
    let folder = Folder::new();
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), folder.0.join(name)).unwrap();
    }
    let file = folder.0.join("items.csv");
    let endpoint = format!(
        "[[endpoint]]\nendpoint_id = \"ep_0010\"\nname = \"items\"\nkind = \"table\"\nurl = \"file:{}\"\n",
        file.display()
    );
    folder.write("endpoints.local.toml", &endpoint);
    folder
}

/// A version of the file: every row has its number.
fn version(number: usize, rows: usize) -> String {
    let mut text = "id,title,likes,views\n".to_owned();
    for id in 1..=rows {
        writeln!(text, "{id},\"item {id} of {number}\",{number},{number}").unwrap();
    }
    text
}

fn reloads(metrics: &str) -> [f64; 2] {
    ["ok", "failed"]
        .map(|result| metric(metrics, &format!("rankd_table_reloads_total{{table=\"items\",result=\"{result}\"}}")))
}

const ROWS: usize = 300;
const ROUNDS: usize = 100;

#[test]
fn a_hundred_versions_of_a_table_fail_no_request_and_mix_no_rows() {
    let (plans, registry) = (Folder::new(), registry());
    registry.write("items.csv", &version(1, ROWS));
    let nodes = [
        node("n0", "scan", &[], "\"endpoint\":\"items\""),
        node("n1", "sort", &["n0"], "\"key\":\"likes\""),
        node("n2", "scan", &[], "\"endpoint\":\"items\""),
        node("n3", "concat", &["n1"], "\"rhs\":\"n2\""),
    ];
    plans.write("all.plan.json", &plan_text("all", &nodes, "n3"));
    let flags = ["--watch-ms", "2", "--registry", registry.0.to_str().unwrap()];
    let server = Server::start(&plans.0, &flags);
    let before = metric(&get(&server.url("/metrics")).body, "rankd_resident_bytes");
    let (done, answered, highest) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(1));
    thread::scope(|scope| {
        for _ in 0..4 {
            let (server, done, answered, highest) = (&server, &done, &answered, &highest);
            scope.spawn(move || {
                let mut line = Line::open(&server.address);
                while !done.load(Ordering::Relaxed) {
                    line.post("/rank/all", r#"{"user_id":1,"output_keys":["likes","views"]}"#).unwrap();
                    let answer = line.answer().unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    let json = answer.json();
                    let rows = json.list("candidates");
                    assert_eq!(rows.len(), 2 * ROWS);
                    let number = rows[0].number("likes");
                    assert!(rows.iter().all(|row| row.number("likes") == number && row.number("views") == number));
                    assert!(number as usize <= highest.load(Ordering::Relaxed), "{number} was never good");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 2..ROUNDS + 2 {
            let text = version(round, ROWS);
            match round % 6 {
                // In place, and only half of it: within a cell.
                0 => std::fs::write(registry.0.join("items.csv"), &text[..text.rfind("item").unwrap()]).unwrap(),
                2 => registry.write("items.csv", &format!("{text}7,again,1,1\n")),
                4 => registry.write("items.csv", &text.replacen("likes", "hearts", 1)),
                _ => {
                    highest.store(round, Ordering::Relaxed);
                    registry.write("items.csv", &text);
                }
            }
            let wanted = (round - 1) as f64;
            metrics_until(&server.address, |now| reloads(now).iter().sum::<f64>() >= wanted);
            let is_bad = round % 2 == 0;
            metrics_until(&server.address, |now| metric(now, "rankd_tables_problem") == f64::from(u8::from(is_bad)));
        }
        done.store(true, Ordering::Relaxed);
    });
    let metrics = get(&server.url("/metrics")).body;
    assert_eq!(reloads(&metrics), [50.0, 50.0]);
    assert_eq!(metric(&metrics, "rankd_table_rows{table=\"items\"}"), ROWS as f64);
    assert_eq!(metric(&metrics, "rankd_panics_caught_total"), 0.0);
    let after = metric(&metrics, "rankd_resident_bytes");
    assert!(after < before + 64e6, "{before} bytes became {after}");
    println!("{} requests answered", answered.load(Ordering::Relaxed));
}

#[test]
fn a_refused_file_is_reported_and_the_last_good_one_stays() {
    let (plans, registry) = (Folder::new(), registry());
    registry.write("items.csv", &version(1, 3));
    plans.plan("all", &[node("n0", "scan", &[], "\"endpoint\":\"items\"")], "n0");
    let flags = ["--watch-ms", "2", "--registry", registry.0.to_str().unwrap()];
    let server = Server::start(&plans.0, &flags);
    registry.write("items.csv", "id,likes\n1,many\n");
    metrics_until(&server.address, |now| metric(now, "rankd_tables_problem") == 1.0);
    let ready = get(&server.url("/readyz"));
    assert_eq!(ready.status, 200, "{}", ready.body);
    let json = ready.json();
    let warning = &json.list("warnings")[0];
    assert_eq!(warning.text("about"), "tables");
    assert!(warning.text("message").contains("table items") && warning.text("message").contains("line 2"));
    let rows = post(&server.url("/rank/all"), r#"{"user_id":1}"#).json().list("candidates").len();
    assert_eq!(rows, 3);
    // A plan that changes now is checked against the columns that are in use.
    let sorted =
        [node("n0", "scan", &[], "\"endpoint\":\"items\""), node("n1", "sort", &["n0"], "\"key\":\"country\"")];
    plans.plan("all", &sorted, "n1");
    metrics_until(&server.address, |now| metric(now, "rankd_plan_problem{plan=\"all\"}") == 1.0);
    registry.write("items.csv", "id,country\n9,DE\n");
    metrics_until(&server.address, |now| metric(now, "rankd_tables_problem") == 0.0);
    assert_eq!(get(&server.url("/readyz")).body, r#"{"status":"ready"}"#);
    let rows = post(&server.url("/rank/all"), r#"{"user_id":1}"#).body;
    assert!(rows.contains(r#"{"id":9,"country":"DE"}"#), "{rows}");
}
