//! The wall clock jumps by an hour, forwards and back, under load: deadlines must not notice.
//!
//! The server runs with `libfaketime`, which moves its wall clock as a file says and leaves the monotonic one alone.

use crate::faults::load::{Load, Step, post};
use crate::faults::overload::DEADLINE;
use crate::faults::stage::{BODY, Folder, TEN, is_ten, node, noted, page, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::path::Path;
use std::time::Duration;

const LIBRARIES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1"];
const DOZE: &str = "doze";
const RATE: f64 = 400.0;

pub fn run() {
    println!("\n## The wall clock jumps\n");
    let Some(library) = LIBRARIES.into_iter().find(|path| Path::new(path).exists()) else {
        println!("Not measured: libfaketime is not installed.");
        return;
    };
    table();
    let folder = Folder::new();
    folder.ten_nodes();
    let sleep = node("n1", "sleep", &["n0"], r#""duration_ms":1000"#);
    folder.plan(DOZE, &plan(DOZE, &[node("n0", "fixed_source", &[], ""), sleep], "n1"));
    let file = folder.path().join("offset");
    let jump = |offset: &str| std::fs::write(&file, offset).expect("an offset can be written");
    jump("+0");
    let (preload, offset) = (format!("LD_PRELOAD={library}"), format!("FAKETIME_TIMESTAMP_FILE={}", file.display()));
    let command = ["env", &preload, &offset, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1"];
    let log = folder.path().join("access.log");
    let flags = ["--deadline-ms", "100", "--access-log", log.to_str().expect("a path in UTF-8")];
    let server = Server::rankd_under(&command, folder.path(), &flags);
    // The hour that the server takes it to be, as its log says.
    let hour = || {
        page(&server, "/healthz").expect("it answers");
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if let Some(line) = text.lines().rfind(|line| line.contains("/healthz") && line.ends_with('}')) {
                let at = line.split_once("\"at\":\"").expect("a time").1;
                return at[11..13].parse::<u32>().expect("an hour");
            }
        }
    };
    let mut hours = vec![hour()];
    // Every other request runs into its deadline.
    let requests = [post(TEN, BODY), post(DOZE, BODY)];
    let answers = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let steps = [Step { rate: RATE, time: Duration::from_secs(8) }];
            let address = &server.address;
            let right = |number: usize, answer: &str| number.is_multiple_of(2) && is_ten(number, answer);
            Load { address, connections: 200, requests: &requests, steps: &steps, retries: 0, right: &right }.drive()
        });
        for offset in ["+1h", "+0", "-1h", "+0"] {
            std::thread::sleep(Duration::from_millis(1500));
            jump(offset);
            page(&server, "/healthz").expect("it answers");
            // The log is written by a thread of its own.
            std::thread::sleep(Duration::from_millis(300));
            hours.push(hour());
        }
        load.join().expect("the load ends")
    });
    let moved: Vec<u32> = hours.iter().map(|hour| (hour + 25 - hours[0]) % 24).collect();
    assert_eq!(moved, [1, 2, 1, 0, 1], "the server's own clock has jumped");
    let tally = Tally::of(&answers);
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, or wrongly answered");
    assert_eq!(tally.others(&[503, 504]), [], "statuses that nobody expects");
    let early = answers.iter().filter(|answer| answer.status == 504 && answer.took < DEADLINE).count();
    told(
        &format!("4 jumps of an hour: early, of {} that time out", tally.with(504)),
        &early.to_string(),
        "0",
        early == 0,
    );
    let late = tally.late(DEADLINE);
    told(&format!("later than 120 ms, of {}", tally.all()), &late.to_string(), "0", late == 0);
    noted("with rows, timed out, refused", &[200, 504, 503].map(|status| tally.with(status).to_string()).join(", "));
    noted("slowest, ms", &format!("{:.1}", tally.ms(100.0)));
}
