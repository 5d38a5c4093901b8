//! Ten restarts of two servers behind a balancer, one after the other, under load: no request may fail.

use crate::faults::balancer::Balancer;
use crate::faults::load::{Load, Step, post};
use crate::faults::stage::{BODY, Folder, TEN, is_ten, noted, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::time::{Duration, Instant};

const RESTARTS: usize = 10;
const RATE: f64 = 500.0;
const TIME: Duration = Duration::from_secs(20);

pub fn run() {
    let folder = Folder::new();
    folder.ten_nodes();
    println!("\n## Restarts behind a balancer\n");
    table();
    let start = || Server::rankd(folder.path(), &["--deadline-ms", "100"]);
    let mut servers = [start(), start()];
    let balancer = Balancer::start([&servers[0].address, &servers[1].address]);
    let mut longest = Duration::ZERO;
    let answers = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let (requests, steps) = ([post(TEN, BODY)], [Step { rate: RATE, time: TIME }]);
            let address = &balancer.address;
            Load { address, connections: 32, requests: &requests, steps: &steps, retries: 0, right: &is_ten }.drive()
        });
        for restart in 0..RESTARTS {
            std::thread::sleep(Duration::from_millis(500));
            let at = restart % 2;
            let began = Instant::now();
            servers[at].signal("-TERM");
            while servers[at].ended().is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
            servers[at] = start();
            balancer.replace(at, &servers[at].address);
            while !balancer.is_ready(at) {
                std::thread::sleep(Duration::from_millis(2));
            }
            longest = longest.max(began.elapsed());
        }
        assert!(!load.is_finished(), "all restarts happen under load");
        load.join().expect("the load ends")
    });
    let tally = Tally::of(&answers);
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, or wrongly answered");
    assert_eq!(tally.others(&[503]), [], "statuses that nobody expects");
    let (all, failed) = (tally.all(), tally.all() - tally.with(200));
    told(&format!("{RESTARTS} restarts: failed of {all}"), &failed.to_string(), "0", failed == 0);
    noted("longest from signal to ready again, s", &format!("{:.2}", longest.as_secs_f64()));
    noted("p99 through the balancer, ms", &format!("{:.1}", tally.good_ms(99.0)));
}
