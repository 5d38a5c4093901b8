//! Tables whose files change under load: good, half-written, with a repeated id, without a column that a plan reads. And what many
//! requests for a large one take.

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
    let [taken, refused] = reloads(&metrics);
    assert_eq!(taken, 50.0);
    // A file that is written in place may also be seen while it is empty.
    let in_place = ROUNDS.div_ceil(6) as f64;
    assert!((50.0..=50.0 + in_place).contains(&refused), "{refused} versions were refused");
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

/// Rows of a table that is looked at as a whole. A bench has one of a million.
const MANY: usize = 200_000;
const KEPT: usize = 100;
const AT_ONCE: usize = 64;
/// As many megabytes as 64 requests may take at most: with a copy of one column of the table each, it would be 100.
const MORE_MAX: u64 = 64;

#[test]
fn sixty_four_requests_for_few_of_many_rows_take_little_memory() {
    let (plans, registry) = (Folder::new(), registry());
    let mut text = "id,title,likes,views\n".to_owned();
    for id in 1..=MANY {
        writeln!(text, "{id},title {},{id},{}", id % 500, id % 1000).unwrap();
    }
    registry.write("items.csv", &text);
    let key = |name: &str| format!(r#"{{"op":"key_ref","key":"{name}"}}"#);
    let number = |value: usize| format!(r#"{{"op":"const_number","value":{value}}}"#);
    let nodes = [
        node("n0", "scan", &[], "\"endpoint\":\"items\""),
        node("n1", "filter", &["n0"], "\"pred\":\"few\""),
        node("n2", "vm", &["n1"], "\"out_key\":\"score\",\"expr\":\"e\""),
        node("n3", "hydrate", &["n2"], "\"endpoint\":\"items\",\"fields\":{\"title\":\"country\"}"),
        // All of them have their rows at the same time.
        node("n4", "sleep", &["n3"], "\"duration_ms\":1500"),
        node("n5", "sort", &["n4"], "\"key\":\"score\",\"order\":\"desc\""),
    ];
    let few = format!(r#"{{"op":"cmp","cmp":">","a":{},"b":{}}}"#, key("likes"), number(MANY - KEPT));
    let score = format!(r#"{{"op":"mul","a":{},"b":{}}}"#, key("likes"), number(2));
    let plan = plan_text("few", &nodes, "n5")
        .replace("\"expr_table\":{}", &format!("\"expr_table\":{{\"e\":{score}}}"))
        .replace("\"pred_table\":{}", &format!("\"pred_table\":{{\"few\":{few}}}"));
    plans.write("few.plan.json", &plan);
    let server = Server::start(&plans.0, &["--registry", registry.0.to_str().unwrap()]);
    let asked = r#"{"user_id":1,"output_keys":["score","country"]}"#;
    assert_eq!(post(&server.url("/rank/few"), asked).status, 200);
    let before = server.kilobytes("VmRSS:");
    let mut lines: Vec<Line> = (0..AT_ONCE).map(|_| Line::open(&server.address)).collect();
    lines.iter_mut().for_each(|line| line.post("/rank/few", asked).unwrap());
    let last = format!(r#"{{"id":{MANY},"score":{}.0,"country":"title 0"}}"#, 2 * MANY);
    for mut line in lines {
        let answer = line.answer().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.body.contains(&last) && answer.json().list("candidates").len() == KEPT, "{}", answer.body);
    }
    // The most since the server started, so loading the table counts as well. The kernel updates the two at different times.
    let more = server.kilobytes("VmHWM:").saturating_sub(before) / 1024;
    println!("{AT_ONCE} requests at once took at most {more} MB more than the {} MB before", before / 1024);
    assert!(more < MORE_MAX, "{more} MB");
}
