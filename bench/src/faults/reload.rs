//! A thousand reloads under load, most of them of plans that are broken, half-written or fail: no request may notice.

use crate::faults::load::{Load, Step, post};
use crate::faults::stage::{Folder, metric, node, noted, page, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PLANS: usize = 20;
const ROUNDS: usize = 50;
const RATE: f64 = 1000.0;

fn name(plan: usize) -> String {
    format!("plan_{plan}")
}

/// A version of a plan: as many rows as its number says, in two nodes that must be of the same version.
fn version(name: &str, number: usize) -> String {
    let source = node("n0", "fixed_source", &[], &format!("\"row_count\":{number}"));
    let take = node(&format!("v{number}"), "take", &["n0"], &format!("\"count\":{number}"));
    plan(name, &[source, take], &format!("v{number}"))
}

fn failing(name: &str, round: usize) -> String {
    let fail = format!(r#""duration_ms":0,"fail_after_sleep":true,"trace":"r{round}""#);
    plan(name, &[node("n0", "fixed_source", &[], ""), node("n1", "sleep", &["n0"], &fail)], "n1")
}

pub fn run() {
    println!("\n## Reloads\n");
    table();
    let folder = Folder::new();
    (0..PLANS).for_each(|plan| folder.plan(&name(plan), &version(&name(plan), 1)));
    let server = Server::rankd(folder.path(), &["--deadline-ms", "100", "--watch-ms", "5"]);
    let highest: Vec<AtomicUsize> = (0..PLANS).map(|_| AtomicUsize::new(1)).collect();
    let mut took = Duration::ZERO;
    let answers = under_load(&server, &highest, || {
        let began = Instant::now();
        let mut handled = PLANS as f64;
        for round in 2..ROUNDS + 2 {
            (0..PLANS).for_each(|plan| change(&folder, plan, round, &highest[plan]));
            handled += PLANS as f64;
            while reloads(&server, "ok") + reloads(&server, "failed") < handled {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        took = began.elapsed();
    });
    let (ok, refused) = (reloads(&server, "ok"), reloads(&server, "failed"));
    noted("versions taken, refused", &format!("{ok:.0}, {refused:.0} in {:.1} s", took.as_secs_f64()));
    tell("1,000 reloads", &answers);
    swapped_by_link();
}

fn change(folder: &Folder, plan: usize, round: usize, highest: &AtomicUsize) {
    let (name, text) = (name(plan), version(&name(plan), round));
    match (round + plan) % 5 {
        0 => folder.plan(&name, "{\"schema_version\":1,"),
        // In place, and only half of it.
        1 => std::fs::write(folder.file(&name), &text[..text.len() / 2]).expect("a plan can be written"),
        2 => folder.plan(&name, &failing(&name, round)),
        _ => {
            highest.store(round, Ordering::Relaxed);
            folder.plan(&name, &text);
        }
    }
}

fn reloads(server: &Server, result: &str) -> f64 {
    metric(server, &format!("rankd_reloads_total{{result=\"{result}\"}}"))
}

/// Requests for all plans in turn, from before something happens until after it.
fn under_load(
    server: &Server,
    highest: &[AtomicUsize],
    happens: impl FnOnce() + Send,
) -> Vec<crate::faults::load::Answer> {
    let body = r#"{"user_id":1,"trace":true}"#;
    let requests: Vec<Vec<u8>> = (0..highest.len()).map(|plan| post(&name(plan), body)).collect();
    // Its rows and its nodes are of one version, and of one that was good.
    let right = |number: usize, answer: &str| {
        let rows = answer.matches("{\"id\":").count();
        let of_one_version = answer.contains(&format!("\"node\":\"v{rows}\""));
        of_one_version && rows <= highest[number % highest.len()].load(Ordering::Relaxed)
    };
    std::thread::scope(|scope| {
        let change = scope.spawn(happens);
        let mut answers = Vec::new();
        while !change.is_finished() {
            let steps = [Step { rate: RATE, time: Duration::from_secs(1) }];
            let address = &server.address;
            let load = Load { address, connections: 64, requests: &requests, steps: &steps, retries: 0, right: &right };
            answers.extend(load.drive());
        }
        change.join().expect("the plans change");
        answers
    })
}

/// A folder that is one release after another, as a mounted configuration is.
fn swapped_by_link() {
    let folder = Folder::new();
    let point_at = |number: usize| {
        let release = folder.path().join(format!("release_{number}"));
        std::fs::create_dir_all(&release).expect("a folder can be made");
        let text = version(&name(0), number);
        std::fs::write(release.join(format!("{}.plan.json", name(0))), text).expect("a plan can be written");
        symlink(&release, folder.path().join("aside")).expect("a link can be made");
        std::fs::rename(folder.path().join("aside"), folder.path().join("current")).expect("a link can be swapped");
    };
    point_at(1);
    let server = Server::rankd(&folder.path().join("current"), &["--deadline-ms", "100", "--watch-ms", "5"]);
    let highest = [AtomicUsize::new(1)];
    let answers = under_load(&server, &highest, || {
        for number in 2..=50 {
            highest[0].store(number, Ordering::Relaxed);
            point_at(number);
            let served = format!("rankd_plan_version{{plan=\"plan_0\"}} {number}\n");
            while !page(&server, "/metrics").is_some_and(|metrics| metrics.contains(&served)) {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    tell("49 folders swapped by a link", &answers);
}

fn tell(what: &str, answers: &[crate::faults::load::Answer]) {
    let tally = Tally::of(answers);
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, and mixed or never good");
    assert_eq!(tally.others(&[503]), [], "statuses that nobody expects");
    let (all, refused) = (tally.all(), tally.with(503));
    told(&format!("{what}: failed of {all} requests"), &(all - tally.with(200)).to_string(), "0", refused == 0);
    told(&format!("{what}: mixed, or of a version that was never good"), "0", "0", true);
    noted(&format!("{what}: p99, ms"), &format!("{:.1}", tally.good_ms(99.0)));
}
