//! More requests than a server on one core can answer: twice and ten times as many, and clients that try again at once.
//!
//! Before each, the peak is measured anew: what the machine gives changes from minute to minute.

use crate::faults::load::{Answer, Load, NOT_SENT, Step, post};
use crate::faults::stage::{BODY, Folder, PINNED, TEN, is_ten, node, noted, plan, table, told};
use crate::faults::tally::{Tally, normal_after};
use crate::http::server::Server;
use std::time::{Duration, Instant};

pub const DEADLINE: Duration = Duration::from_millis(100);
const OVERLOAD: Duration = Duration::from_secs(10);
const AFTERWARDS: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 1000;
/// As many as keep one core busy, and no more.
const PEAK_CONNECTIONS: usize = 8;

/// Rows scored, filtered and sorted: as many as take about a millisecond.
pub const WORK: &str = "work";
pub const ROWS: usize = 240_000;
const DOZE: &str = "doze";
const ONE: &str = "one";
pub const FLAGS: [&str; 2] = ["--deadline-ms", "100"];

pub fn write_work(folder: &Folder) {
    folder.plan(WORK, &work(WORK, None));
}

/// All rows, or the first so many of them, scored, filtered and sorted.
pub fn work(name: &str, count: Option<&str>) -> String {
    let key = |name: &str| format!(r#"{{"op":"key_ref","key":"{name}"}}"#);
    let (id, score) = (key("id"), key("score"));
    let log = format!(r#"{{"op":"log1p","x":{id}}}"#);
    let damped = format!(r#"{{"op":"sigmoid","x":{{"op":"sub","a":{log},"b":{{"op":"sqrt","x":{id}}}}}}}"#);
    let low = format!(r#"{{"op":"cmp","cmp":">=","a":{score},"b":{{"op":"const_number","value":0.0}}}}"#);
    let mut nodes = vec![
        node("n0", "fixed_source", &[], &format!(r#""row_count":{ROWS}"#)),
        node("n1", "vm", &[if count.is_some() { "n5" } else { "n0" }], r#""out_key":"score","expr":"damped""#),
        node("n2", "filter", &["n1"], r#""pred":"low""#),
        node("n3", "sort", &["n2"], r#""key":"score","order":"desc""#),
        node("n4", "take", &["n3"], r#""count":50"#),
    ];
    nodes.extend(count.map(|count| node("n5", "take", &["n0"], &format!(r#""count":{count}"#))));
    let nodes = nodes.join(",");
    let tables = format!(r#""expr_table":{{"damped":{damped}}},"pred_table":{{"low":{low}}}"#);
    format!(r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{nodes}],"outputs":["n4"],{tables}}}"#)
}

/// What a server can do: the peak, the highest rate at which 99 of 100 answers have rows in time, and p99 at half of it.
pub struct Capacity {
    pub peak: f64,
    pub rate: f64,
    pub p99_ms: f64,
}

/// A server under load with one plan.
pub struct Target<'a> {
    pub server: &'a Server,
    pub plan: &'a str,
    pub right: &'a (dyn Fn(usize, &str) -> bool + Sync),
}

impl Target<'_> {
    pub fn load(&self, steps: &[Step], connections: usize, retries: u32) -> Vec<Answer> {
        let requests = [post(self.plan, BODY)];
        let address = &self.server.address;
        let answers = Load { address, connections, requests: &requests, steps, retries, right: self.right }.drive();
        let tally = Tally::of(&answers);
        assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered and wrong answers");
        assert_eq!(tally.others(&[503, 504, NOT_SENT]), [], "statuses that nobody expects");
        answers
    }

    /// Answers with rows a second, with as many requests at once as keep a core busy.
    pub fn peak(&self) -> f64 {
        let time = Duration::from_secs(2);
        let answers = self.load(&[Step { rate: f64::INFINITY, time }], PEAK_CONNECTIONS, 0);
        Tally::of(&answers).good(DEADLINE) as f64 / time.as_secs_f64()
    }

    pub fn capacity(&self) -> Capacity {
        let peak = self.peak();
        let holds = |rate: f64| {
            let answers = self.load(&[Step { rate, time: Duration::from_secs(1) }], CONNECTIONS, 0);
            let tally = Tally::of(&answers);
            tally.good(DEADLINE) * 100 >= tally.all() * 99
        };
        let (mut low, mut high) = (0.4 * peak, 1.1 * peak);
        for _ in 0..5 {
            let middle = (low + high) / 2.0;
            if holds(middle) { low = middle } else { high = middle }
        }
        let half = self.load(&[Step { rate: low / 2.0, time: Duration::from_secs(5) }], CONNECTIONS, 0);
        Capacity { peak, rate: low, p99_ms: Tally::of(&half).good_ms(99.0) }
    }
}

pub fn run(plan: &str, factors: &[(f64, f64, u32)]) {
    let folder = Folder::new();
    folder.ten_nodes();
    write_work(&folder);
    let server = Server::rankd_under(&PINNED, folder.path(), &FLAGS);
    let target = Target { server: &server, plan, right: &is_ten };
    let capacity = target.capacity();
    let what =
        if plan == TEN { "ten nodes, five reads of the embedded store" } else { "240,000 rows scored and sorted" };
    println!("\n## Overload: {what}\n");
    table();
    noted("peak, answers a second", &format!("{:.0}", capacity.peak));
    noted("C, requests a second", &format!("{:.0}", capacity.rate));
    noted("B, p99 at C/2, ms", &format!("{:.2}", capacity.p99_ms));
    for (factor, goal, retries) in factors {
        overload(&target, &capacity, *factor, *goal, *retries);
    }
}

fn overload(target: &Target<'_>, capacity: &Capacity, factor: f64, goal: f64, retries: u32) {
    let before = target.peak();
    let steps =
        [Step { rate: factor * capacity.rate, time: OVERLOAD }, Step { rate: capacity.rate / 2.0, time: AFTERWARDS }];
    let (began, cpu) = (Instant::now(), target.server.cpu_seconds());
    let answers = target.load(&steps, CONNECTIONS, retries);
    let share = 100.0 * (target.server.cpu_seconds() - cpu) / began.elapsed().as_secs_f64();
    let peak = f64::midpoint(before, target.peak());
    let during = Tally::step(&answers, 0);
    let goodput = 100.0 * during.good(DEADLINE) as f64 / OVERLOAD.as_secs_f64() / peak;
    let again = if retries > 0 { format!(", {retries} retries at once") } else { String::new() };
    let name = format!("{factor:.0}x C{again}");
    let asked = during.all();
    told(
        &format!("{name}: goodput, % of the peak around it ({peak:.0}/s)"),
        &format!("{goodput:.0}"),
        &format!("≥ {goal:.0}"),
        goodput >= goal,
    );
    let p99 = during.good_ms(99.0);
    told(&format!("{name}: p99 of answers with rows, ms"), &format!("{p99:.1}"), "≤ 100", p99 <= 100.0);
    let late = during.late(DEADLINE);
    told(&format!("{name}: later than 120 ms, of {asked}"), &format!("{late}"), "0", late == 0);
    let normal = normal_after(&answers, OVERLOAD, OVERLOAD + AFTERWARDS, 2.0 * capacity.p99_ms);
    let shown = normal.map_or("not within 3 s".to_owned(), |time| format!("{:.1}", time.as_secs_f64()));
    told(&format!("{name}: normal again after, s"), &shown, "≤ 1", normal.is_some_and(|time| time.as_secs() < 1));
    let counts = [503, 504, NOT_SENT].map(|status| during.with(status).to_string()).join(", ");
    noted(&format!("{name}: refused; timed out; found no free connection for 1 s"), &counts);
    noted(&format!("{name}: the server's share of its core, with the time after, %"), &format!("{share:.0}"));
}

/// CPU of one answer with this status, in microseconds, with as many requests at once as keep a core busy.
fn cpu_each(server: &Server, plan: &str, status: u16) -> f64 {
    let cpu = server.cpu_seconds();
    let steps = [Step { rate: f64::INFINITY, time: Duration::from_secs(4) }];
    let answers = Target { server, plan, right: &|_, _| true }.load(&steps, PEAK_CONNECTIONS, 0);
    (server.cpu_seconds() - cpu) * 1e6 / Tally::of(&answers).with(status) as f64
}

/// What sending a client away takes, with a plan that lets nobody in for most of the time; and clients who do not heed it.
pub fn refusals() {
    let folder = Folder::new();
    write_work(&folder);
    let sleep = node("n1", "sleep", &["n0"], r#""duration_ms":90"#);
    folder.plan(DOZE, &plan(DOZE, &[node("n0", "fixed_source", &[], ""), sleep], "n1"));
    println!("\n## Refusals\n");
    table();
    let full = Server::rankd_under(&PINNED, folder.path(), &[&FLAGS[..], &["--runs-max", "1"]].concat());
    let cpu = full.cpu_seconds();
    let steps = [Step { rate: 2000.0, time: Duration::from_secs(4) }];
    let answers = Target { server: &full, plan: DOZE, right: &|_, _| true }.load(&steps, CONNECTIONS, 0);
    let refused = Tally::of(&answers).with(503);
    let each = (full.cpu_seconds() - cpu) * 1e6 / refused as f64;
    noted(&format!("CPU of one of {refused} refusals, 2,000 a second, µs"), &format!("{each:.0}"));
    folder.plan(ONE, &plan(ONE, &[node("n0", "fixed_source", &[], r#""row_count":1"#)], "n0"));
    let lone = Server::rankd_under(&PINNED, folder.path(), &FLAGS);
    let refusal = cpu_each(&full, DOZE, 503);
    let answer = cpu_each(&lone, ONE, 200);
    let (what, figure) =
        ("CPU of a refusal beside an answer of one row, 8 clients, µs", format!("{refusal:.1} of {answer:.1}"));
    told(what, &figure, "≤ a fifth", 5.0 * refusal <= answer);
    let server = Server::rankd_under(&PINNED, folder.path(), &FLAGS);
    let target = Target { server: &server, plan: WORK, right: &is_ten };
    for zealous in [8, 32, 128] {
        let goodput = |connections: usize| {
            let time = Duration::from_secs(3);
            let answers = target.load(&[Step { rate: f64::INFINITY, time }], connections, 0);
            Tally::of(&answers).good(DEADLINE) as f64 / time.as_secs_f64()
        };
        let (peak, stormed) = (goodput(PEAK_CONNECTIONS), goodput(zealous));
        let name = format!("{zealous} clients who ask again at once, whatever they are told: goodput, % of the peak");
        noted(&name, &format!("{:.0} of {peak:.0}/s", 100.0 * stormed / peak));
    }
}
