//! Two thousand clients that send half a head, half a body or nothing, beside good ones; and more clients than descriptors.

use crate::faults::load::Step;
use crate::faults::overload::{FLAGS, Target};
use crate::faults::stage::{Folder, PINNED, TEN, is_ten, metric, noted, page, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CLIENTS: usize = 2000;
const HEAD: &str = "POST /rank/complex_dag HTTP/1.1\r\nhost: localhost\r\nx-slow: ";
const BODY: &str = "POST /rank/complex_dag HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"user";
/// A descriptor limit, and clients that are more than fit.
const FEW: [&str; 2] = ["prlimit", "--nofile=256:256"];
const MANY: usize = 1000;

pub fn run() {
    let folder = Folder::new();
    folder.ten_nodes();
    println!("\n## Slow clients\n");
    table();
    let server = Server::rankd_under(&PINNED, folder.path(), &FLAGS);
    let target = Target { server: &server, plan: TEN, right: &is_ten };
    let capacity = target.capacity();
    let half = |seconds| [Step { rate: capacity.rate / 2.0, time: Duration::from_secs(seconds) }];
    noted("good clients, requests a second (C/2)", &format!("{:.0}", capacity.rate / 2.0));
    let (before, resident) = (target.load(&half(10), 100, 0), server.resident());
    let mut slow: Vec<(Instant, TcpStream)> =
        (0..CLIENTS).map(|at| (Instant::now(), slow_client(&server, at))).collect();
    let (during, each, cut) = std::thread::scope(|scope| {
        let good = scope.spawn(|| target.load(&half(10), 100, 0));
        while metric(&server, "rankd_connections_open") < CLIENTS as f64 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let each = (server.resident() - resident) * 1024.0 / CLIENTS as f64;
        let cut = slow.iter_mut().map(|(came, stream)| {
            wait_until_closed(stream);
            came.elapsed()
        });
        let cut = cut.max().unwrap_or_default();
        (good.join().expect("the load ends"), each, cut)
    });
    let (alone, beside) = (Tally::of(&before).good_ms(99.0), Tally::of(&during).good_ms(99.0));
    let shown = format!("{beside:.2} beside {alone:.2} without them: {:.2}", beside / alone);
    told("good clients' p99 beside 2,000 slow ones, ms", &shown, "≤ 1.5 B", beside <= 1.5 * alone);
    let refused = Tally::of(&during).all() - Tally::of(&during).with(200);
    told("good clients' requests without rows", &refused.to_string(), "0", refused == 0);
    told(
        "the last cut so long after it came, s",
        &format!("{:.1}", cut.as_secs_f64()),
        "≤ 10",
        cut <= Duration::from_secs(10),
    );
    told("memory a connection, KB", &format!("{each:.1}"), "< 32", each < 32.0);
    few_descriptors(&folder);
}

fn slow_client(server: &Server, at: usize) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).expect("there is room");
    let sent = match at % 3 {
        0 => stream.write_all(HEAD.as_bytes()),
        1 => stream.write_all(BODY.as_bytes()),
        _ => Ok(()),
    };
    sent.expect("a little can be sent");
    stream
}

/// Comes back when the server has closed it; one with half a body is told before.
fn wait_until_closed(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out can be set");
    let ended = stream.read_to_end(&mut Vec::new());
    let open = ended.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    assert!(!open, "a slow client is still there after a minute");
}

fn few_descriptors(folder: &Folder) {
    let server = Server::rankd_under(&FEW, folder.path(), &FLAGS);
    let clients: Vec<TcpStream> = (0..MANY).map(|at| slow_client(&server, at)).collect();
    let mut asked = 0;
    let mut slowest = Duration::ZERO;
    let until = Instant::now() + Duration::from_secs(3);
    let mut healthy = 0;
    while Instant::now() < until {
        let began = Instant::now();
        healthy += usize::from(page(&server, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
        slowest = slowest.max(began.elapsed());
        asked += 1;
    }
    let name = format!("/healthz beside {} clients with 256 descriptors, answered of {asked}", clients.len());
    told(&name, &healthy.to_string(), "all", healthy == asked);
    noted("the slowest of those, ms", &format!("{:.1}", slowest.as_secs_f64() * 1e3));
}
