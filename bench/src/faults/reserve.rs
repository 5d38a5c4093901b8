//! All sources fail, each on a Redis server of its own, and the rows come from a reserve that asks nobody: is every request answered, and
//! hardly later than while all was well?

use crate::faults::degraded::{Stage, source_nodes};
use crate::faults::load::{Load, Step, post};
use crate::faults::overload::DEADLINE;
use crate::faults::stage::{BODY, plan, table, told};
use crate::faults::tally::Tally;
use std::thread;
use std::time::Duration;

const PLAN: &str = "reserve";
const ROWS: usize = 20;
/// The first id of the reserve.
const FIRST: usize = 9_000_001;
const RATE: f64 = 1_000.0;
const WELL: Duration = Duration::from_secs(4);
/// Until breakers are open.
const OPENING: Duration = Duration::from_secs(2);
const DOWN: Duration = Duration::from_secs(6);

fn text() -> String {
    let (mut nodes, last) = source_nodes();
    let ids: Vec<String> = (FIRST..FIRST + ROWS).map(|id| id.to_string()).collect();
    nodes.push(format!(
        r#"{{"node_id":"more","op":"fixed_source","inputs":[],"params":{{"row_count":{ROWS},"ids":[{}]}}}}"#,
        ids.join(",")
    ));
    nodes.push(format!(
        r#"{{"node_id":"all","op":"ensure","inputs":["{last}"],"params":{{"count":{ROWS},"from":["more"]}}}}"#
    ));
    plan(PLAN, &nodes, "all")
}

/// Twenty rows at least: those of the sources, or, where all four are named as missing, those of the reserve.
fn is_right(answer: &str) -> bool {
    let rows = answer.matches("{\"id\":").count();
    let missing = answer.matches("\"fallback\":\"none\"").count();
    let from_reserve = answer.matches("{\"id\":9000").count();
    rows >= ROWS && !answer.contains("\"short\"") && (missing < 4 || (rows == ROWS && from_reserve == ROWS))
}

pub fn run() {
    println!("\n## All four sources fail\n");
    println!(
        "Four Redis servers, a source on each, `fallback: none`, then `ensure` with a reserve that asks nobody; all four servers are killed. 1,000 requests a \
         second.\n"
    );
    table();
    let mut stage = Stage::new(PLAN, &text());
    let (requests, right) = ([post(PLAN, BODY)], |_: usize, answer: &str| is_right(answer));
    let steps = [Step { rate: RATE, time: WELL + OPENING + DOWN }];
    let Stage { redis, server, .. } = &mut stage;
    let load = Load {
        address: &server.address,
        connections: 400,
        requests: &requests,
        steps: &steps,
        retries: 0,
        right: &right,
    };
    let answers = thread::scope(|scope| {
        let load = scope.spawn(|| load.drive());
        thread::sleep(WELL);
        for redis in redis.iter_mut() {
            let _ = redis.child.kill().and_then(|()| redis.child.wait());
        }
        load.join().expect("the load ends")
    });
    let well = Tally::between(&answers, Duration::from_secs(1), WELL);
    let down = Tally::between(&answers, WELL + OPENING, WELL + OPENING + DOWN);
    let all = Tally::of(&answers);
    let share = 100.0 * all.with(200) as f64 / all.all() as f64;
    told(
        &format!("answered with rows, of {}, %", all.all()),
        &format!("{share:.2}"),
        "100",
        all.with(200) == all.all(),
    );
    told("wrong rows", &all.wrong().to_string(), "0", all.wrong() == 0);
    told("late", &all.late(DEADLINE).to_string(), "0", all.late(DEADLINE) == 0);
    for share in [50.0, 99.0] {
        let (before, after) = (well.ms(share), down.ms(share));
        let shown = format!("{after:.2} beside {before:.2}");
        told(&format!("p{share:.0} once breakers are open, ms"), &shown, "less than 5 more", after < before + 5.0);
    }
}
