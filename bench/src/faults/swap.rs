//! A table of 100 MB whose file changes a hundred times under load, every other time to a broken one: no request may fail or see two versions,
//! and the memory of the versions that are gone comes back.

use crate::faults::load::{Answer, Load, Step, post};
use crate::faults::stage::{Folder, metric, node, noted, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::{Server, repository};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "ends";
const MEGABYTES: usize = 100;
const SWAPS: usize = 100;
const RATE: f64 = 500.0;
/// Rows that an answer has of each of the two scans.
const SHOWN: usize = 20;

/// A version of the file, in which every row has the version's number: as many rows as make 100 MB.
fn version(number: usize) -> String {
    let mut text = String::with_capacity((MEGABYTES << 20) + 100);
    text.push_str("id,title,likes,views\n");
    let mut id = 0;
    while text.len() < MEGABYTES << 20 {
        id += 1;
        let _ = writeln!(text, "{id},title {} of many that repeat themselves,{number},{number}", id % 500);
    }
    text
}

/// The first half of a file, up to where a row has two of its columns: cut in its last one, it would be a good row.
fn cut(text: &str) -> &str {
    let row = text[..text.len() / 2].rfind('\n').expect("many rows");
    let title = text[row..].find(",title").expect("a row");
    &text[..row + title + 4]
}

fn write(path: &Path, text: &[u8]) {
    let aside = path.with_extension("aside");
    std::fs::write(&aside, text).expect("a table can be written");
    std::fs::rename(aside, path).expect("a file can be renamed");
}

fn registry(folder: &Folder, file: &Path) {
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), folder.path().join(name)).expect("a copy");
    }
    let head = "[[endpoint]]\nendpoint_id = \"ep_0010\"\nname = \"items\"\nkind = \"table\"";
    let endpoint = format!("{head}\nurl = \"file:{}\"\n", file.display());
    std::fs::write(folder.path().join("endpoints.local.toml"), endpoint).expect("a registry can be written");
}

fn reloads(server: &Server) -> [f64; 2] {
    ["ok", "failed"]
        .map(|result| metric(server, &format!("rankd_table_reloads_total{{table=\"items\",result=\"{result}\"}}")))
}

pub fn run() {
    println!("\n## A table of {MEGABYTES} MB is swapped\n");
    table();
    let (plans, files) = (Folder::new(), Folder::new());
    let path = files.path().join("items.csv");
    registry(&files, &path);
    write(&path, version(1).as_bytes());
    let count = format!("\"count\":{SHOWN}");
    let nodes = [
        node("n0", "scan", &[], "\"endpoint\":\"items\""),
        node("n1", "take", &["n0"], &count),
        node("n2", "scan", &[], "\"endpoint\":\"items\""),
        node("n3", "take", &["n2"], &count),
        node("n4", "concat", &["n1"], "\"rhs\":\"n3\""),
    ];
    plans.plan(NAME, &plan(NAME, &nodes, "n4"));
    let registry = files.path().to_str().expect("a path in words");
    let server = Server::rankd(plans.path(), &["--deadline-ms", "100", "--watch-ms", "5", "--registry", registry]);
    let body = r#"{"user_id":1,"output_keys":["likes","views"]}"#;
    server.send(&post(NAME, body)).expect("it answers");
    let before = server.resident();
    let highest = AtomicUsize::new(1);
    let right = |_: usize, answer: &str| is_one_version(answer, highest.load(Ordering::Relaxed));
    let began = Instant::now();
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let change = scope.spawn(|| {
            for swap in 0..SWAPS {
                let number = swap + 2;
                let text = version(number);
                match swap % 4 {
                    0 => write(&path, cut(&text).as_bytes()),
                    2 => write(&path, format!("{text}7,again,1,1\n").as_bytes()),
                    _ => {
                        highest.store(number, Ordering::Relaxed);
                        write(&path, text.as_bytes());
                    }
                }
                while reloads(&server).iter().sum::<f64>() < (swap + 1) as f64 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let mut answers = Vec::new();
        while !change.is_finished() {
            let (requests, steps) = ([post(NAME, body)], [Step { rate: RATE, time: Duration::from_secs(1) }]);
            let address = &server.address;
            let load = Load { address, connections: 64, requests: &requests, steps: &steps, retries: 0, right: &right };
            answers.extend(load.drive());
        }
        change.join().expect("the file changes");
        answers
    });
    let took = began.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_secs(5));
    let (most, after) = (server.most_resident(), server.resident());
    let [taken, refused] = reloads(&server);
    noted("versions taken, refused", &format!("{taken:.0}, {refused:.0} in {took:.0} s"));
    let tally = Tally::of(&answers);
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, and mixed or never good");
    let (all, failed) = (tally.all(), tally.all() - tally.with(200));
    told(&format!("failed of {all} requests"), &failed.to_string(), "0", failed == 0);
    told("mixed, or of a version that was never good", "0", "0", true);
    noted("p50 and p99, ms", &format!("{:.2}, {:.1}", tally.good_ms(50.0), tally.good_ms(99.0)));
    noted("memory before, at most, MB", &format!("{before:.0}, {most:.0}"));
    let name = "memory 5 s after the last, of that before";
    told(name, &format!("{:.2}", after / before), "≤ 1.1", after <= 1.1 * before);
}

/// Whether all rows have one number, of a version that was good.
fn is_one_version(answer: &str, highest: usize) -> bool {
    let numbers: Vec<usize> =
        answer.split("\"likes\":").skip(1).filter_map(|rest| rest.split([',', '}']).next()?.parse().ok()).collect();
    numbers.len() == 2 * SHOWN && numbers.iter().all(|number| *number == numbers[0] && *number <= highest)
}
