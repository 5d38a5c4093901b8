//! The graph as the layout works on it: boxes and bends, which are the places where long edges pass through a layer. Every piece of
//! an edge leads from one layer to the next.
//!
//! Edges of one kind from one box share their bends: a trunk from which they branch off. The number of bends is bounded; the
//! longest edges do without.

use super::{Edge, Graph, Neighbours, sane};
use std::collections::HashMap;

/// So many bends there may be for each box, and in all.
const BENDS_PER_BOX: usize = 24;
const BENDS_MAX: usize = 60_000;

/// How wide a bend is.
const BEND_WIDTH: f64 = 2.0;

/// How an edge runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It gets no line.
    None,
    /// From one layer to the next.
    Short,
    /// Along its trunk, by so many bends.
    Long { trunk: u32, bends: u32 },
    /// As one straight line, whatever is in between.
    Direct,
}

/// Bends in a row.
#[derive(Debug)]
pub(super) struct Bends {
    pub(super) of: Edge,
    pub(super) vertices: Vec<u32>,
    /// How many edges run along it.
    pub(super) edges: u32,
}

/// Vertices are boxes first, then bends.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) boxes: usize,
    /// By vertex.
    pub(super) layer: Vec<u32>,
    pub(super) width: Vec<f64>,
    pub(super) up: Neighbours,
    pub(super) down: Neighbours,
    /// By edge of the graph.
    pub(super) ways: Vec<Way>,
    pub(super) trunks: Vec<Bends>,
}

impl Net {
    pub(super) fn new(graph: &Graph, layers: &[u32]) -> Net {
        let boxes = graph.boxes.len();
        let mut net = Net {
            boxes,
            layer: layers.to_vec(),
            width: graph.boxes.iter().map(|size| sane(size.width)).collect(),
            up: Neighbours::default(),
            down: Neighbours::default(),
            ways: vec![Way::None; graph.edges.len()],
            trunks: Vec::new(),
        };
        let pieces = net.cut(graph, layers);
        let count = net.layer.len();
        net.down = Neighbours::new(count, pieces.iter().copied());
        net.up = Neighbours::new(count, pieces.iter().map(|(from, to)| (*to, *from)));
        net
    }

    pub(super) fn is_bend(&self, vertex: u32) -> bool {
        vertex as usize >= self.boxes
    }

    /// The number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.down.items.len()
    }

    /// Decides how each edge runs, and makes the bends for it; the pieces that edges are cut into.
    fn cut(&mut self, graph: &Graph, layers: &[u32]) -> Vec<(u32, u32)> {
        let span = |edge: &Edge| layers[edge.to as usize].saturating_sub(layers[edge.from as usize]);
        let mut pieces: Vec<(u32, u32)> = Vec::with_capacity(graph.edges.len());
        let mut long: Vec<(u32, usize, &Edge)> = Vec::new();
        for (at, edge) in graph.lines() {
            match span(edge) {
                0 => self.ways[at] = Way::Direct,
                1 => {
                    self.ways[at] = Way::Short;
                    pieces.push((edge.from, edge.to));
                }
                span => long.push((span, at, edge)),
            }
        }
        // The shortest first: they gain most from being led around boxes, and trunks grow step by step.
        long.sort_by_key(|(span, at, _)| (*span, *at));
        let mut left = BENDS_MAX.min(BENDS_PER_BOX * self.boxes);
        let mut known: HashMap<(u32, super::EdgeKind), u32> = HashMap::new();
        for (span, at, edge) in long {
            let bends = span - 1;
            let trunk = known.get(&(edge.from, edge.kind)).copied();
            let has = trunk.map_or(0, |trunk| self.trunks[trunk as usize].vertices.len());
            let missing = (bends as usize).saturating_sub(has);
            if missing > left {
                self.ways[at] = Way::Direct;
                continue;
            }
            left -= missing;
            let trunk = trunk.unwrap_or_else(|| {
                self.trunks.push(Bends { of: *edge, vertices: Vec::new(), edges: 0 });
                self.trunks.len() as u32 - 1
            });
            known.insert((edge.from, edge.kind), trunk);
            self.extend(trunk, bends as usize, &mut pieces);
            let trunk_bends = &mut self.trunks[trunk as usize];
            trunk_bends.edges += 1;
            pieces.push((trunk_bends.vertices[bends as usize - 1], edge.to));
            self.ways[at] = Way::Long { trunk, bends };
        }
        pieces
    }

    /// Lengthens a trunk to so many bends.
    fn extend(&mut self, trunk: u32, bends: usize, pieces: &mut Vec<(u32, u32)>) {
        let trunk = &mut self.trunks[trunk as usize];
        while trunk.vertices.len() < bends {
            let above = trunk.vertices.last().copied().unwrap_or(trunk.of.from);
            let vertex = self.layer.len() as u32;
            self.layer.push(self.layer[above as usize] + 1);
            self.width.push(BEND_WIDTH);
            pieces.push((above, vertex));
            trunk.vertices.push(vertex);
        }
    }
}
