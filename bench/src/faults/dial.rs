//! Twice as many requests as can be answered, of a plan whose work follows the load: does it take the place of refusals?

use crate::faults::load::Step;
use crate::faults::overload::{DEADLINE, FLAGS, ROWS, Target, work};
use crate::faults::stage::{Folder, PINNED, is_ten, noted, table, told};
use crate::faults::tally::Tally;
use crate::http::server::Server;
use std::time::Duration;

const FIXED: &str = "fixed";
const DIALLED: &str = "dialled";
const ROWS_LEAST: usize = ROWS / 5;
const TIME: Duration = Duration::from_secs(10);

pub fn run() {
    println!("\n## Overload with a dial\n");
    let folder = Folder::new();
    folder.plan(FIXED, &work(FIXED, None));
    folder.plan(DIALLED, &work(DIALLED, Some(&format!(r#"{{"dial":{ROWS},"min":{ROWS_LEAST}}}"#))));
    let server = Server::rankd_under(&PINNED, folder.path(), &FLAGS);
    let target = |plan| Target { server: &server, plan, right: &is_ten };
    let capacity = target(FIXED).capacity();
    table();
    noted("C of the plan at its first value, requests a second", &format!("{:.0}", capacity.rate));
    let overload = |plan| {
        let answers = target(plan).load(&[Step { rate: 2.0 * capacity.rate, time: TIME }], 1000, 0);
        let tally = Tally::of(&answers);
        let goodput = 100.0 * tally.good(DEADLINE) as f64 / TIME.as_secs_f64() / capacity.rate;
        (goodput, tally.with(503), tally.late(DEADLINE), tally.all())
    };
    let (without, refused_without, _, _) = overload(FIXED);
    let (goodput, refused, late, all) = overload(DIALLED);
    noted("2x C without a dial: goodput, % of C; refused", &format!("{without:.0}; {refused_without}"));
    told("2x C with a dial: goodput, % of C", &format!("{goodput:.0}"), "≥ 98", goodput >= 98.0);
    let fewer = refused * 5 <= refused_without;
    told("2x C with a dial: refused", &refused.to_string(), "a fifth of those without", fewer);
    told(&format!("2x C with a dial: later than 120 ms, of {all}"), &late.to_string(), "0", late == 0);
}
