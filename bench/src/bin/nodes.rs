//! What moving a node along costs: empty bodies and tiny real ones, in three shapes, beside a floor.
//!
//! The plan is linked once and run again and again on one event loop, with a deadline armed and rows passed from node to node.
//! The floor is a ready stack, plain counters and one function, over numbers. `nodes SHAPE CALLS` runs one shape so often and
//! prints nothing, for counting instructions; `nodes SHAPE CALLS floor` does the same with the floor.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use rankd_bench::graph::SHAPES;
use rankd_bench::harness::{Time, part, race};
use rankd_bench::stage::{Bodies, Stage};
use rankd_engine::Policy;

/// Runs in one call, so that entering and leaving the runtime is shared out.
const BATCH: usize = 32;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [] => tables(),
        [shape, calls, rest @ ..] => {
            count(shape, calls.parse().expect("a number of runs"), rest.first().map(String::as_str))
        }
        _ => panic!("nodes [SHAPE CALLS [floor|traced]]"),
    }
}

fn count(shape: &str, calls: usize, what: Option<&str>) {
    let (_, graph) = SHAPES.iter().find(|(name, _)| name.starts_with(shape)).expect("a shape");
    let graph = graph();
    match what {
        Some("floor") => {
            let mut floor = graph.floor();
            for _ in 0..calls {
                std::hint::black_box(floor.run());
            }
        }
        what => {
            // A counting machine is slow, and nothing should seem dear because of it.
            let policy = Policy { inline_threshold_ns: u32::MAX, ..Policy::default() };
            let stage = Stage::new(policy, what == Some("traced"));
            let plan = stage.link(&graph, Bodies::Empty);
            stage.runs(&plan, calls);
        }
    }
}

fn tables() {
    println!("Nanoseconds a node, min / median; in brackets the ratio of the min to the floor's.\n");
    let names: Vec<String> = SHAPES.iter().map(|(name, graph)| format!("{name} ({} nodes)", graph().len())).collect();
    println!("| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    let mut rows: Vec<(&str, Vec<(Time, usize)>)> = Vec::new();
    for (_, graph) in SHAPES {
        let graph = graph();
        let on = Stage::new(Policy::default(), false);
        let traced = Stage::new(Policy::default(), true);
        let mut floor = graph.floor();
        let (empty, tiny) = (on.link(&graph, Bodies::Empty), on.link(&graph, Bodies::TinyVm));
        let seen = traced.link(&graph, Bodies::Empty);
        let mut contenders = [
            ("floor", part(move || (0..BATCH).map(|_| std::hint::black_box(floor.run())).sum::<u64>())),
            ("rankd, empty bodies", part(|| on.runs(&empty, BATCH))),
            ("rankd, empty bodies, traced", part(|| traced.runs(&seen, BATCH))),
            ("rankd, `vm` on 10 rows", part(|| on.runs(&tiny, BATCH))),
        ];
        for (name, time) in race(&mut contenders) {
            match rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => times.push((time, graph.len())),
                None => rows.push((name, vec![(time, graph.len())])),
            }
        }
    }
    let floor = rows[0].1.clone();
    for (name, times) in rows {
        let cell = |((time, nodes), (floor, _)): (&(Time, usize), &(Time, usize))| {
            let scale = 1e3 / (BATCH * nodes) as f64;
            format!("{:.1} / {:.1} ({:.1})", time.min * scale, time.median * scale, time.min / floor.min)
        };
        let cells: Vec<String> = times.iter().zip(&floor).map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
}
