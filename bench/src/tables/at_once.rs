//! 64 requests at once that look at a whole table: what memory the server takes for them, seen from outside.
//!
//! The plan holds its rows for a while, so that all 64 have theirs at the same time. `target/release/rankd` must be built.

use crate::faults::load::{Load, Step, post};
use crate::faults::stage::{Folder, metric, node, noted, table, told};
use crate::faults::tally::Tally;
use crate::http::server::{Server, repository};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

const PLAN: &str = "few_of_many";
const AT_ONCE: usize = 64;
const KEPT: usize = 100;
const GOAL_MIB: f64 = 256.0;
const TIME: Duration = Duration::from_secs(5);

pub fn run(rows: usize) {
    println!(
        "\n## 64 requests at once\n\n`scan` of {rows} rows, filtered to {KEPT}, then `vm`, `hydrate`, a wait of 200 ms, `sort`.\n"
    );
    let (plans, registry) = (Folder::new(), Folder::new());
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), registry.path().join(name)).expect("a registry");
    }
    let file = registry.path().join("items.csv");
    write_csv(&file, rows).expect("room for the file");
    let endpoint = format!("[[endpoint]]\nname = \"items\"\nkind = \"table\"\nurl = \"file:{}\"\n", file.display());
    std::fs::write(registry.path().join("endpoints.local.toml"), endpoint).expect("a file can be written");
    plans.plan(PLAN, &plan(rows));
    let server = Server::rankd(plans.path(), &["--registry", &registry.path().to_string_lossy()]);
    // What the first request brings with it, such as learned costs, is not what many cost.
    let asked = post(PLAN, r#"{"user_id":1}"#);
    let right = |_: usize, answer: &str| answer.matches("{\"id\":").count() == KEPT;
    let load = |connections: usize, time: Duration| {
        let (requests, steps) = ([asked.clone()], [Step { rate: f64::INFINITY, time }]);
        let address = &server.address;
        Load { address, connections, requests: &requests, steps: &steps, retries: 0, right: &right }.drive()
    };
    load(1, Duration::from_secs(1));
    let before = server.resident();
    server.forget_most_resident();
    let answers = load(AT_ONCE, TIME);
    let (most, tally) = (server.most_resident(), Tally::of(&answers));
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, or wrongly answered");
    table();
    let more = most - before;
    told("memory more than before, at most, MB", &format!("{more:.1}"), "≤ 256", more <= GOAL_MIB);
    noted("a request, MB", &format!("{:.2}", more / AT_ONCE as f64));
    noted("resident before, MB", &format!("{before:.0}"));
    noted("the table's columns, MB", &format!("{:.0}", metric(&server, "rankd_table_bytes{table=\"items\"}") / 1e6));
    let statuses = [200, 503, 504].map(|status| tally.with(status).to_string()).join(", ");
    noted(&format!("answers in {} s: rows, 503, 504", TIME.as_secs()), &statuses);
    noted("p50 and p99 of answers with rows, ms", &format!("{:.0}, {:.0}", tally.good_ms(50.0), tally.good_ms(99.0)));
}

fn write_csv(path: &Path, rows: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "id,title,likes,quality")?;
    for row in 0..rows {
        writeln!(file, "{},{},{row},{:.3}", row + 1, ["Alpha", "Beta", "Gamma"][row % 3], row as f64 / 7.0)?;
    }
    file.flush()
}

fn plan(rows: usize) -> String {
    let nodes = [
        node("n0", "scan", &[], r#""endpoint":"items""#),
        node("n1", "filter", &["n0"], r#""pred":"p""#),
        node("n2", "vm", &["n1"], r#""out_key":"score","expr":"e""#),
        node("n3", "hydrate", &["n2"], r#""endpoint":"items","fields":{"likes":"views","title":"country"}"#),
        node("n4", "sleep", &["n3"], r#""duration_ms":200"#),
        node("n5", "sort", &["n4"], r#""key":"score","order":"desc""#),
    ]
    .join(",");
    let key = |name: &str| format!(r#"{{"op":"key_ref","key":"{name}"}}"#);
    let number = |value: usize| format!(r#"{{"op":"const_number","value":{value}}}"#);
    let score = format!(r#"{{"op":"mul","a":{},"b":{}}}"#, key("quality"), number(2));
    let few = format!(r#"{{"op":"cmp","cmp":">=","a":{},"b":{}}}"#, key("likes"), number(rows - KEPT));
    format!(
        r#"{{"schema_version":1,"plan_name":"{PLAN}","nodes":[{nodes}],"outputs":["n5"],"expr_table":{{"e":{score}}},"pred_table":{{"p":{few}}}}}"#
    )
}
