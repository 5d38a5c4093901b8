//! SIGTERM under load, with half a request open: what was accepted is answered, and the process ends.

use crate::faults::load::{Load, NOT_SENT, Step, post};
use crate::faults::stage::{BODY, Folder, TEN, is_ten, noted, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const RATE: f64 = 1000.0;
/// From the start of the load to the signal.
const BEFORE: Duration = Duration::from_secs(1);

pub fn run() {
    let folder = Folder::new();
    folder.ten_nodes();
    println!("\n## SIGTERM under load\n");
    table();
    let (mut accepted, mut refused, mut longest) = (0, 0, Duration::ZERO);
    for _ in 0..ROUNDS {
        let mut server = Server::rankd(folder.path(), &["--deadline-ms", "100"]);
        let address = server.address.clone();
        let mut half = TcpStream::connect(&address).expect("there is room");
        half.write_all(b"POST /rank/complex_dag HTTP/1.1\r\nhost: localhost\r\ncontent-le")
            .expect("a little can be sent");
        let (answers, ended) = std::thread::scope(|scope| {
            let stop = scope.spawn(|| {
                std::thread::sleep(BEFORE);
                server.signal("-TERM");
                let began = Instant::now();
                loop {
                    match server.ended() {
                        Some(status) => return (status, began.elapsed()),
                        None => std::thread::sleep(Duration::from_millis(1)),
                    }
                }
            });
            let requests = [post(TEN, BODY)];
            let steps = [Step { rate: RATE, time: 2 * BEFORE }];
            let load = Load {
                address: &address,
                connections: 64,
                requests: &requests,
                steps: &steps,
                retries: 0,
                right: &is_ten,
            };
            (load.drive(), stop.join().expect("it ends"))
        });
        let tally = Tally::of(&answers);
        assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "accepted and not answered, or wrongly");
        assert_eq!(tally.others(&[503, NOT_SENT]), [], "statuses that nobody expects");
        assert_eq!(ended.0.code(), Some(0), "the exit code");
        accepted += tally.all() - tally.with(NOT_SENT);
        refused += tally.with(503);
        longest = longest.max(ended.1);
    }
    told(&format!("{ROUNDS} stops: accepted and not answered, of {accepted}"), "0", "0", true);
    told("of those, answered with 503", &refused.to_string(), "0", refused == 0);
    told("exit code", "0", "0", true);
    told("longest from signal to exit, s", &format!("{:.2}", longest.as_secs_f64()), "≤ 10", longest.as_secs() < 10);
    noted("requests a second", &format!("{RATE:.0}"));
}
