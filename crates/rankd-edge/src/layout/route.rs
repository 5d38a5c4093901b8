//! How high layers are, and the lines of edges through them.

use super::net::{Net, Way};
use super::{BoxPlace, GAP, Graph, Layout, Neighbours, Point, Route, Trunk, sane};

/// Room between layers: more where lines go far to the side, so that they are not flat.
const LAYER_GAP: f64 = 38.0;
const LAYER_GAP_MAX: f64 = 150.0;
const SLOPE: f64 = 0.07;

/// The most room between the ends of lines at the top of a box.
const PORT_GAP: f64 = 18.0;

/// Boxes and lines in their places.
pub(super) fn routed(graph: &Graph, net: &Net, layers: &[Vec<u32>], centres: &[f64]) -> Layout {
    let heights = heights(graph, net, layers, centres);
    let boxes: Vec<BoxPlace> = (0..net.boxes)
        .map(|at| {
            let layer = net.layer[at];
            let corner = Point { x: centres[at] - net.width[at] / 2.0, y: heights[layer as usize].0 };
            BoxPlace { corner, layer }
        })
        .collect();
    let lines = Lines { graph, net, centres, heights: &heights, boxes: &boxes };
    let ports = lines.ports();
    let mut trunks = Vec::new();
    // By trunk of the net: which of the layout it is, where several edges share it.
    let shared: Vec<Option<u32>> = net
        .trunks
        .iter()
        .map(|bends| {
            (bends.edges > 1).then(|| {
                let points = straightened(lines.trunk(bends.of.from, &bends.vertices));
                trunks.push(Trunk { from: bends.of.from, kind: bends.of.kind, points });
                trunks.len() as u32 - 1
            })
        })
        .collect();
    let edges = graph.edges.iter().enumerate().map(|(at, edge)| {
        let end = |x| Point { x, y: boxes[edge.to as usize].corner.y };
        match net.ways[at] {
            Way::None => Route::default(),
            Way::Direct => {
                let points = vec![lines.bottom(edge.from), end(centres[edge.to as usize])];
                Route { points, trunk: None, is_direct: true }
            }
            Way::Short => {
                let mut points = lines.trunk(edge.from, &[]);
                points.push(end(ports[at]));
                Route { points: straightened(points), trunk: None, is_direct: false }
            }
            Way::Long { trunk, bends } => {
                let vertices = &net.trunks[trunk as usize].vertices[..bends as usize];
                let mut points = match (shared[trunk as usize], vertices.last()) {
                    (Some(_), Some(last)) => vec![lines.end_of(*last)],
                    _ => lines.trunk(edge.from, vertices),
                };
                points.push(end(ports[at]));
                Route { points: straightened(points), trunk: shared[trunk as usize], is_direct: false }
            }
        }
    });
    let edges: Vec<Route> = edges.collect();
    let right = (0..net.layer.len()).map(|at| centres[at] + net.width[at] / 2.0).fold(0.0, f64::max);
    let height = heights.last().map_or(0.0, |(_, bottom)| bottom + GAP);
    Layout { boxes, edges, trunks, width: right + GAP, height, ..Layout::default() }
}

/// The top and the bottom of each layer.
fn heights(graph: &Graph, net: &Net, layers: &[Vec<u32>], centres: &[f64]) -> Vec<(f64, f64)> {
    let mut top = GAP;
    let height = |vertex: &u32| graph.boxes.get(*vertex as usize).map_or(0.0, |size| sane(size.height));
    let aside = |vertex: &u32| {
        let below = net.down.of(*vertex).iter();
        below.map(|other| (centres[*other as usize] - centres[*vertex as usize]).abs()).fold(0.0, f64::max)
    };
    let heights = layers.iter().map(|layer| {
        let bottom = top + layer.iter().map(height).fold(0.0, f64::max);
        let of_layer = (top, bottom);
        let widest = layer.iter().map(aside).fold(0.0, f64::max);
        top = (bottom + (LAYER_GAP + widest * SLOPE).min(LAYER_GAP_MAX)).round();
        of_layer
    });
    heights.collect()
}

struct Lines<'a> {
    graph: &'a Graph,
    net: &'a Net,
    centres: &'a [f64],
    heights: &'a [(f64, f64)],
    boxes: &'a [BoxPlace],
}

impl Lines<'_> {
    /// Where lines leave a box.
    fn bottom(&self, of: u32) -> Point {
        let (place, size) = (self.boxes[of as usize], self.graph.boxes[of as usize]);
        Point { x: self.centres[of as usize], y: place.corner.y + sane(size.height) }
    }

    /// Where a line leaves the layer of a vertex.
    fn end_of(&self, vertex: u32) -> Point {
        Point { x: self.centres[vertex as usize], y: self.heights[self.net.layer[vertex as usize] as usize].1 }
    }

    /// From a box to the end of its layer, and on through these bends.
    fn trunk(&self, from: u32, bends: &[u32]) -> Vec<Point> {
        let mut points = vec![self.bottom(from)];
        let end = self.end_of(from);
        if points[0] != end {
            points.push(end);
        }
        for bend in bends {
            let end = self.end_of(*bend);
            points.push(Point { x: end.x, y: self.heights[self.net.layer[*bend as usize] as usize].0 });
            points.push(end);
        }
        points
    }

    /// By edge: where it ends at the top of its box, beside the others, in the order in which they come.
    fn ports(&self) -> Vec<f64> {
        let arriving = self.graph.lines().filter(|(at, _)| !matches!(self.net.ways[*at], Way::None | Way::Direct));
        let mut by_box = Neighbours::new(self.net.boxes, arriving.map(|(at, edge)| (edge.to, at as u32)));
        let comes_from = |at: u32| {
            let from = match self.net.ways[at as usize] {
                Way::Long { trunk, bends } => self.net.trunks[trunk as usize].vertices[bends as usize - 1],
                Way::None | Way::Short | Way::Direct => self.graph.edges[at as usize].from,
            };
            self.centres[from as usize]
        };
        let mut ports = vec![0.0; self.graph.edges.len()];
        for to in 0..self.net.boxes as u32 {
            let edges = by_box.of_mut(to);
            edges.sort_by(|a, b| comes_from(*a).total_cmp(&comes_from(*b)));
            let gap = PORT_GAP.min(self.net.width[to as usize] * 0.8 / edges.len().max(1) as f64);
            let first = self.centres[to as usize] - gap * edges.len().saturating_sub(1) as f64 / 2.0;
            for (at, edge) in edges.iter().enumerate() {
                ports[*edge as usize] = first + gap * at as f64;
            }
        }
        ports
    }
}

/// The same line without points in the middle of a straight piece.
fn straightened(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        if let [.., before, last] = &mut kept[..]
            && before.x == last.x
            && last.x == point.x
        {
            *last = point;
        } else {
            kept.push(point);
        }
    }
    kept.shrink_to_fit();
    kept
}
