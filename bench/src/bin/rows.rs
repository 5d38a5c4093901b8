//! `score → filter → stable sort → take 50` for 100 to 1,000,000 rows: a table of times and one of ratios, as Markdown.

use rankd_bench::data::Table;
use rankd_bench::engine::Engine;
use rankd_bench::floor::{self, fused, sort, top, vm};
use rankd_bench::harness::{Contender, Time, part, pipeline, race};
use rankd_bench::rankd::Rankd;

/// The program's own choice; every contender has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

const READ: &str = "read roofline";
const F: &str = "F: one fused pass";
const U: &str = "U: node by node, top";
const S: &str = "S: node by node, full sort";
const V: &str = "floor, vm alone";
const RANKD_TOP: &str = "rankd, top";
const RANKD_PASS: &str = "rankd, one pass";
const PLAN: &str = "rankd, whole plan through the engine";
const PLAN_WRITTEN: &str = "rankd, whole plan, nothing fused";
const RANKD_SORT: &str = "rankd, full sort";
const RANKD_VM: &str = "rankd, vm alone";
#[cfg(feature = "peers")]
const PEERS: [&str; 4] = ["arrow kernels, full sort", "arrow kernels, top", "DataFusion expressions", "Polars eager"];
const ARROW_VM: &str = "arrow, vm alone";

type Entry<'a> = (&'static str, Box<dyn Contender + 'a>);

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    let results: Vec<Vec<(&str, Time)>> = sizes.iter().map(|&rows| measure(&Table::new(rows))).collect();

    println!("Vectors: {:?}. Microseconds a call, min / median.\n", floor::width());
    header("", &sizes);
    for (name, _) in &results[0] {
        let cells = results.iter().map(|size| time(size, name));
        row(name, cells.map(|time| time.map_or("".into(), |t| format!("{} / {}", short(t.min), short(t.median)))));
    }
    println!();
    header("ratio of min times", &sizes);
    for (name, upper, lower) in [
        ("rankd top ÷ U", RANKD_TOP, U),
        ("rankd pass ÷ U", RANKD_PASS, U),
        ("rankd pass ÷ F", RANKD_PASS, F),
        ("rankd whole plan ÷ U", PLAN, U),
        ("rankd whole plan ÷ F", PLAN, F),
        ("rankd whole plan ÷ nothing fused", PLAN, PLAN_WRITTEN),
        ("rankd full sort ÷ S", RANKD_SORT, S),
        ("rankd top ÷ F", RANKD_TOP, F),
        ("rankd vm ÷ floor vm", RANKD_VM, V),
        ("rankd vm ÷ arrow vm", RANKD_VM, ARROW_VM),
    ] {
        row(name, results.iter().map(|size| ratio(time(size, upper), time(size, lower))));
    }
    row("best peer ÷ rankd top", results.iter().map(|size| ratio(best_peer(size), time(size, RANKD_TOP))));
}

fn measure(table: &Table) -> Vec<(&'static str, Time)> {
    let width = floor::width();
    let ids = |rows: Vec<u32>| rows.iter().map(|&row| table.ids[row as usize]).collect();
    let (mut fused_best, mut best, mut space) = (top::Best::default(), top::Best::default(), sort::Space::default());
    let (mut for_top, mut for_sort, mut for_vm) = (Rankd::new(table), Rankd::new(table), Rankd::new(table));
    let mut for_pass = Rankd::new(table);
    let (fused, written) = (Engine::new(table, true), Engine::new(table, false));
    #[allow(unused_mut, reason = "the peers are optional")]
    let mut contenders: Vec<Entry<'_>> = vec![
        (READ, part(|| floor::read(table))),
        (F, pipeline(|| fused::fused(table, width, &mut fused_best), ids)),
        (U, pipeline(|| floor::node_by_node(table, width, &mut best), ids)),
        (S, pipeline(|| floor::full_sort(table, width, &mut space), ids)),
        (V, part(|| vm::scores(table, width))),
        (RANKD_TOP, pipeline(|| for_top.top(), |rows| rows.ids().collect())),
        (RANKD_PASS, pipeline(|| for_pass.fused(), |rows| rows.ids().collect())),
        (PLAN, pipeline(|| fused.run(), |rows| rows.ids().collect())),
        (PLAN_WRITTEN, pipeline(|| written.run(), |rows| rows.ids().collect())),
        (RANKD_SORT, pipeline(|| for_sort.sort(), |rows| rows.ids().collect())),
        (RANKD_VM, part(|| for_vm.vm())),
    ];
    #[cfg(feature = "peers")]
    contenders.extend(peers(table));
    let expected = table.expected();
    for (name, contender) in &mut contenders {
        if let Some(ids) = contender.ids() {
            assert_eq!(ids, expected, "{name}, {} rows", table.len());
        }
    }
    race(&mut contenders)
}

#[cfg(feature = "peers")]
fn peers(table: &Table) -> Vec<Entry<'_>> {
    use rankd_bench::peers::{arrow::Arrow, datafusion::DataFusion, polars::Polars};
    let (for_sort, for_top, for_vm) = (Arrow::new(table), Arrow::new(table), Arrow::new(table));
    let (datafusion, polars) = (DataFusion::new(table), Polars::new(table));
    let [sort, top, expressions, eager] = PEERS;
    vec![
        (sort, pipeline(move || for_sort.sort(), |ids| ids)),
        (top, pipeline(move || for_top.top(), |ids| ids)),
        (expressions, pipeline(move || datafusion.run(), |ids| ids)),
        (eager, pipeline(move || polars.run(), |ids| ids)),
        (ARROW_VM, part(move || for_vm.vm())),
    ]
}

#[cfg(feature = "peers")]
fn best_peer(times: &[(&str, Time)]) -> Option<Time> {
    PEERS.iter().filter_map(|name| time(times, name)).min_by(|a, b| a.min.total_cmp(&b.min))
}

#[cfg(not(feature = "peers"))]
fn best_peer(_: &[(&str, Time)]) -> Option<Time> {
    None
}

fn time(times: &[(&str, Time)], name: &str) -> Option<Time> {
    times.iter().find(|(known, _)| *known == name).map(|(_, time)| *time)
}

fn ratio(upper: Option<Time>, lower: Option<Time>) -> String {
    upper.zip(lower).map_or("".into(), |(upper, lower)| format!("{:.2}", upper.min / lower.min))
}

/// Three significant digits, no more than the clock is worth.
fn short(microseconds: f64) -> String {
    match microseconds {
        t if t < 10.0 => format!("{t:.2}"),
        t if t < 100.0 => format!("{t:.1}"),
        t => format!("{t:.0}"),
    }
}

fn header(title: &str, sizes: &[usize]) {
    row(title, sizes.iter().map(usize::to_string));
    println!("|---|{}", "---|".repeat(sizes.len()));
}

fn row(name: &str, cells: impl Iterator<Item = String>) {
    println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
}
