//! The layout of pictures of plans, by size and shape, each beside its goal. The goals are 100 ms for 2,000 boxes and 2 s for 10,000.
//!
//! Shapes: one line; layers of a hundred with three inputs from the layer above; up to three inputs from the fifty boxes before; 64
//! inputs from anywhere before; a line whose boxes all read the first one, too.

use rankd_edge::layout::{BoxSize, Edge, EdgeKind, Graph, lay_out};
use std::hint::black_box;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

fn edge(from: usize, to: usize) -> Edge {
    Edge { from: from as u32, to: to as u32, kind: EdgeKind::Input }
}

fn shapes(count: usize) -> [(&'static str, Vec<Edge>); 5] {
    let mut dice = Dice(7);
    let line = (1..count).map(|to| edge(to - 1, to)).collect();
    let mut layers = Vec::new();
    for to in 100..count {
        layers.extend([0; 3].map(|_| edge(to / 100 * 100 - 100 + dice.below(100), to)));
    }
    let (mut near, mut dense) = (Vec::new(), Vec::new());
    for to in 1..count {
        for _ in 0..=dice.below(3) {
            near.push(edge(to - 1 - dice.below(50.min(to)), to));
        }
        dense.extend((0..64.min(to)).map(|_| edge(dice.below(to), to)));
    }
    let trunk = (1..count).flat_map(|to| [edge(to - 1, to), edge(0, to)]).collect();
    [("one line", line), ("layers", layers), ("near", near), ("64 inputs", dense), ("trunk", trunk)]
}

fn main() {
    println!(
        "| boxes | shape | edges | best, ms | median, ms | goal, ms | crossings before | after | straight lines |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (count, goal) in [(500, "100"), (2_000, "100"), (10_000, "2000")] {
        for (shape, edges) in shapes(count) {
            let graph = Graph { boxes: vec![BoxSize { width: 160.0, height: 60.0 }; count], edges };
            let mut times: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    let start = Instant::now();
                    black_box(lay_out(black_box(&graph)));
                    start.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            let layout = lay_out(&graph);
            let direct = layout.edges.iter().filter(|route| route.is_direct).count();
            println!(
                "| {count} | {shape} | {} | {:.1} | {:.1} | {goal} | {} | {} | {direct} |",
                graph.edges.len(),
                times[0],
                times[ROUNDS / 2],
                layout.crossings_before,
                layout.crossings
            );
        }
    }
}
