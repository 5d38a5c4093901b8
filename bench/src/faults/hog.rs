//! A plan that keeps a processor busy for 300 ms beside a cheap one, on one core: who is hurt, and when is it stopped?

use crate::faults::load::{Load, Step, post};
use crate::faults::overload::{DEADLINE, FLAGS, Target};
use crate::faults::stage::{BODY, Folder, PINNED, TEN, is_ten, node, noted, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::time::Duration;

const HOG: &str = "hog";
/// A second; each takes the processor until its deadline.
const HOGS: f64 = 4.0;
const TIME: Duration = Duration::from_secs(10);

pub fn run() {
    let folder = Folder::new();
    folder.ten_nodes();
    let busy = node("n1", "busy_cpu", &["n0"], r#""busy_wait_ms":300"#);
    folder.plan(HOG, &plan(HOG, &[node("n0", "fixed_source", &[], ""), busy], "n1"));
    println!("\n## A CPU hog beside a cheap plan\n");
    table();
    let server = Server::rankd_under(&PINNED, folder.path(), &FLAGS);
    let target = Target { server: &server, plan: TEN, right: &is_ten };
    let rate = target.capacity().rate / 2.0;
    let half = [Step { rate, time: TIME }];
    let alone = Tally::of(&target.load(&half, 100, 0)).good_ms(99.0);
    let (cheap, hogs) = std::thread::scope(|scope| {
        let cheap = scope.spawn(|| target.load(&half, 100, 0));
        let (requests, steps) = ([post(HOG, BODY)], [Step { rate: HOGS, time: TIME }]);
        let address = &server.address;
        let hogs =
            Load { address, connections: 16, requests: &requests, steps: &steps, retries: 0, right: &|_, _| false };
        let hogs = hogs.drive();
        (cheap.join().expect("the load ends"), hogs)
    });
    let (cheap, hogs) = (Tally::of(&cheap), Tally::of(&hogs));
    assert_eq!((hogs.with(200), hogs.unanswered()), (0, 0), "a hog cannot be done in time");
    noted("cheap requests a second, hogs a second", &format!("{rate:.0}, {HOGS:.0}"));
    let p99 = cheap.good_ms(99.0);
    let shown = format!("{p99:.2} beside {alone:.2} without: {:.2}", p99 / alone);
    told("the cheap plan's p99 beside hogs, ms", &shown, "≤ 3 B", p99 <= 3.0 * alone);
    let failed = cheap.all() - cheap.with(200);
    told(&format!("cheap requests without rows, of {}", cheap.all()), &failed.to_string(), "0", failed == 0);
    let slowest = hogs.ms(100.0);
    let most = DEADLINE.as_secs_f64() * 1e3 + 10.0;
    let name = format!("the slowest answer to a hog, of {}, ms", hogs.all());
    told(&name, &format!("{slowest:.1}"), "≤ 110", slowest <= most);
    noted("hogs that timed out, refused", &format!("{}, {}", hogs.with(504), hogs.with(503)));
}
