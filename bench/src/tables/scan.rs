//! `scan → vm → filter → sort → take 50`, beside the same plan on the same columns given directly.
//!
//! The columns are the same memory for all, so that only the way to them differs.

use crate::data::Table;
use crate::engine::{Engine, Origin};
use crate::faults::stage::met;
use crate::harness::{Contender, pipeline, race};
use crate::rankd;

const GIVEN: &str = "a source that hands the rows over";
const CANDIDATES: &str = "`candidates`: the request has the rows";
const SCAN: &str = "`scan` of a table";
const SCAN_WRITTEN: &str = "`scan` of a table, nothing fused";
const GIVEN_WRITTEN: &str = "a source that hands the rows over, nothing fused";
/// `scan` may take so many times as long.
const GOAL: f64 = 1.2;

pub fn run(rows: usize) {
    println!("\n## A scan beside columns at hand\n\n`score → filter → sort → take 50` over {rows} rows, one thread.\n");
    let table = Table::new(rows);
    let columns = rankd::rows(&table);
    let plans = [
        (GIVEN, Origin::Given, true),
        (CANDIDATES, Origin::Candidates, true),
        (SCAN, Origin::Scan, true),
        (GIVEN_WRITTEN, Origin::Given, false),
        (SCAN_WRITTEN, Origin::Scan, false),
    ];
    let engines = plans.map(|(name, origin, fused)| (name, Engine::reading(origin, &columns, &table, fused)));
    let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> =
        engines.iter().map(|(name, engine)| (*name, pipeline(|| engine.run(), |rows| rows.ids().collect()))).collect();
    for (name, contender) in &mut contenders {
        assert_eq!(contender.ids(), Some(table.expected()), "{name}");
    }
    let times = race(&mut contenders);
    let min = |wanted: &str| times.iter().find(|(name, _)| *name == wanted).map_or(f64::NAN, |(_, time)| time.min);
    println!("| rows from | µs, min | median | ÷ the fastest given directly | goal | met |\n|---|---|---|---|---|---|");
    for (name, time) in &times {
        let direct = match *name {
            SCAN => min(GIVEN).min(min(CANDIDATES)),
            SCAN_WRITTEN => min(GIVEN_WRITTEN),
            _ => {
                println!("| {name} | {:.0} | {:.0} | | | |", time.min, time.median);
                continue;
            }
        };
        let ratio = time.min / direct;
        let judged = met(ratio <= GOAL);
        println!("| {name} | {:.0} | {:.0} | {ratio:.2} | ≤ {GOAL} | {judged} |", time.min, time.median);
    }
}
