//! What holds for the layout of any graph, on random ones and on the largest that plans can be.

use super::{BoxSize, Edge, EdgeKind, Graph, Layout, lay_out};
use rankd_engine::clock;
use std::time::Duration;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

fn edge(from: usize, to: usize, kind: EdgeKind) -> Edge {
    Edge { from: from as u32, to: to as u32, kind }
}

/// Edges lead from boxes to later ones, most of them to near ones.
fn random(seed: u64) -> Graph {
    let mut dice = Dice(seed);
    let count = 1 + dice.below(80);
    let boxes =
        (0..count).map(|_| BoxSize { width: 40.0 + dice.below(200) as f64, height: 20.0 + dice.below(90) as f64 });
    let mut graph = Graph { boxes: boxes.collect(), edges: Vec::new() };
    let (near, most) = (1 + dice.below(count), 1 + dice.below(5));
    for to in 1..count {
        for _ in 0..dice.below(most + 1) {
            let from = to - 1 - dice.below(near.min(to));
            let kind = [EdgeKind::Input, EdgeKind::Input, EdgeKind::Fallback, EdgeKind::Lazy][dice.below(4)];
            graph.edges.push(edge(from, to, kind));
        }
    }
    graph
}

fn check(graph: &Graph, layout: &Layout, what: &str) {
    assert_eq!((layout.boxes.len(), layout.edges.len()), (graph.boxes.len(), graph.edges.len()), "{what}");
    assert!(layout.crossings <= layout.crossings_before, "{what}");
    let end = |at: usize| {
        let (corner, size) = (layout.boxes[at].corner, graph.boxes[at]);
        (corner.x + size.width, corner.y + size.height)
    };
    // In each layer from left to right: nothing overlaps, and layers do not reach into each other.
    let mut order: Vec<usize> = (0..graph.boxes.len()).collect();
    order.sort_by(|a, b| {
        let [a, b] = [a, b].map(|at| &layout.boxes[*at]);
        a.layer.cmp(&b.layer).then(a.corner.x.total_cmp(&b.corner.x))
    });
    let mut bottom = 0.0f64;
    for pair in order.windows(2) {
        let (before, after) = (&layout.boxes[pair[0]], &layout.boxes[pair[1]]);
        bottom = bottom.max(end(pair[0]).1);
        match before.layer == after.layer {
            true => assert!(end(pair[0]).0 < after.corner.x, "{what}: {pair:?} overlap"),
            false => assert!(bottom < after.corner.y, "{what}: {pair:?} overlap"),
        }
    }
    for at in 0..graph.boxes.len() {
        let corner = layout.boxes[at].corner;
        assert!(
            corner.x >= 0.0 && corner.y >= 0.0 && end(at).0 <= layout.width && end(at).1 <= layout.height,
            "{what}"
        );
    }
    for (edge, route) in graph.edges.iter().zip(&layout.edges) {
        let (from, to) = (edge.from as usize, edge.to as usize);
        assert!(layout.boxes[from].layer < layout.boxes[to].layer, "{what}: {edge:?} goes forward");
        let [first, .., last] = &route.points[..] else { unreachable!("{what}: {edge:?} has a line") };
        assert!(route.points.is_sorted_by(|a, b| a.y < b.y || (a.y == b.y && a.x == b.x)), "{what}: {route:?}");
        assert!(
            last.y == layout.boxes[to].corner.y && (layout.boxes[to].corner.x..=end(to).0).contains(&last.x),
            "{what}"
        );
        let begins = match route.trunk {
            Some(trunk) => {
                let trunk = &layout.trunks[trunk as usize];
                assert_eq!((trunk.from, trunk.kind), (edge.from, edge.kind), "{what}");
                assert!(trunk.points.is_sorted_by(|a, b| a.y <= b.y), "{what}: {trunk:?}");
                assert!((trunk.points[0].y..=trunk.points[trunk.points.len() - 1].y).contains(&first.y), "{what}");
                trunk.points[0]
            }
            None => *first,
        };
        assert!(begins.y == end(from).1 && (layout.boxes[from].corner.x..=end(from).0).contains(&begins.x), "{what}");
    }
}

/// Lines that are led around boxes touch none but those at their ends.
fn check_lines(graph: &Graph, layout: &Layout, what: &str) {
    let lines = layout.edges.iter().filter(|route| !route.is_direct).map(|route| &route.points);
    for points in lines.chain(layout.trunks.iter().map(|trunk| &trunk.points)) {
        for pair in points.windows(2) {
            for (place, size) in layout.boxes.iter().zip(&graph.boxes) {
                let (left, right) = (place.corner.x, place.corner.x + size.width);
                let (top, bottom) = (place.corner.y, place.corner.y + size.height);
                let is_beside = pair.iter().all(|point| point.x <= left) || pair.iter().all(|point| point.x >= right);
                let is_above = pair[1].y <= top || pair[0].y >= bottom;
                assert!(is_beside || is_above, "{what}: {pair:?} meets a box at {place:?}");
            }
        }
    }
}

#[test]
fn boxes_do_not_overlap_and_edges_go_down_around_them() {
    for seed in 0..600 {
        let (graph, what) = (random(seed), format!("seed {seed}"));
        let layout = lay_out(&graph);
        check(&graph, &layout, &what);
        check_lines(&graph, &layout, &what);
        assert_eq!(layout, lay_out(&graph), "{what}: the same graph has the same layout");
    }
}

#[test]
fn sweeps_remove_crossings() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..300 {
        let layout = lay_out(&random(seed));
        (before, after) = (before + layout.crossings_before, after + layout.crossings);
    }
    assert!(after * 4 < before * 3, "{before} crossings became {after}");
    // A ladder whose rungs were written in the wrong order can do without any.
    let boxes = vec![BoxSize { width: 50.0, height: 20.0 }; 8];
    let edges = (0..4).map(|at| edge(at, 7 - at, EdgeKind::Input)).collect();
    assert_eq!(lay_out(&Graph { boxes, edges }).crossings, 0);
}

#[test]
fn a_line_is_straight_and_a_pair_is_below_the_middle() {
    let boxes: Vec<BoxSize> = (0..9).map(|at| BoxSize { width: 50.0 + 20.0 * f64::from(at), height: 20.0 }).collect();
    let centre = |layout: &Layout, at: usize| layout.boxes[at].corner.x + boxes[at].width / 2.0;
    let edges = (1..9).map(|at| edge(at - 1, at, EdgeKind::Input)).collect();
    let layout = lay_out(&Graph { boxes: boxes.clone(), edges });
    assert!((0..9).all(|at| (centre(&layout, at) - centre(&layout, 0)).abs() <= 1.0), "{:?}", layout.boxes);
    assert!(layout.edges.iter().all(|route| route.points.len() == 2));
    let edges = vec![edge(0, 2, EdgeKind::Input), edge(1, 2, EdgeKind::Input)];
    let layout = lay_out(&Graph { boxes: boxes.clone(), edges });
    assert!((centre(&layout, 0) + centre(&layout, 1) - 2.0 * centre(&layout, 2)).abs() <= 3.0, "{:?}", layout.boxes);
}

#[test]
fn a_source_is_beside_what_comes_before_its_reader() {
    let boxes = vec![BoxSize { width: 50.0, height: 20.0 }; 6];
    // 0 → 1 → 2 → 3, and 4 → 5 → 3.
    let edges = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 3)].map(|(from, to)| edge(from, to, EdgeKind::Input)).to_vec();
    let layout = lay_out(&Graph { boxes, edges });
    assert_eq!(layout.boxes.iter().map(|place| place.layer).collect::<Vec<_>>(), [0, 1, 2, 3, 1, 2]);
}

#[test]
fn edges_of_one_kind_share_a_trunk() {
    let boxes = vec![BoxSize { width: 50.0, height: 20.0 }; 6];
    let mut edges: Vec<Edge> = (1..6).map(|at| edge(at - 1, at, EdgeKind::Input)).collect();
    edges.extend([2, 3, 4].map(|to| edge(0, to, EdgeKind::Input)));
    edges.push(edge(0, 5, EdgeKind::Fallback));
    let layout = lay_out(&Graph { boxes, edges });
    assert_eq!(layout.trunks.len(), 1);
    assert!(layout.edges[5..8].iter().all(|route| route.trunk == Some(0)));
    assert_eq!(layout.edges[8].trunk, None);
}

#[test]
fn what_is_no_graph_of_a_plan_has_a_layout_nevertheless() {
    assert_eq!(lay_out(&Graph::default()), Layout::default());
    let boxes = vec![
        BoxSize { width: f64::NAN, height: -1.0 },
        BoxSize { width: f64::INFINITY, height: 1.0 },
        BoxSize { width: 10.0, height: 10.0 },
    ];
    let edges = [(0, 1), (1, 2), (2, 0), (0, 0), (0, 9), (7, 1)].map(|(from, to)| edge(from, to, EdgeKind::Input));
    let layout = lay_out(&Graph { boxes, edges: edges.to_vec() });
    assert!(layout.boxes.iter().all(|place| place.corner.x.is_finite() && place.corner.y.is_finite()));
    assert!(layout.edges[2].is_direct, "it closes a circle");
    assert!(layout.edges[3..].iter().all(|route| route.points.is_empty()), "these have no line");
}

/// Boxes in one line, in layers of a hundred with three inputs each, and with 64 inputs each, from anywhere before.
fn shapes(count: usize) -> [(&'static str, Graph); 4] {
    let mut dice = Dice(7);
    let boxes = vec![BoxSize { width: 160.0, height: 60.0 }; count];
    let with = |edges: Vec<Edge>| Graph { boxes: boxes.clone(), edges };
    let line = (1..count).map(|to| edge(to - 1, to, EdgeKind::Input)).collect();
    let wide = (100..count).flat_map(|to| {
        let layer = to / 100 * 100;
        [0; 3].map(|_| edge(layer - 100 + dice.below(100), to, EdgeKind::Input))
    });
    let layers = with(wide.collect());
    let many =
        (1..count).flat_map(|to| (0..64.min(to)).map(move |_| to)).map(|to| edge(dice.below(to), to, EdgeKind::Input));
    let dense = with(many.collect());
    // Every box reads the first one, too.
    let fan = (1..count).flat_map(|to| [edge(to - 1, to, EdgeKind::Input), edge(0, to, EdgeKind::Input)]).collect();
    [("one line", with(line)), ("layers", layers), ("64 inputs", dense), ("a line beside a trunk", with(fan))]
}

/// The goal is 2 s in release; debug builds on a busy machine are slower.
#[test]
fn the_largest_plans_are_laid_out_within_bounds() {
    for (what, graph) in shapes(10_000) {
        let start = clock::now();
        let layout = lay_out(&graph);
        let took = clock::now().saturating_duration_since(start);
        assert!(took < Duration::from_secs(20), "{what}: {took:?}");
        check(&graph, &layout, what);
        let points: usize = layout.edges.iter().map(|route| route.points.len()).sum();
        let of_trunks: usize = layout.trunks.iter().map(|trunk| trunk.points.len()).sum();
        assert!(
            points <= 4 * graph.edges.len() + 120_000 && of_trunks <= 140_000,
            "{what}: {points} + {of_trunks} points"
        );
    }
}
